"""What a cleaning removed: counts per rule, with a few samples of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sememe.notebook import html_table

if TYPE_CHECKING:
    import numpy as np

# The rules in the order in which they are tried; a row counts for the first that removes it.
RULES = (
    "invalid", "empty", "too_long", "repeated_lines", "broken", "links", "page_numbers", "markup",
    "too_short", "language", "duplicates", "near_duplicates",
)  # fmt: skip
(
    INVALID, EMPTY, TOO_LONG, REPEATED_LINES, BROKEN, LINKS, PAGE_NUMBERS, MARKUP, TOO_SHORT,
    LANGUAGE, DUPLICATES, NEAR_DUPLICATES,
) = range(1, len(RULES) + 1)  # fmt: skip
# Their names for people.
TOLD = {rule: rule for rule in RULES} | {
    "too_long": "too long", "repeated_lines": "repeated lines", "page_numbers": "page numbers",
    "too_short": "too short", "near_duplicates": "near-duplicates",
}  # fmt: skip
NUM_SAMPLES = 3
_LONGEST_SAMPLE = 100  # characters


class Place(NamedTuple):
    """A file and a line or row of it, from 1 on; or "" and an item of Python data, from 0 on."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else str(self.line)


class Removed(NamedTuple):
    """A row or line that was removed: where, by which rule, and what it is like if repeated."""

    place: Place
    rule: str
    text: str
    like: Place | None = None
    similarity: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The removal as one flat row."""
        like = self.like or Place(None, None)  # type: ignore[arg-type]
        alike = None if self.similarity is None else round(self.similarity, 4)
        return {
            "file": self.place.file, "line": self.place.line, "rule": self.rule,
            "like_file": like.file, "like_line": like.line, "similarity": alike,
            "text": self.text,
        }  # fmt: skip


@dataclass
class RuleCount:
    """The rows that a rule removed, the lines that it removed inside rows, and a few of them."""

    rows: int = 0
    lines: int = 0
    samples: list[Removed] = field(default_factory=list)


@dataclass
class CleanReport:
    """What was kept and what was removed; `is_kept` says it for each row in order."""

    num_rows: int
    num_kept: int
    unit: str  # what a row is: rows, lines, paragraphs or files
    num_repaired: int
    rules: dict[str, RuleCount]
    is_kept: np.ndarray
    out: str | None
    options: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The report in JSON values, without `is_kept`."""
        rules = {
            name: {
                "rows": count.rows,
                "lines": count.lines,
                "samples": [own.to_dict() | {"text": shortened(own.text)} for own in count.samples],
            }
            for name, count in self.rules.items()
        }
        return {
            "out": self.out, "unit": self.unit, "rows": self.num_rows, "kept": self.num_kept,
            "removed": self.num_rows - self.num_kept, "repaired_lines": self.num_repaired,
            "rules": rules, "options": self.options,
        }  # fmt: skip

    def counts(self) -> list[tuple[str, ...]]:
        """Rule, rows, their share and lines, for rules that removed something."""
        return [
            (TOLD[name], f"{own.rows:,}", f"{own.rows / max(self.num_rows, 1):.1%}",
             f"{own.lines:,}")
            for name, own in self.rules.items()
            if own.rows or own.lines
        ]  # fmt: skip

    def samples(self) -> list[tuple[str, ...]]:
        """Rule, place and shortened text of some of the removals."""
        return [
            (TOLD[name], _told_place(own), shortened(own.text))
            for name, count in self.rules.items()
            for own in count.samples
        ]

    def summary(self) -> str:
        """One sentence."""
        num_lines = sum(own.lines for own in self.rules.values())
        lines = f", removed {num_lines:,} more lines" if num_lines else ""
        repaired = f", repaired {self.num_repaired:,} lines" if self.num_repaired else ""
        return f"Kept {self.num_kept:,} of {self.num_rows:,} {self.unit}{lines}{repaired}."

    def __str__(self) -> str:
        counts = [f"{name}: {rows} rows, {lines} lines" for name, rows, _, lines in self.counts()]
        return "\n".join([*counts, self.summary()])

    def _repr_html_(self) -> str:
        """The counts as a table, for notebooks."""
        return html_table(
            ("rule", "rows removed", "share", "lines removed"), self.counts(), self.summary()
        )


def _told_place(own: Removed) -> str:
    if own.like is None:
        return str(own.place)
    # The line alone is enough in the same file.
    like = own.like.line if own.like.file == own.place.file else own.like
    return f"{own.place} ≈ {like} ({own.similarity:.0%})"


def shortened(text: str) -> str:
    """The start of a text on one line."""
    line = " ".join(text[: 4 * _LONGEST_SAMPLE].split())
    return line if len(line) <= _LONGEST_SAMPLE else f"{line[: _LONGEST_SAMPLE - 1]}…"
