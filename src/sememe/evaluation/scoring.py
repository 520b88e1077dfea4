"""Metrics by name: gold and predicted labels, figures, tags or answers in, scores out.

Every metric gives a score from the whole set, and the figures of each row from which a paired test
can redraw it: gold labels as strings (accuracy, F1s, Matthews), numbers (Pearson, Spearman), tags
of sentences (entity F1), or tuples of the right answers (SQuAD, CMRC).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sememe.metrics import (
    AnswerScore,
    accuracy,
    binary_f1,
    confusion_matrix,
    f1,
    matthews,
    pearson,
    score_answer,
    score_answer_or_none,
    score_chinese_answer,
    score_entities,
    spearman,
)
from sememe.metrics.classification import matthews_of_counts
from sememe.metrics.comparison import Combine, f1_of_sums, pearson_of_sums
from sememe.metrics.entities import count_entities


class RowFigures(NamedTuple):
    """What each of two models adds to its score, row by row, and how sums become a score."""

    first: np.ndarray
    second: np.ndarray
    combine: Combine | None = None


@dataclass(frozen=True)
class Metric:
    """A score of a set of rows; `short` is its name in tables."""

    name: str
    short: str
    score: Callable[[Sequence[Any], Sequence[Any], str], float]
    figures: Callable[[Sequence[Any], Sequence[Any], Sequence[Any], str], RowFigures]
    # Whether a row is either right or wrong, so that McNemar's test applies.
    is_right_or_wrong: bool = False


def _right(gold: Sequence[Any], predicted: Sequence[Any]) -> np.ndarray:
    return np.array([g == p for g, p in zip(gold, predicted, strict=True)], np.float64)


def _marks(gold: Sequence[Any], predicted: Sequence[Any], positive: str) -> np.ndarray:
    rows = [
        (g == p == positive, g == positive, p == positive)
        for g, p in zip(gold, predicted, strict=True)
    ]
    return np.array(rows, np.float64).reshape(-1, 3)


def _cells(gold: Sequence[Any], predicted: Sequence[Any], labels: Sequence[Any]) -> np.ndarray:
    """One row of zeros with a one in the cell of the confusion matrix that a row belongs to."""
    places = {label: place for place, label in enumerate(labels)}
    rows = np.zeros((len(gold), len(labels) ** 2))
    for index, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        rows[index, places[g] * len(labels) + places[p]] = 1
    return rows


def _square(sums_RK: np.ndarray) -> np.ndarray:
    size = round(sums_RK.shape[1] ** 0.5)
    return sums_RK.reshape(-1, size, size)


def _matthews_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    return matthews_of_counts(_square(sums_RK))


def _macro_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    counts_RCC = _square(sums_RK)
    right_RC = np.diagonal(counts_RCC, axis1=1, axis2=2)
    marked_RC = counts_RCC.sum(axis=1) + counts_RCC.sum(axis=2)
    f1_RC = np.divide(2 * right_RC, marked_RC, out=np.zeros(marked_RC.shape), where=marked_RC > 0)
    # Classes that a resample lacks on both sides have no F1.
    return f1_RC.sum(axis=1) / np.maximum((marked_RC > 0).sum(axis=1), 1)


def _confusions(combine: Combine, gold: Any, first: Any, second: Any, _: str) -> RowFigures:
    labels = confusion_matrix([*gold, *gold], [*first, *second]).labels
    return RowFigures(_cells(gold, first, labels), _cells(gold, second, labels), combine)


def _products(gold: Sequence[float], predicted: Sequence[float], is_ranked: bool) -> np.ndarray:
    x, y = np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
    if is_ranked:
        from scipy.stats import rankdata

        # The ranks of the whole set: those of a resample would differ a little.
        x, y = rankdata(x), rankdata(y)
    x, y = x - x.mean(), y - y.mean()
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def _correlation(name: str, score: Callable[..., float], is_ranked: bool) -> Metric:
    return Metric(
        name,
        name,
        lambda gold, predicted, _: score(gold, predicted),
        lambda gold, first, second, _: RowFigures(
            _products(gold, first, is_ranked), _products(gold, second, is_ranked), pearson_of_sums
        ),
    )


def _entities(gold: Any, predicted: Any) -> np.ndarray:
    counts = count_entities(gold, predicted)
    rows = [(one.right.total(), one.gold.total(), one.predicted.total()) for one in counts]
    return np.array(rows, np.float64).reshape(-1, 3)


def _entity(figure: str, combine: Combine) -> Metric:
    return Metric(
        f"entity_{figure}",
        figure,
        lambda gold, predicted, _: getattr(score_entities(gold, predicted).overall, figure),
        lambda gold, first, second, _: RowFigures(
            _entities(gold, first), _entities(gold, second), combine
        ),
    )


def _shares(column: int, sums_RK: np.ndarray) -> np.ndarray:
    whole_R = sums_RK[:, column]
    return np.divide(sums_RK[:, 0], whole_R, out=np.zeros(len(whole_R)), where=whole_R > 0)


ScoreOne = Callable[[str, Sequence[str]], AnswerScore]


def _answer(name: str, figure: str, score_one: ScoreOne) -> Metric:
    def rows(gold: Sequence[Sequence[str]], predicted: Sequence[str]) -> np.ndarray:
        pairs = zip(predicted, gold, strict=True)
        return np.array([getattr(score_one(said, answers), figure) for said, answers in pairs])

    return Metric(
        f"{name}_{figure}",
        figure,
        lambda gold, predicted, _: float(rows(gold, predicted).mean()),
        lambda gold, first, second, _: RowFigures(rows(gold, first), rows(gold, second)),
        is_right_or_wrong=figure == "exact",
    )


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accuracy",
            "accuracy",
            lambda gold, predicted, _: accuracy(gold, predicted),
            lambda gold, first, second, _: RowFigures(_right(gold, first), _right(gold, second)),
            is_right_or_wrong=True,
        ),
        Metric(
            "binary_f1",
            "F1",
            binary_f1,
            lambda gold, first, second, positive: RowFigures(
                _marks(gold, first, positive), _marks(gold, second, positive), f1_of_sums
            ),
        ),
        Metric(
            "macro_f1",
            "macro F1",
            lambda gold, predicted, _: f1(gold, predicted, "macro"),
            partial(_confusions, _macro_of_sums),
        ),
        Metric(
            "matthews",
            "Matthews",
            lambda gold, predicted, _: matthews(gold, predicted),
            partial(_confusions, _matthews_of_sums),
        ),
        _correlation("pearson", pearson, is_ranked=False),
        _correlation("spearman", spearman, is_ranked=True),
        _entity("f1", f1_of_sums),
        _entity("precision", partial(_shares, 2)),
        _entity("recall", partial(_shares, 1)),
        *(
            _answer(name, figure, score_one)
            for name, score_one in (
                ("squad", score_answer),
                ("squad2", score_answer_or_none),
                ("cmrc", score_chinese_answer),
            )
            for figure in ("f1", "exact")
        ),
    )
}


def score_all(
    metrics: Sequence[str], gold: Sequence[Any], predicted: Sequence[Any], positive: str = ""
) -> dict[str, float]:
    """Score predictions by several metrics."""
    return {name: METRICS[name].score(gold, predicted, positive) for name in metrics}
