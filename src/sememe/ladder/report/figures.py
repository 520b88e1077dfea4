"""Figures as a report prints them: numbers in, short text out."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

from sememe.ladder.results import Cell, Task

DASH = "–"


def score(value: float | None) -> str:
    """A score in the unit of its task, or a dash."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
    return text.replace("-0.0", "0.0") if text == "-0.0" else text.replace("-", "−")


def has_number(cell: Cell | None) -> bool:
    """Whether a cell holds a figure."""
    return cell is not None and cell.mean is not None and math.isfinite(cell.mean)


def has_spread(cell: Cell) -> bool:
    """Whether a cell holds a deviation over seeds; one seed has none."""
    return cell.sd is not None and math.isfinite(cell.sd) and len(cell.scores) != 1


def cell_text(cell: Cell | None) -> str:
    """Mean ± standard deviation, or a dash."""
    if cell is None or not has_number(cell):
        return DASH
    return score(cell.mean) + (f" ± {score(cell.sd)}" if has_spread(cell) else "")


def unit(task: Task) -> str:
    """The metric with its unit, as a heading wants it."""
    return task.metric if task.unit in task.metric else f"{task.metric}, {task.unit}"


def headline(task: Task) -> str:
    """The title of a task with a capital; a name that the user gave stays as it was written."""
    return task.title if task.is_named else task.title[:1].upper() + task.title[1:]


def with_unit(value: float, task: Task) -> str:
    """A score in a sentence: 63.2 %, or perplexity 63.2."""
    return f"{score(value)} %" if task.unit == "%" else f"{task.unit} {score(value)}".strip()


def unbroken(text: str) -> str:
    """A text whose figures and their % stay on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def duration(seconds: float) -> str:
    """A stretch of time in at most two units."""
    if not math.isfinite(seconds):
        return DASH
    if seconds < 0.95:
        return "< 0.1 s" if 0 < seconds < 0.05 else f"{seconds:.1f} s"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    large, small, names = (
        (whole // 60, whole % 60, ("min", "s"))
        if whole < 3600
        else (whole // 3600, whole % 3600 // 60, ("h", "min"))
    )
    return f"{large} {names[0]}" + (f" {small} {names[1]}" if small else "")


def count(number: float) -> str:
    """A large number with three figures: 431, 12.3 k, 4.56 M."""
    for size, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= size * 0.9995:
            value = number / size
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{digits}f}{name}"
    return f"{number:.0f}"


def megabytes(value: float) -> str:
    """A size in MB with no more digits than one wants to compare."""
    if value < 0.05:
        return "0" if value <= 0 else "< 0.1"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def gigabytes(num_bytes: float) -> str:
    """An amount of memory."""
    return f"{num_bytes / 2**30:.0f} GiB" if num_bytes >= 2**30 else f"{num_bytes / 2**20:.0f} MiB"


def listed(items: Sequence[str], word: str = "and") -> str:
    """Names in a sentence: a, b and c; semicolons where a name has a comma."""
    if len(items) < 2:
        return "".join(items)
    if any("," in item for item in items):
        return f"{'; '.join(items[:-1])}; {word} {items[-1]}"
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def plural(number: int, name: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {name if number == 1 else many or name + 's'}"


_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve")  # fmt: skip


def small_number(number: int) -> str:
    """A number as a sentence has it: in letters up to twelve."""
    return _WORDS[number] if 0 <= number < len(_WORDS) else f"{number:,}"


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a sans serif of this size; Chinese fills its square."""
    wide = sum(1.0 if unicodedata.east_asian_width(char) in "WF" else 0.56 for char in text)
    return wide * size


def shortened(text: str, length: int) -> str:
    """A text of at most so many characters, cut with an ellipsis."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def fitted(text: str, width: float, size: float) -> str:
    """A text that is about as wide as there is room, cut with an ellipsis."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"
