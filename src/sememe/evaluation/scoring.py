"""Metrics by name: gold and predicted labels, scores, tags or answers in, scores out.

Every metric gives a score from the whole set, and the scores of each row from which a paired test
can redraw it: gold labels as strings (accuracy, F1s, Matthews) or lists (micro F1), numbers
(Pearson, Spearman), tags of sentences (entity F1), or tuples of the right answers (SQuAD, CMRC).

Fine-tuned models, and answers that others left in a file, are scored here without any training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.contract import KINDS
from sememe.errors import InputError
from sememe.evaluation.benchmarks import Benchmark
from sememe.evaluation.rows import BenchmarkRows, best_thresholds, gold_of, said_of
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
from sememe.metrics.classification import count_entities, matthews_of_counts
from sememe.metrics.comparison import Combine, f1_of_sums, pearson_of_sums
from sememe.models.registry import recognise
from sememe.storage.folder import read_json

if TYPE_CHECKING:
    from sememe.tasks.task import Task


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


def _macro_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    counts_RCC = _square(sums_RK)
    right_RC = np.diagonal(counts_RCC, axis1=1, axis2=2)
    marked_RC = counts_RCC.sum(axis=1) + counts_RCC.sum(axis=2)
    f1_RC = np.divide(2 * right_RC, marked_RC, out=np.zeros(marked_RC.shape), where=marked_RC > 0)
    # Classes that a resample lacks on both sides have no F1.
    return f1_RC.sum(axis=1) / np.maximum((marked_RC > 0).sum(axis=1), 1)


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
            lambda gold, predicted, _: f1(gold, predicted, "macro"),
            _cells,
            _macro_of_sums,
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
        ),
        Metric(
            "spearman",
            "spearman",
            lambda gold, predicted, _: spearman(gold, predicted),
            partial(_products, _ranks),
            pearson_of_sums,
        ),
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


def task_kinds(model: str | Path) -> tuple[str, ...]:
    """The tasks of a fine-tuned model; a json file holds answers; none for other models."""
    path = Path(model)
    return ("answer",) if path.suffix == ".json" and path.is_file() else recognise(path).tasks


def score_finished(
    model: str | Path, benchmark: Benchmark, prepared: BenchmarkRows
) -> dict[str, Any]:
    """Score a fine-tuned model, or the answers in a file."""
    begun_s = time.monotonic()
    kinds = task_kinds(model)
    if benchmark.kind not in kinds:
        raise InputError(
            f"{model} was fine-tuned to {' or '.join(kinds)}; {benchmark.name} needs a model that "
            f"can {benchmark.kind}."
        )
    if Path(model).is_file():
        record = _score_file(Path(model), benchmark, prepared)
    else:
        task = KINDS[benchmark.kind].cls().load(model)
        if recognise(model).source == "transformers" and benchmark.main_metric.startswith("squad2"):
            task.learned = {**task.learned, "has_impossible": True}
        _check_labels(model, task, benchmark, prepared)
        record = score_task(task, benchmark, prepared)
        record["unlabelled"] = {
            name: said_of(benchmark.kind, task.predict_rows(rows))
            for name, rows in prepared.unlabelled.items()
        }
    return {**record, "seed": None, "seconds": time.monotonic() - begun_s}


def _check_labels(
    model: str | Path, task: Task, benchmark: Benchmark, prepared: BenchmarkRows
) -> None:
    if not task.labels or benchmark.kind not in ("classify", "pairs"):
        return
    rows = [row for part in prepared.parts.values() for row in part]
    unknown = {str(row.label) for row in rows} - set(task.labels)
    if unknown:
        raise InputError(
            f"{model} knows the labels {', '.join(task.labels[:10])}; {benchmark.name} has "
            f"others: {', '.join(sorted(unknown)[:10])}."
        )


def score_task(task: Task, benchmark: Benchmark, prepared: BenchmarkRows) -> dict[str, Any]:
    """A fitted task's predictions for each part, and their scores."""
    scores, said, details = {}, {}, {}
    for part, rows in prepared.parts.items():
        predictions = task.predict_rows(rows)
        said[part] = said_of(benchmark.kind, predictions)
        gold = gold_of(benchmark.kind, rows)
        scores[part] = score_all(benchmark.metrics, gold, said[part], benchmark.positive)
        if benchmark.main_metric.startswith("squad2"):
            details[part] = best_thresholds(gold, predictions)
    return {"scores": scores, "said": said, "details": details}


def _score_file(path: Path, benchmark: Benchmark, prepared: BenchmarkRows) -> dict[str, Any]:
    """Score answers by question id, in the format of SQuAD's and CMRC's scripts."""
    answers = read_json(path)
    if not isinstance(answers, dict) or not all(isinstance(x, str) for x in answers.values()):
        raise InputError(f"{path} must hold one object with an answer for each question's id.")
    scores, said = {}, {}
    for part, rows in list(prepared.parts.items()):
        found = [answers.get(row.id) for row in rows]
        if not any(one is not None for one in found):
            del prepared.parts[part]  # answers to another part
            continue
        said[part] = _all_answered(path, rows, found)
        gold = gold_of(benchmark.kind, rows)
        scores[part] = score_all(benchmark.metrics, gold, said[part], benchmark.positive)
    if not scores:
        raise InputError(f"{path} answers none of the questions of {benchmark.name}.")
    return {"scores": scores, "said": said, "details": {}, "unlabelled": {}}


def _all_answered(path: Path, rows: Sequence[Any], found: Sequence[str | None]) -> list[str]:
    missing = [row.id for row, one in zip(rows, found, strict=True) if one is None]
    if missing:
        raise InputError(
            f"{path} lacks answers to {len(missing):,} of {len(rows):,} questions, such as "
            f"{missing[0]}."
        )
    return [one for one in found if one is not None]
