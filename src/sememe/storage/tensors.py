"""Arrays on disk: named ones in one safetensors file, and one .npy file that grows row by row.

The safetensors package copies on reading (1 M × 300 took 3.1 s), so the header is parsed here
and the arrays are memory maps.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from sememe.storage.folder import open_regular, parse_json, read_errors, write_file

_TO_NAME = {
    "f8": "F64", "f4": "F32", "f2": "F16", "b1": "BOOL",
    "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
    "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8",
}  # fmt: skip
_TO_DTYPE = {name: np.dtype(f"<{code}") for code, name in _TO_NAME.items()}
_MAX_HEADER_SIZE = 100_000_000


class _Entry(NamedTuple):
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def write_tensors(
    path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write `tensors` to `path`; the caller chooses an atomic location (see storage.folder)."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        code = _TO_NAME[f"{tensor.dtype.kind}{tensor.dtype.itemsize}"]
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    # Rows start on a cache line, which kernels and memory maps benefit from.
    text += b" " * (-(len(text) + 8) % 64)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            # `tofile` would forget the reason of a failure, such as a full disk.
            file.write(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)


def _entries(file: BinaryIO) -> tuple[dict[str, _Entry], int]:
    """The header's entry for each array, and where their bytes begin."""
    size = os.fstat(file.fileno()).st_size
    header_size = int.from_bytes(file.read(8), "little")
    if size < 8 or header_size > min(size - 8, _MAX_HEADER_SIZE):
        raise ValueError("its header is truncated")
    header = parse_json(file.read(header_size).decode("utf-8"))
    header.pop("__metadata__", None)
    entries = {}
    for name, told in header.items():
        (start, end), shape = map(int, told["data_offsets"]), tuple(map(int, told["shape"]))
        if min(shape, default=0) < 0 or not 0 <= start <= end <= size - 8 - header_size:
            raise ValueError("it is truncated or its header does not fit its data")
        entries[name] = _Entry(str(told["dtype"]), shape, start, end)
    return entries, 8 + header_size


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Memory-map every array of the file at `path`, read-only; nothing is copied."""
    arrays = {}
    with read_errors(path), open_regular(path) as file:
        entries, base = _entries(file)
        content = np.memmap(file, np.uint8, "r")  # the descriptor's, whatever has the name by now
        for name, (code, shape, start, end) in entries.items():
            dtype = _TO_DTYPE[code]
            if end - start != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{name} is not of its shape")
            arrays[name] = content[base + start : base + end].view(dtype).reshape(shape)
    return arrays


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of every array of the file at `path`, without reading values."""
    with read_errors(path), open_regular(path) as file:
        return {name: entry.shape for name, entry in _entries(file)[0].items()}


def num_weights(*files: Path) -> int:
    """The number of values in all arrays of some files."""
    return sum(math.prod(shape) for file in files for shape in tensor_shapes(file).values())


class RowWriter:
    """The rows written so far: their number and width."""

    def __init__(self, file: BinaryIO, dtype: str = "<f4") -> None:
        self._file, self._dtype = file, dtype
        self.num_rows, self.dim = 0, 0

    def add(self, rows_ND: np.ndarray) -> None:
        """Write a block of rows of the same width as the first."""
        if not self.dim:
            self.dim = rows_ND.shape[1]
            self._write_header()
        if rows_ND.shape[1] != self.dim:
            raise ValueError(f"rows of width {rows_ND.shape[1]} among rows of {self.dim}")
        self.num_rows += len(rows_ND)
        self._file.write(np.ascontiguousarray(rows_ND, self._dtype).data)

    def _write_header(self) -> None:
        # NumPy leaves room in a header for the first extent to grow, so it can be written again.
        shape = self.num_rows, self.dim
        npy.write_array_header_1_0(
            self._file, {"descr": self._dtype, "fortran_order": False, "shape": shape}
        )

    def finish(self) -> None:
        """Write the final number of rows into the header."""
        end = self._file.tell()
        self._file.seek(0)
        self._write_header()
        self._file.seek(end)


def map_array(path: Path, num_axes: int) -> np.ndarray:
    """Memory-map a .npy file, such as the rows that `write_rows` wrote, read-only."""
    with read_errors(path):
        open_regular(path).close()
        found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        if found.ndim != num_axes:
            raise ValueError(f"it has {found.ndim} axes, not {num_axes}")
        return found


@contextmanager
def write_rows(path: str | Path, dtype: str = "<f4") -> Iterator[RowWriter]:
    """Yield a writer for rows of numbers; the file appears when the block ends without error."""
    with write_file(path) as scratch, scratch.open("wb") as file:
        rows = RowWriter(file, dtype)
        yield rows
        rows.finish()
