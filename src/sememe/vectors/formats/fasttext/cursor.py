"""A place in a mapped file that moves on with every field, and knows what it was looking for."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NoReturn

import numpy as np

from sememe.errors import ArtifactError


class Cursor:
    """Reads fields of a file one after the other; nothing is believed that the file cannot hold."""

    def __init__(self, path: Path) -> None:
        self.path, self.position = path, 0
        try:
            # A map of nothing is refused by the operating system.
            is_empty = path.stat().st_size == 0
            self.data = np.empty(0, np.uint8) if is_empty else np.asarray(np.memmap(path, mode="r"))
        except OSError as error:
            raise ArtifactError(f"{path} cannot be read: {error.strerror or error}.") from error

    @property
    def num_left(self) -> int:
        """Bytes from here to the end of the file."""
        return len(self.data) - self.position

    def fail(self, message: str) -> NoReturn:
        """Stop, with the place in the file."""
        raise ArtifactError(f"{self.path} is damaged near byte {self.position:,}: {message}.")

    def take(self, num_bytes: int, what: str) -> np.ndarray:
        """The next bytes, mapped."""
        if not 0 <= num_bytes <= self.num_left:
            raise ArtifactError(
                f"{self.path} is cut off: {what} would need {num_bytes:,} bytes from byte "
                f"{self.position:,} on, but the file ends after {len(self.data):,}."
            )
        self.position += num_bytes
        return self.data[self.position - num_bytes : self.position]

    def numbers(self, format: str, what: str) -> tuple:
        """The next fields as `struct` names them, little-endian and without padding."""
        layout = struct.Struct("<" + format)
        return layout.unpack(self.take(layout.size, what).tobytes())

    def flag(self, what: str) -> bool:
        """A byte that must be 0 or 1."""
        (value,) = self.numbers("B", what)
        if value > 1:
            self.fail(f"{what} must be 0 or 1, not {value}")
        return bool(value)

    def floats(self, num_rows: int, num_columns: int, what: str) -> np.ndarray:
        """The next float32 as a mapped table; where it starts need not be a multiple of four."""
        block = self.take(4 * num_rows * num_columns, what)
        return block.view("<f4").reshape(num_rows, num_columns)
