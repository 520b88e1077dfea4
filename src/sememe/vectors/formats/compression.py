"""Compressed vector files: known by their first bytes when read, by their ending when written."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}


def stream_errors() -> tuple[type[BaseException], ...]:
    """What a damaged or cut-off compressed stream raises."""
    import zstandard

    return (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def compression_of(path: Path) -> str | None:
    """Which compression the content of the file has, if any."""
    with path.open("rb") as file:
        start = file.read(8)
    return next((name for magic, name in MAGIC.items() if start.startswith(magic)), None)


class _ZstdFile(io.RawIOBase):
    """All frames of a .zst file; the library's own reader takes a cut-off one for the end."""

    def __init__(self, path: Path) -> None:
        import zstandard

        self._file = path.open("rb")
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._new_frame()
        self._packed, self._plain = b"", memoryview(b"")
        self._is_inside = False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            self._packed = self._packed or self._file.read(1 << 17)
            if not self._packed:
                if self._is_inside:
                    raise EOFError("the compressed data is cut off")
                return 0
            self._plain = memoryview(self._frame.decompress(self._packed))
            self._is_inside = not self._frame.eof
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = self._new_frame()
        num_bytes = min(len(buffer), len(self._plain))
        buffer[:num_bytes] = self._plain[:num_bytes]
        self._plain = self._plain[num_bytes:]
        return num_bytes


def open_for_reading(path: Path) -> BinaryIO:
    """Open the file's content, unpacked."""
    match compression_of(path):
        case "gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        case "bz2":
            return cast(BinaryIO, bz2.open(path, "rb"))
        case "xz":
            return cast(BinaryIO, lzma.open(path, "rb"))
        case "zst":
            return cast(BinaryIO, io.BufferedReader(_ZstdFile(path), 1 << 20))
    return path.open("rb")


def open_for_writing(path: Path) -> BinaryIO:
    """Open a file to write, packed as its ending (.gz, .bz2, .xz, .zst) says."""
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.open(path, "wb", compresslevel=6))
        case ".bz2":
            return cast(BinaryIO, bz2.open(path, "wb"))
        case ".xz":
            return cast(BinaryIO, lzma.open(path, "wb"))
        case ".zst":
            import zstandard

            return cast(BinaryIO, zstandard.open(path, "wb"))
    return path.open("wb")
