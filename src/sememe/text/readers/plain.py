"""Text files: a document is a line, a block between blank lines, or the whole file.

Layout `auto` means: whole files where a folder with several was given; blocks where a blank line
stands between two lines of the first megabyte; otherwise lines. A document above LONGEST_DOCUMENT
bytes is cut at its last newline, else its last space, so that memory stays bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np

from sememe.text.readers.batches import Batch
from sememe.text.readers.encodings import utf8_blocks
from sememe.text.readers.sources import Source
from sememe.text.settings import TextSettings

LONGEST_DOCUMENT = 8 << 20
_LOOKED_AT = 1 << 20
_BLANK_LINE_WITHIN = re.compile(rb"\S[ \t\r]*\n[ \t\r]*\n\s*\S")


def read_plain(source: Source, settings: TextSettings, *, in_folder: bool) -> Iterator[Batch]:
    """Read the documents of a text file."""
    blocks = utf8_blocks(source, settings)
    layout: str = settings.layout
    if layout == "auto":
        first = next(blocks, b"")
        # The first block is short, because compression is told by it: take enough to decide.
        while len(first) < _LOOKED_AT and (block := next(blocks, b"")):
            first += block
        layout = choose_layout(first, settings, in_folder=in_folder)
        blocks = chain([first], blocks)
    yield from _documents(blocks, layout)


def choose_layout(first: bytes, settings: TextSettings, *, in_folder: bool) -> str:
    """What `auto` means for a file that starts with `first`."""
    if settings.mode == "whitespace":
        return "line"
    if in_folder:
        return "file"
    return "paragraph" if _BLANK_LINE_WITHIN.search(first[:_LOOKED_AT]) else "line"


def _whole_ends(text: bytes, layout: str) -> np.ndarray:
    if layout == "file":
        return np.empty(0, np.int64)
    data = np.frombuffer(text, np.uint8)
    if layout == "line":
        return (np.flatnonzero(data == 10) + 1).astype(np.int64)
    from sememe.text import kernels

    ends = np.empty(text.count(b"\n") + 1, np.int64)
    return ends[: kernels.paragraph_ends(data, ends)].copy()


def _forced_end(text: bytes) -> int:
    for mark in (b"\n", b" "):
        if (place := text.rfind(mark)) > 0:
            return place + 1
    place = len(text) - 1
    while place > 1 and 0x80 <= text[place] < 0xC0:
        place -= 1
    return max(place, 1)


def _documents(blocks: Iterator[bytes], layout: str) -> Iterator[Batch]:
    rest = b""
    for block in blocks:
        text = rest + block if rest else block
        ends = _whole_ends(text, layout)
        if not len(ends):
            if len(text) < LONGEST_DOCUMENT:
                rest = text
                continue
            ends = np.array([_forced_end(text)], np.int64)
        cut = int(ends[-1])
        yield Batch(text[:cut], ends, None)
        rest = text[cut:]
    if rest:
        yield Batch(rest, np.array([len(rest)], np.int64), None)
