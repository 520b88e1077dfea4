"""Short trainings of every model with one worker and one seed, and hashes of what they learn.

`python tests/golden/trainings.py FIXTURES` runs them beside unpacked fixtures and records
trainings.json; names behind the folder add these alone. Bits are promised for one type of CPU and
one set of versions, which the file names; norms of tensors hold everywhere within a tolerance.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import program
import sample_texts

RECORD = Path(__file__).with_name("trainings.json")

_STATIC = "--dim 8 --min-count 1 --workers 1 --seed 3 --quiet"
_RUN = "--workers 1 --seed 3 --device cpu --precision fp32 --quiet"
_NETWORK = f"--steps 24 --batch-size 4 --length 16 --evaluate-batches 1 {_RUN}"
_SUBWORDS = (
    f"--num-layers 2 --width 16 --num-heads 2 --max-length 32 --learning-rate 3e-3 "
    f"--validation-share 0.1 --compile no {_NETWORK}"
)
_LSTM = f"--num-cells 12 --width 8 --min-count 1 --validation-share 0.1 {_NETWORK}"
_TASK = f"--epochs 10 --batch-size 8 --length 24 --learning-rate 1e-2 {_RUN}"
_TRANSLATOR = (
    f"--dev-source texts/pairs.en --dev-target texts/pairs.de --vocab-size 300 --num-layers 1 "
    f"--width 16 --batch-size 256 --dropout 0.1 --steps 120 --learning-rate 1e-2 --bleu-pairs 4 "
    f"--max-length 32 --length 32 {_RUN}"
)
_ENGLISH, _CHINESE = "texts/english.txt", "texts/chinese.txt --language zh"


def _finetune(task: str, model: str, rows: str, more: str = "") -> str:
    return f"finetune {task} {model} --train texts/{rows} --dev texts/{rows} {_TASK} {more}"


def _sentences(model: str, objective: str, more: str = "") -> str:
    return (
        f"train sentence {model} --corpus {_ENGLISH} --objective {objective} --learning-rate 3e-3 "
        f"{_NETWORK} {more}"
    )


# What comes after `sememe`, without --out. Tasks stand on models that come before them.
COMMANDS: dict[str, str] = {
    "onehot": f"train onehot {_ENGLISH} --min-count 1 --quiet",
    "counts": f"train counts {_ENGLISH} --window 3 {_STATIC}",
    "counts-chinese": f"train counts {_CHINESE} --window 3 {_STATIC}",
    **{
        f"word2vec-{architecture}-{loss}": f"train word2vec {_ENGLISH} --architecture "
        f"{architecture} --loss {loss} --epochs 20 {_STATIC}"
        for architecture in ("skipgram", "cbow")
        for loss in ("negative", "hierarchical", "softmax")
    },
    "word2vec-chinese": f"train word2vec {_CHINESE} --epochs 20 {_STATIC}",
    "word2vec-phrases": f"train word2vec {_ENGLISH} --phrases 2 --epochs 20 {_STATIC}",
    "sif": "train sif word2vec-skipgram-negative texts/english.txt --workers 1 --quiet",
    "usif-chinese": "train sif word2vec-chinese texts/chinese.txt --method usif --quiet",
    "glove": f"train glove {_ENGLISH} --window 4 --epochs 15 {_STATIC}",
    "fasttext": f"train fasttext {_ENGLISH} --bucket 120 --epochs 20 {_STATIC}",
    "fasttext-cbow-hierarchical": f"train fasttext {_ENGLISH} --bucket 120 --epochs 20 "
    f"--architecture cbow --loss hierarchical {_STATIC}",
    "floret": f"train fasttext {_ENGLISH} --bucket 120 --hash-count 2 --epochs 20 {_STATIC}",
    "doc2vec": f"train doc2vec {_ENGLISH} --epochs 20 {_STATIC}",
    "doc2vec-dm": f"train doc2vec {_ENGLISH} --method dm --epochs 20 {_STATIC}",
    "doc2vec-concat": f"train doc2vec {_CHINESE} --method dm --combine concat --window 2 "
    f"--epochs 20 {_STATIC}",
    "classifier": "train classifier texts/labelled.txt --preset fasttext --bucket 60 "
    f"--word-ngrams 2 --minn 2 --maxn 3 --epochs 20 --learning-rate 0.5 {_STATIC}",
    "classifier-quantized": "train classifier texts/labelled.txt --preset fasttext --quantize "
    "--bucket 400 --minn 1 --maxn 6 --word-ngrams 3 --epochs 20 --learning-rate 0.5 --qnorm "
    f"{_STATIC}",
    "ngram": f"train ngram {_ENGLISH} --order 3 --min-count 1 --workers 1 --quiet",
    "ngram-chinese": f"train ngram {_CHINESE} --order 3 --min-count 1 --workers 1 --quiet",
    "nnlm": f"train nnlm {_ENGLISH} --dim 8 --num-hidden 8 --window 3 --direct --min-count 1 "
    f"--validation-share 0.1 {_NETWORK}",
    "nnlm-ranking": f"train nnlm {_ENGLISH} --ranking --dim 8 --num-hidden 8 --window 2 "
    f"--min-count 1 --validation-share 0.1 {_NETWORK}",
    "elmo": f'train elmo {_ENGLISH} --filters "1:4 2:4" --num-highways 1 --num-layers 2 {_LSTM}',
    "elmo-words": f"train elmo {_ENGLISH} --input words --start-epochs 1 --num-layers 1 {_LSTM}",
    "elmo-subwords": f"train elmo {_ENGLISH} --input subwords --num-layers 1 {_LSTM}",
    "ulmfit": f"train ulmfit {_ENGLISH} --num-layers 2 {_LSTM}",
    "ulmfit-again": f"train ulmfit {_ENGLISH} --from ulmfit --layer-decay 0.4 --min-count 1 "
    f"--validation-share 0.1 {_NETWORK}",
    "ulmfit-asgd": f"train ulmfit {_ENGLISH} --optimizer asgd --learning-rate 5 --num-layers 2 "
    f"--evaluate-every 3 --average-after 1 {_LSTM}",
    "tokenizer-wordpiece": f"train tokenizer {_ENGLISH} --kind wordpiece --vocab-size 200 --quiet",
    "tokenizer-bpe": f"train tokenizer {_ENGLISH} --kind bpe --vocab-size 300 --quiet",
    "gpt": f"train gpt {_ENGLISH} --vocab-size 300 {_SUBWORDS}",
    "bert": f"train bert {_ENGLISH} --vocab-size 200 {_SUBWORDS}",
    "bert-masks-only": f"train bert {_ENGLISH} --vocab-size 200 --no-next-sentence {_SUBWORDS}",
    "bert-chinese": f"train bert {_CHINESE} --vocab-size 200 --unit word {_SUBWORDS}",
    "bert-phrases": f"train bert {_ENGLISH} --vocab-size 200 --unit phrase {_SUBWORDS}",
    "bert-mixed": "train bert --mix en=texts/english.txt --mix zh=texts/chinese.txt "
    f"--vocab-size 240 --unit word {_SUBWORDS}",
    "seq2seq": f"train seq2seq texts/pairs.en texts/pairs.de --embedding-size 12 {_TRANSLATOR}",
    "seq2seq-gru": "train seq2seq texts/pairs.en texts/pairs.de --embedding-size 12 --cell gru "
    f"--attention additive --context before {_TRANSLATOR}",
    "transformer": f"train transformer texts/pairs.en texts/pairs.de --num-heads 2 {_TRANSLATOR}",
    "sentence-neighbors": _sentences("bert", "neighbors", "--matryoshka 8 --pool cls"),
    "sentence-tsdae": _sentences("bert", "tsdae"),
    "sentence-words": _sentences("word2vec-skipgram-negative", "simcse"),
    "classify": _finetune("classify", "bert", "opinions.tsv"),
    "pairs": _finetune("pairs", "bert", "pairs.tsv"),
    "regress": _finetune("regress", "bert", "scores.tsv", "--learning-rate 3e-3 --epochs 30"),
    "choose": _finetune("choose", "bert", "choices.tsv"),
    "tag": _finetune("tag", "bert", "tags.txt"),
    "tag-crf": _finetune("tag", "bert", "tags.txt", "--crf"),
    "answer": _finetune("answer", "bert", "questions.jsonl"),
    "classify-mixed-layers": _finetune("classify", "bert", "opinions.tsv", "--features mix"),
    "classify-ensemble": _finetune("classify", "bert", "opinions.tsv", "--seeds 2 --ensemble"),
    "classify-words": _finetune("classify", "word2vec-skipgram-negative", "opinions.tsv"),
    "tag-words": _finetune("tag", "word2vec-skipgram-negative", "tags.txt", "--reader-width 8"),
    "classify-subwords": _finetune("classify", "fasttext", "opinions.tsv"),
    "classify-elmo": _finetune("classify", "elmo", "opinions.tsv", "--reader-width 8"),
    "tag-elmo": _finetune("tag", "elmo", "tags.txt", "--reader-width 8 --crf"),
    "classify-ulmfit": _finetune("classify", "ulmfit", "opinions.tsv", "--unfreeze-every 0.5"),
    "classify-gpt": _finetune("classify", "gpt", "opinions.tsv", "--lm-weight 0.5"),
    "pairs-gpt": _finetune("pairs", "gpt", "pairs.tsv"),
    "answer-words": _finetune("answer", "glove", "questions.jsonl", "--reader-width 8"),
}


def train(name: str, out: str) -> Path:
    """Train one model into a folder; texts/ and earlier models lie in the working folder."""
    program.run(*shlex.split(COMMANDS[name]), "--out", out)
    return Path(out)


def learned(folder: Path) -> dict[str, np.ndarray]:
    """Every array of a model folder by file and name."""
    from safetensors.numpy import load_file

    found: dict[str, np.ndarray] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".safetensors":
            arrays = load_file(path)
            found |= {f"{name}:{key}": arrays[key] for key in sorted(arrays)}
        elif path.name in ("tokenizer.json", "vocabulary.txt"):
            found[name] = np.frombuffer(path.read_bytes(), np.uint8)
    if not found:
        raise RuntimeError(f"{folder} holds nothing that was learned.")
    return found


def digest(array: np.ndarray) -> str:
    """The hash of an array: its type, its shape, its bytes."""
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()


def norm(array: np.ndarray) -> float:
    """The length of an array as one vector, to six digits; of text its number of bytes."""
    if array.dtype == np.uint8:
        return float(array.size)
    return float(f"{np.linalg.norm(array.astype(np.float64)):.6g}")


def summary(folder: Path) -> dict[str, dict[str, Any]]:
    """What trainings.json keeps of a model folder."""
    return {
        name: {"sha256": [digest(array)], "shape": list(array.shape), "norm": norm(array)}
        for name, array in learned(folder).items()
    }


def machine() -> dict[str, str]:
    """What bits depend on: the CPU and the versions of the libraries that compute."""
    from llvmlite.binding import get_host_cpu_name

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        pairs = dict(re.findall(r"^([^\t:]+)\s*: (.*)$", info.read_text(), re.MULTILINE))
        keys = ("vendor_id", "cpu family", "model", "model name")
        cpu = ", ".join(f"{key} {pairs[key]}" for key in keys if key in pairs) or cpu
    packages = ("numba", "numpy", "scipy", "tokenizers", "torch")
    return {
        "cpu": cpu,
        "numba_cpu": get_host_cpu_name(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{package: version(package) for package in packages},
    }


def record(workplace: Path, only: list[str]) -> dict[str, Any]:
    """Run every training, or only some, beside the fixtures; give what trainings.json holds.

    Bits of a machine that is not among those of a training are added to the others; otherwise they
    replace all of them. Run it before a change of the code, because it writes the promise.
    """
    sample_texts.write(workplace / "texts")
    known = json.loads(RECORD.read_text("utf-8"))
    here = number_of(machine(), known["machines"]) or str(len(known["machines"]) + 1)
    known["machines"][here] = machine()
    with program.working_in(workplace):
        for name in only or COMMANDS:
            found, before = summary(train(name, f"again/{name}")), known.get(name, {})
            machines = before.get("machines", [])
            is_new = here not in machines and before.keys() - {"machines"} == found.keys()
            for tensor, own in found.items():
                others = before[tensor]["sha256"] if is_new else []
                own["sha256"] = [*dict.fromkeys([*others, *own["sha256"]])]
            known[name] = {"machines": [*machines, here] if is_new else [here], **found}
    return {name: known[name] for name in ("machines", *COMMANDS)}


def number_of(machine: dict[str, str], machines: dict[str, dict[str, str]]) -> str | None:
    """The number of a machine in trainings.json, if it is there."""
    return next((number for number, own in machines.items() if own == machine), None)


def write_lines(path: Path, content: dict[str, dict[str, Any]]) -> None:
    """Write a dictionary of dictionaries as JSON, a line for each inner entry."""
    parts = []
    for name, own in content.items():
        lines = [f"  {_json(key)}: {_json(value)}" for key, value in own.items()]
        parts.append(f" {_json(name)}: {{\n" + ",\n".join(lines) + "\n }")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    found = record(Path(sys.argv[1]), sys.argv[2:])
    write_lines(RECORD, found)
    print(f"Wrote {len(found) - 1} trainings to {RECORD.name}.")
