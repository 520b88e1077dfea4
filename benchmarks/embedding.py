"""Vectors of sentences on a CPU: sememe beside sentence-transformers, transformers, onnxruntime.

    python benchmarks/embedding.py MODEL TEXTS [--threads 2] [--rounds 7] [--num 1000]

MODEL is a sentence-transformers folder of a BERT (all-MiniLM-L6-v2, for example), or one of static
token vectors, which is compared with model2vec instead; TEXTS is a file with one sentence per line.
sememe computes a BERT in float32, in bf16 if the CPU has it, and as an int8 graph of onnxruntime.
Every program reads the same sentences alternately, with the same number of threads; the medians of
the rounds are printed, with CPU seconds, which other programs on the machine disturb less. The
peers are imported where they are installed, and left out elsewhere.
Vectors are compared with those of sentence-transformers.
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


def with_sememe(model: str) -> Embed:
    """`sememe.load(MODEL).embed`, mean pooling."""
    import sememe

    opened = sememe.load(model)
    return lambda texts: unit(opened.embed(texts))


def with_bf16(model: str) -> Embed:
    """The same in bf16."""
    import sememe

    opened = sememe.load(model).in_precision("bf16")
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


def with_sentence_transformers(model: str) -> Embed:
    """`SentenceTransformer.encode` with its defaults."""
    from sentence_transformers import SentenceTransformer

    opened = SentenceTransformer(model, device="cpu")
    return lambda texts: unit(np.asarray(opened.encode(texts)))


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


def main() -> None:
    """Print sentences per second of each program, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--num", type=int, default=1_000)
    asked = parser.parse_args()
    import torch

    torch.set_num_threads(asked.threads)
    lines = Path(asked.texts).read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line.strip()][: asked.num]
    programs: dict[str, Embed] = {"sememe": with_sememe(asked.model)}
    is_static = not Path(asked.model, "1_Pooling").is_dir()
    if is_static and importlib.util.find_spec("model2vec"):
        programs["model2vec"] = with_model2vec(asked.model)
    if not is_static:
        from sememe.training.device import multiplies_bf16

        if multiplies_bf16():
            programs["sememe bf16"] = with_bf16(asked.model)
        if importlib.util.find_spec("onnxruntime"):
            programs["sememe int8"] = with_int8(asked.model)
    if importlib.util.find_spec("sentence_transformers"):
        programs["sentence-transformers"] = with_sentence_transformers(asked.model)
    if not is_static and importlib.util.find_spec("transformers"):
        programs["transformers"] = with_transformers(asked.model)
    if not is_static and importlib.util.find_spec("onnxruntime"):
        programs["onnxruntime"] = with_onnxruntime(asked.model, asked.threads)
    expected_ND = None
    for name, embed in programs.items():  # warms up as well
        vectors_ND = embed(texts)
        if expected_ND is not None:
            print(f"{name}: largest difference {np.abs(vectors_ND - expected_ND).max():.1e}")
        else:
            expected_ND = vectors_ND
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(asked.rounds):
        for name, embed in programs.items():
            start, cpu = time.perf_counter(), time.process_time()
            embed(texts)
            times[name].append((time.perf_counter() - start, time.process_time() - cpu))
    ours = [statistics.median(column) for column in zip(*times["sememe"], strict=True)]
    print(f"{len(texts)} sentences, {asked.threads} threads, medians of {asked.rounds} rounds")
    for name, found in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*found, strict=True))
        print(
            f"{name:22} {len(texts) / wall:8.0f} sentences/s, {cpu:6.2f} CPU s; "
            f"sememe is {wall / ours[0]:.2f} times as fast ({cpu / ours[1]:.2f} by CPU seconds)"
        )


if __name__ == "__main__":
    main()
