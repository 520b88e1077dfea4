"""A sparse matrix on disk, V rows: written row by row, memory-mapped, shown as a table of words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sememe.errors import ArtifactError
from sememe.notebook import aligned
from sememe.storage.folder import write_errors


class SparseMatrix:
    """Row r has columns[starts[r]:starts[r + 1]] and the corresponding `values`."""

    def __init__(self, starts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        self.starts, self.columns, self.values = starts, columns, values
        self._path: Path | None = None
        if (
            not len(starts)
            or np.any(np.diff(starts, prepend=0) < 0)
            or not starts[-1] == len(columns) == len(values)
        ):
            raise ArtifactError("The kept co-occurrence matrix is damaged: its parts do not fit.")

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def mapped(cls, starts: np.ndarray, path: Path) -> SparseMatrix:
        """Memory-map the cells that a MatrixWriter wrote."""
        files = _files(path)
        # Copy-on-write, which the kernels treat like an array in memory.
        columns, values = np.memmap(files[0], np.int32, "c"), np.memmap(files[1], np.float32, "c")
        matrix = cls(starts, np.asarray(columns), np.asarray(values))
        matrix._path = path
        return matrix

    def __reduce__(self) -> Any:
        """What is sent to another process: the place of mapped cells, not the cells."""
        if self._path is None:
            return SparseMatrix, (self.starts, self.columns, self.values)
        return SparseMatrix.mapped, (self.starts, self._path)

    @property
    def num_cells(self) -> int:
        """Number of nonzero cells."""
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
        """Split the rows into runs of about `num_cells` cells."""
        first = 0
        while first < len(self):
            limit = self.starts[first] + num_cells
            last = max(first + 1, int(np.searchsorted(self.starts, limit, "right")) - 1)
            yield first, last
            first = last

    def sparse(self) -> Any:
        """The matrix in SciPy's format, (V, V)."""
        from scipy.sparse import csr_array

        parts = (self.values, self.columns, self.starts)
        return csr_array(parts, shape=(len(self), len(self)))


def _files(path: Path) -> list[Path]:
    return [path.with_suffix(ending) for ending in (".columns", ".values")]


class MatrixWriter:
    """Writes the cells of a matrix in row order to two files in a scratch folder."""

    def __init__(self, path: Path, num_rows: int) -> None:
        self._path, self._paths = path, _files(path)
        self._sizes = np.zeros(num_rows, np.int64)
        self._files: list[BinaryIO] = []

    def __enter__(self) -> MatrixWriter:
        """Open the files."""
        with write_errors(self._paths[0]):
            self._files = [path.open("wb") for path in self._paths]
        return self

    def __exit__(self, *_: Any) -> None:
        """Close the files; flushing their buffers may find the disk full."""
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
        """Memory-map what was written; the files must be closed."""
        starts = np.concatenate(([0], np.cumsum(self._sizes)))
        if not starts[-1]:
            return SparseMatrix(starts, np.empty(0, np.int32), np.empty(0, np.float32))
        return SparseMatrix.mapped(starts, self._path)


# More columns than this are unreadable.
MAX_WORDS = 200


@dataclass(frozen=True)
class CountTable:
    """A table with the same words as rows and columns; `str` gives aligned text."""

    words: list[str]
    values: np.ndarray  # float32 (words, words)

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON values."""
        return {"words": self.words, "values": self.values.tolist()}

    def __str__(self) -> str:
        body = [
            [word, *(str(int(one)) if one == int(one) else f"{one:.2f}" for one in row)]
            for word, row in zip(self.words, self.values.tolist(), strict=True)
        ]
        return "\n".join(aligned([["", *self.words], *body]))
