"""The cells of a co-occurrence matrix on disk, arranged once for all epochs.

Cells come in row order. A buffer of at most ROWS rows is sorted by blocks of columns and split into
steps of about STEP cells, so that a step touches few rows of either matrix and they stay in the
processor's cache; there is never a second copy. The folder:

cells.bin            for each step its keys (uint32), then its logarithms (float32), see kernels
steps.safetensors    starts (int64): the first cell of each step and the end; bases (int32); groups
sememe.json          what was counted, and checksums; written last, to mark the file as complete

The arrangement depends only on the cells, not on memory or threads.

For N workers, rows and columns are dealt to N groups by frequency: word w is number w // N of group
w mod N. A step has the rows of one group and the columns of one; `groups` is row group · N + column
group.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, OptionError, WriteError
from sememe.examples.cooccurrence.counting import Cells
from sememe.models.glove.config import MAX_WORDS
from sememe.models.glove.kernels import arrange
from sememe.storage.folder import MANIFEST, read_json, write_errors, write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.store import file_checksum

FORMAT = 2
ROWS, COLUMNS, STEP = 512, 512, 16_384
BUFFER = 1 << 20
BUFFER_BYTES = 36 * BUFFER  # as read, joined, their logarithms, arranged
_CELL_BYTES = 8
SCRATCH = "scratch"
_CELLS, _STEPS = "cells.bin", "steps.safetensors"


class CellFile:
    """Arranged cells, read step by step by any number of threads."""

    def __init__(
        self, path: Path, starts: np.ndarray, bases: np.ndarray, groups: np.ndarray,
        seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self.path, self._starts, self._bases, self._groups = path, starts, bases, groups
        self.seconds = seconds  # spent on counting and arranging
        self.num_steps, self.num_cells = len(bases), int(starts[-1])
        self._file = os.open(path / _CELLS, os.O_RDONLY)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def steps_of(self, rows: int, columns: int, num_groups: int) -> np.ndarray:
        """The steps with the rows of one group and the columns of one."""
        return np.flatnonzero(self._groups == rows * num_groups + columns)

    def read(self, step: int) -> tuple[np.ndarray, np.ndarray, int]:
        """(keys, logarithms, the row that keys count from) of a step.

        They are read, not memory-mapped: mapped pages would count as this process's memory.
        """
        start, end = int(self._starts[step]), int(self._starts[step + 1])
        size = _CELL_BYTES * (end - start)
        data = os.pread(self._file, size, _CELL_BYTES * start)
        if len(data) != size:
            raise ArtifactError(f"{self.path / _CELLS} was cut off while in use.")
        numbers = np.frombuffer(bytearray(data), np.uint32)
        keys, logs = numbers[: end - start], numbers[end - start :].view(np.float32)
        return keys, logs, int(self._bases[step])

    @classmethod
    def open(cls, path: Path, content: dict[str, Any]) -> CellFile | None:
        """Open the cells at `path` after reading every byte; None unless they are of `content`."""
        try:
            manifest = read_json(path / MANIFEST)
            if manifest["kind"] != "cells" or manifest["content"] != _described(content):
                return None
            for name in (_CELLS, _STEPS):
                if file_checksum(path / name) != manifest["checksums"][name]:
                    return None
            return cls.open_checked(path)
        except (ArtifactError, OSError, KeyError, TypeError):
            return None

    @classmethod
    def write(
        cls, path: Path, cells: Iterable[Cells], num_words: int, content: dict[str, Any],
        num_groups: int = 1,
    ) -> CellFile:  # fmt: skip
        """Arrange `cells` into a folder at `path`, replacing an existing one."""
        shutil.rmtree(path, ignore_errors=True)
        begun_s = time.monotonic()
        try:
            with write_errors(path):
                path.mkdir(parents=True)
                checksums = _write_cells(path, cells, num_words, num_groups)
            manifest = {
                "kind": "cells", "content": _described(content), "checksums": checksums,
                "seconds": round(time.monotonic() - begun_s, 3),
            }  # fmt: skip
            write_json(path / MANIFEST, manifest)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return cls.open_checked(path)

    @classmethod
    def open_checked(cls, path: Path) -> CellFile:
        """Open cells that were written or checked just now, maybe by another process."""
        steps, manifest = read_tensors(path / _STEPS), read_json(path / MANIFEST)
        starts, bases, groups = (np.array(steps[name]) for name in ("starts", "bases", "groups"))
        return cls(path, starts, bases, groups, float(manifest.get("seconds", 0.0)))


def _described(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "format": FORMAT, "arrangement": [ROWS, COLUMNS, STEP, BUFFER]}


def check_place(path: Path) -> None:
    """Raise an error if something else is at the path, because it would be removed."""
    if not path.exists():
        return
    ours = {_CELLS, _STEPS, MANIFEST, SCRATCH}
    is_ours = path.is_dir() and all(
        entry.name in ours or entry.name.startswith(".new-") for entry in path.iterdir()
    )
    if not is_ours:
        raise WriteError(
            f"{path} would take the counts of pairs, but something else is there; "
            "move it or choose another name for the model."
        )


def check_size(num_words: int) -> None:
    """Raise an error for more words than a key can hold."""
    if num_words > MAX_WORDS:
        raise OptionError(
            f"GloVe takes at most {MAX_WORDS:,} words, the text has {num_words:,}: "
            "raise min_count or lower max_words."
        )


def _write_cells(
    path: Path, cells: Iterable[Cells], num_words: int, num_groups: int
) -> dict[str, str]:
    """Write the cells and the table of steps; return their checksums."""
    digest = hashlib.blake2b(digest_size=16)  # as file_checksum
    sizes: list[int] = []
    bases: list[int] = []
    groups: list[int] = []
    with (path / _CELLS).open("wb", buffering=0) as file:
        for row_group, buffer in _buffers(cells, num_groups):
            for column_group, base, keys, logs in _arranged(buffer, num_words, num_groups):
                num_parts = -(-len(keys) // STEP)
                edges = [len(keys) * part // num_parts for part in range(num_parts + 1)]
                for start, end in pairwise(edges):
                    sizes.append(end - start)
                    bases.append(base)
                    groups.append(row_group * num_groups + column_group)
                    data = keys[start:end].tobytes() + logs[start:end].tobytes()
                    digest.update(data)
                    file.write(data)
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    tables = {"starts": starts}
    tables |= {"bases": np.array(bases, np.int32), "groups": np.array(groups, np.int32)}
    write_tensors(path / _STEPS, tables)
    return {_CELLS: digest.hexdigest(), _STEPS: file_checksum(path / _STEPS)}


def _arranged(
    buffer: Cells, num_words: int, num_groups: int
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yield the column group, the first row, the keys and the logarithms of a buffer's cells."""
    rows, columns, values = buffer
    base = int(rows[0]) // ROWS * ROWS
    # Groups of columns are neighbors while the cells are sorted.
    size = -(-num_words // num_groups)
    size = -(-size // COLUMNS) * COLUMNS
    of_columns = columns % num_groups
    places = np.zeros(num_groups * (size // COLUMNS) + 1, np.int64)
    keys, logs = np.empty(len(rows), np.uint32), np.empty(len(rows), np.float32)
    arranged = of_columns * size + columns // num_groups
    arrange(rows, arranged, np.log(values), base, COLUMNS, places, keys, logs)
    edges = np.cumsum([0, *np.bincount(of_columns, minlength=num_groups)])
    for group, (start, end) in enumerate(pairwise(edges.tolist())):
        if end > start:
            yield group, base, keys[start:end] - np.uint32(group * size), logs[start:end]


def _buffers(cells: Iterable[Cells], num_groups: int) -> Iterator[tuple[int, Cells]]:
    """Split the stream into groups of rows, and each into buffers; yield group and buffer."""
    buffers = [_Buffer(BUFFER // num_groups) for _ in range(num_groups)]
    for piece in cells:
        for group, buffer in enumerate(buffers):
            own = piece
            if num_groups > 1:
                is_own = piece.rows % num_groups == group
                own = Cells(*(array[is_own] for array in piece))
                own = own._replace(rows=own.rows // num_groups)
            for full in buffer.add(own):
                yield group, full
    for group, buffer in enumerate(buffers):
        if buffer.num_waiting:
            yield group, buffer.empty()


class _Buffer:
    """Joins and splits a stream into buffers with rows of one block, and at most `size` cells."""

    def __init__(self, size: int) -> None:
        self.size, self.num_waiting = max(size, STEP), 0
        self._waiting: list[Cells] = []
        self._block = 0

    def add(self, piece: Cells) -> Iterator[Cells]:
        """Add cells; yield the buffers that are full."""
        start = 0
        while start < len(piece.rows):
            here = int(piece.rows[start]) // ROWS
            if self.num_waiting and here != self._block:
                yield self.empty()
            self._block = here
            edge = int(np.searchsorted(piece.rows, (here + 1) * ROWS))
            end = min(edge, start + self.size - self.num_waiting)
            self._waiting.append(Cells(*(array[start:end] for array in piece)))
            self.num_waiting += end - start
            start = end
            if self.num_waiting == self.size:
                yield self.empty()

    def empty(self) -> Cells:
        """Take out the cells that wait."""
        pieces, self._waiting, self.num_waiting = self._waiting, [], 0
        return Cells(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))
