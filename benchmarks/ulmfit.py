"""ULMFiT: what each of its three tricks and each of its steps adds to a classifier.

python benchmarks/ulmfit.py general STORE --out DIR [--preset medium] [--budget 8m]
python benchmarks/ulmfit.py target GENERAL --train FILE --out DIR [--epochs 5]
python benchmarks/ulmfit.py classify GENERAL TARGET --train FILE --dev FILE [--seeds 1 2 3]
python benchmarks/ulmfit.py table FILE...

general: the first step, a language model of any text. target: the second, which goes on with the
texts of labelled rows, labels unseen. classify: the third, with all tricks (discriminative rates,
slanted triangular rates, gradual unfreezing), without each of them, with none; and with all of them
from the general model, without its second step, and from weights that have learned nothing. Dev
accuracy of the last weights, which no look at the dev rows has chosen. STORE is a token store of
words; FILE any file of labelled texts cut as that store's text is, such as IMDb's reviews.
--json appends a line for each training and skips what is there already; `table` makes Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from result_lines import append, left_to_do, mean, read

DECAY = 1 / 2.6
TRICKS = {"layer_decay": DECAY, "schedule": "slanted", "unfreeze_every": 1.0}
# Without the slanted triangle rates stay as they are, as in the paper's comparison.
WAYS: dict[str, dict[str, Any]] = {
    "all three": {},
    "without discriminative rates": {"layer_decay": 1.0},
    "without slanted rates": {"schedule": "constant", "warmup": 0.0},
    "without gradual unfreezing": {"unfreeze_every": 0.0},
    "none of the three": {
        "layer_decay": 1.0, "schedule": "constant", "warmup": 0.0, "unfreeze_every": 0.0,
    },
    "all three, no second step": {},
    "all three, nothing learned before": {},
}  # fmt: skip


def general(options: argparse.Namespace) -> None:
    """Train the language model of the first step."""
    from sememe import TokenStore, ULMFiT
    from sememe.text.settings import TextSettings

    store = TokenStore.open(options.store)
    settings = (store.fingerprint or {}).get("settings", {})
    model = ULMFiT(
        options.preset, budget=options.budget, batch_size=options.batch_size, device=options.device
    )
    model.fit(
        store, text=TextSettings(**settings), out=options.out, resume=options.resume, progress=True
    )
    tell(model)


def target(options: argparse.Namespace) -> None:
    """Go on with the texts of labelled rows."""
    from sememe import ULMFiT

    model = ULMFiT(
        start=options.general, epochs=options.epochs, layer_decay=DECAY, device=options.device,
        min_count=options.min_count, learning_rate=options.learning_rate,
    )  # fmt: skip
    model.fit(texts_of(options.train), out=options.out, overwrite=True, progress=True)
    tell(model)


def texts_of(path: str) -> list[str]:
    """The texts of a file of labelled rows."""
    from sememe.examples.labelled.texts import read_texts

    return [row.text for row in read_texts(path, kind="classify", labelled=True)]


def tell(model: Any) -> None:
    """Print the speed and the perplexity of a language model."""
    last = model.history.last()
    speeds = [record["tokens_per_s"] for record in model.history if "tokens_per_s" in record]
    shown = {name: last[name] for name in last if name.startswith("validation")}
    speed = statistics.median(speeds) if speeds else None
    print(json.dumps({"words": len(model.vocabulary), "tokens_per_s": speed, **shown}, indent=1))


def start_of(way: str, options: argparse.Namespace) -> Any:
    """The model that a way starts from."""
    from sememe import ULMFiT

    if "no second step" in way:
        return options.general
    model = ULMFiT.load(options.target)
    if "nothing learned" in way:
        model.network.initialise(seed=1)
    return model


def classify(options: argparse.Namespace) -> None:
    """Train every way with every seed, in turns."""
    from sememe import Classify

    for way, seed in left_to_do(options.json, options.way, options.seeds):
        begun_s = time.monotonic()
        task = Classify(
            start_of(way, options), seed=seed, epochs=options.epochs, length=options.length,
            batch_size=options.batch_size, learning_rate=options.learning_rate,
            device=options.device, keep_best=False, **{**TRICKS, **WAYS[way]},
        ).fit(options.train, dev=options.dev, progress=True)  # fmt: skip
        assert task.scores is not None
        metrics = {
            "way": way, "seed": seed, "epochs": options.epochs,
            "accuracy": task.scores.metrics["accuracy"],
            "seconds": round(time.monotonic() - begun_s, 1),
        }  # fmt: skip
        append(options.json, metrics)
        print(json.dumps(metrics))


def table(options: argparse.Namespace) -> None:
    """Print the results of files as Markdown."""
    lines = read(*options.files)
    print("| ULMFiT | dev accuracy | seeds |\n| --- | --- | --- |")
    for way in WAYS:
        values = [100 * line["accuracy"] for line in lines if line["way"] == way]
        if values:
            print(f"| {way} | {mean(values)} | {len(values)} |")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("general")
    first.set_defaults(run=general)
    first.add_argument("store")
    first.add_argument("--preset", default="medium")
    first.add_argument("--batch-size", type=int, default=64)
    first.add_argument("--budget", default="8m")
    first.add_argument("--resume", action="store_true")
    second = commands.add_parser("target")
    second.set_defaults(run=target)
    second.add_argument("general")
    second.add_argument("--epochs", type=float, default=5.0)
    second.add_argument("--min-count", type=int, default=2)
    second.add_argument("--learning-rate", type=float, default=0.0)
    third = commands.add_parser("classify")
    third.set_defaults(run=classify)
    third.add_argument("general")
    third.add_argument("target")
    third.add_argument("--dev", required=True)
    third.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    third.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS))
    third.add_argument("--epochs", type=float, default=8.0)
    third.add_argument("--batch-size", type=int, default=64)
    third.add_argument("--length", type=int, default=128)
    third.add_argument("--learning-rate", type=float, default=0.01)
    third.add_argument("--json", default="")
    for own in (first, second):
        own.add_argument("--out", required=True)
    for own in (second, third):
        own.add_argument("--train", required=True)
    for own in (first, second, third):
        own.add_argument("--device", default="auto")
    last = commands.add_parser("table")
    last.set_defaults(run=table)
    last.add_argument("files", nargs="+")
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    given.run(given)
