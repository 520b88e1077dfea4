"""What an evaluation found: figures with their number, coverage and interval; tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

from sememe.metrics import Interval, SectionScore, proportion_interval, total_score

if TYPE_CHECKING:
    from sememe.evaluation.files import Kind


def plain(value: Any) -> Any:
    """Make a figure fit for JSON: NaN becomes null, tuples lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, SectionScore):
        figures = {**value._asdict(), "accuracy": value.accuracy, "coverage": value.coverage}
        return {name: plain(figure) for name, figure in figures.items()}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@dataclass(frozen=True, kw_only=True)
class Score:
    """One figure of one file: `value` over `num_asked` of `num_questions` questions."""

    kind: Kind
    name: str
    measure: str
    value: float
    interval: Interval
    num_asked: int
    num_questions: int
    sections: list[SectionScore] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def coverage(self) -> float:
        """Share of the questions whose words are all known."""
        return self.num_asked / self.num_questions if self.num_questions else math.nan

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "measure": self.measure,
            "value": plain(self.value),
            "interval": plain(self.interval),
            "num_asked": self.num_asked,
            "num_questions": self.num_questions,
            "coverage": plain(self.coverage),
            **({"sections": plain(self.sections)} if self.sections else {}),
            **{name: plain(value) for name, value in self.details.items()},
            "version": package_version(),
        }


def proportion_score(
    kind: Kind,
    name: str,
    measure: str,
    sections: list[SectionScore],
    seed: int,
    *,
    num_known: int | None = None,
    totals: Sequence[SectionScore] = (),
    details: dict[str, object] | None = None,
) -> Score:
    """Sum sections of right and wrong answers up to one score; `totals` are shown after them."""
    total = total_score("total", sections)
    shown = [*(sections if len(sections) > 1 else []), *totals]
    return Score(
        kind=kind,
        name=name,
        measure=measure,
        value=total.accuracy,
        interval=proportion_interval(total.num_correct, total.num_asked, seed=seed),
        num_asked=total.num_asked if num_known is None else num_known,
        num_questions=total.num_questions,
        sections=shown,
        details={"num_correct": total.num_correct, **(details or {}), "seed": seed},
    )


@dataclass(frozen=True, kw_only=True)
class WordsResult:
    """The scores of one set of vectors on every file that was asked."""

    scores: list[Score]
    num_words: int
    dim: int
    seed: int
    skipped: list[str] = field(default_factory=list)
    version: str = field(default_factory=lambda: package_version())

    def __getitem__(self, name: str) -> Score:
        """The score of the file called `name` (without its ending)."""
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return {
            "version": self.version,
            "seed": self.seed,
            "num_words": self.num_words,
            "dim": self.dim,
            "scores": [score.to_dict() for score in self.scores],
            "skipped": self.skipped,
        }

    def rows(self) -> Iterator[tuple[str, str, str, str, str, str]]:
        """The table's cells: file, measure, score, interval, asked, coverage; sections indented."""
        for score in self.scores:
            low, high = score.interval
            yield (
                score.name,
                score.measure,
                _figure(score.value),
                f"{_figure(low)} – {_figure(high)}" if math.isfinite(low) else "",
                f"{score.num_asked:,}",
                _percent(score.coverage) + _composed(score),
            )
            # Groups are many and small; their own shares are for JSON. Sections of a file of which
            # nothing could be asked would say so once more each.
            has_sections = score.num_asked and score.kind != "groups"
            for part in score.sections if has_sections else ():
                yield (
                    f"  {part.name}",
                    "",
                    _figure(part.accuracy),
                    "",
                    f"{part.num_asked:,}",
                    _percent(part.coverage),
                )

    @property
    def caption(self) -> str:
        """What the figures stand on."""
        return (
            f"{self.num_words:,} words × {self.dim}; 95 % bootstrap intervals, seed {self.seed}; "
            f"sememe {self.version}"
        )

    def __str__(self) -> str:
        """The table in plain text."""
        rows = [_HEADINGS, *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
        lines = [
            "  ".join(
                cell.ljust(width) if column < 2 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, self.caption])


_HEADINGS = ("file", "measure", "score", "95 % interval", "asked", "coverage")


def _figure(value: float) -> str:
    return f"{100 * value:.1f}" if math.isfinite(value) else "–"


def _composed(score: Score) -> str:
    """How many questions had a word that only its sub-words know."""
    num_composed = score.details.get("num_composed", 0)
    return f" ({num_composed:,} composed)" if num_composed else ""


def _percent(value: float) -> str:
    return f"{value:.0%}" if math.isfinite(value) else "–"


def package_version() -> str:
    """The version of sememe that made a result."""
    try:
        return metadata.version("sememe")
    except metadata.PackageNotFoundError:
        return "unknown"
