"""Rows of texts with labels, scores or choices, from files of any format or from Python lists.

rows = read_texts("train.tsv", kind="classify")
rows = read_texts("pairs.csv", kind="pairs", columns={"label": "same"}, on_note=print)
rows = read_texts([("good", "1"), ("bad", "0")], kind="classify")
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sememe.errors import InputError, OptionError
from sememe.examples.labelled import builtin
from sememe.examples.labelled import columns as cl
from sememe.examples.labelled.choices import ChoiceTable, choice_problem, indexed
from sememe.examples.labelled.columns import Columns, Kind
from sememe.examples.labelled.records import Record, Table, is_path, open_tables
from sememe.examples.labelled.rows import Note, Rows, TextRow, silent
from sememe.examples.labelled.sieve import Sieve
from sememe.text.settings import Errors

# What data sets write where people did not agree on a label.
_NO_GOLD = "-"


def read_texts(
    data: Any,
    *,
    kind: Kind,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    labels_known: Sequence[str] | None = None,
    labelled: bool = True,
    where: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    errors: Errors = "strict",
    on_note: Note = silent,
) -> Rows[TextRow]:
    """Read the rows of paths (files, folders, patterns) or of an iterable.

    `columns` says which column is the text, second, label, score, choices or id, by name or by
    number from 1; the others are guessed, and `on_note` hears what was chosen. Without `labelled`
    a row may lack its label or score. `where` keeps the rows whose columns hold the given values.
    A bad row is an error that names file and line, unless `skip_bad` counts it instead.
    """
    if kind not in cl.KINDS:
        raise OptionError(f"kind must be one of {', '.join(cl.KINDS)}, not {kind!r}.")
    sieve = Sieve(skip_bad, on_note)
    reader = _Reader(kind, columns, labels_known, labelled, where, sieve)
    data = builtin.opened(data, kind, on_note)
    for table in _tables(data, kind, columns, encoding, errors):
        reader.read(table)
    reader.finish()
    return sieve.rows_of(reader.rows, reader.chosen)


class _Reader:
    """Turns the records of one table after the other into rows."""

    def __init__(
        self,
        kind: Kind,
        columns: Mapping[str, str | Sequence[str]] | None,
        labels_known: Sequence[str] | None,
        labelled: bool,
        where: Mapping[str, str] | None,
        sieve: Sieve,
    ) -> None:
        self.kind, self.named, self.labelled, self.where = kind, columns, labelled, where or {}
        self.known = None if labels_known is None else frozenset(labels_known)
        self.sieve = sieve
        self.rows: list[TextRow] = []
        self.chosen: dict[str, str] = {}
        self._num_without_gold = 0
        self._tables: list[ChoiceTable] = []  # of choices, until all are read

    def read(self, table: Table | Rows[TextRow]) -> None:
        """Add the rows of one table."""
        if isinstance(table, Rows):
            self._add(table.rows)
            return
        records = self._selected(table, list(table.records))
        if not records:
            raise InputError(f"{table.name} holds no rows.")
        columns = cl.choose_columns(table, records, self.kind, self.named, self._needed())
        self.sieve.say(cl.described(table, columns))
        self.chosen = self.chosen or {role: "+".join(own) for role, own in columns.items()}
        self._num_without_gold = 0
        rows = [row for record in records for row in self._rows(record, columns)]
        if self.kind == "choose":
            self._tables.append(ChoiceTable(table.name, rows, columns.get("label", ())))
        else:
            self._add(rows)
        if self._num_without_gold:
            self.sieve.say(
                f"{table.name}: {self._num_without_gold:,} rows carry “-”, for no agreed label; "
                + ("they are left out." if self.labelled else "they are read without one.")
            )

    def finish(self) -> None:
        """Add the rows that had to wait until all tables were read."""
        self._add(indexed(self._tables, self.sieve.say))

    def _needed(self) -> list[str]:
        needed = {"pairs": ["text", "second"], "choose": ["text", "choices"]}
        answer = "score" if self.kind == "regress" else "label"
        return needed.get(self.kind, ["text"]) + ([answer] if self.labelled else [])

    def _selected(self, table: Table, records: list[Record]) -> list[Record]:
        for column in self.where:
            if column not in table.columns:
                raise InputError(f"{table.name} has no column {column!r} to choose rows by.")
        return [
            record
            for record in records
            if all(_text(record.cells.get(name)) == value for name, value in self.where.items())
        ]

    def _rows(self, record: Record, columns: Columns) -> Iterator[TextRow]:
        if record.problem:
            self.sieve.refuse(record.where, record.problem)
            return
        cells = {role: _joined(record, own, role) for role, own in columns.items()}
        for part, own in _questions(cells):
            yield self._row(own, record.where, part)

    def _row(self, cells: Mapping[str, Any], where: str, part: str) -> TextRow:
        label: str | None = _text(cells.get("label"))
        if self.kind == "pairs" and label == _NO_GOLD:
            self._num_without_gold += 1
            label = None if not self.labelled else _NO_GOLD
        return TextRow(
            text=_text(cells.get("text")),
            second=_text(cells["second"]) if "second" in cells else None,
            label=label or None,
            score=_number(cells.get("score")),
            choices=_several(cells["choices"]) if "choices" in cells else None,
            source=where,
            id=_text(cells.get("id")) + part,
        )

    def _add(self, rows: Iterable[TextRow]) -> None:
        for row in rows:
            if self.kind == "pairs" and row.label == _NO_GOLD:
                continue
            if problem := self._problem(row):
                self.sieve.refuse(row.source, problem)
            else:
                self.rows.append(row)

    def _problem(self, row: TextRow) -> str:
        if not row.text.strip():
            return "the text is empty"
        if self.kind == "pairs" and not (row.second or "").strip():
            return "the second text is empty"
        if self.kind == "choose" and (row.choices is None or len(row.choices) < 2):
            return "fewer than two choices"
        if self.kind == "choose" and not all(choice.strip() for choice in row.choices or ()):
            return "a choice is empty"
        if self.kind == "regress":
            return self._score_problem(row)
        if row.label is None:
            return "the label is empty" if self.labelled else ""
        if self.kind == "choose":
            return choice_problem(row)
        if self.known is not None and row.label not in self.known:
            return f"the label {row.label!r} is not among those known: {_some(self.known)}"
        return ""

    def _score_problem(self, row: TextRow) -> str:
        if row.score is None:
            return "the score is empty" if self.labelled else ""
        return "" if math.isfinite(row.score) else "the score is not a finite number"


def _some(labels: Iterable[str]) -> str:
    names = sorted(labels)
    return ", ".join(names[:10]) + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")


# ---- cells --------------------------------------------------------------------------------


def _joined(record: Record, columns: tuple[str, ...], role: str) -> Any:
    cells = [record.cells.get(column) for column in columns]
    if len(cells) == 1:
        return cells[0]
    return cells if role == "choices" else " ".join(filter(None, map(_text, cells)))


def _questions(cells: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row; or one for each question, where a record holds a passage with several of them."""
    choices = cells.get("choices")
    is_nested = isinstance(choices, (list, tuple)) and any(
        isinstance(choice, (list, tuple)) for choice in choices
    )
    if not is_nested:
        yield "", cells
        return
    assert choices is not None
    for index, own in enumerate(choices):
        parts = {"choices": own}
        for role in ("second", "label"):
            if isinstance(cells.get(role), (list, tuple)):
                values = cells[role]
                parts[role] = values[index] if index < len(values) else None
        yield f"-{index}", cells | parts


def _text(cell: Any) -> str:
    # A frame of pandas writes NaN where a cell is empty.
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, (list, tuple)):
        return " ".join(map(_text, cell))
    return str(cell)


def _number(cell: Any) -> float | None:
    text = _text(cell)
    if not text:
        return None
    return float(text) if cl.is_number(text) else math.nan


def _several(cell: Any) -> tuple[str, ...]:
    if isinstance(cell, Mapping):  # {"text": [...], "label": [...]}, as some files have it
        cell = cell.get("text") or list(cell.values())
    return tuple(map(_text, cell)) if isinstance(cell, (list, tuple)) else ()


# ---- where rows come from -----------------------------------------------------------------


def _tables(
    data: Any, kind: Kind, columns: Mapping[str, Any] | None, encoding: str, errors: Errors
) -> Iterable[Table | Rows[TextRow]]:
    if isinstance(data, Rows):
        return [data]
    if is_path(data):
        return open_tables(
            data,
            encoding=encoding,
            errors=errors,
            is_header=lambda cells: cl.is_header(cells, columns),
        )
    from sememe.examples.labelled.lists import table_of

    return [table_of(data, kind)]
