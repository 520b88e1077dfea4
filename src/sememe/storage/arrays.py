"""A NumPy file that grows row by row: blocks of rows in, one .npy out, never all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from sememe.storage.folder import write_file


class Rows:
    """The rows written so far: their number and width."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.num_rows, self.dim = 0, 0

    def add(self, rows_ND: np.ndarray) -> None:
        """Write a block of rows of the same width as the first."""
        if not self.dim:
            self.dim = rows_ND.shape[1]
            self._write_header()
        if rows_ND.shape[1] != self.dim:
            raise ValueError(f"rows of width {rows_ND.shape[1]} among rows of {self.dim}")
        self.num_rows += len(rows_ND)
        self._file.write(np.ascontiguousarray(rows_ND, "<f4").data)

    def _write_header(self) -> None:
        # NumPy leaves room in a header for the first extent to grow, so it can be written anew.
        shape = self.num_rows, self.dim
        npy.write_array_header_1_0(
            self._file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )

    def finish(self) -> None:
        """Say at the start of the file how many rows have come."""
        end = self._file.tell()
        self._file.seek(0)
        self._write_header()
        self._file.seek(end)


@contextmanager
def write_rows(path: str | Path) -> Iterator[Rows]:
    """Give a place for rows of float32; the file appears when the block ends without error."""
    with write_file(path) as scratch, scratch.open("wb") as file:
        rows = Rows(file)
        yield rows
        rows.finish()
