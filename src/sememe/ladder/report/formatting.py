"""Formatting for reports: values in, short text out."""

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import reduce

from sememe.evaluation.results import FEW_MARK
from sememe.ladder.results import Cell, Column
from sememe.localization import SCALES, current, say, translate

DASH = "–"
# Not allowed in HTML or XML; a lone surrogate cannot even be written as UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Replace characters that no page may contain, and isolate direction marks."""
    text = _FORBIDDEN.sub("\ufffd", text)
    return re.sub("[\u202a-\u202e\u2066-\u2069]", "", text)


def score(value: float | None) -> str:
    """A score in the unit of its task, or a dash."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
    return text.replace("-0.0", "0.0") if text == "-0.0" else text.replace("-", "−")


def has_number(cell: Cell | None) -> bool:
    """Whether a cell holds a score."""
    return cell is not None and cell.mean is not None and math.isfinite(cell.mean)


def has_spread(cell: Cell) -> bool:
    """Whether a cell holds a deviation over seeds; one seed has none."""
    return cell.sd is not None and math.isfinite(cell.sd) and len(cell.scores) != 1


def cell_text(cell: Cell | None) -> str:
    """Mean ± standard deviation, or a dash."""
    if cell is None or not has_number(cell):
        return DASH
    sd = f" ± {score(cell.sd)}" if has_spread(cell) else ""
    return score(cell.mean) + sd + FEW_MARK * cell.few_questions


def unit(task: Column) -> str:
    """The metric with its unit, for a heading."""
    if task.unit in task.metric:
        return translate(task.metric)
    return say("{metric}, {unit}", metric=translate(task.metric), unit=translate(task.unit))


def headline(task: Column) -> str:
    """The title of a task, capitalized; a user's name for it stays as written."""
    return task.title if task.is_named else task.title[:1].upper() + task.title[1:]


def with_unit(value: float, task: Column) -> str:
    """A score in a sentence: 63.2 %, or perplexity 63.2."""
    return (
        say("{num} %", num=score(value))
        if task.unit == "%"
        else f"{translate(task.unit)} {score(value)}".strip()
    )


def unbroken(text: str) -> str:
    """A text whose numbers do not break from their %."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def duration(seconds: float) -> str:
    """A duration in at most two units."""
    if not math.isfinite(seconds):
        return DASH
    if seconds < 0.95:
        return say("{num} s", num="< 0.1" if 0 < seconds < 0.05 else f"{seconds:.1f}")
    whole = round(seconds)
    if whole < 60:
        tenths = f"{seconds:.1f}".removesuffix(".0")
        return say("{num} s", num=tenths if seconds < 9.95 else whole)
    size, large, small = (
        (60, "{num} min", "{num} s") if whole < 3600 else (3600, "{num} h", "{num} min")
    )
    rest = whole % size * 60 // size
    return say(large, num=whole // size) + (f" {say(small, num=rest)}" if rest else "")


def count(number: float) -> str:
    """A large number with three digits: 431, 12.3 k, 4.56 M."""
    for size, name in SCALES[current()]:
        if abs(number) >= size * 0.9995:
            value = number / size
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{digits}f} {name}"
    return f"{number:.0f}"


def megabytes(value: float) -> str:
    """A size in MB with few digits."""
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
        return say(f"{{first}}; {word} {{last}}", first="; ".join(items[:-1]), last=items[-1])
    return say(f"{{first}} {word} {{last}}", first=joined(items[:-1]), last=items[-1])


def joined(items: Sequence[str], template: str = "{one}, {other}") -> str:
    """Items in a row, separated as in the template."""
    return reduce(lambda one, other: say(template, one=one, other=other), items) if items else ""


def plural(number: int, name: str, many: str = "") -> str:
    """A number with its noun."""
    return say(f"{{num:,}} {name if number == 1 else many or name + 's'}", num=number)


_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve")  # fmt: skip


def small_number(number: int) -> str:
    """A number in a sentence: spelled out up to twelve."""
    return say(_WORDS[number]) if 0 <= number < len(_WORDS) else f"{number:,}"


def text_width(text: str, size: float) -> float:
    """The approximate width of a text in a sans serif of this size; Chinese is full-width."""
    wide = sum(1.0 if unicodedata.east_asian_width(char) in "WF" else 0.56 for char in text)
    return wide * size


def shortened(text: str, length: int) -> str:
    """A text of at most this many characters, with an ellipsis if shortened."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def fitted(text: str, width: float, size: float) -> str:
    """A text shortened with an ellipsis to about the available width."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"
