"""Right choices as indices from 0: files number them from 0 or 1, name or spell them out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from sememe.examples.labelled.rows import Note, TextRow
from sememe.text.headers import plain


class ChoiceTable(NamedTuple):
    """The rows of one file as it gives them, and the columns of their labels."""

    name: str
    rows: list[TextRow]
    label_columns: tuple[str, ...]

    @property
    def is_known_from_one(self) -> bool:
        """Whether a column is named as in Story Cloze, where 1 and 2 are the choices."""
        return any(plain(column) == "answerrightending" for column in self.label_columns)


def indexed(tables: Sequence[ChoiceTable], say: Note) -> Iterator[TextRow]:
    """The rows of all files with their choices counted from 0.

    Whether files count from 0 or from 1 is decided from all of them together, because a short one
    may not show it.
    """
    open_tables = [table for table in tables if not table.is_known_from_one]
    if _are_written_out(open_tables):
        say(f"{_named(open_tables)}: the choices are numbers, and the right ones are written out.")
        for table in open_tables:
            yield from (replace(row, label=_place(row)) for row in table.rows)
        tables = [table for table in tables if table.is_known_from_one]
        open_tables = []
    from_one = _counts_from_one(open_tables, say)
    for table in tables:
        if table.is_known_from_one:
            say(f"{table.name}: the right choices are counted from 1.")
        for row in table.rows:
            yield replace(row, label=_index(row, from_one or table.is_known_from_one))


def _named(tables: Sequence[ChoiceTable]) -> str:
    return tables[0].name + (f" and {len(tables) - 1:,} more" if len(tables) > 1 else "")


def _are_written_out(tables: Sequence[ChoiceTable]) -> bool:
    """Whether every right choice that is a number is one of its choices, and no index of them.

    An index that is also among choices that are numbers may be chance in one row, not in all.
    """
    numbered = [
        row for table in tables for row in table.rows if row.label and row.label.isdecimal()
    ]
    return bool(numbered) and all((row.choices or ()).count(row.label) == 1 for row in numbered)


def _place(row: TextRow) -> str | None:
    if row.label is None or not row.label.isdecimal():
        return _index(row, from_one=False)
    return str((row.choices or ()).index(row.label))


def _counts_from_one(tables: Sequence[ChoiceTable], say: Note) -> bool:
    numbered = [
        (int(row.label), len(row.choices or ()))
        for table in tables
        for row in table.rows
        if row.label and row.label.isdecimal()
    ]
    if not numbered or min(number for number, _ in numbered) < 1:
        return False
    name = _named(tables)
    if any(number == num_choices for number, num_choices in numbered):
        say(f"{name}: the right choices are counted from 1.")
        return True
    say(
        f"{name}: the right choices are taken as counted from 0, though none is the first and "
        "none would be too high if they were counted from 1."
    )
    return False


def _index(row: TextRow, from_one: bool) -> str | None:
    label, choices = row.label, row.choices or ()
    if label is None:
        return None
    if label.isdecimal():
        return str(int(label) - 1) if from_one else str(int(label))
    letter = ord(label) - ord("A") if len(label) == 1 else -1
    if 0 <= letter < len(choices):
        return str(letter)
    return str(choices.index(label)) if choices.count(label) == 1 else label


def choice_problem(row: TextRow) -> str:
    """What is wrong with the index of a right choice, or nothing."""
    label = row.label or ""
    assert row.choices is not None
    if label.isdecimal() and int(label) < len(row.choices):
        return ""
    return f"the answer {label!r} is none of the {len(row.choices)} choices"
