"""Parquet files as tables of records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sememe.errors import InputError
from sememe.examples.labelled.objects import flat
from sememe.examples.labelled.records import Record, Table
from sememe.text.readers.sources import Source


def parquet_table(source: Source) -> Table:
    """Open a parquet file; a row is named by its number from 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = source.path
    assert isinstance(path, Path)
    try:
        file = pq.ParquetFile(path, memory_map=False)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(source.name, error) from error
    schema = file.schema_arrow
    columns = [name for field in schema for name in _names(field)]
    return Table(source.name, columns, True, _records(file, _classes(schema), source.name))


def _names(field: Any) -> Iterator[str]:
    """The name of a column, and the dotted names of what lies inside it."""
    import pyarrow.types as types

    yield field.name
    if types.is_struct(field.type):
        for inner in field.type:
            yield from (f"{field.name}.{name}" for name in _names(inner))


def _classes(schema: Any) -> dict[str, list[str]]:
    """The names of the classes that columns hold the numbers of, as `datasets` notes them."""
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


def _named(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    # -1 stands for a label that is not known.
    is_class = isinstance(value, int) and value < len(names)
    return (names[value] if value >= 0 else None) if is_class else value


def _records(file: Any, classes: dict[str, list[str]], name: str) -> Iterator[Record]:
    import pyarrow as pa

    number = 0
    try:
        with file:
            for batch in file.iter_batches(4096):
                for row in batch.to_pylist():
                    number += 1
                    for column, names in classes.items():
                        row[column] = _named(row[column], names)
                    yield Record(flat(row), f"{name}, row {number:,}")
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> InputError:
    # Arrow's own message may run over several lines.
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else "unreadable"
    return InputError(f"Cannot read {name} as parquet: {reason}.")
