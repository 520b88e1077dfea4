"""Metrics by name: gold and predicted labels, scores, tags or answers in, scores and intervals out.

Every metric gives a score from the whole set, and the scores of each row from which a test or an
interval can redraw it: gold labels as strings, or as lists where a row has several (accuracy, F1s,
Matthews), numbers (Pearson, Spearman), tags of sentences (entity F1), or tuples of the right
answers (SQuAD, CMRC).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sememe.examples.tagging import OUTSIDE
from sememe.metrics.answers import (
    AnswerScore,
    score_answer,
    score_answer_or_none,
    score_chinese_answer,
)
from sememe.metrics.classification import (
    accuracy,
    binary_f1,
    confusion_matrix,
    count_entities,
    matthews,
    matthews_of_counts,
    score_entities,
)
from sememe.metrics.comparison import (
    Combine,
    Interval,
    f1_of_sums,
    pearson_of_sums,
    redrawn_interval,
)
from sememe.metrics.word_scores import pearson, spearman


@dataclass(frozen=True)
class Metric:
    """A metric over a set of rows; `short` is its name in tables."""

    name: str
    short: str
    score: Callable[[Sequence[Any], Sequence[Any], str], float]
    # What each row adds to the score, given gold, predictions, the positive class and what another
    # model predicted; `combine` turns sums of such rows into scores (None: their mean).
    rows: Callable[[Sequence[Any], Sequence[Any], str, Sequence[Any]], np.ndarray]
    combine: Combine | None = None
    # Whether a row is either right or wrong, so that McNemar's test applies.
    is_right_or_wrong: bool = False
    # Whether what a row adds depends on the other rows too, as ranks do.
    is_of_all_rows: bool = False


def _common(gold: Sequence[Any], predicted: Sequence[Any], *_: Any) -> np.ndarray:
    """How many labels of each row are right, true and predicted."""
    pairs = [({*g}, {*p}) for g, p in zip(gold, predicted, strict=True)]
    return np.array([(len(g & p), len(g), len(p)) for g, p in pairs], np.float64).reshape(-1, 3)


def _micro_f1(gold: Sequence[Any], predicted: Sequence[Any], _: str) -> float:
    return float(f1_of_sums(_common(gold, predicted).sum(0)[None])[0])


def _right(gold: Sequence[Any], predicted: Sequence[Any], *_: Any) -> np.ndarray:
    return np.array([g == p for g, p in zip(gold, predicted, strict=True)], np.float64)


def _marks(gold: Sequence[Any], predicted: Sequence[Any], positive: str, *_: Any) -> np.ndarray:
    rows = [
        (g == p == positive, g == positive, p == positive)
        for g, p in zip(gold, predicted, strict=True)
    ]
    return np.array(rows, np.float64).reshape(-1, 3)


def _cells(gold: Sequence[Any], predicted: Sequence[Any], _: str, other: Any) -> np.ndarray:
    """One row of zeros with a one in the cell of the confusion matrix that a row belongs to."""
    labels = confusion_matrix([*gold, *gold], [*predicted, *other]).labels
    places = {label: place for place, label in enumerate(labels)}
    rows = np.zeros((len(gold), len(labels) ** 2))
    for index, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        rows[index, places[g] * len(labels) + places[p]] = 1
    return rows


def _square(sums_RK: np.ndarray) -> np.ndarray:
    size = round(sums_RK.shape[1] ** 0.5)
    return sums_RK.reshape(-1, size, size)


def _label_set(value: Any) -> set[Any]:
    return {value} if isinstance(value, str) else {*value}


def _classes(gold: Sequence[Any], predicted: Sequence[Any], _: str, other: Any) -> np.ndarray:
    """Of each row and label: is it right, true, predicted? The three one after the other."""
    columns = [[*map(_label_set, own)] for own in (gold, predicted, other)]
    labels = {label for column in columns for own in column for label in own}
    places = {label: place for place, label in enumerate(sorted(labels, key=str))}
    rows_N3C = np.zeros((len(gold), 3, len(places)))
    for row_3C, true, said in zip(rows_N3C, *columns[:2], strict=True):
        for place, own in enumerate((true & said, true, said)):
            row_3C[place, [places[label] for label in own]] = 1
    return rows_N3C.reshape(len(gold), -1)


def _class_f1(sums_RK: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(F1, occurrences on either side, true ones) of each label."""
    right_RC, true_RC, said_RC = np.split(sums_RK, 3, axis=1)
    marked_RC = true_RC + said_RC
    f1_RC = np.divide(2 * right_RC, marked_RC, out=np.zeros(marked_RC.shape), where=marked_RC > 0)
    return f1_RC, marked_RC, true_RC


def _macro_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    f1_RC, marked_RC, _ = _class_f1(sums_RK)
    # Classes that a resample lacks on both sides have no F1.
    return f1_RC.sum(axis=1) / np.maximum((marked_RC > 0).sum(axis=1), 1)


def _weighted_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    f1_RC, _, true_RC = _class_f1(sums_RK)
    return (f1_RC * true_RC).sum(axis=1) / np.maximum(true_RC.sum(axis=1), 1)


def _of_all(rows: Callable[..., np.ndarray], combine: Combine) -> Callable[..., float]:
    """The score of a whole set, from the sums of its rows."""
    return lambda gold, predicted, positive: float(
        combine(rows(gold, predicted, positive, predicted).sum(0)[None])[0]
    )


def _products(rank: Callable[[Any], Any], gold: Any, predicted: Any, *_: Any) -> np.ndarray:
    x, y = (rank(np.asarray(column, np.float64)) for column in (gold, predicted))
    x, y = x - x.mean(), y - y.mean()
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def _ranks(column: np.ndarray) -> np.ndarray:
    """The ranks in the full set: those of a resample would differ a little."""
    from scipy.stats import rankdata

    return rankdata(column)


def _entities(gold: Any, predicted: Any, *_: Any) -> np.ndarray:
    counts = count_entities(gold, predicted)
    rows = [(one.right.total(), one.gold.total(), one.predicted.total()) for one in counts]
    return np.array(rows, np.float64).reshape(-1, 3)


def _tags(gold: Any, predicted: Any, *_: Any) -> np.ndarray:
    """How many tags other than O are right, true and predicted, for tags without a scheme."""
    rows = [
        (
            sum(g == p != OUTSIDE for g, p in zip(true, said, strict=False)),
            sum(g != OUTSIDE for g in true),
            sum(p != OUTSIDE for p in said),
        )
        for true, said in zip(gold, predicted, strict=True)
    ]
    return np.array(rows, np.float64).reshape(-1, 3)


def _entity(metric: str, combine: Combine) -> Metric:
    return Metric(
        f"entity_{metric}",
        metric,
        lambda gold, predicted, _: getattr(score_entities(gold, predicted).overall, metric),
        _entities,
        combine,
    )


def _shares(column: int, sums_RK: np.ndarray) -> np.ndarray:
    whole_R = sums_RK[:, column]
    return np.divide(sums_RK[:, 0], whole_R, out=np.zeros(len(whole_R)), where=whole_R > 0)


ScoreOne = Callable[[str, Sequence[str]], AnswerScore]


def _answer(name: str, metric: str, score_one: ScoreOne) -> Metric:
    def rows(gold: Sequence[Sequence[str]], predicted: Sequence[str], *_: Any) -> np.ndarray:
        pairs = zip(predicted, gold, strict=True)
        return np.array([getattr(score_one(said, answers), metric) for said, answers in pairs])

    return Metric(
        f"{name}_{metric}",
        metric,
        lambda gold, predicted, _: float(rows(gold, predicted).mean()),
        rows,
        is_right_or_wrong=metric == "exact",
    )


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accuracy",
            "accuracy",
            lambda gold, predicted, _: accuracy(gold, predicted),
            _right,
            is_right_or_wrong=True,
        ),
        Metric("binary_f1", "F1", binary_f1, _marks, f1_of_sums),
        Metric("micro_f1", "micro F1", _micro_f1, _common, f1_of_sums),
        Metric(
            "macro_f1",
            "macro F1",
            _of_all(_classes, _macro_of_sums),
            _classes,
            _macro_of_sums,
        ),
        Metric(
            "weighted_f1",
            "weighted F1",
            _of_all(_classes, _weighted_of_sums),
            _classes,
            _weighted_of_sums,
        ),
        Metric(
            "matthews",
            "Matthews",
            lambda gold, predicted, _: matthews(gold, predicted),
            _cells,
            lambda sums_RK: matthews_of_counts(_square(sums_RK)),
        ),
        Metric(
            "pearson",
            "pearson",
            lambda gold, predicted, _: pearson(gold, predicted),
            partial(_products, np.asarray),
            pearson_of_sums,
            is_of_all_rows=True,
        ),
        Metric(
            "spearman",
            "spearman",
            lambda gold, predicted, _: spearman(gold, predicted),
            partial(_products, _ranks),
            pearson_of_sums,
            is_of_all_rows=True,
        ),
        Metric("tag_f1", "tag F1", _of_all(_tags, f1_of_sums), _tags, f1_of_sums),
        _entity("f1", f1_of_sums),
        _entity("precision", partial(_shares, 2)),
        _entity("recall", partial(_shares, 1)),
        *(
            _answer(name, metric, score_one)
            for name, score_one in (
                ("squad", score_answer),
                ("squad2", score_answer_or_none),
                ("cmrc", score_chinese_answer),
            )
            for metric in ("f1", "exact")
        ),
    )
}


def score_all(
    metrics: Sequence[str], gold: Sequence[Any], predicted: Sequence[Any], positive: str = ""
) -> dict[str, float]:
    """Score predictions by several metrics."""
    return {name: METRICS[name].score(gold, predicted, positive) for name in metrics}


def interval_of(
    metric: str,
    gold: Sequence[Any],
    predicted: Sequence[Any],
    positive: str = "1",
    *,
    num_resamples: int = 1_000,
    seed: int = 1,
) -> Interval:
    """The 95 % interval of a score over the rows; NaN where it is not defined."""
    chosen, counts = METRICS[metric], None
    if not chosen.is_of_all_rows:
        # Rows with the same gold and predicted labels add the same: few are left of many.
        pairs = Counter(zip(map(_fixed, gold), map(_fixed, predicted), strict=True))
        gold, predicted = zip(*pairs, strict=True) if pairs else ((), ())
        counts = np.fromiter(pairs.values(), np.int64, len(pairs))
    try:
        rows = chosen.rows(gold, predicted, positive, predicted)
        return redrawn_interval(
            rows, chosen.combine, counts=counts, num_resamples=num_resamples, seed=seed
        )
    except (TypeError, ValueError):  # of rows that the metric cannot score
        return Interval(math.nan, math.nan)


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# ---- rows -------------------------------------------------------------------------------------


def gold_of(kind: str, rows: Sequence[Any]) -> list[Any]:
    """The gold value of each row: a label, several, a score, tags, or the texts of all answers."""
    take: Callable[[Any], Any] = {
        "regress": lambda row: row.score,
        "tag": lambda row: list(row.tags),
        "answer": lambda row: [answer.text for answer in row.answers],
    }.get(kind, lambda row: row.label if row.labels is None else sorted(row.labels))
    return [take(row) for row in rows]


def _labels_of(prediction: Any) -> str | list[str]:
    return sorted(prediction.labels) if prediction.label is None else prediction.label


def said_of(kind: str, predictions: Sequence[Any]) -> list[Any]:
    """The prediction for each row, in the form of `gold_of`; an answer is its text."""
    take: Callable[[Any], Any] = {
        "classify": _labels_of,
        "pairs": _labels_of,
        "choose": lambda one: str(one.number),
        "regress": lambda one: float(one.score),
        "tag": lambda one: list(one.tags),
        "answer": lambda one: one.text,
    }[kind]
    return [take(one) for one in predictions]
