"""Batches of documents: sources of any format in; a few megabytes of UTF-8 documents at a time out.

The file name determines the format: .jsonl, .csv, .tsv, .parquet; others are plain text. A document
of plain text is a line, a block between blank lines, or the entire file; in other formats it is the
text of one row. A batch holds its documents concatenated in one bytes object.
"""

import json
import re
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.frames import is_frame
from sememe.text.headers import column_parts, is_header, named_column
from sememe.text.settings import TextSettings
from sememe.text.sources import (
    BATCH_SIZE,
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    TABLE_ENDINGS,
    FoundSource,
    Source,
    file_size,
    find_sources,
    gathered,
    utf8_blocks,
)
from sememe.text.tables import (
    FileTable,
    Record,
    class_name,
    column_classes,
    frame_table,
    json_table,
    numbered_lines,
    open_parquet,
    open_table,
    parquet_table,
)

TABLES = (*PARQUET_ENDINGS, *JSON_ENDINGS, *TABLE_ENDINGS)
LONGEST_DOCUMENT = 8 << 20
_LOOKED_AT = 1 << 20
_BLANK_LINE_WITHIN = re.compile(rb"\S[ \t\r]*\n[ \t\r]*\n\s*\S")
_LONGEST_NAME = 64
# One word with a digit, or digits and marks alone: an id, a number, a date.
_ID = re.compile(rb"(?=.{0,64}\d)([!-~]{1,64}|[ -@\[-`{-~]{1,64})")
_ROWS_LOOKED_AT, _FEW_ROWS = 1_000, 5


class DocumentBatch(NamedTuple):
    """UTF-8 documents: `ends` are offsets into `text`; `num_bytes` were read from the source."""

    text: bytes
    ends: np.ndarray
    labels: list[str] | None
    num_bytes: int = 0


def join(batches: list[DocumentBatch]) -> DocumentBatch:
    """Concatenate batches."""
    if len(batches) == 1:
        return batches[0]
    starts = np.cumsum([0] + [len(batch.text) for batch in batches[:-1]])
    ends = [batch.ends + start for batch, start in zip(batches, starts, strict=True)]
    labels: list[str] | None = None
    if any(batch.labels is not None for batch in batches):
        labels = [label for batch in batches for label in batch.labels or []]
    text = b"".join(batch.text for batch in batches)
    num_bytes = sum(batch.num_bytes for batch in batches)
    return DocumentBatch(text, np.concatenate(ends).astype(np.int64), labels, num_bytes)


def from_rows(
    rows: Iterable[tuple[bytes, str | None]], has_labels: bool
) -> Iterator[DocumentBatch]:
    """Gather single documents (text, label) into batches."""
    for own in gathered(rows, BATCH_SIZE, lambda row: len(row[0])):
        texts = [text for text, _ in own]
        labels = [label or "" for _, label in own] if has_labels else None
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        yield DocumentBatch(b"".join(texts), ends, labels)


def read(
    sources: Iterable[FoundSource], settings: TextSettings
) -> Generator[DocumentBatch, None, None]:
    """Read every document of every source, in order, in batches of about BATCH_SIZE bytes."""
    sources = list(sources)
    files = [Source(found.path) for found in sources]
    if "text" in settings.columns and not any(file.format_ending in TABLES for file in files):
        names = ", ".join(file.name for file in files[:3])
        raise InputError(
            f"{names}: plain text has no columns; --column is for csv, tsv, jsonl and parquet."
        )
    # Small files share a batch; one large batch is not copied.
    batches = (batch for found in sources for batch in _read_source(found, settings))
    yield from map(join, gathered(batches, BATCH_SIZE // 2, lambda batch: len(batch.text)))


def _read_source(found: FoundSource, settings: TextSettings) -> Iterator[DocumentBatch]:
    source = found.open()
    is_table = source.format_ending in TABLES
    for number, batch in enumerate(_batches_of(source, settings, found)):
        if is_table and not number:  # the first batch is enough to tell
            bounds = pairwise([0, *batch.ends[:_ROWS_LOOKED_AT].tolist()])
            texts = [batch.text[start:end] for start, end in bounds]
            _tell_of_ids(texts, source.name, settings.text_column)
        yield batch._replace(num_bytes=source.num_read)
        source.num_read = 0


def _tell_of_ids(given: list[bytes], name: str, column: str) -> None:
    """Warn where a column holds ids, numbers or dates: a model of them is nonsense."""
    texts = [text.strip() for text in given]
    found = [text for text in texts if _ID.fullmatch(text)]
    if len(found) >= _FEW_ROWS and 10 * len(found) > 9 * len([*filter(None, texts)]):
        samples = ", ".join(f"“{text[:30].decode()}”" for text in dict.fromkeys(found[:2]))
        warnings.warn(
            f"{name}: column {column!r} looks like ids, numbers or dates ({samples}), not like "
            "text. Choose another with --column text=NAME.",
            stacklevel=2,
        )


def _batches_of(
    source: Source, settings: TextSettings, found: FoundSource
) -> Iterator[DocumentBatch]:
    ending = source.format_ending
    if ending in PARQUET_ENDINGS:
        return read_parquet(source, settings)
    if ending in JSON_ENDINGS:
        return read_json(source, settings)
    if ending in TABLE_ENDINGS:
        return read_table(source, settings)

    if settings.label_column:
        raise InputError(
            f"{source.name} is plain text and has no column {settings.label_column!r} for labels; "
            "labels come from jsonl, csv, tsv or parquet."
        )
    if found.layout:  # a shard, which may not show the layout of its file
        return split_documents(utf8_blocks(source, settings), found.layout)
    return read_plain(source, settings, in_folder=found.in_folder)


# ---- plain text ----------------------------------------------------------------------------


def read_plain(
    source: Source, settings: TextSettings, *, in_folder: bool
) -> Iterator[DocumentBatch]:
    """Read the documents of a text file."""
    return split_documents(*open_plain(source, settings, in_folder=in_folder))


def open_plain(
    source: Source, settings: TextSettings, *, in_folder: bool
) -> tuple[Iterator[bytes], str]:
    """The blocks of a text file, and its layout, which the first of them show."""
    blocks = utf8_blocks(source, settings)
    if settings.layout != "auto":
        return blocks, settings.layout
    first = next(blocks, b"")
    # The first block is short, because it is used to detect compression: read enough to decide.
    while len(first) < _LOOKED_AT and (block := next(blocks, b"")):
        first += block
    return chain([first], blocks), choose_layout(first, settings, in_folder=in_folder)


def choose_layout(first: bytes, settings: TextSettings, *, in_folder: bool) -> str:
    """The layout that `auto` means for a file that starts with `first`."""
    if settings.mode == "whitespace":
        return "line"
    if in_folder:
        return "file"
    return "paragraph" if _BLANK_LINE_WITHIN.search(first[:_LOOKED_AT]) else "line"


def _whole_ends(text: bytes, layout: str) -> np.ndarray:
    """Where the complete documents in `text` end."""
    data = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(data == 10)
    if layout == "line":
        return newlines + 1
    if layout == "file" or not len(newlines):
        return np.empty(0, np.int64)
    # The first line may be the rest of another; every later one is known whole.
    is_text = (data != 10) & (data != 32) & (data != 9) & (data != 13)
    has_text = np.logical_or.reduceat(is_text, newlines)[:-1]
    return newlines[1:][~has_text] + 1


def _document_ends(text: bytes, layout: str) -> np.ndarray:
    """Where documents end in `text`, which starts with one; none is longer than LONGEST_DOCUMENT.

    It depends on the text alone, not on the blocks in which it was read.
    """
    ends = _whole_ends(text, layout)
    sizes = np.diff(ends, prepend=0, append=len(text))
    sizes[-1] += 1  # the last one is not complete
    too_long = np.flatnonzero(sizes > LONGEST_DOCUMENT)
    if not len(too_long):
        return ends
    before = ends[: too_long[0]]
    start = int(before[-1]) if len(before) else 0
    cut = start + _forced_end(text[start : start + LONGEST_DOCUMENT])
    return np.concatenate([before, [cut], cut + _document_ends(text[cut:], layout)])


def _forced_end(text: bytes) -> int:
    for mark in (b"\n", b" "):
        if (place := text.rfind(mark)) > 0:
            return place + 1
    place = len(text) - 1
    while place > 1 and 0x80 <= text[place] < 0xC0:
        place -= 1
    return max(place, 1)


def split_documents(blocks: Iterator[bytes], layout: str) -> Iterator[DocumentBatch]:
    """Cut blocks of text into documents."""
    rest = b""
    for block in blocks:
        text = rest + block if rest else block
        ends = _document_ends(text, layout)
        if not len(ends):
            rest = text
            continue
        cut = int(ends[-1])
        yield DocumentBatch(text[:cut], ends, None)
        rest = text[cut:]
    if rest:
        yield DocumentBatch(rest, np.array([len(rest)], np.int64), None)


# ---- rows ----------------------------------------------------------------------------------


def _columns(table: FileTable, settings: TextSettings) -> list[list[str]]:
    """The columns of the text and, if it is read, of the label; the cells of several are joined."""
    return [
        [named_column(table, part, role) for part in column_parts(wanted, table.columns)]
        for role, wanted in zip(("text", "label"), _wanted(settings), strict=False)
    ]


def read_json(source: Source, settings: TextSettings) -> Iterator[DocumentBatch]:
    """Read one document from each object."""
    lines = numbered_lines(source, settings)
    is_flat = any("." in name for name in _wanted(settings))
    is_lines = source.format_ending != ".json"
    table = json_table(source.name, lines, is_lines=is_lines, is_flat=is_flat)
    return from_rows(_json_texts(table, settings), bool(settings.label_column))


def read_frame(frame: Any, settings: TextSettings) -> Generator[DocumentBatch, None, None]:
    """Read one document from each row of a DataFrame."""
    rows = _json_texts(frame_table(frame), settings)
    for batch in from_rows(rows, bool(settings.label_column)):
        yield batch._replace(num_bytes=len(batch.text))


def _json_texts(table: FileTable, settings: TextSettings) -> Iterator[tuple[bytes, str | None]]:
    columns: list[list[str]] = []
    for record in table.records:
        if record.problem:
            raise InputError(f"{record.where}: {record.problem}.")
        columns = columns or _columns(table, settings)
        for name in chain(*columns):
            if name not in record.cells:
                fields = ", ".join(map(repr, list(record.cells)[:20])) or "none"
                raise InputError(f"{record.where}: there is no field {name!r}; it has {fields}.")
        texts = [record.cells[name] for name in columns[0]]
        for name, text in zip(columns[0], texts, strict=True):
            if text is not None and not isinstance(text, str):
                kind = type(text).__name__
                raise InputError(f"{record.where}: {name!r} holds {kind}, not text.")
        label = " ".join(_label(record.cells[name]) for name in chain(*columns[1:]))
        # A lone surrogate can be written in JSON but not in UTF-8.
        yield " ".join(filter(None, texts)).encode("utf-8", "replace"), label


def _label(value: Any) -> str:
    if value is None:
        return ""
    is_json = isinstance(value, (list, dict, bool))
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)


def _wanted(settings: TextSettings) -> list[str]:
    return [settings.text_column] + ([settings.label_column] if settings.label_column else [])


def read_table(source: Source, settings: TextSettings) -> Iterator[DocumentBatch]:
    """Read one document from each row of a csv or tsv file, after its header."""
    return from_rows(_table_texts(source, settings), bool(settings.label_column))


def open_columns(source: Any, settings: TextSettings) -> tuple[FileTable, list[list[str]]]:
    """A table or a DataFrame, and its columns of the text and, if it is read, of the label."""
    if is_frame(source):
        table = frame_table(source)
        return table, _columns(table, settings)

    def has_names(first: list[str], others: list[list[str]]) -> bool:
        # If columns are given by number, the cells decide whether the first row names them.
        by_number = all(name.isdecimal() and name not in first for name in _wanted(settings))
        return not by_number or bool(is_header(first, others, settings.columns))

    table = open_table(source, settings, has_names)
    if not table.columns:
        return table, [[]]
    if settings.text_column not in table.columns and any(
        len(name) > _LONGEST_NAME for name in table.columns
    ):
        raise InputError(
            f"{source.name} has no column {settings.text_column!r}, and its first line is not a "
            "header: add a header, or give the texts alone as a .txt file, one per line."
        )
    return table, _columns(table, settings)


def _table_texts(source: Source, settings: TextSettings) -> Iterator[tuple[bytes, str | None]]:
    table, columns = open_columns(source, settings)
    texts, labels = (*columns, [])[:2]
    for record in table.records:
        if not table.has(record, texts + labels):
            raise InputError(f"{record.where}: {record.problem}.")
        text, label = (_joined(record, own) for own in (texts, labels))
        yield text.encode("utf-8", "replace"), label


def _joined(record: Record, columns: list[str]) -> str:
    return " ".join(filter(None, (record.cells[column] for column in columns)))


class TextRecord(NamedTuple):
    """A line of a text file or a row of a table: all its columns, and its text."""

    cells: Mapping[str, Any]
    text: str
    text_columns: Sequence[str]
    source: str  # the name of its file
    problem: str = ""  # what is wrong with it, and where


def read_records(data: Any, settings: TextSettings) -> Iterator[TextRecord]:
    """Read every line or row of files, or of a DataFrame, with all its columns."""
    files = [] if is_frame(data) else [Source(found.path) for found in find_sources(data)]
    for source in files or [data]:
        if files and source.format_ending not in TABLES:
            for _, line in numbered_lines(source, settings):
                yield TextRecord({"text": line}, line, ("text",), source.name)
            continue
        table, (columns, *_) = open_columns(source, settings)
        records = (_text_record(table, record, columns) for record in table.records)
        early = list(islice(records, _ROWS_LOOKED_AT))
        _tell_of_ids([one.text.encode() for one in early], table.name, settings.text_column)
        yield from chain(early, records)


def _text_record(table: FileTable, record: Record, columns: list[str]) -> TextRecord:
    if not table.has(record, columns):
        problem = f"{record.where}: {record.problem}"
        return TextRecord(record.cells, "", columns, table.name, problem)
    cells = [record.cells.get(column) for column in columns]
    if wrong := next((cell for cell in cells if not isinstance(cell, str | None)), None):
        problem = f"{record.where}: the text is of type {type(wrong).__name__}"
        return TextRecord(record.cells, "", columns, table.name, problem)
    return TextRecord(record.cells, " ".join(filter(None, cells)), columns, table.name)


def read_parquet(source: Source, settings: TextSettings) -> Iterator[DocumentBatch]:
    """Read one document from each row, without creating Python objects for the texts."""
    table = parquet_table(source)
    columns = _columns(table, settings)
    with open_parquet(source) as file:
        classes = column_classes(file.schema_arrow)
        num_rows = max(file.metadata.num_rows, 1)
        size = file_size(source.path)
        sized = _num_rows_at_a_time(file.metadata)
        for rows in file.iter_batches(sized, columns=list(chain(*columns))):
            source.num_read += size * rows.num_rows // num_rows
            texts = [_text_column(rows, name, source.name) for name in columns[0]]
            labels = [
                [_label(class_name(value, classes.get(name, []))) for value in own.to_pylist()]
                for name, own in ((name, _column(rows, name)) for name in chain(*columns[1:]))
            ]
            yield from _batches(texts, [" ".join(cells) for cells in zip(*labels, strict=True)])


def _num_rows_at_a_time(metadata: Any) -> int:
    """The number of rows that fill a batch if all are average."""
    groups = range(metadata.num_row_groups)
    num_bytes = sum(metadata.row_group(group).total_byte_size for group in groups)
    return min(max(BATCH_SIZE * metadata.num_rows // max(num_bytes, 1), 16), 1 << 16)


def _column(rows: Any, column: str) -> Any:
    if column in rows.schema.names:
        return rows.column(column)
    import pyarrow.compute as pc

    first, *others = column.split(".")
    return pc.struct_field(rows.column(first), others)


def _text_column(rows: Any, name: str, source: str) -> Any:
    import pyarrow as pa

    column = _column(rows, name)
    if not _is_text(column.type):
        raise InputError(f"{source}: column {name!r} holds {column.type}, not text.")
    return column.cast(pa.large_string()).fill_null("")


def _batches(columns: list[Any], labels: list[str]) -> Iterator[DocumentBatch]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = columns[0]
    if len(columns) > 1:
        texts = pc.binary_join_element_wise(*columns, pa.scalar(" ", pa.large_string()))
    texts.validate(full=True)
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
    data = texts.buffers()[2]
    start = 0
    while start < len(texts):
        # As many rows as fit a batch, at least one.
        limit = offsets[start] + BATCH_SIZE
        stop = max(int(np.searchsorted(offsets, limit, "right")) - 1, start + 1)
        first, last = int(offsets[start]), int(offsets[stop])
        text = data.slice(first, last - first).to_pybytes() if data is not None else b""
        yield DocumentBatch(text, offsets[start + 1 : stop + 1] - first, labels[start:stop] or None)
        start = stop


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
