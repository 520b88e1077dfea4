"""Rows of text: json lines, csv and tsv. A wrong row is named by file and line.

A csv file follows RFC 4180 (quotes protect commas and newlines); in a tsv file a quote is a
character like any other, as its registration says. Both start with a line of column names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

from sememe.errors import InputError
from sememe.text.readers.batches import Batch, from_rows
from sememe.text.readers.encodings import utf8_blocks
from sememe.text.readers.sources import Source
from sememe.text.settings import TextSettings

_LONGEST_FIELD = 1 << 30
_LONGEST_NAME = 64


def _lines(source: Source, settings: TextSettings) -> Iterator[bytes]:
    """Whole lines without their newline; a line may be longer than a block."""
    rest: list[bytes] = []
    for block in utf8_blocks(source, settings):
        first, *others = block.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest = [others[-1]]
    if any(rest):
        yield b"".join(rest)


def read_json_lines(source: Source, settings: TextSettings) -> Iterator[Batch]:
    """Read one document from each line, a JSON object."""
    return from_rows(_json_rows(source, settings), bool(settings.label_field))


def _json_rows(source: Source, settings: TextSettings) -> Iterator[tuple[bytes, str | None]]:
    for number, line in enumerate(_lines(source, settings), 1):
        if not line.strip():
            continue
        where = f"{source.name}, line {number:,}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{where}: not JSON ({error}); a jsonl file holds one object a line."
            ) from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: a {_kind(row)}, not an object; write one object a line.")
        text = _value(row, settings.field, where)
        if text is not None and not isinstance(text, str):
            raise InputError(f"{where}: {settings.field!r} holds a {_kind(text)}, not text.")
        label = None
        if settings.label_field:
            label = _label(_value(row, settings.label_field, where))
        # A lone surrogate can be written in JSON but not in UTF-8.
        yield (text or "").encode("utf-8", "replace"), label


def _kind(value: Any) -> str:
    names = {list: "list", dict: "object", bool: "truth value", int: "number", float: "number"}
    return names.get(type(value), "string" if isinstance(value, str) else "null")


def _label(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(row: dict[str, Any], name: str, where: str) -> Any:
    """The field `name`; a dotted name also leads into objects inside objects."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            fields = ", ".join(map(repr, list(row)[:20])) or "none"
            raise InputError(f"{where}: there is no field {name!r}; the line has {fields}.")
        value = value[part]
    return value


def read_table(source: Source, settings: TextSettings, *, is_tabbed: bool) -> Iterator[Batch]:
    """Read one document from each row under the line of column names."""
    rows = _table_rows(source, settings, is_tabbed)
    return from_rows(rows, bool(settings.label_field))


def _table_rows(
    source: Source, settings: TextSettings, is_tabbed: bool
) -> Iterator[tuple[bytes, str | None]]:
    # The limit belongs to the whole process; the default of 128 KB is short for a document.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    lines = (line.removesuffix(b"\r").decode() + "\n" for line in _lines(source, settings))
    if is_tabbed:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, strict=True)
    header = next(_checked_rows(reader, source.name), None)
    if header is None:
        return
    places = [_place(header, name, source.name) for name in _wanted(settings)]
    for row in _checked_rows(reader, source.name):
        if not row:
            continue
        if max(places) >= len(row):
            raise InputError(
                f"{source.name}, line {reader.line_num:,}: {len(row)} columns, where the first "
                f"line names {len(header)}."
            )
        values = [row[place] for place in places]
        yield values[0].encode("utf-8", "replace"), values[1] if len(values) > 1 else None


def _wanted(settings: TextSettings) -> list[str]:
    return [settings.field] + ([settings.label_field] if settings.label_field else [])


def _checked_rows(reader: Any, name: str) -> Iterator[list[str]]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{name}, line {reader.line_num:,}: {error}.") from None
        yield row


def _place(header: list[str], column: str, name: str) -> int:
    if column in header:
        return header.index(column)
    if any(len(cell) > _LONGEST_NAME for cell in header):
        raise InputError(
            f"{name} has no column {column!r}, and its first line is no line of names: write one "
            "above it, or give the texts alone as a .txt file, one a line."
        )
    columns = ", ".join(map(repr, header[:20]))
    raise InputError(
        f"{name} has no column {column!r}; its columns are {columns} (choose one with --field)."
    )
