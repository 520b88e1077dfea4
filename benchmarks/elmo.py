"""ELMo: how fast it reads and how well it predicts, and what it adds to a tagger of names.

python benchmarks/elmo.py train STORE --out DIR [--preset medium] [--budget 12m] [--json FILE]
python benchmarks/elmo.py ner MODEL --vectors FOLDER --data DIR [--seeds 1 2 3] [--json FILE]
python benchmarks/elmo.py table FILE...

train: a biLM from a token store of words; words and marks a second (the median of the records),
forward and backward perplexity on held-out documents. --resume goes on with a run that was stopped.
ner: a BiLSTM-CRF on CoNLL-2003 with word vectors alone, with ELMo's words by themselves beside
them (layer 0: what characters say), with the mix of all layers, and with that mix alone; entity
F1 of the official rules on eng.testa and eng.testb, every seed. All have the same options.
--json appends a line for each training and skips what is there already, so that several runs add
up; `table` makes Markdown of such files. DIR holds eng.train, eng.testa and eng.testb, also as .xz.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from result_lines import append, left_to_do, mean, read

WAYS = {
    "vectors": {},
    "vectors + characters": {"features": "first"},
    "vectors + ELMo": {"features": "mix"},
    "ELMo": {"features": "mix"},
}


def train(options: argparse.Namespace) -> None:
    """Train a biLM and tell its speed and perplexities."""
    from sememe import ELMo, TokenStore

    model = ELMo(
        options.preset, budget=options.budget, batch_size=options.batch_size,
        max_words=options.max_words, device=options.device, precision=options.precision,
        softmax=options.softmax,
    )  # fmt: skip
    store = TokenStore.open(options.store)
    model.fit(store, out=options.out, text=_text_of(store), resume=options.resume, progress=True)
    last = model.history.last()
    speeds = [record["tokens_per_s"] for record in model.history if "tokens_per_s" in record]
    metrics = {
        "what": "train", "preset": options.preset, "words": len(model.vocabulary),
        "tokens": last["tokens"], "epochs": last["epoch"], "seconds": last["seconds"],
        "tokens_per_s": statistics.median(speeds),
        **{name: last[f"validation_{name}_perplexity"] for name in ("forward", "backward")},
        "unigram": last["validation_unigram_perplexity"], **circumstances(options),
    }  # fmt: skip
    append(options.json, metrics)
    print(json.dumps(metrics, indent=1))


def _text_of(store: Any) -> Any:
    """How the text of the store was cut, so that the model's folder tells it."""
    from sememe.models.elmo.config import CasedTextSettings

    kept = (store.fingerprint or {}).get("settings", {})
    return CasedTextSettings(language=kept.get("language", "none"))


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """Where it was measured."""
    import torch

    is_gpu = options.device in ("auto", "cuda") and torch.cuda.is_available()
    device = torch.cuda.get_device_name() if is_gpu else "CPU"
    return {"device": device, "torch": torch.__version__}


def ner(options: argparse.Namespace) -> None:
    """Train every way with every seed, in turns."""
    from sememe import Tag

    files = {name: _file(Path(options.data), name) for name in ("train", "testa", "testb")}
    for way, seed in left_to_do(options.json, options.way, options.seeds):
        model = options.vectors if way == "vectors" else options.model
        beside = {"vectors": options.vectors} if way.startswith("vectors +") else {}
        begun_s = time.monotonic()
        task = Tag(
            str(model), crf=True, seed=seed, batch_size=options.batch_size,
            epochs=options.epochs, reader_width=options.reader_width,
            dropout=options.dropout, learning_rate=options.learning_rate,
            device=options.device, **WAYS[way], **beside,
        ).fit(files["train"], dev=files["testa"], progress=True)  # fmt: skip
        metrics = {
            "what": "ner", "way": way, "seed": seed, "epochs": options.epochs,
            "dev_f1": task.scores.metrics["f1"] if task.scores else None,
            "test_f1": task.evaluate(files["testb"]).metrics["f1"],
            "seconds": round(time.monotonic() - begun_s, 1), **circumstances(options),
        }  # fmt: skip
        append(options.json, metrics)
        print(json.dumps(metrics))


def _file(folder: Path, name: str) -> str:
    for path in (folder / f"eng.{name}", folder / f"eng.{name}.xz"):
        if path.exists():
            return str(path)
    raise SystemExit(f"{folder} lacks eng.{name}.")


def table(options: argparse.Namespace) -> None:
    """Print the results of files as Markdown."""
    lines = read(*options.files)
    for line in lines:
        if line["what"] == "train":
            print(
                f"ELMo {line['preset']}: {line['tokens_per_s'] / 1e3:,.0f} k tokens/s on "
                f"{line['device']}, {line['tokens'] / 1e6:,.0f} M tokens ({line['epochs']:.1f} "
                f"epochs) in {line['seconds'] / 60:.1f} min; perplexity {line['forward']:.1f} "
                f"forwards, {line['backward']:.1f} backwards (by frequency {line['unigram']:.0f})"
            )
    print("\n| tagger | dev F1 | test F1 | seeds |\n| --- | --- | --- | --- |")
    for way in WAYS:
        own = [line for line in lines if line["what"] == "ner" and line["way"] == way]
        if own:
            cells = [mean([100 * line[f"{name}_f1"] for line in own]) for name in ("dev", "test")]
            print(f"| {way} | {cells[0]} | {cells[1]} | {len(own)} |")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.set_defaults(run=train)
    one.add_argument("store")
    one.add_argument("--out", required=True)
    one.add_argument("--resume", action="store_true")
    one.add_argument("--preset", default="medium")
    one.add_argument("--budget", default="12m")
    one.add_argument("--batch-size", type=int, default=128)
    one.add_argument("--max-words", type=int, default=40_000)
    one.add_argument("--softmax", default="full")
    one.add_argument("--precision", default="auto")
    other = commands.add_parser("ner")
    other.set_defaults(run=ner)
    other.add_argument("model")
    other.add_argument("--vectors", required=True)
    other.add_argument("--data", required=True)
    other.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    other.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS))
    other.add_argument("--epochs", type=float, default=12.0)
    other.add_argument("--batch-size", type=int, default=32)
    other.add_argument("--reader-width", type=int, default=200)
    other.add_argument("--dropout", type=float, default=0.5)
    other.add_argument("--learning-rate", type=float, default=2e-3)
    for parser_of in (one, other):
        parser_of.add_argument("--device", default="auto")
        parser_of.add_argument("--json", default="")
    last = commands.add_parser("table")
    last.set_defaults(run=table)
    last.add_argument("files", nargs="+")
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    given.run(given)
