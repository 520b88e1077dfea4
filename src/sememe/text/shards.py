"""Cut the files of a corpus into shards that are read apart: the same documents, in their order.

A text file in UTF-8 is cut between two documents. Compressed files, other encodings, tables and
files that are one document each are never cut: a shard holds one or several of them whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sememe.errors import InputError
from sememe.storage.remote import RemoteFile, remote_errors
from sememe.text.documents import TABLES, open_plain
from sememe.text.settings import TextSettings
from sememe.text.sources import (
    Corpus,
    FoundSource,
    can_be_cut,
    file_size,
    find_sources,
    gathered,
)

SHARD_SIZE, SMALLEST_SHARD = 64 << 20, 4 << 20
_READ_AT_ONCE = 1 << 20
_ENDS = {
    "line": re.compile(rb"\n"),
    # Blank lines, and the text of the next one: a shard never starts with a blank line.
    "paragraph": re.compile(rb"\n(?:[ \t\r]*\n)+(?=[ \t\r]*[^ \t\r\n])"),
}

Shard = list[FoundSource]


def cut_shards(
    corpus: Corpus, settings: TextSettings, size: int = SHARD_SIZE, *, wanted: int = 1
) -> list[Shard]:
    """The files of `corpus` in shards of about `size` bytes, in the order of the text.

    A corpus with fewer than `wanted` of them is cut into smaller ones that are still worth a task.
    """
    sources = find_sources(corpus)
    for source in sources:
        if isinstance(source.path, str) or not source.path.is_file():
            raise InputError(
                f"{source.path} can be read only once and cannot be divided: save it as a file."
            )
    even = sum(map(shard_bytes_of, sources)) // wanted
    size = min(size, max(even, SMALLEST_SHARD))
    parts = (part for source in sources for part in _parts_of(source, settings, size))
    return list(gathered(parts, size, shard_bytes_of))


def shard_bytes_of(source: FoundSource) -> int:
    """The bytes of a file, or of the part of it."""
    end = file_size(source.path) if source.end is None else source.end
    return end - source.start


def shard_bytes(shard: Shard) -> int:
    """The bytes of a shard, compressed as they are."""
    return sum(map(shard_bytes_of, shard))


def _parts_of(source: FoundSource, settings: TextSettings, size: int) -> Iterator[FoundSource]:
    layout = _layout_of(source, settings) if shard_bytes_of(source) > size else ""
    if layout not in _ENDS:
        yield source
        return
    path = source.path
    assert not isinstance(path, str)
    start, num_bytes = 0, file_size(path)
    try:
        with _opened(path) as file:
            while start < num_bytes:
                end = _next_end(file, start + size, num_bytes, _ENDS[layout])
                yield source._replace(start=start, end=end, layout=layout)
                start = end
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


@contextmanager
def _opened(path: Path | RemoteFile) -> Iterator[BinaryIO]:
    if isinstance(path, Path):
        with path.open("rb") as file:
            yield file
        return
    with remote_errors(str(path)), path.open() as file:
        yield file


def _layout_of(source: FoundSource, settings: TextSettings) -> str:
    """The layout of a text file that can be cut; "" for any other file."""
    if source.open().format_ending in TABLES or not can_be_cut(source.open(), settings):
        return ""
    return open_plain(source.open(), settings, in_folder=source.in_folder)[1]


def _next_end(file: BinaryIO, place: int, num_bytes: int, ends: re.Pattern[bytes]) -> int:
    """The first end of a document from `place` on, or the end of the file."""
    if place >= num_bytes:
        return num_bytes
    first, window = place - 1, _READ_AT_ONCE
    while True:
        file.seek(first, os.SEEK_SET)
        text = file.read(window)
        if found := ends.search(text):
            return first + found.end()
        if first + len(text) >= num_bytes:
            return num_bytes
        window *= 2  # a long line or document; what was searched is searched again
