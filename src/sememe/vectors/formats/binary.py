"""Rows of the word2vec binary format: a word, a space, D float32; a newline after each or not."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from sememe.errors import ArtifactError
from sememe.vectors.formats.layout import Layout
from sememe.vectors.formats.rows import Rows

_BLOCK_SIZE = 1 << 24
_SMALL_SIZE = 1 << 21
_LONGEST_WORD = 1 << 16

# Rows as bytes, the starts and ends of their words, and where the rest of the block begins.
Parsed = tuple[np.ndarray, np.ndarray, np.ndarray, int]


def read_binary_rows(rows: Rows, layout: Layout, head: bytes, file: BinaryIO) -> None:
    """Copy the rows that the header states, as far as the file goes."""
    assert layout.num_words is not None  # a binary file has a header
    rest, offset = head, layout.start
    while rows.num_read < layout.num_words and not rows.is_full:
        chunk = file.read(_BLOCK_SIZE)
        block = rest + chunk
        parse = _parse_plain if len(block) < _SMALL_SIZE else _parse_fast
        table, starts, ends, stop = parse(block, rows.dim, layout.num_words - rows.num_read)
        if len(table):
            words = [block[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]

            def place(index: int, starts: np.ndarray = starts, offset: int = offset) -> str:
                return f"byte {offset + int(starts[index]):,}"

            rows.add(words, table.view("<f4").astype(np.float32, copy=False), place)
        rest, offset = block[stop:], offset + stop
        if not chunk:
            break
        _check_word(rows, rest, offset)
    if not rows.is_full and rows.num_read == layout.num_words:
        _check_end(rows, rest + file.read(1 << 10), layout.num_words)


def _check_word(rows: Rows, rest: bytes, offset: int) -> None:
    if len(rest) > _LONGEST_WORD and b" " not in rest[:_LONGEST_WORD]:
        raise ArtifactError(
            f"{rows.path}: byte {offset:,}: a word of more than {_LONGEST_WORD:,} bytes; "
            "the file is damaged or of another format."
        )


def _check_end(rows: Rows, rest: bytes, stated: int) -> None:
    if rest.strip():
        rows.complain(f"its header states {stated:,} words, but more bytes follow")


def _parse_plain(block: bytes, dim: int, num_wanted: int) -> Parsed:
    """The reference: rows by looking for the next space."""
    table: list[np.ndarray] = []
    starts, ends, position = [], [], 0
    while len(table) < num_wanted:
        start = position
        while block[start : start + 1] == b"\n":
            start += 1
        end = block.find(b" ", start)
        if end < 0 or end + 1 + 4 * dim > len(block):
            break
        position = end + 1 + 4 * dim
        table.append(np.frombuffer(block, np.uint8, 4 * dim, end + 1))
        starts.append(start)
        ends.append(end)
    rows = np.array(table, np.uint8).reshape(-1, 4 * dim)
    return rows, np.array(starts, np.int64), np.array(ends, np.int64), position


def _parse_fast(block: bytes, dim: int, num_wanted: int) -> Parsed:
    """The same as `_parse_plain`, by compiled code."""
    from sememe.vectors.formats.kernels import parse_binary

    num_rows = min(num_wanted, len(block) // (4 * dim + 1) + 1)
    rows = np.empty((num_rows, 4 * dim), np.uint8)
    starts, ends = np.empty(num_rows, np.int64), np.empty(num_rows, np.int64)
    data = np.frombuffer(block, np.uint8)
    num_rows, stop = parse_binary(data, 0, len(data), rows, starts, ends)
    return rows[:num_rows], starts[:num_rows], ends[:num_rows], stop
