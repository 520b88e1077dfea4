"""Fine-tuned tasks at work: what `predict` and `evaluate labels` do with their folders."""

from __future__ import annotations

import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sememe.cli.finetuned import tell_scores
from sememe.cli.finetuning import reading_of
from sememe.cli.screen import print_json

if TYPE_CHECKING:
    from sememe.tasks.task import Task

_ROWS_AT_ONCE = 4_096


def is_task(path: str | Path) -> bool:
    """Whether a path is the folder of a fine-tuned task, ours or one of transformers."""
    from sememe.storage.folder import kind_of_folder
    from sememe.tasks.foreign import foreign_name

    return kind_of_folder(Path(path)) == "task" or bool(foreign_name(path))


def refuse_rows(column: list[str] | None, skip_bad: bool) -> None:
    """Say that a classifier's texts have no columns, and that no line is bad."""
    from sememe.errors import OptionError

    if column or skip_bad:
        name = "--column" if column else "--skip-bad"
        raise OptionError(f"{name} is for fine-tuned tasks; a classifier reads lines.")


def predict_task(
    model: str,
    file: str,
    *,
    num: int,
    threshold: float,
    prob: bool,
    column: list[str] | None,
    skip_bad: bool,
    json: bool,
) -> None:
    """Write a line for each row of a file: what the task predicts for it."""
    from sememe.errors import OptionError

    if threshold:
        raise OptionError("--threshold is for classifiers; a task always answers.")
    if num == 0 or num < -1:
        raise OptionError(f"-k must be a number of labels, or -1 for all, not {num}.")
    task, reading = _opened(model, column, skip_bad)
    rows = task.read(file, labelled=False, **reading)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[first : first + _ROWS_AT_ONCE]
        for row, prediction in zip(block, task.predict_rows(block), strict=True):
            if json:
                typer.echo(_json(prediction))
            else:
                typer.echo(task.written(row, prediction, num=num, has_chances=prob))


def _opened(model: str, column: list[str] | None, skip_bad: bool) -> tuple[Task, dict[str, Any]]:
    """A task, and how it is to read rows."""
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.tasks.foreign import open_task

    reading = reading_of(column, skip_bad, "utf-8")
    return open_task(model, reading["columns"]), {**reading, "on_note": _say}


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _json(prediction: Any) -> str:
    content = _named(prediction)
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return dumps(content, ensure_ascii=not encoding.startswith("utf"))


def _named(value: Any) -> Any:
    """The same with the names of its parts, also of those inside lists."""
    if hasattr(value, "_asdict"):
        return {name: _named(part) for name, part in value._asdict().items()}
    return [_named(part) for part in value] if isinstance(value, (list, tuple)) else value


def evaluate_task(
    model: str,
    file: str,
    *,
    num: int,
    threshold: float,
    column: list[str] | None,
    skip_bad: bool,
    json: bool,
) -> None:
    """Print the scores of a task on labelled rows."""
    from sememe.errors import OptionError

    if num != 1 or threshold:
        name = "--threshold" if threshold else "-k"
        raise OptionError(
            f"{name} is for classifiers; a task is scored by the one answer that it gives."
        )
    task, reading = _opened(model, column, skip_bad)
    scores = task.evaluate(file, **reading)
    if json:
        print_json(scores.to_dict())
    else:
        tell_scores(scores, Path(file).name)
