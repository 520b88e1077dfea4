"""Tables: csv, tsv, json and parquet files or labelled lines in; rows by column out.

A csv file follows RFC 4180, with commas or another separator of spreadsheets; in a tsv file quotes
have no special meaning, unless all are those of quoted cells, as spreadsheets and sememe write
them. A json file holds one object per line, or a list of objects. An error names the file and line
of a wrong row.
"""

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, MissingExtraError
from sememe.frames import column_names, rows_of
from sememe.storage.remote import RemoteFile
from sememe.text.settings import Errors, TextSettings
from sememe.text.sources import (
    BATCH_SIZE,
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    TABLE_ENDINGS,
    Corpus,
    Source,
    exists,
    find_sources,
    gathered,
    utf8_blocks,
)

_LONGEST_FIELD = 1 << 30
_LONGEST_LINE = 1 << 28
_LOOKED_AT = 200  # rows below a first one that may name the columns
_QUOTES_LOOKED_AT = 1 << 18  # characters
_EXCEL_MARK = re.compile(r'"?sep=(.)"?\r?\n')  # Excel's own line above the rows
_QUOTED = r'"(?:[^"]|"")*+"'
_QUOTED_ROW = re.compile(rf"{_QUOTED}(?:\t{_QUOTED})*+\r?\n")
_QUOTED_CELL = re.compile(rf"(?:^|(?<=\t)){_QUOTED}(?=[\t\n]|\r\n|\Z)", re.MULTILINE)
_OPEN_CELL = re.compile(r'(?:^|(?<=\t))"(?:[^"]|"")*+\Z', re.MULTILINE)


class Record(NamedTuple):
    """The cells of a row by column, and its position; or what is wrong with it."""

    cells: Mapping[str, Any]
    where: str
    problem: str = ""

    @property
    def number(self) -> int:
        """The number of its line or row, which `where` ends with."""
        return int(self.where.rpartition(" ")[2].replace(",", ""))


@dataclass
class FileTable:
    """The records of one file; without names, columns are called "1", "2", …"""

    name: str
    columns: list[str]
    has_names: bool
    records: Iterable[Record]
    # The columns of each role; set when the first part of a table that is read in parts is read.
    roles: dict[str, tuple[str, ...]] | None = None

    def has(self, record: Record, columns: Iterable[str]) -> bool:
        """Whether these cells of a record can be trusted: it is whole, or ends only after them."""
        is_short = len(record.cells) < len(self.columns)
        return not record.problem or (is_short and set(columns) <= record.cells.keys())


# Whether the first row names the columns, judged by the rows below, too; None if unclear.
IsHeader = Callable[[list[str], list[list[str]]], bool | None]
Lines = Iterator[tuple[int, str]]
NumberedRows = Iterator[tuple[int, list[str]]]  # each with the number of its first line


def at(name: str, number: int) -> str:
    """The position of a line, for messages."""
    return f"{name}, line {number:,}"


# ---- lines --------------------------------------------------------------------------------


def text_lines(source: Source, settings: TextSettings) -> Iterator[str]:
    """Lines with a newline at the end, or with both characters of \\r\\n."""
    parts: list[str] = []
    for block in utf8_blocks(source, settings):
        text = block.decode()
        cut = text.rfind("\n") + 1
        if not cut:
            parts.append(text)
            if sum(map(len, parts)) > _LONGEST_LINE:
                raise InputError(f"{source.name} has a line of {_LONGEST_LINE >> 20:,} MB: no row.")
            continue
        whole = "".join([*parts, text[:cut]])
        parts = [text[cut:]]
        yield from io.StringIO(whole, newline="\n")
    if rest := "".join(parts):
        yield rest.removesuffix("\r") + "\n"


def numbered_lines(source: Source, settings: TextSettings) -> Lines:
    """The lines of a file with their numbers, without newlines."""
    return enumerate(map(_bare, text_lines(source, settings)), 1)


def _bare(line: str) -> str:
    return line[:-1].removesuffix("\r")


def csv_rows(name: str, lines: Iterator[str], number: int, has_blank: bool = False) -> NumberedRows:
    """The rows of a csv file from line `number` on, blank ones only if `has_blank`."""
    early, lines = _early(lines)
    if early and (mark := _EXCEL_MARK.fullmatch(early[0])):
        next(lines)
        return _quoted_rows(name, lines, number + 1, mark[1], has_blank)
    return _quoted_rows(name, lines, number, _delimiter(early), has_blank)


def _early(lines: Iterator[str]) -> tuple[list[str], Iterator[str]]:
    """The first lines, and all of them."""
    early = next(gathered(islice(lines, _LOOKED_AT), BATCH_SIZE, len), [])
    return early, chain(early, lines)


def _quoted_rows(
    name: str, lines: Iterable[str], number: int, delimiter: str, has_blank: bool = False
) -> NumberedRows:
    # The limit applies to the process; the default of 128 KB is short for a document.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    start = number
    try:
        for row in reader:
            if row or has_blank:
                yield start, row
            start = number + reader.line_num
    except csv.Error as error:
        # Where quotes do not close, no later row can be trusted either.
        reason = str(error).partition(" - ")[0]  # the rest is about Python
        raise InputError(f"{at(name, start)}: {reason}.") from None


def _delimiter(early: list[str]) -> str:
    """The separator with which most rows have as many cells as the first, and more than one.

    Spreadsheets of many countries write semicolons, with commas inside texts and numbers.
    """
    best, delimiter = 0, ","
    for mark in ",;\t|":
        with suppress(csv.Error):
            first, *others = [len(row) for row in csv.reader(early, delimiter=mark) if row] or [0]
            num_equal = 1 + others.count(first) if first > 1 else 0
            if num_equal > best:
                best, delimiter = num_equal, mark
    return delimiter


def tab_rows(name: str, lines: Iterator[str], number: int) -> NumberedRows:
    """The rows of a tsv file from line `number` on."""
    early, lines = _early(lines)
    if _is_quoted(early):
        yield from _quoted_rows(name, lines, number, "\t")
        return
    for place, line in enumerate(lines, number):
        if line.strip(" \r\n"):
            yield place, _bare(line).split("\t")


def is_plain_tsv(source: Source, settings: TextSettings) -> bool:
    """Whether a file is a tsv file in which quotes have no special meaning."""
    is_tsv = source.format_ending in TABLE_ENDINGS[1:]
    return is_tsv and not _is_quoted(_early(text_lines(source, settings))[0])


def _is_quoted(early: list[str]) -> bool:
    """Whether cells of a tsv file are quoted as in a csv file.

    They are if all cells of the first row are, as sememe writes it; or if each quotation mark
    belongs to a quoted cell, of which one must be quoted because it holds marks, tabs or newlines.
    """
    text = "".join(early)[:_QUOTES_LOOKED_AT]
    if '"' not in text:
        return False
    rest = _QUOTED_CELL.sub("", text)
    if len(early) == _LOOKED_AT or len(text) == _QUOTES_LOOKED_AT:
        rest = _OPEN_CELL.sub("", rest)  # which may end after these lines
    if '"' in rest:
        return False
    inner = (cell[1:-1] for cell in _QUOTED_CELL.findall(text))
    return bool(_QUOTED_ROW.match(text)) or any(
        '""' in own or "\t" in own or "\n" in own for own in inner
    )


def skip_blank(lines: Iterator[str]) -> tuple[int, str, Iterator[str]]:
    """The number and content of the first line that is not blank, and all lines from it on."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            return number, line, chain([line], lines)
    return 1, "", iter(())


def table_of_rows(name: str, rows: NumberedRows, is_header: IsHeader) -> FileTable:
    """Name the columns of rows by the first row, or by number if it holds no names."""
    early = list(islice(rows, _LOOKED_AT))
    if not early:
        return FileTable(name, [], False, [])
    number, first = early[0]
    has_names = is_header(first, [cells for _, cells in early[1:]])
    if has_names is None:
        cells = ", ".join(f"{' '.join(cell.split())!r:.40}" for cell in first[:5])
        raise InputError(
            f"{at(name, number)}: it is not clear whether {cells} names the columns or is a row; "
            "tell the columns by name (--column ROLE=NAME), or by number (--column ROLE=1) if it "
            "is a row."
        )
    columns = [str(place) for place in range(1, len(first) + 1)]
    if has_names:
        named = [cell.strip() for cell in first]
        # Names that come twice say where they stand.
        columns = [
            f"{cell} ({place})" if cell and named.count(cell) > 1 else cell or place
            for place, cell in zip(columns, named, strict=True)
        ]
    below, header = chain(early[has_names:], rows), first if has_names else []
    return FileTable(name, columns, has_names, _records(name, below, columns, header))


def _records(
    name: str, rows: NumberedRows, columns: list[str], header: list[str]
) -> Iterator[Record]:
    num = len(columns)
    for number, cells in rows:
        problem = ""
        if num > 1 and not any(map(str.strip, cells)):
            if len(cells) == 1:
                continue  # a line of spaces
            cells = (cells + [""] * num)[:num]
        if len(cells) > num and not any(map(str.strip, cells[num:])):
            cells = cells[:num]  # separators after the last column
        if len(cells) != num:
            problem = f"{len(cells)} columns, where the first line has {num}"
            if len(cells) > num:
                problem += "; a text that contains the separator must be in quotes"
        elif cells == header and num > 1:  # one word may also be a text
            problem = "the header row comes again"
        yield Record(dict(zip(columns, cells, strict=False)), at(name, number), problem)


# ---- json ---------------------------------------------------------------------------------


def json_table(
    name: str, lines: Lines, *, is_lines: bool = False, is_flat: bool = True
) -> FileTable:
    """Objects, one per line; or one document: a list of objects, or an object that holds one.

    With `is_lines` only lines are tried; without `is_flat` fields inside objects have no names of
    their own.
    """
    head = list(islice(lines, 1))
    if not head:
        return FileTable(name, [], True, [])
    try:
        first = json.loads(head[0][1])
    except (ValueError, RecursionError):
        first = None
    following = list(islice(lines, 1))
    is_lines |= isinstance(first, dict) and (bool(following) or not _inner_rows(first))
    # A first line that is not JSON by itself may open a document of many lines.
    if is_lines or (first is None and following and _is_json(following[0][1])):
        records: Iterable[Record] = _json_lines(name, chain(head, following, lines), is_flat)
    else:
        records = _document(name, chain(head, following, lines))
    records = iter(records)
    early = list(islice(records, 100))
    # An object may omit an empty field; the first rows show which fields exist.
    columns = list(dict.fromkeys(column for record in early for column in record.cells))
    return FileTable(name, columns, True, chain(early, records))


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _inner_rows(content: Mapping[str, Any]) -> list[Any]:
    lists = [
        value
        for value in content.values()
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    ]
    return lists[0] if len(lists) == 1 else []


def _json_lines(name: str, lines: Iterable[tuple[int, str]], is_flat: bool) -> Iterator[Record]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = f"not JSON ({error}); a jsonl file has one object per line"
            yield Record({}, at(name, number), reason)
            continue
        if isinstance(row, dict):
            yield Record(flat(row) if is_flat else row, at(name, number))
        else:
            yield Record({}, at(name, number), "not an object; write one object per line")


def _document(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Record]:
    content = parse_json(name, lines)
    if isinstance(content, dict):
        content = _inner_rows(content) or [content]
    if not isinstance(content, list):
        raise InputError(f"{name}: neither a list of rows nor an object that holds one.")
    for index, row in enumerate(content, 1):
        where = f"{name}, row {index:,}"
        if isinstance(row, dict):
            yield Record(flat(row), where)
        else:
            yield Record({}, where, "not an object; a list has one object per row")


def parse_json(name: str, lines: Iterable[tuple[int, str]]) -> Any:
    """A file that is one JSON document."""
    text = "\n".join(line for _, line in lines)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON ({error}).") from None


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object; those of nested objects also by dotted names."""
    result = dict(row)
    for name, value in row.items():
        if isinstance(value, dict):
            for inner, content in flat(value).items():
                result.setdefault(f"{name}.{inner}", content)
    return result


def unflat(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object without the dotted names that `flat` added."""
    nested = tuple(f"{name}." for name, value in row.items() if isinstance(value, Mapping))
    return {name: value for name, value in row.items() if not name.startswith(nested)}


# ---- parquet ------------------------------------------------------------------------------


@contextmanager
def open_parquet(source: Source) -> Iterator[Any]:
    """Open a parquet file; any error in it, now or during reading, becomes one error."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{source.name}: parquet files need pyarrow: pip install sememe[parquet]."
        ) from error
    assert not isinstance(source.path, str)
    try:
        # As bytes, because pyarrow takes a str in UTF-8 alone.
        if isinstance(source.path, Path):
            place = pa.OSFile(os.fsencode(source.path))
        else:
            place = source.path.open()
        with place as opened, pq.ParquetFile(opened) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: damaged strings
        # Arrow's own message may run over several lines.
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else "unreadable"
        raise InputError(f"Cannot read {source.name} as parquet: {reason}.") from error


def parquet_table(source: Source) -> FileTable:
    """Open a parquet file; a row is named by its number from 1."""
    with open_parquet(source) as file:
        schema = file.schema_arrow
        columns = [name for field in schema for name in _names(field)]
    if twice := next((name for name in schema.names if schema.names.count(name) > 1), None):
        raise InputError(f"{source.name} has two columns {twice!r}: rename one of them.")
    return FileTable(source.name, columns, True, _parquet_records(source, column_classes(schema)))


def parquet_types(source: Source) -> dict[str, Any]:
    """The types of the columns of a parquet file, except for ids that are read as names."""
    if source.format_ending not in PARQUET_ENDINGS:
        return {}
    with open_parquet(source) as file:
        schema = file.schema_arrow
    named = column_classes(schema)
    return {field.name: field.type for field in schema if field.name not in named}


def num_rows(source: Source) -> int | None:
    """About how many rows a file has: its lines, or what a parquet file says; None if unclear."""
    if source.format_ending in PARQUET_ENDINGS:
        with open_parquet(source) as file:
            return int(file.metadata.num_rows)
    if source.format_ending == ".json" or isinstance(source.path, str) or not source.path.is_file():
        return None
    num, is_quoted = 0, False
    for block in source.blocks():
        data = np.frombuffer(block, np.uint8)
        is_end = data == ord("\n")
        if source.format_ending == ".csv":  # a quoted cell may have several lines
            num_quotes = np.cumsum(data == ord('"')) + is_quoted
            is_end &= num_quotes % 2 == 0
            is_quoted = bool(num_quotes[-1] % 2)
        num += int(np.count_nonzero(is_end))
    return num - (num > 0 and source.format_ending in TABLE_ENDINGS)  # the header


def _parquet_records(source: Source, classes: dict[str, list[str]]) -> Iterator[Record]:
    number = 0
    with open_parquet(source) as file:
        for batch in file.iter_batches(4096):
            for row in batch.to_pylist():
                number += 1
                for column, names in classes.items():
                    row[column] = class_name(row[column], names)
                yield Record(flat(row), f"{source.name}, row {number:,}")


def _names(field: Any) -> Iterator[str]:
    """The name of a column, and the dotted names of its nested fields."""
    import pyarrow.types as types

    yield field.name
    if types.is_struct(field.type):
        for inner in field.type:
            yield from (f"{field.name}.{name}" for name in _names(inner))


def column_classes(schema: Any) -> dict[str, list[str]]:
    """The class names of columns with class ids, as `datasets` stores them."""
    try:
        noted = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        features = {column: noted[column] for column in schema.names if column in noted}
    except (KeyError, TypeError, ValueError):
        return {}
    found = {}
    for column, feature in features.items():
        # A list of classes has the class inside, under one of two names.
        while isinstance(feature, dict) and feature.get("_type") in ("Sequence", "List"):
            feature = feature.get("feature")
        if isinstance(feature, dict) and isinstance(feature.get("names"), list):
            found[column] = [str(name) for name in feature["names"]]
    return found


def class_name(value: Any, names: list[str]) -> Any:
    """The name of a class by its id; any other value unchanged."""
    if isinstance(value, list):
        return [class_name(item, names) for item in value]
    # -1 stands for a label that is not known.
    is_class = isinstance(value, int) and value < len(names)
    return (names[value] if value >= 0 else None) if is_class else value


# ---- data frames --------------------------------------------------------------------------


def frame_table(frame: Any) -> FileTable:
    """A DataFrame as a table; its rows are numbered from 0, as in Python."""
    records = (Record(row, f"row {index:,}") for index, row in enumerate(rows_of(frame)))
    return FileTable("the frame", column_names(frame), True, records)


# ---- lines with labels -------------------------------------------------------------------


_LABEL_MARK = "__label__"
_TREE = re.compile(r"\(\d+ [(\S]")
_PART = re.compile(r"\((\d+) |([^\s()]+)|\)")
_WRITTEN = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


BLANK = "empty"  # a row without a text, which is skipped without an error


def line_table(name: str, first: str, lines: Iterable[tuple[int, str]]) -> FileTable:
    """Lines in fastText's format, sentiment trees, or plain texts, as `first` shows."""
    filled = ((place, line) for place, line in lines if line.strip())
    read = _marked if first.startswith(_LABEL_MARK) else _tree if _TREE.match(first) else None
    if read is None:
        plain = (
            Record({"1": line}, at(name, place), "" if line.strip() else BLANK)
            for place, line in lines
        )
        return FileTable(name, ["1"], False, plain)
    records = ((at(name, place), *read(line)) for place, line in filled)
    found = (Record(cells, where, problem) for where, cells, problem in records)
    return FileTable(name, ["label", "text"], True, found)


def _marked(line: str) -> tuple[dict[str, Any], str]:
    """The cells of `__label__x some words`; several labels are a list."""
    words = line.split(" ")
    labels = [word for word in words if word.startswith(_LABEL_MARK)]
    text = " ".join(word for word in words if not word.startswith(_LABEL_MARK))
    names = [label.removeprefix(_LABEL_MARK) for label in labels]
    return {"label": names[0] if len(names) == 1 else names, "text": text}, ""


def _tree(line: str) -> tuple[dict[str, str], str]:
    """The sentence of a tree such as (3 (2 A) (3 film)) with its label, and what is wrong."""
    label, words, is_one = "", [], True
    open_labels: list[str] = []
    for part in _PART.finditer(line):
        is_one &= bool(open_labels) or not label
        if part[1] is not None:
            open_labels.append(part[1])
        elif part[2] is not None:
            words.append(_WRITTEN.get(part[2], part[2].replace("\\/", "/").replace("\\*", "*")))
        else:
            label = open_labels.pop() if open_labels else label
    if not (is_one and label) or open_labels:
        return {}, "not one tree: its brackets do not close"
    return {"label": label, "text": " ".join(words)}, ""


# ---- files --------------------------------------------------------------------------------


def is_path(data: Any) -> bool:
    """Whether `data` names files rather than being rows."""
    return isinstance(data, (str, Path, RemoteFile)) or (
        isinstance(data, (list, tuple))
        and bool(data)
        and all(
            isinstance(item, Path | RemoteFile) or (isinstance(item, str) and exists(item))
            for item in data
        )
    )


def open_tables(
    paths: Corpus, *, encoding: str, errors: Errors = "strict", is_header: IsHeader
) -> Iterator[FileTable]:
    """Open every file that `paths` names; `is_header` checks the first cells of a table."""
    settings = TextSettings(encoding=encoding, errors=errors)
    for found in find_sources(paths):
        yield open_table(Source(found.path), settings, is_header)


def open_table(source: Source, settings: TextSettings, is_header: IsHeader) -> FileTable:
    """Open one file, in the format of its name or its first line."""
    ending, name = source.format_ending, source.name
    if ending in PARQUET_ENDINGS:
        return parquet_table(source)
    number, first, lines = skip_blank(text_lines(source, settings))
    early, lines = _early(lines)
    if ending == ".csv":
        return table_of_rows(name, csv_rows(name, lines, number), is_header)
    numbered = enumerate(map(_bare, lines), number)
    is_json = ending not in TABLE_ENDINGS and first.strip()[:2] in ("{", '{"', "[{")
    if ending in JSON_ENDINGS or is_json:
        return json_table(name, numbered)
    if ending in TABLE_ENDINGS or "\t" in first:
        return table_of_rows(name, tab_rows(name, lines, number), is_header)
    above = ((place, "") for place in range(1, number))
    # The first text may have no label.
    marked = next((line for line in early if line.startswith(_LABEL_MARK)), first)
    return line_table(name, marked, chain(above, numbered))
