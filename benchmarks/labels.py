"""What class weights, calibration and thresholds change where labels are rare.

    python benchmarks/labels.py DATA
    python benchmarks/labels.py DATA --bert runs/bert --log labels.jsonl --minutes 9

It reads DATA/zh/thucnews_titles (one label per title; its ten classes are thinned to 100 : 1) and
DATA/zh/cluener (the kinds of names in a sentence, any number of them), trains fastText's
classifier, skip-gram vectors under a linear head and, if given, a BERT with each option, and prints
scores on the test rows, mean ± standard deviation over seeds, which also draw the rows. A run with
the same log continues it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import sememe

Rows = list[tuple[str, Any]]
RATIO = 100  # of the rows of the most and of the least frequent class
SETTINGS: dict[str, dict[str, Any]] = {
    "none": {},
    "class weights": {"class_weights": "balanced"},
    "calibrated": {"calibrate": True},
    "thresholds": {"thresholds": "f1"},
    "all three": {"class_weights": "balanced", "calibrate": True, "thresholds": "f1"},
}


def titles(folder: Path, name: str, seed: int) -> Rows:
    """News titles with their class, thinned so that each class has fewer than the one before."""
    classes = (folder / "class.txt").read_text("utf-8").split()
    keep = {one: RATIO ** (-place / (len(classes) - 1)) for place, one in enumerate(classes)}
    lines = (folder / name).read_text("utf-8").splitlines()
    rows = [
        (text, classes[int(number)]) for text, number in (line.rsplit("\t", 1) for line in lines)
    ]
    draw = random.Random(seed)
    return [row for row in rows if draw.random() < keep[row[1]]]


def names(folder: Path, name: str, seed: int) -> Rows:
    """Sentences with the kinds of names in them, in an order that decides which are held out."""
    with lzma.open(folder / name, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    random.Random(seed).shuffle(rows)
    return [(row["text"], sorted(row["label"])) for row in rows]


def fasttext(train: Rows, seed: int, **options: Any) -> Any:
    """FastText's classifier on character n-grams."""
    has_sets = isinstance(train[0][1], list)
    return sememe.FastTextClassifier(
        minn=1, maxn=3, bucket=200_000, learning_rate=0.5, epochs=10, workers=1, seed=seed,
        loss="ova" if has_sets else "softmax", **options,
    ).fit(train, progress=False)  # fmt: skip


def vectors(train: Rows, seed: int, **options: Any) -> Any:
    """Skip-gram vectors of the training texts, fine-tuned under a linear head."""
    words = sememe.Word2Vec(dim=100, min_count=2, epochs=10, workers=1, seed=1)
    words.fit((text for text, _ in train), language="zh", progress=False)
    task = sememe.Classify(words, epochs=8, workers=1, seed=seed, device="cpu", **options)
    return task.fit(train, dev=False, progress=False)


def bert(folder: str) -> Callable[..., Any]:
    """A pre-trained BERT, fine-tuned entirely."""

    def make(train: Rows, seed: int, **options: Any) -> Any:
        task = sememe.Classify(
            folder, epochs=3, learning_rate=3e-4, length=64, workers=1, seed=seed, device="cpu",
            **options,
        )  # fmt: skip
        return task.fit(train, dev=False, progress=False)

    return make


def measured(model: Any, test: Rows) -> dict[str, float]:
    """The scores of the test rows."""
    found = model.evaluate(test)
    return {
        "macro F1": found.averages["macro"]["f1"],
        "micro F1": found.averages["micro"]["f1"],
        "calibration error": found.calibration["ece"],
        "log loss": found.calibration["log_loss"],
    }


def table(runs: dict[str, list[dict[str, float]]]) -> str:
    """The mean and standard deviation of each option's scores, as a table of Markdown."""
    names = [*next(iter(runs.values()))[0]]
    lines = [" | ".join(["| options", *names, "seeds |"]), "| --- " * (len(names) + 2) + "|"]
    for setting, found in runs.items():
        values = [[run[name] for run in found] for name in names]
        told = [
            f"{statistics.mean(own):.3f} ± {statistics.stdev(own) if own[1:] else 0:.3f}"
            for own in values
        ]
        lines.append(" | ".join([f"| {setting}", *told, f"{len(found)} |"]))
    return "\n".join(lines)


def main() -> None:
    """Train every model with every option, and print one table per set and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bert", help="folder of a BERT trained on Chinese text")
    parser.add_argument("--log", type=Path, help="where results are kept, one JSON per line")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many minutes")
    options = parser.parse_args()
    models = {"fastText": fasttext, "skip-gram, linear head": vectors}
    if options.bert:
        models["BERT"] = bert(options.bert)
    titles_of, names_of = (options.data / "zh" / name for name in ("thucnews_titles", "cluener"))
    sets: dict[str, Callable[[int], tuple[Rows, Rows]]] = {
        "news titles, one label": lambda seed: (
            titles(titles_of, "train_33k.txt", seed), titles(titles_of, "test.txt", 100 + seed),
        ),
        "kinds of names, several labels": lambda seed: (
            names(names_of, "train.json.xz", seed), names(names_of, "dev.json.xz", seed),
        ),
    }  # fmt: skip
    done: dict[tuple[Any, ...], dict[str, float]] = {}
    if options.log and options.log.exists():
        lines = map(json.loads, options.log.read_text("utf-8").splitlines())
        done = {tuple(own["run"]): own["scores"] for own in lines}
    begun = time.monotonic()
    for run in product(range(1, options.seeds + 1), sets, models, SETTINGS):
        if run in done or time.monotonic() - begun > 60 * options.minutes:
            continue
        seed, set_name, model_name, setting = run
        train, test = sets[set_name](seed)
        done[run] = measured(models[model_name](train, seed, **SETTINGS[setting]), test)
        print(*run, done[run], flush=True)
        if options.log:
            with options.log.open("a", encoding="utf-8") as log:
                print(json.dumps({"run": run, "scores": done[run]}), file=log)
    for set_name, make in sets.items():
        train, test = make(1)
        own = (label if isinstance(label, list) else [label] for _, label in train)
        counts = Counter(name for labels in own for name in labels)
        print(f"\n{set_name}: {len(train):,} training and {len(test):,} test rows; {dict(counts)}")
        for model_name in models:
            found = defaultdict(list)
            for setting, seed in product(SETTINGS, range(1, options.seeds + 1)):
                if scores := done.get((seed, set_name, model_name, setting)):
                    found[setting].append(scores)
            if found:
                print(f"\n{model_name}\n{table(found)}")


if __name__ == "__main__":
    main()
