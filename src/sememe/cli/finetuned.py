"""What is told of a fine-tuned task: its runs, the figures of its rows, the confusions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sememe.cli.screen import print_json, print_table, remark

if TYPE_CHECKING:
    from sememe.tasks.scores import Scores
    from sememe.tasks.task import Task


def tell(task: Task, out: Path, test_scores: Scores | None, *, as_json: bool, quiet: bool) -> None:
    """Say what was saved and how well it does."""
    if as_json:
        print_json(
            {
                "path": str(out),
                "task": task.name,
                "labels": task.labels,
                "dev": None if task.scores is None else task.scores.to_dict(),
                "test": None if test_scores is None else test_scores.to_dict(),
                "trials": task.trials,
                "settings": _settings(task),
                "figures": task.history.last(),
            }
        )
        return
    _tell_trials(task)
    for name, scores in (("dev", task.scores), ("test", test_scores)):
        if scores is not None:
            tell_scores(scores, name)
    remark(f"Saved to {out}", quiet)


def tell_scores(scores: Scores, name: str) -> None:
    """Print the figures of some rows, and the table of confusions."""
    if scores.confusion is not None and scores.labels:
        rows = [
            (label, *counts) for label, counts in zip(scores.labels, scores.confusion, strict=True)
        ]
        print_table(
            ("right label \\ given label", *scores.labels),
            rows,
            title=f"{name} rows: a line for each right label, a column for each given one",
            always_headed=True,
        )
    figures = ", ".join(f"{_words(n)} {_figure(value)}" for n, value in scores.figures.items())
    typer.echo(f"{name}: {figures} ({scores.num_rows:,} rows)")
    if scores.num_skipped:
        typer.echo(f"{scores.num_skipped:,} bad rows were left out.", err=True)


def _tell_trials(task: Task) -> None:
    settings = _settings(task)
    if not settings:
        return
    metric = task.trials[0]["scores"]["main_metric"]
    names = list(settings[0]["options"])
    rows = []
    for one in settings:
        figure = f"{_figure(one['mean'])} ± {_figure(one['deviation'])}"
        seeds = ", ".join(map(_figure, one["values"]))
        rows.append((*map(_option, one["options"].values()), figure, seeds))
    headings = (*names, f"{_words(metric)}, mean ± sd", "each seed")
    print_table(headings, rows, title="dev rows", always_headed=True)


def _settings(task: Task) -> list[dict[str, Any]]:
    if not task.trials:
        return []
    from sememe.tasks.trials import Trial, settings_of

    trials = [Trial(one["options"], _scores(one["scores"])) for one in task.trials]
    return [setting._asdict() for setting in settings_of(trials)]


def _scores(content: dict[str, Any]) -> Scores:
    from sememe.tasks.scores import Scores

    return Scores.from_dict(content)


def _option(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _figure(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"
