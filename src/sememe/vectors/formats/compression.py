"""Compressed vector files: known by their first bytes when read, by their ending when written."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path
from typing import BinaryIO, cast

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
            import zstandard

            return cast(BinaryIO, zstandard.open(path, "rb"))
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
