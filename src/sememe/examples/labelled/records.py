"""Files of rows in, records out: cells by column name (or by number), each with its place.

tsv, csv, json (lines, a list, or an object that holds one), parquet, `__label__` lines, sentiment
trees, plain lines; compressed or not. The name tells the format, and where it does not, the first
line. A csv file follows RFC 4180; in a tsv file a quote is a character like any other.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError
from sememe.text.documents import (
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    TABLE_ENDINGS,
    Corpus,
    find_sources,
)
from sememe.text.readers.encodings import utf8_blocks
from sememe.text.readers.sources import Source
from sememe.text.settings import Errors, TextSettings

_LONGEST_FIELD = 1 << 30
LABEL_MARK = "__label__"


class Record(NamedTuple):
    """The cells of a row by column, and where it stands; or what is wrong with it."""

    cells: Mapping[str, Any]
    where: str
    problem: str = ""


@dataclass
class Table:
    """The records of one file; without names, columns are called "1", "2", …"""

    name: str
    columns: list[str]
    has_names: bool
    records: Iterable[Record]


IsHeader = Callable[[list[str]], bool]


def is_path(data: Any) -> bool:
    """Whether `data` names files rather than being rows."""
    if isinstance(data, (str, Path)):
        return True
    return (
        isinstance(data, (list, tuple))
        and bool(data)
        and all(
            isinstance(item, Path) or (isinstance(item, str) and _exists(item)) for item in data
        )
    )


def _exists(name: str) -> bool:
    try:
        return name == "-" or Path(name).expanduser().exists()
    except (OSError, ValueError):
        return False


def open_tables(
    paths: Corpus, *, encoding: str, errors: Errors = "strict", is_header: IsHeader
) -> Iterator[Table]:
    """Open every file that `paths` names; `is_header` looks at the first cells of a table."""
    settings = TextSettings(encoding=encoding, errors=errors)
    for found in find_sources(paths):
        yield open_table(Source(found.path), settings, is_header)


def open_table(source: Source, settings: TextSettings, is_header: IsHeader) -> Table:
    """Open one file, in the format that its name or its first line tells."""
    ending = source.format_ending
    if ending in PARQUET_ENDINGS:
        from sememe.examples.labelled.parquet import parquet_table

        return parquet_table(source)
    lines = numbered_lines(source, settings)
    head = list(islice(lines, 1))
    while head and not head[-1][1].strip():
        head = list(islice(lines, 1))
    first = head[0][1] if head else ""
    lines = chain(head, lines)
    if ending in JSON_ENDINGS or (ending != ".csv" and first.lstrip()[:2] in ("{", '{"', "[{")):
        from sememe.examples.labelled.objects import json_table

        return json_table(source.name, lines)
    if ending == ".csv":
        return _csv_table(source.name, lines, _delimiter(first), is_header)
    if ending in TABLE_ENDINGS or "\t" in first:
        return _tab_table(source.name, lines, is_header)
    if first.startswith(LABEL_MARK):
        return Table(source.name, ["label", "text"], True, _marked(source.name, lines))
    from sememe.examples.labelled.trees import is_tree, read_trees

    if is_tree(first):
        return Table(source.name, ["label", "text"], True, read_trees(source.name, lines))
    plain = (Record({"1": line}, at(source.name, number)) for number, line in lines if line.strip())
    return Table(source.name, ["1"], False, plain)


def numbered_lines(source: Source, settings: TextSettings) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without newlines; only \\n and \\r\\n end one."""
    number, rest = 1, ""
    for block in utf8_blocks(source, settings):
        *whole, rest = (rest + block.decode()).split("\n")
        for line in whole:
            yield number, line.removesuffix("\r")
            number += 1
    if rest:
        yield number, rest.removesuffix("\r")


def at(name: str, number: int) -> str:
    """How the place of a line is told."""
    return f"{name}, line {number:,}"


# ---- tables -------------------------------------------------------------------------------


def _delimiter(first: str) -> str:
    """A comma; or what a spreadsheet writes in its place, where the first line has no comma."""
    return next((mark for mark in ",;\t" if mark in first), ",")


def _tab_table(name: str, lines: Iterator[tuple[int, str]], is_header: IsHeader) -> Table:
    rows = ((number, line.split("\t")) for number, line in lines if line.strip())
    return _table(name, rows, is_header)


def _csv_table(
    name: str, lines: Iterator[tuple[int, str]], delimiter: str, is_header: IsHeader
) -> Table:
    # The limit belongs to the whole process; the default of 128 KB is short for a document.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    numbers: list[int] = []

    def texts() -> Iterator[str]:
        for number, line in lines:
            numbers.append(number)
            yield line + "\n"

    reader = csv.reader(texts(), strict=True, delimiter=delimiter)

    def rows() -> Iterator[tuple[int, list[str]]]:
        while True:
            numbers.clear()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                # Where quotes do not close, no later row can be trusted either.
                raise InputError(f"{at(name, numbers[0])}: {error}.") from None
            if row:
                yield numbers[0], row

    return _table(name, rows(), is_header)


def _table(name: str, rows: Iterator[tuple[int, list[str]]], is_header: IsHeader) -> Table:
    first = next(rows, None)
    if first is None:
        return Table(name, [], False, [])
    has_names = is_header(first[1])
    if has_names:
        columns = [cell.strip() or str(place) for place, cell in enumerate(first[1], 1)]
    else:
        columns = [str(place) for place in range(1, len(first[1]) + 1)]
        rows = chain([first], rows)
    if len(set(columns)) < len(columns):
        double = next(column for column in columns if columns.count(column) > 1)
        raise InputError(f"{at(name, first[0])}: two columns are called {double!r}; rename one.")
    return Table(name, columns, has_names, _records(name, rows, columns))


def _records(
    name: str, rows: Iterator[tuple[int, list[str]]], columns: list[str]
) -> Iterator[Record]:
    for number, cells in rows:
        problem = ""
        if len(cells) != len(columns):
            problem = f"{len(cells)} columns, where the first line has {len(columns)}"
        yield Record(dict(zip(columns, cells, strict=False)), at(name, number), problem)


# ---- lines --------------------------------------------------------------------------------


def _marked(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Record]:
    """Lines as fastText's program reads them: `__label__x some words`."""
    for number, line in lines:
        if not line.strip():
            continue
        words = line.split(" ")
        labels = [word for word in words if word.startswith(LABEL_MARK)]
        text = " ".join(word for word in words if not word.startswith(LABEL_MARK))
        problem = "" if len(labels) == 1 else f"{len(labels)} labels, where one is needed"
        label = labels[0].removeprefix(LABEL_MARK) if labels else ""
        yield Record({"label": label, "text": text}, at(name, number), problem)
