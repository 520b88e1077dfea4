"""Fine-tuned models, and answers that others left in a file, scored without any training."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.contract import KINDS
from sememe.errors import InputError
from sememe.evaluation.benchmarks import Benchmark
from sememe.evaluation.rows import BenchmarkRows, best_thresholds
from sememe.metrics.by_name import gold_of, said_of, score_all
from sememe.models.registry import recognise
from sememe.storage.folder import read_json

if TYPE_CHECKING:
    from sememe.tasks.task import Task


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
