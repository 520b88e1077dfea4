"""Tables of results as the papers lay them out: rows in, plain text, Markdown or JSON out."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from sememe.metrics import Spread, error_reduction

PUBLISHED_MARK = "†"


@dataclass(frozen=True)
class Row:
    """One system: its name, a cell for each heading after the first, and where it comes from."""

    system: str
    cells: Sequence[str]
    is_published: bool = False

    @property
    def label(self) -> str:
        """The name, marked where others published the figures."""
        return self.system + (f" {PUBLISHED_MARK}" if self.is_published else "")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of systems under headings; `below` is a second line of headings, notes come last."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Row]
    below: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def __str__(self) -> str:
        """The table in plain text; numbers end in one column."""
        head = [list(self.headings)] + ([list(self.below)] if self.below else [])
        lines = head + [[row.label, *row.cells] for row in self.rows]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(
                _padded(cell, width, is_left=column == 0)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        num_head = 2 if self.below else 1
        body = [*text[:num_head], rule, *text[num_head:]]
        return "\n".join([*([self.title] if self.title else []), *body, *self.notes])


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _padded(text: str, width: int, *, is_left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if is_left else space + text


def figure(value: float | None, *, digits: int = 1) -> str:
    """A score in per cent, or a dash."""
    return f"{value:.{digits}f}" if value is not None and math.isfinite(value) else "–"


def spread_figure(found: Spread) -> str:
    """Mean ± standard deviation of shares, in per cent; one seed has no deviation."""
    mean = figure(100 * found.mean)
    return f"{mean} ± {100 * found.sd:.1f}" if math.isfinite(found.sd) else mean


def gain_cells(baseline: float | None, score: float | None) -> tuple[str, str]:
    """Absolute gain and relative error reduction in per cent, or nothing without a baseline."""
    if baseline is None or score is None or not math.isfinite(baseline + score):
        return "", ""
    gain, reduction = error_reduction(baseline, score)
    return f"{gain:+.1f}", f"{reduction:+.1f} %"
