"""Bytes of one source, decompressed: gz, bz2, xz and zst are known by their first bytes."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

from sememe.errors import InputError
from sememe.text.readers.batches import BATCH_SIZE

STDIN: Literal["-"] = "-"
COMPRESSION_ENDINGS = (".gz", ".bz2", ".xz", ".zst")
# Small, because highly repetitive text may grow a thousandfold in one call.
_COMPRESSED_SIZE = 1 << 16


def _zst() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


_ENGINES: tuple[tuple[bytes, str, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", "gzip", lambda: zlib.decompressobj(wbits=31)),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", "xz", lzma.LZMADecompressor),
    (b"\x28\xb5\x2f\xfd", "zstd", _zst),
)


class Source:
    """A file or standard input, read once from its beginning."""

    def __init__(self, path: Path | Literal["-"]) -> None:
        self.path = path
        self.name = "standard input" if path == STDIN else str(path)
        self._num_read = 0

    @property
    def format_ending(self) -> str:
        """The ending that tells the format, without the one that tells the compression."""
        if not isinstance(self.path, Path):
            return ""
        name = self.path.name.lower()
        for ending in COMPRESSION_ENDINGS:
            name = name.removesuffix(ending)
        return Path(name).suffix

    def take_num_bytes(self) -> int:
        """How many bytes were read from the disk since this was last asked."""
        num_bytes, self._num_read = self._num_read, 0
        return num_bytes

    def count(self, num_bytes: int) -> None:
        """Add to what `take_num_bytes` gives."""
        self._num_read += num_bytes

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks of about BATCH_SIZE bytes."""
        try:
            if isinstance(self.path, Path):
                with self.path.open("rb", buffering=0) as file:
                    yield from self._content(file)
            else:
                yield from self._content(sys.stdin.buffer)
        except OSError as error:
            raise InputError(f"Cannot read {self.name}: {error.strerror or error}.") from error

    def _read(self, file: BinaryIO, size: int) -> bytes:
        data = file.read(size)
        self._num_read += len(data)
        return data

    def _content(self, file: BinaryIO) -> Iterator[bytes]:
        head = self._read(file, _COMPRESSED_SIZE)
        for magic, method, engine in _ENGINES:
            if head.startswith(magic):
                yield from _gather(self._decompressed(head, file, method, engine))
                return
        if head:
            yield head
        while block := self._read(file, BATCH_SIZE):
            yield block

    def _decompressed(
        self, head: bytes, file: BinaryIO, method: str, start: Callable[[], Any]
    ) -> Iterator[bytes]:
        engine, data = start(), head
        while data:
            try:
                yield engine.decompress(data)
                # One file may hold several streams, one behind the other, padded with zeros.
                while engine.eof and (rest := engine.unused_data.lstrip(b"\0")):
                    engine = start()
                    yield engine.decompress(rest)
            except Exception as error:  # each library has its own
                raise InputError(
                    f"{self.name} is damaged: its {method} stream cannot be read ({error})."
                ) from error
            data = self._read(file, _COMPRESSED_SIZE)
            if engine.eof and data:
                data = data.lstrip(b"\0") or self._read(file, _COMPRESSED_SIZE)
                engine = start() if data else engine
        if not engine.eof:
            raise InputError(
                f"{self.name} is cut off: its {method} stream has no end; copy it anew."
            )


def _gather(pieces: Iterator[bytes]) -> Iterator[bytes]:
    kept: list[bytes] = []
    size = 0
    for piece in pieces:
        kept.append(piece)
        size += len(piece)
        if size >= BATCH_SIZE:
            yield b"".join(kept)
            kept, size = [], 0
    if size:
        yield b"".join(kept)
