"""What needs no fine-tuning any more: fine-tuned models, and answers that others left in a file."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import InputError
from sememe.evaluation.benchmarks import Benchmark
from sememe.evaluation.preparing import Prepared
from sememe.evaluation.rows import best_thresholds, gold_of, said_of
from sememe.evaluation.scoring import score_all
from sememe.storage.folder import manifest_in
from sememe.tasks.foreign import foreign_name

if TYPE_CHECKING:
    from sememe.tasks.task import Task


def is_finished(model: str | Path) -> bool:
    """Whether a model was fine-tuned already, or is a file of answers."""
    return bool(task_kinds(model))


def task_kinds(model: str | Path) -> tuple[str, ...]:
    """What a model was fine-tuned to do; a json file holds answers; nothing for other models.

    A head of transformers for labels does not say whether they are of one text or of two.
    """
    path = Path(model)
    if path.suffix == ".json" and path.is_file():
        return ("answer",)
    if (manifest := manifest_in(path)).get("kind") == "task":
        return (str(manifest.get("task")),)
    kind = foreign_name(path)
    return ("classify", "pairs") if kind == "classify" else (kind,) if kind else ()


def score_finished(model: str | Path, benchmark: Benchmark, prepared: Prepared) -> dict[str, Any]:
    """Score a model that was fine-tuned before, or the answers of a file."""
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
        from sememe.networks.installed import need_torch

        need_torch()
        from sememe.tasks.folder import task_class

        task = task_class(benchmark.kind).load(model)
        if foreign_name(model) and benchmark.main_metric.startswith("squad2"):
            task.learned = {**task.learned, "has_impossible": True}
        _check_labels(model, task, benchmark, prepared)
        record = score_task(task, benchmark, prepared)
        record["unlabelled"] = {
            name: said_of(benchmark.kind, task.predict_rows(rows))
            for name, rows in prepared.unlabelled.items()
        }
    return {**record, "seed": None, "seconds": time.monotonic() - begun_s}


def _check_labels(model: str | Path, task: Task, benchmark: Benchmark, prepared: Prepared) -> None:
    if not task.labels or benchmark.kind not in ("classify", "pairs"):
        return
    rows = [row for part in prepared.parts.values() for row in part]
    unknown = {str(row.label) for row in rows} - set(task.labels)
    if unknown:
        raise InputError(
            f"{model} knows the labels {', '.join(task.labels[:10])}; {benchmark.name} has "
            f"others: {', '.join(sorted(unknown)[:10])}."
        )


def score_task(task: Task, benchmark: Benchmark, prepared: Prepared) -> dict[str, Any]:
    """What a fitted task says of each part, and how well that scores."""
    scores, said, details = {}, {}, {}
    for part, rows in prepared.parts.items():
        predictions = task.predict_rows(rows)
        said[part] = said_of(benchmark.kind, predictions)
        gold = gold_of(benchmark.kind, rows)
        scores[part] = score_all(benchmark.metrics, gold, said[part], benchmark.positive)
        if benchmark.main_metric.startswith("squad2"):
            details[part] = best_thresholds(gold, predictions)
    return {"scores": scores, "said": said, "details": details}


def _score_file(path: Path, benchmark: Benchmark, prepared: Prepared) -> dict[str, Any]:
    """Score answers by question, in the form that SQuAD's and CMRC's scripts take."""
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from error
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
