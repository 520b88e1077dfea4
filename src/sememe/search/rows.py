"""Rows to index: files, folders, data frames, texts or dicts in; id, text and cells out.

A row is a document of a text file (a line, a paragraph or the file), a row of a table, or an item.
Conditions such as `year>=2020` choose rows by their cells.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from sememe.errors import InputError, OptionError
from sememe.examples.labelled import columns as roles
from sememe.frames import is_frame
from sememe.progress import Reporter
from sememe.search.config import RowsConfig
from sememe.text import library
from sememe.text.characters import is_mostly_chinese
from sememe.text.cleaning.corpus import names_in
from sememe.text.documents import (
    TABLES,
    open_plain,
    read_records,
    split_documents,
)
from sememe.text.headers import is_number
from sememe.text.sources import FoundSource, Source, find_sources
from sememe.text.stream import as_items, kind_of
from sememe.text.tables import frame_table, open_table, unflat

_LOOKED_AT = 1_000  # rows that show the text column and the language


class Row(NamedTuple):
    """One row of an index."""

    id: str
    text: str
    cells: Mapping[str, Any]  # its other columns, and its place in a file
    problem: str = ""

    def check(self) -> None:
        """Raise TypeError unless the types are those of a row."""
        if (type(self.id), type(self.text), type(self.cells)) != (str, str, dict):
            raise TypeError("a row has an id, a text and cells")

    def to_dict(self) -> dict[str, Any]:
        """The row as a line of rows.jsonl."""
        return {"id": self.id, "text": self.text, "cells": self.cells}


def read_rows(
    data: Any, config: RowsConfig, reporter: Reporter, *, first_id: int = 0
) -> Iterator[Row]:
    """Read rows of any kind; `first_id` numbers the items that have no id of their own.

    `data` is one or several paths, None for the built-in corpus, a DataFrame, or an iterable of
    texts or of dicts with the key `text` and perhaps `id`.
    """
    if data is None:
        for number, (text, label) in enumerate(_built_in(), first_id):
            package, _, module = label.partition(" ")
            yield Row(str(number), text, {"package": package, "module": module})
    elif is_frame(data):
        yield from _table_rows(data, "", config, reporter, first_id)
    elif (names := names_in(data)) is None:
        yield from _items(as_items(data), config, first_id)
    else:
        for found in find_sources(names):
            source = Source(found.path)
            if source.format_ending in TABLES:
                yield from _table_rows([found.path], source.name, config, reporter, 1)
            else:
                yield from _plain_rows(found, config)


def _built_in() -> Iterator[tuple[str, str]]:
    for batch in library.read():
        start = 0
        for end, label in zip(batch.ends.tolist(), batch.labels or [], strict=True):
            yield batch.text[start:end].decode("utf-8", "replace"), label
            start = end


def _plain_rows(found: FoundSource, config: RowsConfig) -> Iterator[Row]:
    source = Source(found.path)
    blocks, layout = open_plain(source, config.reading(), in_folder=found.in_folder)
    line = 1
    for batch in split_documents(blocks, layout):
        start = 0
        for end in batch.ends.tolist():
            text = batch.text[start:end].decode()
            body = text.lstrip("\r\n")
            own = line + len(text[: len(text) - len(body)].split("\n")) - 1
            yield Row(f"{source.name}:{own}", body.rstrip(), {"file": source.name, "line": own})
            line += text.count("\n")
            start = end


def _table_rows(
    data: Any, name: str, config: RowsConfig, reporter: Reporter, first_id: int
) -> Iterator[Row]:
    column = config.columns.get("text") or _text_column(data, config, reporter)
    key = config.columns.get("id", "")
    place = {"file": name} if name else {}
    for number, record in enumerate(read_records(data, config.reading(column)), first_id):
        cells = dict(unflat(record.cells))
        own_id = f"{name}:{number}" if name else str(number)
        if key:
            if key not in cells:
                raise InputError(f"{name or 'The frame'} has no column {key!r} for the id of rows.")
            own_id = str(cells.pop(key))
        if len(record.text_columns) == 1:
            cells.pop(record.text_columns[0], None)
        yield Row(own_id, record.text, place | {"row": number} | cells, record.problem)


def _text_column(data: Any, config: RowsConfig, reporter: Reporter) -> str:
    """The column that holds the text, by its name or its cells; the reporter says which."""
    if is_frame(data):
        table = frame_table(data)
    else:
        table = open_table(Source(data[0]), config.reading(), roles.is_header)
    records = list(islice(table.records, _LOOKED_AT))
    if not records:
        return "text"
    for record in records:
        if record.problem and not config.skip_bad:
            raise InputError(f"{record.where}: {record.problem} (--skip-bad skips such rows).")
    columns = roles.choose_columns(table, records, "search", {}, ("text",))
    if columns["text"] != ("text",):
        reporter.note(roles.described(table, records, columns))
    return columns["text"][0]


def _items(items: Iterable[Any], config: RowsConfig, first_id: int) -> Iterator[Row]:
    column, key = config.columns.get("text", "text"), config.columns.get("id", "id")
    for number, item in enumerate(items, first_id):
        if isinstance(item, str):
            yield Row(str(number), item, {})
            continue
        if not isinstance(item, Mapping) or not isinstance(item.get(column), str):
            raise InputError(
                f"Row {number} is {kind_of(item)}; rows are texts, or dicts with the key "
                f"{column!r}."
            )
        # Names are text in files; a dict of Python may have others.
        cells = {str(name): cell for name, cell in item.items() if name not in (column, key)}
        yield Row(str(item.get(key, number)), item[column], cells)


def detected_language(rows: Iterator[Row]) -> tuple[str, Iterator[Row]]:
    """zh if most characters of the first rows are Chinese, otherwise en; and all rows."""
    first = list(islice(rows, _LOOKED_AT))
    letters = [char for row in first for char in row.text[:200] if char.isalpha()]
    is_chinese = bool(letters) and is_mostly_chinese(letters)
    return "zh" if is_chinese else "en", chain(first, rows)


# ---- conditions ---------------------------------------------------------------------------

_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=|!=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Where = str | Sequence[str] | Mapping[str, Any]


class Condition(NamedTuple):
    """One comparison of a column with a value."""

    column: str
    sign: str
    value: str

    def holds(self, cell: Any) -> bool:
        """Whether a cell fits: compared as numbers if both are, otherwise as text.

        A cell that is no number is neither more nor less than a number.
        """
        if isinstance(cell, (list, tuple)):
            return any(map(self.holds, cell)) if self.sign != "!=" else all(map(self.holds, cell))
        if cell is None or cell == "":
            return (
                (self.sign == "!=") == bool(self.value) if self.sign in ("!=", "=", "==") else False
            )
        own, value, compare = str(cell).strip(), self.value, _COMPARE[self.sign]
        if isinstance(cell, bool):
            return compare(own.lower(), value.lower())
        if not is_number(value):
            return compare(own, value)
        if not is_number(own):
            return self.sign == "!="
        try:
            return compare(int(own), int(value))  # long ids have more digits than a float
        except ValueError:
            return compare(float(own), float(value))


def conditions(where: Where | None) -> list[Condition]:
    """Parse `year>=2020`, several of them, or {"label": "sports"}; all must hold."""
    if not where:
        return []
    if isinstance(where, Mapping):
        for value in where.values():
            if isinstance(value, Iterable) and not isinstance(value, str):
                raise OptionError(f"A condition compares with one value, not with {value!r}.")
        return [
            Condition(str(column), "=", "" if value is None else str(value))
            for column, value in where.items()
        ]
    found = []
    for text in [where] if isinstance(where, str) else where:
        parts = _CONDITION.fullmatch(str(text))
        if parts is None:
            raise OptionError(
                f"“{text}” is not a condition; write it as COLUMN=VALUE, or with != < <= > >= "
                "as in year>=2020."
            )
        found.append(Condition(*parts.groups()))
    return found


def column_cells(rows: Iterable[Row], names: Sequence[str]) -> dict[str, list[Any]]:
    """The cells of some columns, row by row; a column that no row has is refused."""
    found: dict[str, list[Any]] = {name: [] for name in names}
    known: dict[str, None] = {"id": None}
    for row in rows:
        known |= dict.fromkeys(row.cells)
        for name, cells in found.items():
            cells.append(row.cells.get(name, row.id if name == "id" else None))
    if wrong := next((name for name in names if name not in known), None):
        raise OptionError(f"No row has a column {wrong!r}; there are {', '.join(sorted(known))}.")
    return found
