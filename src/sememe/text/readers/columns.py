"""Parquet files: one column of text, a group of rows at a time, without Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.text.readers.batches import BATCH_SIZE, Batch
from sememe.text.readers.sources import Source
from sememe.text.settings import TextSettings


def read_parquet(source: Source, settings: TextSettings) -> Iterator[Batch]:
    """Read one document from each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = source.path
    assert isinstance(path, Path)
    try:
        with pq.ParquetFile(path, memory_map=False) as file:
            columns = [settings.field] + ([settings.label_field] if settings.label_field else [])
            for column in columns:
                _check_column(file.schema_arrow, column, source.name)
            num_rows = max(file.metadata.num_rows, 1)
            size = path.stat().st_size
            for rows in file.iter_batches(_num_rows_at_a_time(file.metadata), columns=columns):
                source.count(size * rows.num_rows // num_rows)
                yield from _batches(rows, settings, source.name)
    except (pa.ArrowException, OSError) as error:
        # Arrow's own message may run over several lines.
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else "unreadable"
        raise InputError(f"Cannot read {source.name} as parquet: {reason}.") from error


def _num_rows_at_a_time(metadata: Any) -> int:
    """As many rows as fill a batch if all are like the average."""
    groups = range(metadata.num_row_groups)
    num_bytes = sum(metadata.row_group(group).total_byte_size for group in groups)
    return min(max(BATCH_SIZE * metadata.num_rows // max(num_bytes, 1), 16), 1 << 16)


def _check_column(schema: Any, column: str, name: str) -> None:
    fields = schema
    for part in [column] if column in schema.names else column.split("."):
        names = [field.name for field in fields]
        if part not in names:
            columns = ", ".join(map(repr, schema.names[:20]))
            raise InputError(
                f"{name} has no column {column!r}; its columns are {columns} "
                "(choose one with --field)."
            )
        kind = fields.field(part).type
        fields = kind if hasattr(kind, "fields") and str(kind).startswith("struct") else []


def _column(rows: Any, column: str) -> Any:
    if column in rows.schema.names:
        return rows.column(column)
    import pyarrow.compute as pc

    first, *others = column.split(".")
    return pc.struct_field(rows.column(first), others)


def _batches(rows: Any, settings: TextSettings, name: str) -> Iterator[Batch]:
    import pyarrow as pa

    column = _column(rows, settings.field)
    if not (_is_text(column.type)):
        raise InputError(f"{name}: column {settings.field!r} holds {column.type}, not text.")
    texts = column.cast(pa.large_string()).fill_null("")
    texts.validate(full=True)
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
    labels = None
    if settings.label_field:
        values = _column(rows, settings.label_field).to_pylist()
        labels = ["" if value is None else str(value) for value in values]
    data = texts.buffers()[2]
    start = 0
    while start < len(texts):
        # As many rows as fit a batch, at least one.
        limit = offsets[start] + BATCH_SIZE
        stop = max(int(np.searchsorted(offsets, limit, "right")) - 1, start + 1)
        first, last = int(offsets[start]), int(offsets[stop])
        text = data.slice(first, last - first).to_pybytes() if data is not None else b""
        yield Batch(text, offsets[start + 1 : stop + 1] - first, labels and labels[start:stop])
        start = stop


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
