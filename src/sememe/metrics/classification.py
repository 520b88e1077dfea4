"""Scores of one label a row: gold and predicted labels in, numbers out.

Labels are strings, integers or booleans; no label may be missing (None or NaN). Where a share has
nothing below its line (no row, no prediction of a class) it is 0, as in scikit-learn; scores of no
rows at all are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

import numpy as np

Average = Literal["macro", "micro"]


class ClassScore(NamedTuple):
    """Precision, recall and F1 of one class."""

    label: Hashable
    precision: float
    recall: float
    f1: float
    num_gold: int
    num_predicted: int


class Confusion(NamedTuple):
    """Counts of gold labels (rows) and predicted ones (columns), in the order of `labels`."""

    labels: list[Hashable]
    counts: np.ndarray

    @property
    def num_rows(self) -> int:
        """How many rows were counted."""
        return int(self.counts.sum())


def _ordered(labels: set[Hashable]) -> list[Hashable]:
    try:
        return sorted(labels)  # type: ignore[type-var]
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _checked(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold labels and {len(predicted)} predicted ones")
    for name, labels in (("gold", gold), ("predicted", predicted)):
        for index, label in enumerate(labels):
            if label is None or label != label:
                raise ValueError(f"{name} label {index} is missing: {label}")


def confusion_matrix(
    gold: Sequence[Hashable],
    predicted: Sequence[Hashable],
    labels: Sequence[Hashable] | None = None,
) -> Confusion:
    """Count how often each gold label met each predicted one; `labels` None: all that occur."""
    _checked(gold, predicted)
    order = list(labels) if labels is not None else _ordered({*gold, *predicted})
    places = {label: place for place, label in enumerate(order)}
    if len(places) != len(order):
        raise ValueError("a label is listed twice")
    unknown = ({*gold} | {*predicted}) - places.keys()
    if unknown:
        raise ValueError(f"labels that are not listed: {_ordered(unknown)}")
    size = len(order)
    cells = [places[g] * size + places[p] for g, p in zip(gold, predicted, strict=True)]
    counts = np.bincount(np.array(cells, np.int64), minlength=size * size)
    return Confusion(order, counts.reshape(size, size))


def accuracy(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Share of rows whose label is right."""
    _checked(gold, predicted)
    if not len(gold):
        return math.nan
    return sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def class_scores(confusion: Confusion) -> list[ClassScore]:
    """Precision, recall and F1 of every class of a confusion matrix."""
    counts = confusion.counts
    scores = []
    for place, label in enumerate(confusion.labels):
        num_right = int(counts[place, place])
        num_gold, num_predicted = int(counts[place].sum()), int(counts[:, place].sum())
        scores.append(
            ClassScore(
                label,
                _share(num_right, num_predicted),
                _share(num_right, num_gold),
                _share(2 * num_right, num_gold + num_predicted),
                num_gold,
                num_predicted,
            )
        )
    return scores


def binary_f1(gold: Sequence[Hashable], predicted: Sequence[Hashable], positive: Hashable) -> float:
    """F1 of the class `positive`, the way MRPC and QQP are scored (their class 1)."""
    _checked(gold, predicted)
    if not len(gold):
        return math.nan
    num_right = sum(g == p == positive for g, p in zip(gold, predicted, strict=True))
    num_marked = sum(g == positive for g in gold) + sum(p == positive for p in predicted)
    return _share(2 * num_right, num_marked)


def f1(
    gold: Sequence[Hashable], predicted: Sequence[Hashable], average: Average = "macro"
) -> float:
    """F1 over all classes: the plain mean of theirs (macro), or of all decisions (micro)."""
    confusion = confusion_matrix(gold, predicted)
    if not confusion.num_rows:
        return math.nan
    if average == "micro":
        # Every wrong label is one false positive and one false negative.
        return float(np.trace(confusion.counts) / confusion.num_rows)
    return float(np.mean([score.f1 for score in class_scores(confusion)]))


def matthews(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Matthews' correlation of any number of classes; 0 where one side has a single class."""
    confusion = confusion_matrix(gold, predicted)
    if not confusion.num_rows:
        return math.nan
    return float(matthews_of_counts(confusion.counts[None])[0])


def matthews_of_counts(counts_RCC: np.ndarray) -> np.ndarray:
    """Matthews' correlation of each of R confusion matrices over C classes (Gorodkin 2004)."""
    counts_RCC = counts_RCC.astype(np.float64)
    total_R = counts_RCC.sum(axis=(1, 2))
    right_R = np.trace(counts_RCC, axis1=1, axis2=2)
    gold_RC, predicted_RC = counts_RCC.sum(axis=2), counts_RCC.sum(axis=1)
    covariance_R = right_R * total_R - (gold_RC * predicted_RC).sum(axis=1)
    gold_R = total_R**2 - (gold_RC**2).sum(axis=1)
    predicted_R = total_R**2 - (predicted_RC**2).sum(axis=1)
    scale_R = np.sqrt(gold_R) * np.sqrt(predicted_R)
    return np.divide(covariance_R, scale_R, out=np.zeros_like(scale_R), where=scale_R > 0)
