"""JSON in, records out: objects one a line, a list of them, or an object that holds such a list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from sememe.errors import InputError
from sememe.examples.labelled.records import Record, Table, at


def json_table(name: str, lines: Iterator[tuple[int, str]]) -> Table:
    """Objects, one a line; or one document: a list of objects, or an object that holds one."""
    head = list(islice(lines, 1))
    if not head:
        return Table(name, [], True, [])
    try:
        first = json.loads(head[0][1])
    except (ValueError, RecursionError):
        first = None
    following = list(islice(lines, 1))
    is_lines = isinstance(first, dict) and (bool(following) or not _inner_rows(first))
    # A first line that is no JSON by itself may open a document of many lines.
    if is_lines or (first is None and following and _is_json(following[0][1])):
        records: Iterable[Record] = _json_lines(name, chain(head, following, lines))
    else:
        records = _document(name, chain(head, following, lines))
    records = iter(records)
    early = list(islice(records, 100))
    # An object may leave out a field that is empty in it; the first rows tell what there is.
    columns = list(dict.fromkeys(column for record in early for column in record.cells))
    return Table(name, columns, True, chain(early, records))


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


def _json_lines(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Record]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = f"not JSON ({error}); a jsonl file holds one object a line"
            yield Record({}, at(name, number), reason)
            continue
        if isinstance(row, dict):
            yield Record(flat(row), at(name, number))
        else:
            yield Record({}, at(name, number), "not an object; write one object a line")


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
            yield Record({}, where, "not an object; a list holds one object a row")


def parse_json(name: str, lines: Iterable[tuple[int, str]]) -> Any:
    """A file that is one JSON document."""
    text = "\n".join(line for _, line in lines)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON ({error}).") from None


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object; those of objects inside it by dotted names as well."""
    result = dict(row)
    for name, value in row.items():
        if isinstance(value, dict):
            for inner, content in flat(value).items():
                result.setdefault(f"{name}.{inner}", content)
    return result
