"""Rows of the text formats: lines of a word and D numbers, parsed on every core."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import BinaryIO, NamedTuple

import numpy as np

from sememe.cores import available_cores
from sememe.errors import ArtifactError
from sememe.vectors.formats.layout import Layout
from sememe.vectors.formats.lines import LineError, parse_line
from sememe.vectors.formats.rows import Rows

_BLOCK_SIZE = 1 << 24
# Up to here plain Python is done before the compiled parser would be loaded.
_SMALL_SIZE = 1 << 21
_LONGEST_WORD = 1 << 20


class Parsed(NamedTuple):
    """A block's words and rows, and where each line starts in the block."""

    words: list[bytes]
    rows: np.ndarray
    starts: list[int]


def read_text_rows(rows: Rows, layout: Layout, head: bytes, file: BinaryIO) -> None:
    """Parse every line after `head` was read; line numbers count the header."""
    num_lines = 0 if layout.num_words is None else 1
    parse = None
    for block in _blocks(rows, head, file, num_lines):
        if parse is None:
            # The first block tells whether the file is small.
            parse = _parse_plain if len(block) < _SMALL_SIZE else _parse_fast
        base = num_lines
        parsed = parse(rows, block, base)
        if parsed.words:

            def place(index: int, parsed: Parsed = parsed, block: bytes = block) -> str:
                return f"line {_line_number(block, parsed.starts[index], base):,}"  # noqa: B023

            _check_surplus(rows, layout, len(parsed.words))
            rows.add(parsed.words, parsed.rows, place)
        if rows.is_full:
            return
        num_lines += block.count(b"\n")


def _check_surplus(rows: Rows, layout: Layout, num_new: int) -> None:
    stated = layout.num_words
    if stated is None or (rows.limit is not None and rows.limit <= stated):
        return
    if rows.num_read <= stated < rows.num_read + num_new:
        rows.complain(f"its header states {stated:,} words, but more lines follow")


def _line_number(block: bytes, start: int, base: int) -> int:
    return base + block.count(b"\n", 0, start) + 1


def _blocks(rows: Rows, head: bytes, file: BinaryIO, num_lines: int) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time."""
    longest = 64 * rows.dim + _LONGEST_WORD
    rest = head
    while True:
        # The head alone may be the whole file; then it is one block.
        chunk = file.read(_BLOCK_SIZE)
        block = rest + chunk
        if not chunk:
            if block:
                yield block
            return
        cut = block.rfind(b"\n") + 1
        rest = block[cut:]
        if len(rest) > longest:
            number = num_lines + block.count(b"\n") + 1
            raise ArtifactError(
                f"{rows.path}: line {number:,} has more than {longest:,} bytes without an end; "
                "the file is damaged or of another format."
            )
        if cut:
            num_lines += block.count(b"\n")
            yield block[:cut]


def _parse_plain(rows: Rows, block: bytes, base: int) -> Parsed:
    """The reference: every line by `parse_line`."""
    words, vectors, starts, start = [], [], [], 0
    for line in block.split(b"\n"):
        if line.strip(b" \t\r"):
            parsed = _parse_or_complain(rows, line, start, block, base)
            if parsed is not None:
                words.append(parsed[0])
                vectors.append(parsed[1])
                starts.append(start)
        start += len(line) + 1
    with np.errstate(over="ignore"):
        table = np.array(vectors, np.float64).reshape(-1, rows.dim).astype(np.float32)
    return Parsed(words, table, starts)


def _parse_or_complain(
    rows: Rows, line: bytes, start: int, block: bytes, base: int
) -> tuple[bytes, list[float]] | None:
    try:
        return parse_line(line, rows.dim)
    except LineError as error:
        rows.complain(f"line {_line_number(block, start, base):,}: {error}")
        rows.num_read += 1
        return None


def _parse_fast(rows: Rows, block: bytes, base: int) -> Parsed:
    """The same as `_parse_plain`: simple lines by compiled code, on every core."""
    num_parts = available_cores()
    cuts = [0]
    for part in range(1, num_parts):
        cuts.append(max(cuts[-1], block.find(b"\n", part * len(block) // num_parts) + 1))
    cuts.append(len(block))
    with ThreadPoolExecutor(num_parts) as pool:
        jobs = [
            pool.submit(_parse_part, block, start, end, rows.dim) for start, end in pairwise(cuts)
        ]
        parts = [job.result() for job in jobs]
    rows_BD = np.concatenate([part[0] for part in parts])
    starts, ends, is_simple = (np.concatenate([part[i] for part in parts]) for i in (1, 2, 3))
    words = [block[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    left_out = []
    for index in np.flatnonzero(is_simple == 0).tolist():
        parsed = _parse_or_complain(rows, words[index], int(starts[index]), block, base)
        if parsed is None:
            left_out.append(index)
            continue
        words[index] = parsed[0]
        with np.errstate(over="ignore"):
            rows_BD[index] = np.array(parsed[1], np.float64)
    if left_out:
        kept = np.setdiff1d(np.arange(len(words)), left_out)
        words, rows_BD, starts = [words[i] for i in kept.tolist()], rows_BD[kept], starts[kept]
    return Parsed(words, rows_BD, starts.tolist())


def _parse_part(block: bytes, start: int, end: int, dim: int) -> tuple[np.ndarray, ...]:
    from sememe.vectors.formats.kernels import parse_lines

    num_lines = block.count(b"\n", start, end) + 1
    rows_BD = np.empty((num_lines, dim), np.float32)
    starts, ends = np.empty(num_lines, np.int64), np.empty(num_lines, np.int64)
    is_simple = np.empty(num_lines, np.uint8)
    data = np.frombuffer(block, np.uint8)
    num_rows = parse_lines(data, start, end, rows_BD, starts, ends, is_simple)
    return rows_BD[:num_rows], starts[:num_rows], ends[:num_rows], is_simple[:num_rows]
