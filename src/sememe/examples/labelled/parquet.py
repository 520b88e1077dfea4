"""Parquet files as tables of records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sememe.errors import InputError
from sememe.examples.labelled.records import Record, Table, flat
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
    columns = [name for field in file.schema_arrow for name in _names(field)]
    return Table(source.name, columns, True, _records(file, source.name))


def _names(field: Any) -> Iterator[str]:
    """The name of a column, and the dotted names of what lies inside it."""
    import pyarrow.types as types

    yield field.name
    if types.is_struct(field.type):
        for inner in field.type:
            yield from (f"{field.name}.{name}" for name in _names(inner))


def _records(file: Any, name: str) -> Iterator[Record]:
    import pyarrow as pa

    number = 0
    try:
        with file:
            for batch in file.iter_batches(4096):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(flat(row), f"{name}, row {number:,}")
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> InputError:
    # Arrow's own message may run over several lines.
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else "unreadable"
    return InputError(f"Cannot read {name} as parquet: {reason}.")
