"""GLUE: the outcomes of its tasks as one table of the papers' layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sememe.evaluation.benchmarks import GLUE
from sememe.evaluation.benchmarks import glue as described
from sememe.evaluation.benchmarks.published import GLUE as PUBLISHED
from sememe.evaluation.benchmarks.published import GLUE_COLUMNS
from sememe.evaluation.outcomes import Outcome, PartScores, ours_note
from sememe.evaluation.results import plain
from sememe.evaluation.scoring import METRICS
from sememe.evaluation.tables import PUBLISHED_MARK, Row, Table, figure, spread_figure

# The column of a part of a task; WNLI has none in the papers.
_COLUMNS = {("MNLI", "matched"): "MNLI-m", ("MNLI", "mismatched"): "MNLI-mm"}


def average(scores: Mapping[str, float]) -> float:
    """The papers' average: the mean of the nine columns, MNLI's two apart, without WNLI."""
    known = [scores.get(column, math.nan) for column in GLUE_COLUMNS]
    return sum(known) / len(known)


@dataclass(frozen=True, kw_only=True)
class GLUEResult:
    """The outcomes of the tasks whose files were there, what was missing, and earlier outcomes."""

    outcomes: list[Outcome]
    missing: dict[str, list[str]] = field(default_factory=dict)
    earlier: list[Outcome] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, tuple[PartScores, str]]:
        """The scores by the papers' columns, with the metric that counts there."""
        return {
            _COLUMNS.get((outcome.benchmark, name), outcome.benchmark): (
                part,
                GLUE[outcome.benchmark].main_metric,
            )
            for outcome in self.outcomes
            for name, part in outcome.parts.items()
        }

    @property
    def means(self) -> dict[str, float]:
        """The mean of each column in per cent."""
        return {
            column: 100 * part.spread(metric).mean
            for column, (part, metric) in self.columns.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {
                "benchmark": "glue",
                "columns": self.means,
                "average": average(self.means),
                "outcomes": [outcome.to_dict() for outcome in self.outcomes],
                "missing": self.missing,
                "published": [vars(row) for row in PUBLISHED],
            }
        )

    def table(self) -> Table:
        """Ours below the published rows, as in Devlin et al. 2019, Table 1.

        Where columns are missing, a second average over those that are there is given for all.
        """
        tasks = list(described.SIZES)
        measured = [column for column in GLUE_COLUMNS if column in self.means]
        is_whole = len(measured) == len(GLUE_COLUMNS)
        rows = [
            Row(
                row.system,
                [
                    *(_cell(task, {c: figure(s) for c, s in row.scores.items()}) for task in tasks),
                    figure(row.average),
                    *([] if is_whole else [figure(_mean(row.scores, measured))]),
                ],
                is_published=True,
            )
            for row in PUBLISHED
        ]
        rows += [_own_row(one, tasks, [] if is_whole else measured) for one in self._systems()]
        short = [] if is_whole else [f"mean of {len(measured)}"]
        names = ["MNLI-(m/mm)" if task == "MNLI" else task for task in tasks]
        return Table(
            title="GLUE",
            headings=["system", *names, "average", *short],
            below=["", *described.SIZES.values(), "", *["" for _ in short]],
            rows=rows,
            notes=self._notes(),
        )

    def _systems(self) -> list[GLUEResult]:
        """The results of each earlier model, then ours."""
        models = dict.fromkeys(outcome.model for outcome in self.earlier)
        own = [[one for one in self.earlier if one.model == model] for model in models]
        return [*(GLUEResult(outcomes=outcomes) for outcomes in own), self]

    def __str__(self) -> str:
        """The papers' table, and every metric below it."""
        return f"{self.table()}\n\n{self.detail()}"

    def _notes(self) -> list[str]:
        num_seeds = max((len(outcome.seeds) for outcome in self.outcomes), default=0)
        notes = [
            f"{PUBLISHED_MARK} published, test-server scores ({PUBLISHED[0].source}); "
            "ours are on the dev sets"
            + (f", mean ± standard deviation of {num_seeds} seeds." if num_seeds > 1 else "."),
            "F1 for QQP and MRPC, Matthews' correlation for CoLA, Spearman's for STS-B, accuracy "
            "for the others; average: mean of the nine columns, without WNLI.",
        ]
        if "WNLI" in self.means:
            notes.append(f"WNLI, which the papers leave out: {figure(self.means['WNLI'])}.")
        for name, files in self.missing.items():
            notes.append(f"{name} was left out: there is no {', no '.join(files)}.")
        return notes

    def detail(self) -> Table:
        """Every metric of every task, with what it stands on."""
        rows = [
            Row(
                outcome.benchmark if name == "dev" else f"{outcome.benchmark}-{name}",
                [
                    METRICS[metric].short,
                    spread_figure(part.spread(metric)),
                    f"{part.num_rows:,}",
                    f"{part.coverage:.1%}",
                    f"{outcome.num_train:,}",
                    str(len(outcome.seeds)),
                    f"{outcome.seconds:.0f}",
                ],
            )
            for outcome in self.outcomes
            for name, part in outcome.parts.items()
            for metric in part.metrics
        ]
        headings = ["task", "metric", "score", "rows", "coverage", "learned", "seeds", "seconds"]
        notes = [ours_note(self.outcomes[-1]).rpartition("; ")[2]] if self.outcomes else []
        return Table(title="", headings=headings, rows=rows, notes=notes)


def _own_row(result: GLUEResult, tasks: Sequence[str], measured: Sequence[str]) -> Row:
    cells = {
        column: spread_figure(part.spread(metric))
        for column, (part, metric) in result.columns.items()
    }
    means = {**dict.fromkeys(GLUE_COLUMNS, math.nan), **result.means}
    return Row(
        result.outcomes[-1].model if result.outcomes else "ours",
        [
            *(_cell(task, cells) for task in tasks),
            figure(average(means)),
            *([figure(_mean(means, measured))] if measured else []),
        ],
    )


def _cell(task: str, cells: Mapping[str, str]) -> str:
    if task == "MNLI":
        return "/".join(cells.get(column, "–") for column in ("MNLI-m", "MNLI-mm"))
    return cells.get(task, "–")


def _mean(scores: Mapping[str, float], columns: Sequence[str]) -> float:
    return sum(scores[column] for column in columns) / len(columns) if columns else math.nan
