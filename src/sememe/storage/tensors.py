"""Named arrays in one safetensors file: written without a second copy, read as memory maps.

The safetensors package copies on reading (1 M × 300 took 3.1 s), so the header is parsed here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError

_TO_NAME = {
    "f8": "F64", "f4": "F32", "f2": "F16", "b1": "BOOL",
    "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
    "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8",
}  # fmt: skip
_TO_DTYPE = {name: np.dtype(f"<{code}") for code, name in _TO_NAME.items()}
_MAX_HEADER_SIZE = 100_000_000


def write_tensors(
    path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write `tensors` to `path`; the caller chooses an atomic place (see storage.folder)."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        code = _TO_NAME[f"{tensor.dtype.kind}{tensor.dtype.itemsize}"]
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    # Rows start on a cache line: the kernels and the memory maps both like that.
    text += b" " * (-(len(text) + 8) % 64)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            # `tofile` would forget the reason of a failure, such as a full disk.
            file.write(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)


def _header(path: Path) -> tuple[dict[str, Any], int]:
    size = path.stat().st_size
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        if size < 8 or header_size > min(size - 8, _MAX_HEADER_SIZE):
            raise ValueError("its header is cut off")
        header = json.loads(file.read(header_size))
    header.pop("__metadata__", None)
    return header, 8 + header_size


def _map(path: Path, entry: dict[str, Any], base: int, size: int) -> np.ndarray:
    dtype, shape = _TO_DTYPE[entry["dtype"]], tuple(int(extent) for extent in entry["shape"])
    start, end = (int(offset) for offset in entry["data_offsets"])
    if end - start != math.prod(shape) * dtype.itemsize or not 0 <= start <= end <= size - base:
        raise ValueError("it is truncated or its header does not fit its data")
    if end == start:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", offset=base + start, shape=shape)


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Map every array of the file at `path`, read-only; nothing is copied."""
    try:
        header, base = _header(path)
        size = path.stat().st_size
        return {name: _map(path, entry, base, size) for name, entry in header.items()}
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing: {path.parent} is not a whole artifact.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ArtifactError(f"{path} is not a readable tensor file: {error}.") from error


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The extents of every array of the file at `path`, whatever its numbers are."""
    try:
        header, _ = _header(path)
        return {
            name: tuple(int(extent) for extent in entry["shape"]) for name, entry in header.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{path} is not a readable tensor file: {error}.") from error
