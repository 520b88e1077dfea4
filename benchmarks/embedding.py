"""Vectors of sentences: sememe beside sentence-transformers, transformers, onnxruntime.

    python benchmarks/embedding.py MODEL TEXTS [--threads 2] [--rounds 7] [--num 1000] [--mixed]
    python benchmarks/embedding.py MODEL TEXTS --device cuda

MODEL is a sentence-transformers folder of a BERT (all-MiniLM-L6-v2, for example), or one of static
token vectors, which is compared with model2vec instead; TEXTS is a file with one sentence per line.
On a CPU sememe computes a BERT in float32, in bf16 if the CPU has it, and as an int8 graph of
onnxruntime; on a GPU both programs compute in fp32, bf16 and fp16. `--mixed` joins 1, 2, 4, 8 or 16
lines to one text. Every program sorts texts by length, as it does by default, and reads the same
texts alternately with the same number of threads. The medians of the rounds are printed; on a CPU
with CPU seconds, which other programs on the machine disturb less. The peers are imported where
they are installed, and left out elsewhere. Vectors are compared with those of sememe in fp32.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Embed = Callable[[list[str]], np.ndarray]


def unit(vectors_ND: np.ndarray) -> np.ndarray:
    """Vectors of length one."""
    return vectors_ND / np.linalg.norm(vectors_ND, axis=1, keepdims=True)


def with_sememe(model: str, device: str = "cpu", precision: str = "fp32") -> Embed:
    """`sememe.load(MODEL).embed`."""
    import sememe

    opened = sememe.load(model, device=device).in_precision(precision)
    return lambda texts: unit(opened.embed(texts))


def with_int8(model: str) -> Embed:
    """An int8 graph of onnxruntime, opened by sememe."""
    import sememe
    from sememe.models.registry import convert

    folder = Path(tempfile.mkdtemp(), "int8")
    convert(model, folder, "onnx", int8=True)
    opened = sememe.load(folder)
    return lambda texts: unit(opened.embed(texts))


def with_model2vec(model: str) -> Embed:
    """`StaticModel.encode`, in one process."""
    from model2vec import StaticModel

    opened = StaticModel.from_pretrained(model)
    return lambda texts: unit(opened.encode(texts, use_multiprocessing=False))


def with_sentence_transformers(
    model: str, device: str = "cpu", precision: str = "fp32", batch_size: int = 32
) -> Embed:
    """`SentenceTransformer.encode`; its own default is 32 sentences at once."""
    import torch
    from sentence_transformers import SentenceTransformer

    types = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    opened = SentenceTransformer(model, device=device).to(dtype=types[precision])
    return lambda texts: unit(np.asarray(opened.encode(texts, batch_size=batch_size)))


def pooled(hidden_BTD: Any, mask_BT: Any) -> Any:
    """The mean over the tokens of each row."""
    weights_BT1 = mask_BT[..., None]
    return (hidden_BTD * weights_BT1).sum(1) / weights_BT1.sum(1)


def in_batches(texts: list[str], embed: Embed, size: int = 32) -> np.ndarray:
    """Embed texts sorted by length, `size` at once."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    found = [
        embed([texts[index] for index in order[first : first + size]])
        for first in range(0, len(texts), size)
    ]
    vectors_ND = np.concatenate(found)
    result_ND = np.empty_like(vectors_ND)
    result_ND[order] = vectors_ND
    return unit(result_ND)


def with_transformers(model: str) -> Embed:
    """`AutoModel`, 32 sorted sentences at once."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    network, tokenizer = AutoModel.from_pretrained(model), AutoTokenizer.from_pretrained(model)

    def embed(texts: list[str]) -> np.ndarray:
        with torch.no_grad():
            batch = tokenizer(texts, padding=True, return_tensors="pt")
            found = pooled(network(**batch).last_hidden_state, batch["attention_mask"])
        return np.asarray(found)

    return lambda texts: in_batches(texts, embed)


def with_onnxruntime(model: str, threads: int) -> Embed:
    """onnxruntime in float32, sorted, its threads sleeping while they wait."""
    import onnxruntime
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    names = ("input_ids", "attention_mask", "token_type_ids")

    class Hidden(torch.nn.Module):
        """The network with its output as one tensor."""

        def __init__(self) -> None:
            super().__init__()
            self.network = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            """The last layer."""
            found: torch.Tensor = self.network(**dict(zip(names, inputs, strict=True)))[0]
            return found

    sample = tokenizer(["one two three", "four"], padding=True, return_tensors="pt")
    path = str(Path(tempfile.mkdtemp(), "model.onnx"))
    axes = {name: {0: "rows", 1: "tokens"} for name in (*names, "hidden")}
    torch.onnx.export(
        Hidden(), tuple(sample[name] for name in names), path, input_names=list(names),
        output_names=["hidden"], dynamic_axes=axes, dynamo=False,
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def embed(texts: list[str]) -> np.ndarray:
        batch = tokenizer(texts, padding=True, return_tensors="np")
        feed = {name: batch[name].astype(np.int64) for name in names}
        found = session.run(["hidden"], feed)[0]
        return np.asarray(pooled(found, batch["attention_mask"].astype(np.float32)))

    return lambda texts: in_batches(texts, embed)


def on_gpu(asked: argparse.Namespace) -> dict[str, Embed]:
    """Both programs in the precisions of a GPU."""
    own: dict[str, Embed] = {}
    for precision in ("fp32", "bf16", "fp16"):
        own[f"sememe {precision}"] = with_sememe(asked.model, asked.device, precision)
        if importlib.util.find_spec("sentence_transformers"):
            own[f"sentence-transformers {precision}"] = with_sentence_transformers(
                asked.model, asked.device, precision, asked.batch_size
            )
    return own


def on_cpu(asked: argparse.Namespace) -> dict[str, Embed]:
    """Every program that is installed, on a CPU."""
    programs: dict[str, Embed] = {"sememe fp32": with_sememe(asked.model)}
    if not Path(asked.model, "1_Pooling").is_dir():
        if importlib.util.find_spec("model2vec"):
            programs["model2vec"] = with_model2vec(asked.model)
        if importlib.util.find_spec("sentence_transformers"):
            programs["sentence-transformers"] = with_sentence_transformers(asked.model)
        return programs
    from sememe.training.device import multiplies_bf16

    if multiplies_bf16():
        programs["sememe bf16"] = with_sememe(asked.model, precision="bf16")
    if importlib.util.find_spec("onnxruntime"):
        programs["sememe int8"] = with_int8(asked.model)
    if importlib.util.find_spec("sentence_transformers"):
        programs["sentence-transformers fp32"] = with_sentence_transformers(
            asked.model, batch_size=asked.batch_size
        )
    if importlib.util.find_spec("transformers"):
        programs["transformers fp32"] = with_transformers(asked.model)
        if importlib.util.find_spec("onnxruntime"):
            programs["onnxruntime fp32"] = with_onnxruntime(asked.model, asked.threads)
    return programs


def mixed(lines: list[str], num: int) -> list[str]:
    """Texts of 1, 2, 4, 8 and 16 lines; short files are read again and again."""
    texts, start = [], 0
    for index in range(num):
        size = 1 << index % 5
        texts.append(" ".join(lines[(start + own) % len(lines)] for own in range(size)))
        start += size
    return texts


def main() -> None:
    """Print sentences per second of each program, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--num", type=int, default=0, help="texts; default: 1000, 20000 on a GPU")
    parser.add_argument("--mixed", action="store_true", help="join 1 to 16 lines to one text")
    parser.add_argument("--batch-size", type=int, default=32, help="of sentence-transformers")
    asked = parser.parse_args()
    import torch

    is_gpu = asked.device != "cpu"
    if not is_gpu:
        torch.set_num_threads(asked.threads)
    num = asked.num or (20_000 if is_gpu else 1_000)
    lines = Path(asked.texts).read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line.strip()]
    texts = mixed(lines, num) if asked.mixed else lines[:num]
    compare(on_gpu(asked) if is_gpu else on_cpu(asked), texts, asked.rounds)


def compare(programs: dict[str, Embed], texts: list[str], rounds: int) -> None:
    """Embed alternately; print the medians beside those of sentence-transformers in fp32."""
    expected_ND = None
    for name, embed in programs.items():  # warms up as well
        vectors_ND = embed(texts)
        if expected_ND is not None:
            print(f"{name}: largest difference {np.abs(vectors_ND - expected_ND).max():.1e}")
        else:
            expected_ND = vectors_ND
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, embed in programs.items():
            start, cpu = time.perf_counter(), time.process_time()
            embed(texts)
            times[name].append((time.perf_counter() - start, time.process_time() - cpu))
    medians = {
        name: [statistics.median(column) for column in zip(*found, strict=True)]
        for name, found in times.items()
    }
    words = sum(len(text.split()) for text in texts)
    print(f"{len(texts):,} texts of {words / len(texts):.1f} words, medians of {rounds} rounds")
    for name, (wall, cpu) in medians.items():
        others = [own for own in medians if "sentence-transformers" in own]
        ratios = [f"{medians[own][0] / wall:.2f} × {own}" for own in others if own != name]
        beside = f": {', '.join(ratios)}" if ratios and name.startswith("sememe") else ""
        print(f"{name:26} {len(texts) / wall:9,.0f} texts/s, {cpu:6.2f} CPU s{beside}")


if __name__ == "__main__":
    main()
