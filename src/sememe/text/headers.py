"""What the cells of a table tell: whether a row names the columns, and which column is meant.

In: the first row and those below it, or a name as a user writes it. Out: header or not (None where
the cells leave it open), the columns of the table, statistics of a column's cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from statistics import median
from typing import Any, Literal, NamedTuple

from sememe.errors import InputError
from sememe.progress import shown
from sememe.text.tables import FileTable

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TIME = r"\d{1,2}[:.]\d{2}([:.]\d{2})?([.,]\d+)?\s*([AaPp]\.?[Mm]\.?)?\s*(Z|[+-]\d{2}:?\d{2})?"
_DAY = (
    r"\d{4}[-/.年]\s?\d{1,2}[-/.月]\s?\d{1,2}日?|\d{1,2}[-/.]\s?\d{1,2}[-/.]\s?(\d{4}|\d{2})"
    r"|(\w{2,9}\.?,? )?\d{1,2}\.?[ -][^\W\d]{3,9}\.?[ -]\d{2,4}|[^\W\d]{3,9}\.? \d{1,2}, \d{4}"
    r"|(19|20)\d{2}(0[1-9]|1[0-2])([0-2]\d|3[01])"
)
_MONTH = (
    r"(19|20)\d{2}([-/]\d{1,2}|年\s?\d{1,2}月)|(0?[1-9]|1[0-2])[-/.](19|20)\d{2}"
    r"|(?i:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[^\W\d]*\.?[ -]\d{2,4}"
)
_DATE = re.compile(
    rf"({_DAY})([T ,]+{_TIME})?|{_MONTH}|\d{{1,2}}:\d{{2}}(:\d{{2}})?"
    rf"|([^\W\d]{{3}} ){{2}} ?\d{{1,2}} {_TIME} ?\w* \d{{4}}"
)
_LONGEST_NAME, _LONGEST_LABEL = 64, 60  # characters
_MOST_WORDS = 6  # of a name
FEW_ROWS = 5  # fewer do not say whether a label is another in each
# The content of a cell without a value.
_NOTHING = frozenset(("", "n/a", "na", "nan", "none", "null", "nil", "?", "-", "无"))
_MANY_NUMBERS = 20  # values of a column of numbers that is not a label


def plain(name: str) -> str:
    """A column's name as names are compared."""
    return re.sub(r"[\s_-]", "", name).lower()


def is_number(text: str) -> bool:
    """Whether a cell is a number and nothing else."""
    return bool(_NUMBER.fullmatch(text.strip()))


# ---- the first row ------------------------------------------------------------------------


def is_header(
    first: Sequence[str],
    others: Sequence[Sequence[str]],
    named: Mapping[str, Any] | None = None,
    earlier: Mapping[str, Any] | None = None,
    is_common: Callable[[str], bool] = lambda name: False,
) -> bool | None:
    """Whether the first row of a table names its columns; None if unclear.

    It does if a column that is requested (`named`), was in `earlier` rows or is commonly used has
    such a name, or if its cells differ in kind from those below: no number above numbers, a word
    above texts next to one that is not among the labels below it.
    """
    names = [cell.strip() for cell in first]
    asked = [*(named or {}).values(), *(earlier or {}).values()]
    parts = {part for columns in asked for part in column_parts(columns, names)}
    wanted = {plain(part) for part in parts if not part.isdecimal()}
    if wanted & {plain(name) for name in names if name}:
        return True
    all_could, is_known = bool(any(names) and all(map(could_name, names))), False
    has_long, has_labels, below = False, False, [row for row in others if list(row) != list(first)]
    for index, name in enumerate(names):
        cells = [row[index].strip() for row in below if index < len(row) and row[index].strip()]
        if name and name.lower() in map(str.lower, cells):
            return False
        look = ColumnProfile.of(cells)
        is_odd = look.kind in ("number", "date") or (look.has_digits and not _has_digit(name))
        # Next to a long cell, numbers may be labels, as the cell above them.
        is_odd &= all_could or look.kind == "date" or look.is_another_each
        is_known |= is_odd and could_name(name) and plain(name) not in _NOTHING
        has_long |= look.length >= max(2 * len(name), 8)
        has_labels |= look.repeats and look.length < _LONGEST_LABEL
    if all_could and (is_known or any(map(is_common, names)) or (has_long and has_labels)):
        return True
    # Nothing speaks for names in a few short rows; where something does, only the user knows: a
    # questionnaire names its columns by whole questions.
    is_open = has_long or has_labels if all_could else is_known
    return None if is_open and not named else False


def _has_digit(text: str) -> bool:
    return any(char.isdigit() for char in text)


def could_name(cell: str) -> bool:
    """Whether a cell could be the name of a column."""
    num_words = len(cell.split())
    is_sentence = cell.endswith(("。", "！", "？")) or (
        num_words > 2 and cell.endswith(tuple(".!?"))
    )
    is_short = len(cell) <= _LONGEST_NAME and num_words <= _MOST_WORDS and "\n" not in cell
    return is_short and not (is_sentence or is_number(cell) or _DATE.fullmatch(cell))


# ---- columns by name ----------------------------------------------------------------------


def column_parts(columns: str | Sequence[str], known: Sequence[str]) -> list[str]:
    """The columns that a setting names; one whose name holds a + is found as it is."""
    if not isinstance(columns, str):
        return list(columns)
    return [columns] if columns in known else [part.strip() for part in columns.split("+")]


def named_column(table: FileTable, name: str, role: str = "") -> str:
    """The column that a user means: by its name, by its number from 1, or by a similar name."""
    if name in table.columns:
        return name
    if name.isdecimal() and 1 <= int(name) <= len(table.columns):
        return table.columns[int(name) - 1]
    matching = [column for column in table.columns if plain(column) == plain(name)]
    if len(matching) == 1:
        return matching[0]
    cure = f" (choose one with --column {role}=NAME)" if role and table.has_names else ""
    raise InputError(f"{table.name} has no column {name!r}; {listed(table)}{cure}.")


def listed(table: FileTable) -> str:
    """The columns of a table, for messages."""
    if not table.has_names:
        many = "one column" if len(table.columns) == 1 else f"{len(table.columns)} columns"
        return f"it has {many} and no header row"
    return f"its columns are {', '.join(map(repr, table.columns[:20])) or 'none'}"


# ---- cells --------------------------------------------------------------------------------


class ColumnProfile(NamedTuple):
    """Statistics of a column's cells."""

    kind: Literal["empty", "number", "date", "text"]
    num: int  # cells that hold something
    num_empty: int
    num_distinct: int
    length: float  # characters, in the middle of the cells
    has_digits: bool  # in every cell, as codes and dates do
    samples: tuple[str, ...]

    @classmethod
    def of(cls, cells: Sequence[str]) -> ColumnProfile:
        """Compute the statistics of a column's cells."""
        filled = [cell for cell in cells if cell]
        distinct = dict.fromkeys(filled)
        kind: Literal["empty", "number", "date", "text"] = "text" if filled else "empty"
        if 2 * sum(map(bool, map(_DATE.fullmatch, filled))) > len(filled):
            kind = "date"  # the others are "n/a" and the like
        elif filled and all(is_number(cell.replace(",", ".")) for cell in filled):
            kind = "number"
        length = median(map(len, filled)) if filled else 0.0
        empty = len(cells) - len(filled)
        has_digits = bool(filled) and all(map(_has_digit, filled))
        samples = tuple(islice(distinct, 2))
        return cls(kind, len(filled), empty, len(distinct), length, has_digits, samples)

    @property
    def repeats(self) -> bool:
        """Whether values repeat, as labels do."""
        return 0 < 2 * self.num_distinct <= self.num

    @property
    def is_another_each(self) -> bool:
        """Whether almost no value repeats, with enough rows to be sure."""
        return self.num >= FEW_ROWS and 10 * self.num_distinct > 9 * self.num

    @property
    def is_numbering(self) -> bool:
        """Whether the cells only number or name the rows."""
        return self.is_another_each and all(sample.isdecimal() for sample in self.samples)

    @property
    def is_code(self) -> bool:
        """Whether the cells are not text: numbers, dates, or a different code in each row."""
        is_word = all(len(sample.split()) == 1 and sample.isascii() for sample in self.samples)
        return self.kind != "text" or (self.has_digits and self.is_another_each and is_word)

    @property
    def could_be_label(self) -> bool:
        """Whether the cells could be labels."""
        is_few = self.kind != "number" or self.num_distinct <= _MANY_NUMBERS
        is_filled = self.num > self.num_empty and not self.is_another_each
        return self.kind != "date" and is_few and is_filled and self.length <= _LONGEST_LABEL

    def __str__(self) -> str:
        if self.kind == "empty":
            return "empty"
        if self.num_distinct == 1 < self.num:
            return f"always {quoted(self.samples[0])}"
        if self.kind == "date":
            return "dates"
        kind = "numbers, " if self.kind == "number" else ""
        each = ", another in each row" if self.is_another_each else ""
        return f"{kind}such as {quoted(self.samples[0])}{each}"


def as_text(cell: Any) -> str:
    """A cell as text; a frame of pandas writes NaN where one is empty."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return str(cell).lower()
    return " ".join(map(as_text, cell)) if isinstance(cell, (list, tuple)) else str(cell)


def quoted(cell: str) -> str:
    """A cell for a message: short, on one line, without control characters."""
    text = shown(" ".join(cell.split()))
    return f"“{text[:30]}…”" if len(text) > 31 else f"“{text}”"
