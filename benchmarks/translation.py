"""Translation on public pairs: a model trained and scored on the official test set, one JSON line.

python benchmarks/translation.py train transformer DATA [--target de] [--epochs 60] [--device cuda]
python benchmarks/translation.py train lstm DATA        an LSTM with attention
python benchmarks/translation.py train fixed DATA       the same LSTM, all of a text in one vector
python benchmarks/translation.py tokenizer DATA --out DIR
python benchmarks/translation.py table FILE...

DATA is a folder with train.en, val.en and test.en beside their .de (or --source, --target), packed
or not; --test test_2016_flickr names another test set (Multi30k's). Or it is one table with two
columns: of its texts a twentieth is held out for testing and another for choosing, all translations
of one text on the same side. `--set dropout=0.2 beam=4` changes any option of the model or of the
search, `--look TEXT` adds where the words of its translation look. Texts are lower-cased; BLEU is
sacrebleu's on text as people write it, case:lc.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    # The paper's rate, 1/√(width × warm-up steps), for a width of 256.
    "transformer": (
        "Transformer",
        {"preset": "small", "epochs": 60.0, "warmup": 2_000.0, "learning_rate": 1.4e-3},
    ),
    "lstm": ("Seq2Seq", {"preset": "small", "epochs": 30.0}),
    "fixed": ("Seq2Seq", {"preset": "small", "epochs": 30.0, "attention": "none"}),
}
VOCAB_SIZE = 8_000
_TEST_SHARE = 0.05


def files_of(folder: Path, name: str, options: argparse.Namespace) -> tuple[Path, Path]:
    """The two files of a part: name.en and name.de, packed or not."""
    found = []
    for language in (options.source, options.target):
        matches = sorted(folder.glob(f"{name}.{language}")) or sorted(
            folder.glob(f"{name}.{language}.*")
        )
        if len(matches) != 1:
            raise SystemExit(f"{folder} needs one {name}.{language}, and has {len(matches)}.")
        found.append(matches[0])
    return found[0], found[1]


def parts_of(options: argparse.Namespace) -> dict[str, list[Any]]:
    """The pairs of train, val and test."""
    from sememe.examples.pair_batches import is_held_out
    from sememe.examples.parallel import read_pairs

    if options.data.is_dir():
        names = {"train": "train", "val": "val", "test": options.test}
        return {
            part: list(read_pairs(*files_of(options.data, name, options), skip_bad=True))
            for part, name in names.items()
        }
    parts: dict[str, list[Any]] = {"train": [], "val": [], "test": []}
    for pair in read_pairs(options.data, skip_bad=True):
        is_test = is_held_out(pair.source, _TEST_SHARE)
        is_val = is_held_out(f"{pair.source} val", _TEST_SHARE)
        parts["test" if is_test else "val" if is_val else "train"].append(pair)
    return parts


def read_value(text: str) -> Any:
    """A number or a truth where the text is one."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def settings_of(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the model and those of the search."""
    from sememe.models.translation.config import SearchConfig

    given = {key: read_value(value) for key, _, value in (s.partition("=") for s in options.set)}
    search = {field.name for field in fields(SearchConfig)}
    return (
        {key: value for key, value in given.items() if key not in search},
        {key: value for key, value in given.items() if key in search},
    )


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Train one model and score it; what a line of results says."""
    import torch

    import sememe
    from sememe.progress import Reporter

    name, defaults = MODELS[options.model]
    own, search = settings_of(options)
    settings = {**defaults, "vocab_size": VOCAB_SIZE, "lowercase": True, "compile": "no", **own}
    if {"steps", "budget"} & set(own):
        settings.pop("epochs", None)
    if options.epochs:
        settings["epochs"] = options.epochs
    parts = parts_of(options)
    begun_s = time.monotonic()
    model = getattr(sememe, name)(
        settings.pop("preset"), seed=options.seed, device=options.device, bleu_pairs=0, **settings
    )
    model.fit(
        parts["train"], dev=parts["val"], tokenizer=options.tokenizer, out=options.out,
        overwrite=True, progress=Reporter(),
    )  # fmt: skip
    trained_s = time.monotonic()
    found = model.evaluate(parts["test"], **search)
    last = model.history.last()
    looked = []
    for text in options.look:
        seen = model.attention(text)
        looked.append([seen.source, seen.target, seen.of().round(4).tolist()])
    is_gpu = options.device != "cpu" and torch.cuda.is_available()
    return {
        "model": options.model,
        "data": f"{options.data.name} {options.source}-{options.target} {options.test}",
        "seed": options.seed,
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "pairs": len(parts["train"]),
        "steps": last["step"],
        "train_s": round(trained_s - begun_s, 1),
        "tokens_per_s": round(max(r.get("tokens_per_s", 0.0) for r in model.history)),
        "dev_loss": round(min(r.get("validation_loss", 1e9) for r in model.history), 4),
        "bleu": round(found["bleu"], 2),
        "bleu_signature": found["bleu_signature"],
        "chrf": round(found["chrf"], 2),
        "beam": found["beam"],
        "test_s": round(time.monotonic() - trained_s, 1),
        "options": {**own, **search},
        "device": torch.cuda.get_device_name() if is_gpu else platform.processor() or "cpu",
        "torch": torch.__version__,
        "examples": [
            [pair.source, text, pair.target]
            for pair, text in list(zip(parts["test"], found["translations"], strict=True))[:3]
        ],
        "looked": looked,
    }


def train_tokenizer(options: argparse.Namespace) -> dict[str, Any]:
    """Learn the sub-words of the training pairs alone, for machines that shall not."""
    from sememe.models.translation.coding import train_coder

    coder = train_coder(
        parts_of(options)["train"], kind="bpe", vocab_size=options.vocab_size, lowercase=True
    )
    coder.tokenizer.save(options.out)
    return {"out": str(options.out), "tokens": coder.tokenizer.vocab_size}


def rows_of(files: list[Path]) -> Iterator[list[str]]:
    """The results of some files as the rows of a table."""
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            if not line.startswith("{"):
                continue
            found = json.loads(line)
            yield [
                found["data"], found["model"], f"{found['parameters'] / 1e6:.1f} M",
                f"{found['train_s']:.0f} s", f"{found['tokens_per_s'] / 1e3:.0f} k",
                f"{found['dev_loss']:.3f}", f"{found['bleu']:.2f}", f"{found['chrf']:.2f}",
            ]  # fmt: skip


def main() -> None:
    """Read the command line, run, print one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("data", type=Path)
    shared.add_argument("--source", default="en")
    shared.add_argument("--target", default="de")
    shared.add_argument("--test", default="test")
    shared.add_argument("--out", type=Path)
    training = tasks.add_parser("train")
    training.add_argument("model", choices=MODELS)
    for action in shared._actions:
        training._add_action(action)
    training.add_argument("--tokenizer", type=Path)
    training.add_argument("--epochs", type=float, default=0.0)
    training.add_argument("--device", default="auto")
    training.add_argument("--seed", type=int, default=1)
    training.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    training.add_argument("--look", nargs="*", default=[], metavar="TEXT")
    tokenizing = tasks.add_parser("tokenizer", parents=[shared])
    tokenizing.add_argument("--vocab-size", type=int, default=VOCAB_SIZE)
    table = tasks.add_parser("table")
    table.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    if options.task == "table":
        for row in rows_of(options.files):
            print(f"| {' | '.join(row)} |")
        return
    found = train(options) if options.task == "train" else train_tokenizer(options)
    print(json.dumps(found, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
