"""The rows of a corpus in batches: sources of any format in; texts, places and cells out.

A row is a document of plain text, a row of a table, or an item of an iterable. Lines that are far
too long are cut short while they are read, so that a file without newlines takes no memory.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from sememe.errors import InputError
from sememe.text.cleaning.config import CleanConfig
from sememe.text.documents import DocumentBatch, open_columns, open_plain, split_documents
from sememe.text.sources import (
    BATCH_SIZE,
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    TABLE_ENDINGS,
    FoundSource,
    Source,
    check_encoding,
    gathered,
)
from sememe.text.tables import Record, unflat

PLACE = np.dtype([("source", np.int32), ("line", np.int64)])
_LONGEST_LINE = 1 << 28  # bytes of a line if there is no other limit
Form = Literal["line", "paragraph", "file", "cell"]


class RowBatch(NamedTuple):
    """N rows: their texts one after the other, places, and the cells of tables.

    A text of the form "line" is one line, a "paragraph" or "file" some lines, each with its
    newline; a "cell" is text of a table, from its `column`. `problems` says what is wrong with
    invalid rows.
    """

    text: bytes
    ends: np.ndarray
    places: np.ndarray
    form: Form
    cells: list[dict[str, Any]] | None = None
    problems: Mapping[int, str] = MappingProxyType({})
    num_bytes: int = 0
    column: str = ""


def is_table(source: FoundSource) -> bool:
    """Whether a source holds rows of cells."""
    ending = Source(source.path).format_ending
    return ending in (*PARQUET_ENDINGS, *JSON_ENDINGS, *TABLE_ENDINGS)


def read_rows(
    sources: list[FoundSource], names: list[str], config: CleanConfig
) -> Generator[RowBatch, None, None]:
    """Read all rows in order; small text files share a batch."""
    batches = (
        batch
        for number, found in enumerate(sources)
        for batch in read_source(number, found, names[number], config)
    )
    waiting: list[RowBatch] = []
    for batch in batches:
        is_full = sum(len(own.text) for own in waiting) >= BATCH_SIZE // 2
        if waiting and (is_full or batch.cells is not None or waiting[0].form != batch.form):
            yield _join(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield _join(waiting)


def _join(batches: list[RowBatch]) -> RowBatch:
    if len(batches) == 1:
        return batches[0]
    starts = np.cumsum([0] + [len(own.text) for own in batches[:-1]])
    ends = [own.ends + start for own, start in zip(batches, starts, strict=True)]
    return batches[0]._replace(
        text=b"".join(own.text for own in batches),
        ends=np.concatenate(ends),
        places=np.concatenate([own.places for own in batches]),
        num_bytes=sum(own.num_bytes for own in batches),
    )


def read_source(
    number: int, found: FoundSource, name: str, config: CleanConfig
) -> Generator[RowBatch, None, None]:
    """Read the rows of one source; `number` is its number in their places, `name` for messages."""
    source = Source(found.path)
    source.name = name
    is_binary = source.format_ending in PARQUET_ENDINGS
    if (
        config.errors == "replace"
        and not is_binary
        and not isinstance(found.path, str)
        and found.path.is_file()
    ):
        check_encoding(Source(found.path), name, config.text_settings)
    batches = _read_file if is_table(found) else _read_plain
    for batch in batches(number, source, found.in_folder, config):
        yield batch._replace(num_bytes=source.num_read)
        source.num_read = 0


# ---- plain text ----------------------------------------------------------------------------


def _read_plain(
    number: int, source: Source, in_folder: bool, config: CleanConfig
) -> Iterator[RowBatch]:
    blocks, layout = open_plain(source, config.text_settings, in_folder=in_folder)
    line = 1
    for batch in split_documents(_shortened(blocks, source.name, config), layout):
        data = np.frombuffer(batch.text, np.uint8)
        starts = np.concatenate(([0], batch.ends[:-1]))
        num_before = np.concatenate(([0], np.cumsum(data == 10)))
        places = np.empty(len(starts), PLACE)
        places["source"], places["line"] = number, line + num_before[starts]
        line += int(num_before[-1])
        is_filled = np.add.reduceat(data > 32, starts) > 0  # blank lines are no rows
        sizes = np.diff(batch.ends, prepend=0)
        if not is_filled.all():
            data, sizes, places = (
                data[np.repeat(is_filled, sizes)],
                sizes[is_filled],
                places[is_filled],
            )
        if len(places):
            yield RowBatch(data.tobytes(), np.cumsum(sizes), places, cast(Form, layout))


def _shortened(blocks: Iterator[bytes], name: str, config: CleanConfig) -> Iterator[bytes]:
    """Blocks of whole lines; of a line that is longer than the limit only the start is kept."""
    limit = 4 * config.max_length + 4 if config.max_length else _LONGEST_LINE
    parts: list[bytes] = []  # of the last line
    size, is_cut = 0, False
    for block in blocks:
        if (newline := block.find(b"\n")) < 0:
            size += len(block)
            if size > limit and not config.max_length:
                raise InputError(f"{name} has a line of {limit >> 20:,} MB; set a --max-length.")
            if not is_cut:
                parts.append(block)
            is_cut |= size > limit
            continue
        last = block.rfind(b"\n") + 1
        whole = b"".join([*parts, b"" if is_cut else block[:newline], block[newline:last]])
        yield whole.replace(b"\r\n", b"\n")
        parts, size, is_cut = [block[last:]], len(block) - last, False
    if rest := b"".join(parts):
        yield rest + b"\n"


# ---- tables and iterables ------------------------------------------------------------------


def _read_file(
    number: int, source: Source, in_folder: bool, config: CleanConfig
) -> Iterator[RowBatch]:
    return read_table(source, number, config)


def read_table(source: Any, number: int, config: CleanConfig) -> Generator[RowBatch, None, None]:
    """The rows of a table or a DataFrame; `number` is that of its source."""
    table, (columns, *_) = open_columns(source, config.text_settings)
    if len(columns) > 1:
        raise InputError(
            f"{table.name}: one column of text is cleaned, not {' + '.join(columns)}; choose one "
            "with --column text=NAME."
        )
    column = "".join(columns)
    texts = ((record, *_text(record, column)) for record in table.records)
    for own in gathered(texts, BATCH_SIZE, lambda row: len(row[1]) + 64):
        problems = {}
        for index, (record, *_, problem) in enumerate(own):
            if problem and not config.skip_bad:
                raise InputError(f"{record.where}: {problem} (--skip-bad removes such rows).")
            if problem:
                problems[index] = problem
        places = np.empty(len(own), PLACE)
        places["source"] = number
        places["line"] = [record.number for record, *_ in own]
        cells = [unflat(record.cells) for record, *_ in own]
        texts_of = _joined([text for _, text, _ in own])
        yield RowBatch(*texts_of, places, "cell", cells, problems, column=column)


def _text(record: Record, column: str) -> tuple[bytes, str]:
    """The text of a row, and what is wrong with it."""
    if record.problem:
        return b"", record.problem
    text = record.cells.get(column, "")
    if text is None or isinstance(text, str):
        # A lone surrogate can be written in JSON but not in UTF-8.
        return (text or "").replace("\r\n", "\n").encode("utf-8", "replace"), ""
    return b"", f"{column!r} holds {type(text).__name__}, not text"


def set_text(cells: dict[str, Any], column: str, text: str) -> None:
    """Replace the text of a row; a dotted name leads into an object."""
    if column in cells:
        cells[column] = text
        return
    *path, last = column.split(".")
    for name in path:
        cells = cells[name]
    cells[last] = text


def read_items(batches: Iterable[DocumentBatch]) -> Generator[RowBatch, None, None]:
    """The documents of an iterable as rows, numbered from 0, as in Python."""
    start = 0
    for own in batches:
        places = np.zeros(len(own.ends), PLACE)
        places["line"] = np.arange(start, start + len(places))
        start += len(places)
        yield RowBatch(own.text, own.ends, places, "cell", num_bytes=own.num_bytes)


def _joined(texts: list[bytes]) -> tuple[bytes, np.ndarray]:
    return b"".join(texts), np.cumsum([len(text) for text in texts], dtype=np.int64)
