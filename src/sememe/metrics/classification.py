"""Scores of labels: one per row, or the tags of sentences; gold and predicted ones in, numbers out.

Labels are strings, integers or booleans; no label may be missing (None or NaN). Where a share has
nothing below its line (no row, no prediction of a class) it is 0, as in scikit-learn; scores of no
rows at all are NaN.

Entity F1 is counted as conlleval (Tjong Kim Sang) and seqeval do: an entity is right if its type,
its first and its last word are. Any sequence of tags can be read, also an invalid one: `I-` after
`O` or after another type begins an entity. Tags are IOB1, IOB2, IOE or BIOES, all read by these
rules; on B, I and O they are conlleval's, on E and S seqeval's (conlleval has no S and joins
neighbors there).
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from sememe.examples.tagging import OUTSIDE, Span, spans_of

Average = Literal["macro", "micro", "weighted"]
_SCORES, _COUNTS = ("precision", "recall", "f1"), ("num_true", "num_predicted")
_LETTERS = frozenset("BIES")


class ClassScore(NamedTuple):
    """Counts of one class, or of one type of entity, and the scores that follow from them."""

    label: Hashable
    num_right: int
    num_true: int
    num_predicted: int

    @property
    def precision(self) -> float:
        """Fraction of the predictions that are right; 0 if there are none."""
        return _share(self.num_right, self.num_predicted)

    @property
    def recall(self) -> float:
        """Fraction of the true ones that were found; 0 if there are none."""
        return _share(self.num_right, self.num_true)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _share(2 * self.num_right, self.num_true + self.num_predicted)

    def to_dict(self) -> dict[str, Any]:
        """The scores and the counts as JSON values."""
        return {name: getattr(self, name) for name in ("label", *_SCORES, *_COUNTS)}


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
    """Count each pair of gold and predicted label; `labels` None: all that occur."""
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
    """Fraction of rows with the right label."""
    _checked(gold, predicted)
    if not len(gold):
        return math.nan
    return sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def class_scores(confusion: Confusion) -> list[ClassScore]:
    """Precision, recall and F1 of every class of a confusion matrix."""
    counts = confusion.counts
    columns = (counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0))
    return [*map(ClassScore, confusion.labels, *(column.tolist() for column in columns))]


def label_set_scores(
    is_true_NC: np.ndarray, is_predicted_NC: np.ndarray, labels: Sequence[Hashable]
) -> list[ClassScore]:
    """Precision, recall and F1 of every label, where a row has any number of them."""
    counts = (is_true_NC & is_predicted_NC, is_true_NC, is_predicted_NC)
    return [*map(ClassScore, labels, *(one.sum(0).tolist() for one in counts))]


def averages(scores: Sequence[ClassScore]) -> dict[str, dict[str, float]]:
    """Macro (mean over classes), micro (over all decisions) and weighted precision, recall, F1.

    Weights are the numbers of true rows. As in scikit-learn, classes that neither occur nor are
    predicted are not counted.
    """
    own = [one for one in scores if one.num_true or one.num_predicted] or [ClassScore("", 0, 0, 0)]
    counts = np.array([one[1:] for one in own])
    overall = ClassScore("all", *counts.sum(0).tolist())
    values = np.array([[getattr(one, name) for name in _SCORES] for one in own])
    weighted = counts[:, 1] @ values / max(1, overall.num_true)
    return {
        name: dict(zip(_SCORES, map(float, mean), strict=True))
        for name, mean in (
            ("macro", values.mean(0)),
            ("micro", [getattr(overall, name) for name in _SCORES]),
            ("weighted", weighted),
        )
    }


def class_table(
    classes: Sequence[Mapping[str, Any]], means: Mapping[str, Mapping[str, float]]
) -> tuple[Sequence[str], list[Sequence[Any]]]:
    """Headings and rows to print: one for each class (`ClassScore.to_dict`), one for each mean."""
    totals = [sum(one[name] for one in classes) for name in _COUNTS]
    rows: list[Sequence[Any]] = [
        tuple(one[name] for name in ("label", *_SCORES, *_COUNTS)) for one in classes
    ]
    rows += [(f"{name} average", *own.values(), *totals) for name, own in means.items()]
    return ("label", "precision", "recall", "F1", "occurs", "predicted"), rows


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
    """F1 over all classes, averaged as in `averages`."""
    confusion = confusion_matrix(gold, predicted)
    if not confusion.num_rows:
        return math.nan
    return averages(class_scores(confusion))[average]["f1"]


def matthews(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Matthews correlation for any number of classes; 0 if one side has a single class."""
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


class SentenceCounts(NamedTuple):
    """Entities of one sentence by type."""

    right: Counter[str]
    gold: Counter[str]
    predicted: Counter[str]


class EntityScores(NamedTuple):
    """Entities of all types, of each type, and the accuracy of tags."""

    overall: ClassScore
    types: list[ClassScore]
    tag_accuracy: float


def entities(tags: Sequence[str]) -> list[Span]:
    """Read the entities of one sentence's tags."""
    for tag in tags:
        if tag != OUTSIDE and (tag[:1] not in _LETTERS or tag[1:2] != "-" or len(tag) < 3):
            raise ValueError(
                f"“{tag}” is not a tag: O or B-, I-, E- or S- with a type was expected"
            )
    return spans_of(tags)


def score_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> EntityScores:
    """Score the entities of many sentences, each separately."""
    right, truth, guesses = Counter[str](), Counter[str](), Counter[str]()
    for found in count_entities(gold, predicted):
        right.update(found.right)
        truth.update(found.gold)
        guesses.update(found.predicted)
    types = [
        ClassScore(kind, right[kind], truth[kind], guesses[kind])
        for kind in sorted(truth.keys() | guesses.keys())
    ]
    num_words = sum(map(len, gold))
    num_same = sum(
        first == second
        for row, other in zip(gold, predicted, strict=True)
        for first, second in zip(row, other, strict=True)
    )
    overall = ClassScore("all", right.total(), truth.total(), guesses.total())
    return EntityScores(overall, types, num_same / num_words if num_words else 0.0)


def count_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> list[SentenceCounts]:
    """Count right, gold and predicted entities of each sentence by type."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} sentences of gold tags and {len(predicted)} predicted ones")
    counts = []
    for index, (row, other) in enumerate(zip(gold, predicted, strict=True)):
        if len(row) != len(other):
            raise ValueError(f"sentence {index}: {len(row)} gold tags and {len(other)} predicted")
        truth, guesses = set(entities(row)), set(entities(other))
        chosen = (truth & guesses, truth, guesses)
        counts.append(SentenceCounts(*(Counter(one.type for one in some) for some in chosen)))
    return counts
