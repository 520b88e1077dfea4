"""Results of an evaluation: scores with counts, coverage and interval; tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sememe.localization import say, translate
from sememe.machine import installed_versions
from sememe.metrics import (
    Interval,
    SectionScore,
    Spread,
    error_reduction,
    is_syntactic,
    proportion_interval,
    total_score,
)
from sememe.notebook import aligned, cell_width
from sememe.progress import FEW

if TYPE_CHECKING:
    from sememe.evaluation.question_files import Kind

PUBLISHED_MARK = "†"
FEW_MARK = "*"
_FEW_NOTE = f"{FEW_MARK} from fewer than {FEW} questions: much of it is chance."


@dataclass(frozen=True)
class SystemRow:
    """One system: its name, a cell for each heading after the first, and its source."""

    system: str
    cells: Sequence[str]
    is_published: bool = False

    @property
    def label(self) -> str:
        """The name, marked if the scores are published ones."""
        return self.system + (f" {PUBLISHED_MARK}" if self.is_published else "")


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """Rows of systems under headings; `below` is a second line of headings, notes come last."""

    title: str
    headings: Sequence[str]
    rows: Sequence[SystemRow]
    below: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def __str__(self) -> str:
        """The table as plain text in the language in use; numbers are right-aligned."""
        head = [[*map(say, self.headings)], *([[*self.below]] if self.below else [])]
        rows = [[*map(translate, (row.label, *row.cells))] for row in self.rows]
        text = aligned([*head, *rows])
        rule = "-" * max(map(cell_width, text))
        num_head = 2 if self.below else 1
        body = [*text[:num_head], rule, *text[num_head:]]
        cells = [cell for row in self.rows for cell in row.cells]
        few = [_FEW_NOTE] if any(cell.startswith(FEW_MARK) for cell in cells) else []
        title = [translate(self.title)] if self.title else []
        return "\n".join([*title, *body, *map(translate, (*self.notes, *few))])


def format_score(value: float | None, *, digits: int = 1) -> str:
    """A score in percent, or a dash."""
    return f"{value:.{digits}f}" if value is not None and math.isfinite(value) else "–"


def marked(score: str, num: int) -> str:
    """A score as shown in tables: marked if it is from few questions."""
    return f"{FEW_MARK}{score}" if num < FEW and score != "–" else score


def format_spread(found: Spread, num: int = FEW) -> str:
    """Mean ± standard deviation over `num` rows, in percent; one seed has no deviation."""
    mean = format_score(100 * found.mean)
    deviation = f" ± {100 * found.sd:.1f}" if math.isfinite(found.sd) else ""
    return marked(mean + deviation, num)


def format_percents(interval: Sequence[float] | None) -> str:
    """An interval in percent as tables show it."""
    if interval is None or not all(map(math.isfinite, interval)):
        return "–"
    return " – ".join(format_score(100 * bound) for bound in interval)


def gain_cells(baseline: float | None, score: float | None) -> tuple[str, str]:
    """Absolute gain and relative error reduction in percent, or nothing without a baseline."""
    if baseline is None or score is None or not math.isfinite(baseline + score):
        return "", ""
    gain, reduction = error_reduction(baseline, score)
    return f"{gain:+.1f}", f"{reduction:+.1f} %"


def plain(value: Any) -> Any:
    """Make a score fit for JSON: NaN becomes null, tuples become lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, SectionScore):
        metrics = {
            **value._asdict(),
            "accuracy": value.accuracy,
            "coverage": value.coverage,
            "few_questions": value.num_asked < FEW,
        }
        return {name: plain(item) for name, item in metrics.items()}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, kw_only=True)
class Score:
    """One score of one file: `value` over `num_asked` of `num_questions` questions."""

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
        """Fraction of the questions whose words are all known."""
        return self.num_asked / self.num_questions if self.num_questions else math.nan

    def to_dict(self) -> dict[str, Any]:
        """The scores for JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "measure": self.measure,
            "value": plain(self.value),
            "interval": plain(self.interval),
            "num_asked": self.num_asked,
            "num_questions": self.num_questions,
            "coverage": plain(self.coverage),
            "few_questions": self.num_asked < FEW,
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
    details: dict[str, object] | None = None,
) -> Score:
    """Add up sections of right and wrong answers to one score.

    Semantic and syntactic totals follow if sections are named as in Google's analogies.
    """
    total, shown = total_score("total", sections), sections if len(sections) > 1 else []
    by_sense = [[s for s in sections if is_syntactic(s.name) == own] for own in (False, True)]
    if kind == "analogies" and all(by_sense):
        names = ("semantic", "syntactic")
        shown = [*shown, *(total_score(n, own) for n, own in zip(names, by_sense, strict=True))]
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
    """The scores of one set of vectors on every question file."""

    scores: list[Score]
    num_words: int
    dim: int
    seed: int
    skipped: list[str] = field(default_factory=list)
    version: str = field(default_factory=lambda: package_version())

    def __getitem__(self, name: str) -> Score:
        """The score of the file called `name` (without its ending)."""
        return {score.name: score for score in reversed(self.scores)}[name]

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
        """The table's cells: file, metric, score, interval, scored, coverage; sections indented."""
        for score in self.scores:
            low, high = score.interval
            yield (
                score.name,
                score.measure,
                marked(format_score(100 * score.value), score.num_asked),
                f"{format_score(100 * low)} – {format_score(100 * high)}"
                if math.isfinite(low)
                else "",
                f"{score.num_asked:,}",
                _percent(score.coverage) + _composed(score),
            )
            # Groups are many and small; their own shares are for JSON. Sections of a file of which
            # nothing could be scored would say so again each.
            has_sections = score.num_asked and score.kind != "groups"
            for part in score.sections if has_sections else ():
                yield (
                    f"  {part.name}",
                    "",
                    marked(format_score(100 * part.accuracy), part.num_asked),
                    "",
                    f"{part.num_asked:,}",
                    _percent(part.coverage),
                )

    @property
    def caption(self) -> str:
        """The context of the scores."""
        few = any(row[2].startswith(FEW_MARK) for row in self.rows())
        return (
            f"{self.num_words:,} words × {self.dim}; one training (one seed); "
            f"95 % intervals by bootstrap over the questions (seed {self.seed}); "
            f"sememe {self.version}" + (f"\n{_FEW_NOTE}" if few else "")
        )

    def __str__(self) -> str:
        """The table in plain text, in the language in use."""
        rows = [(name, translate(measure), *others) for name, measure, *others in self.rows()]
        table = aligned([[*map(say, _HEADINGS)], *rows], num_left=2)
        return "\n".join([*table, *map(translate, self.caption.splitlines())])


_HEADINGS = ("file", "measure", "score", "95 % interval", "asked", "coverage")


def _composed(score: Score) -> str:
    """How many questions had a word whose vector comes from its sub-words."""
    num_composed = score.details.get("num_composed", 0)
    return say(" ({num:,} composed)", num=num_composed) if num_composed else ""


def _percent(value: float) -> str:
    return f"{value:.0%}" if math.isfinite(value) else "–"


def package_version() -> str:
    """The version of sememe that made a result."""
    return installed_versions(["sememe"]).get("sememe", "unknown")
