"""A sparse matrix on disk: rows written one after the other, then memory-mapped. V rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sememe.storage.folder import write_errors


class SparseMatrix:
    """Row r has the columns[starts[r]:starts[r + 1]], with `values` beside them."""

    def __init__(self, starts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        self.starts, self.columns, self.values = starts, columns, values

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def num_cells(self) -> int:
        """Cells that are not 0."""
        return int(self.starts[-1])

    def row_sums(self) -> np.ndarray:
        """The sum of each row in float64."""
        sums = np.zeros(len(self))
        for first, last in self.blocks():
            start, end = int(self.starts[first]), int(self.starts[last])
            filled = np.flatnonzero(np.diff(self.starts[first : last + 1]))
            if len(filled):
                block = self.values[start:end].astype(np.float64)
                # Empty rows would take the next row's first cell for their own.
                sums[first + filled] = np.add.reduceat(block, self.starts[first + filled] - start)
        return sums

    def blocks(self, num_cells: int = 1 << 20) -> Iterator[tuple[int, int]]:
        """Cut the rows into runs of about `num_cells` cells."""
        first = 0
        while first < len(self):
            limit = self.starts[first] + num_cells
            last = max(first + 1, int(np.searchsorted(self.starts, limit, "right")) - 1)
            yield first, last
            first = last

    def row(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """The columns and values of one row."""
        span = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return self.columns[span], self.values[span]

    def dense(self) -> np.ndarray:
        """The whole matrix, (V, V) float32."""
        full = np.zeros((len(self), len(self)), np.float32)
        full[np.repeat(np.arange(len(self)), np.diff(self.starts)), self.columns] = self.values
        return full


class MatrixWriter:
    """Writes the cells of a matrix in row order to two files in a scratch folder."""

    def __init__(self, path: Path, num_rows: int) -> None:
        self._paths = [path.with_suffix(ending) for ending in (".columns", ".values")]
        self._sizes = np.zeros(num_rows, np.int64)
        self._files: list[BinaryIO] = []

    def __enter__(self) -> MatrixWriter:
        """Open the files."""
        with write_errors(self._paths[0]):
            self._files = [path.open("wb") for path in self._paths]
        return self

    def __exit__(self, *_: Any) -> None:
        """Close the files; what is still in their buffers may find the disk full."""
        with write_errors(self._paths[0]):
            for file in self._files:
                file.close()

    def add(self, first: int, sizes: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Append the rows from `first` on, of `sizes` cells."""
        self._sizes[first : first + len(sizes)] = sizes
        with write_errors(self._paths[0]):
            for file, array in zip(self._files, (columns, values), strict=True):
                file.write(array.data)

    def matrix(self) -> SparseMatrix:
        """Map what was written; the files must be closed."""
        starts = np.concatenate(([0], np.cumsum(self._sizes)))
        if not starts[-1]:
            return SparseMatrix(starts, np.empty(0, np.int32), np.empty(0, np.float32))
        # Copy-on-write, which the kernels take for the same type as an array in memory.
        columns = np.memmap(self._paths[0], np.int32, "c")
        values = np.memmap(self._paths[1], np.float32, "c")
        return SparseMatrix(starts, np.asarray(columns), np.asarray(values))
