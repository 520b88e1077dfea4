"""What class weights, calibration and thresholds change where labels are rare.

`python benchmarks/labels.py DATA` reads DATA/zh/thucnews_titles (one label per title; its ten
classes are thinned to 100 : 1) and DATA/zh/cluener (the kinds of names in a sentence, any number of
them), trains fastText's classifier and skip-gram vectors under a linear head with each option, and
prints scores on the test rows, mean ± standard deviation over seeds.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sememe

Rows = list[tuple[str, Any]]
RATIO = 100  # of the rows of the most and of the least frequent class
ADJUSTED = {"calibrate": True, "thresholds": "f1"}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "class weights": {"class_weights": "balanced"},
    "calibrated": {"calibrate": True},
    "thresholds": {"thresholds": "f1"},
    "weights, calibrated": {"class_weights": "balanced", "calibrate": True},
    "calibrated, thresholds": ADJUSTED,
    "all three": {"class_weights": "balanced", **ADJUSTED},
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


def names(folder: Path, name: str) -> Rows:
    """Sentences with the kinds of names in them."""
    with lzma.open(folder / name, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
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


MODELS: dict[str, Callable[..., Any]] = {"fastText": fasttext, "skip-gram, linear head": vectors}


def measured(model: Any, test: Rows) -> dict[str, float]:
    """The scores of the test rows."""
    found = model.evaluate(test)
    return {
        "macro F1": found.averages["macro"]["f1"],
        "micro F1": found.averages["micro"]["f1"],
        "calibration error": found.calibration["ece"],
        "log loss": found.calibration["log_loss"],
    }


def main() -> None:
    """Train every model with every option, and print one table per set and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    zh = options.data / "zh"
    sets = {
        "news titles, one label": (
            titles(zh / "thucnews_titles", "train_33k.txt", 1),
            titles(zh / "thucnews_titles", "test.txt", 2),
        ),
        "kinds of names, several labels": (
            names(zh / "cluener", "train.json.xz"), names(zh / "cluener", "dev.json.xz"),
        ),
    }  # fmt: skip
    for set_name, (train, test) in sets.items():
        own = (label if isinstance(label, list) else [label] for _, label in train)
        counts = Counter(name for labels in own for name in labels)
        print(f"\n{set_name}: {len(train):,} training and {len(test):,} test rows; {dict(counts)}")
        for model_name, make in MODELS.items():
            print(f"\n{model_name}")
            for setting, more in SETTINGS.items():
                runs = [
                    measured(make(train, seed, **more), test)
                    for seed in range(1, options.seeds + 1)
                ]
                told = [
                    f"{statistics.mean(own):.3f} ± {statistics.stdev(own):.3f}"
                    for own in ([run[key] for run in runs] for key in runs[0])
                ]
                heading = "" if setting != "plain" else " | ".join(["", *runs[0]]) + "\n"
                print(f"{heading}{setting} | {' | '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
