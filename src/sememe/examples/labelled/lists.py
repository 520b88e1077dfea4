"""Labelled rows that are Python objects already: tuples, dicts, rows, frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sememe.errors import InputError
from sememe.examples.labelled.columns import Kind
from sememe.examples.labelled.objects import flat
from sememe.examples.labelled.records import Record, Table
from sememe.examples.labelled.rows import Rows, TextRow

NAME = "the given rows"
_SHAPES = {
    "classify": "(text, label)",
    "pairs": "(text, second, label)",
    "regress": "(text, score) or (text, second, score)",
    "choose": "(context, choices, label) or (context, question, choices, label)",
}


def items_of(data: Any) -> list[Any]:
    """The rows of any iterable; frames of pandas and tables of Arrow give dicts."""
    if hasattr(data, "to_pylist"):
        return data.to_pylist()
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        return data.to_dict("records")
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise InputError(
            f"Labelled data is a path or a list of rows, not of type {type(data).__name__}."
        )
    items = list(data)
    if not items:
        raise InputError("The labelled data holds no rows.")
    return items


def table_of(data: Any, kind: Kind) -> Table | Rows[TextRow]:
    """Lay the items out as a table with a column a role."""
    items = items_of(data)
    if all(isinstance(item, TextRow) for item in items):
        return Rows(items)
    records = [
        Record(_cells(item, kind, index), f"row {index}") for index, item in enumerate(items)
    ]
    columns = list(dict.fromkeys(column for record in records for column in record.cells))
    return Table(NAME, columns, True, records)


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
