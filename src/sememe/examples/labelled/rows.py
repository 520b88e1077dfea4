"""Labelled rows: one frozen dataclass per example; a bad row is an error or is skipped."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

from sememe.errors import InputError
from sememe.examples.labelled.columns import Kind
from sememe.frames import SeriesTexts, is_frame, is_series, rows_of
from sememe.text.tables import FileTable, Record, flat

Note = Callable[[str], None]


def silent(_: str) -> None:
    """Do nothing: the default of `on_note`."""


@dataclass(frozen=True)
class TextRow:
    """One text, or two, with a label or a set of labels, a score or choices.

    classify: text, label or labels; pairs: text, second, label or labels; regress: text, perhaps
    second, score; choose: text (the context), perhaps second (a question or the start of every
    choice), choices, and the index of the right one as label.
    """

    text: str
    second: str | None = None
    label: str | None = None
    score: float | None = None
    choices: tuple[str, ...] | None = None
    source: str = ""  # "train.tsv, line 12"
    id: str = ""
    labels: tuple[str, ...] | None = None  # where a row may have any number of them
    # All columns of the row in its file, if it was read to be predicted.
    cells: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def label_set(self) -> tuple[str, ...]:
        """Its labels: one, several, or none."""
        if self.labels is not None:
            return self.labels
        return () if self.label is None else (self.label,)


@dataclass(frozen=True)
class TagRow:
    """The words of a sentence with their tags; offsets are their positions in a text.

    `marks` are true for the words that the tags are about, such as the predicate whose roles they
    name.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    source: str = ""
    text: str | None = None
    starts: tuple[int, ...] | None = None
    ends: tuple[int, ...] | None = None
    id: str = ""
    marks: tuple[bool, ...] | None = None
    cells: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


class AnswerSpan(NamedTuple):
    """A span of a context: its characters, and the position of the first."""

    text: str
    start: int


@dataclass(frozen=True)
class AnswerRow:
    """A question about a context; without answers it has none there, or none is known."""

    id: str
    question: str
    context: str
    answers: tuple[AnswerSpan, ...] = ()
    is_impossible: bool = False
    source: str = ""
    cells: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


Row = TypeVar("Row", TextRow, TagRow, AnswerRow)


class Gap(NamedTuple):
    """A skipped row: the number of rows before it, and its cells."""

    num_before: int
    cells: Mapping[str, Any]


class LabelledRows(list[Row]):
    """Rows, with the column of each role and the skipped rows."""

    columns: Mapping[str, str] = {}
    separator = ""  # of several labels in a cell, see label_sets; "": one label per row
    gaps: Sequence[Gap] = ()

    @property
    def num_skipped(self) -> int:
        """The number of bad rows that were skipped."""
        return len(self.gaps)

    def aligned(self, values: Iterable[Any]) -> Iterator[tuple[Mapping[str, Any], Any]]:
        """The cells of every row with its value, in the order of the data; None if skipped."""
        gaps = deque(self.gaps)
        for number, (row, value) in enumerate(zip(self, values, strict=True)):
            while gaps and gaps[0].num_before == number:
                yield gaps.popleft().cells, None
            yield cells_of(row), value
        yield from ((gap.cells, None) for gap in gaps)


def cells_of(row: Any) -> Mapping[str, Any]:
    """The columns of a row in its file; of a row given in Python, its own fields."""
    if row.cells is not None:
        return row.cells
    own = {one.name: getattr(row, one.name) for one in fields(row) if one.name != "source"}
    return {name: value for name, value in own.items() if value not in (None, "", ())}


class BadRowError(InputError):
    """A row that cannot be used; `found` says where it is and what is wrong with it."""

    def __init__(self, found: str) -> None:
        super().__init__(f"{found}. Fix it, or skip such rows with --skip-bad (skip_bad=True).")
        self.found = found


# ---- rows given in Python ---------------------------------------------------------------


NAME = "the given rows"
_SHAPES = {
    "classify": "(text, label) or (text, list of labels)",
    "pairs": "(text, second, label)",
    "regress": "(text, score) or (text, second, score)",
    "choose": "(context, choices, label) or (context, question, choices, label)",
}


def items_of(data: Any) -> list[Any]:
    """The rows of any iterable; a DataFrame gives dicts, a Series texts."""
    if is_frame(data) or is_series(data):
        data = rows_of(data) if is_frame(data) else SeriesTexts(data)
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise InputError(
            f"Labelled data is a path or a list of rows, not of type {type(data).__name__}."
        )
    items = list(data)
    if not items:
        raise InputError("The labelled data holds no rows.")
    return items


def table_of(data: Any, kind: Kind) -> FileTable:
    """The items as a table with one column per role; rows of this module stay as they are."""
    items = items_of(data)
    if all(isinstance(item, TextRow) for item in items):
        return FileTable(NAME, [], True, items)
    records = [
        Record(_cells(item, kind, index), f"row {index}") for index, item in enumerate(items)
    ]
    columns = list(dict.fromkeys(column for record in records for column in record.cells))
    return FileTable(NAME, columns, True, records)


def _cells(item: Any, kind: Kind, index: int) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return flat(item)
    parts = (item,) if isinstance(item, str) else item
    roles = _roles(parts, kind) if isinstance(parts, (list, tuple)) else ()
    if not roles:
        raise InputError(f"Row {index} is not {_SHAPES[kind]}: {item!r:.60}.")
    return dict(zip(roles, parts, strict=True))


def _roles(parts: list[Any] | tuple[Any, ...], kind: Kind) -> tuple[str, ...]:
    if kind == "choose":
        has_question = len(parts) > 1 and not isinstance(parts[1], (list, tuple))
        roles = (
            ("text", "second", "choices", "label") if has_question else ("text", "choices", "label")
        )
        return roles[: len(parts)] if len(roles) - 1 <= len(parts) <= len(roles) else ()
    if kind == "classify":
        return ("text", "label")[: len(parts)] if 1 <= len(parts) <= 2 else ()
    if kind == "pairs":
        return ("text", "second", "label")[: len(parts)] if 2 <= len(parts) <= 3 else ()
    is_scored = isinstance(parts[-1], (int, float))
    texts = ("text", "second")[: len(parts) - is_scored]
    return (*texts, "score")[: len(parts)] if 1 <= len(parts) <= 3 else ()
