"""Find and read sources: paths, folders, globs or standard input in, UTF-8 blocks out.

In a folder, only files with the endings below are read, not hidden ones, in the order of their
paths. Compression (gz, bz2, xz, zst) is detected by the first bytes; any encoding can be read, and
an error names the file and offset of a wrong byte.
"""

from __future__ import annotations

import bz2
import codecs
import glob
import lzma
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

from sememe.errors import InputError
from sememe.storage import remote
from sememe.storage.folder import open_regular
from sememe.storage.remote import RemoteFile
from sememe.storage.urls import url_of
from sememe.text.settings import TextSettings

# Large enough to hide the cost of a Python call, small enough for the cache and the queue.
BATCH_SIZE = 2 << 20
STDIN: Literal["-"] = "-"
TEXT_ENDINGS = (".txt", ".text", ".md", ".rst")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
TABLE_ENDINGS = (".csv", ".tsv", ".tab")
PARQUET_ENDINGS = (".parquet", ".pq")
ENDINGS = TEXT_ENDINGS + JSON_ENDINGS + TABLE_ENDINGS + PARQUET_ENDINGS
COMPRESSION_ENDINGS = (".gz", ".bz2", ".xz", ".zst")

Corpus = str | Path | RemoteFile | Sequence[str | Path | RemoteFile]
Item = TypeVar("Item")


def gathered(
    items: Iterable[Item], limit: int, size_of: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Consecutive items grouped until they reach `limit`; the last group may be smaller."""
    kept: list[Item] = []
    size = 0
    for item in items:
        kept.append(item)
        size += size_of(item)
        if size >= limit:
            yield kept
            kept, size = [], 0
    if kept:
        yield kept


# ---- finding --------------------------------------------------------------------------------


def exists(name: str) -> bool:
    """Whether a file or folder of this name exists; a text too long for a name is none."""
    if (url := url_of(name)) is not None:
        return remote.exists(url)
    try:
        return name == STDIN or (bool(name.strip()) and Path(name).expanduser().exists())
    except (OSError, ValueError):
        return False


def names_files(name: str) -> bool:
    """Whether `find_sources` would find files: a name that exists, or a pattern that fits some."""
    return exists(name) or (glob.has_magic(name) and bool(glob.glob(name, recursive=True)))  # noqa: PTH207


class FoundSource(NamedTuple):
    """A file (or "-" for standard input); `in_folder` if it came from a folder with several.

    A shard of a text file has the bytes from `start` to `end`, and the layout of the whole file.
    """

    path: Path | RemoteFile | Literal["-"]
    in_folder: bool = False
    start: int = 0
    end: int | None = None
    layout: str = ""

    def open(self) -> Source:
        """The content, to be read once."""
        return Source(self.path, self.start, self.end)


def find_sources(corpus: Corpus) -> list[FoundSource]:
    """The files that `corpus` names: files, folders, globs, or "-"; all of them exist."""
    names = [corpus] if isinstance(corpus, (str, Path, RemoteFile)) else list(corpus)
    if not names:
        raise InputError("No text was given: name at least one file, folder or pattern.")
    found = [source for name in names for source in _expand(name)]
    if sum(source.path == STDIN for source in found) > 1:
        raise InputError('Standard input ("-") can be read once only.')
    return found


def _expand(name: str | Path | RemoteFile) -> list[FoundSource]:
    if name == STDIN:
        return [FoundSource(STDIN)]
    if isinstance(name, RemoteFile):
        return [FoundSource(name)]
    if (url := url_of(name)) is not None:
        return _expand_url(url)
    if name == "":  # which pathlib takes for the current folder
        raise InputError("The name of a file or folder is needed, not an empty one.")
    path = Path(name).expanduser()
    if path.is_dir():
        files = sorted(_walk(path))
        if not files:
            raise InputError(_no_text(path))
        return [FoundSource(file, len(files) > 1) for file in files]
    if path.exists():
        return [FoundSource(path)]
    if glob.has_magic(str(path)):
        # pathlib cannot take a pattern that starts at the root.
        matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
        files = [match for match in matches if match.is_file()]
        if files:
            return [FoundSource(file) for file in files]
        raise InputError(f"No file matches {name}.")
    raise InputError(f"There is no file or folder {name}.")


def _no_text(folder: Path | str) -> str:
    endings = f"{' '.join(ENDINGS)}, compressed ({' '.join(COMPRESSION_ENDINGS)})"
    return f"No text in {folder}: a folder is searched for {endings} or not."


def _expand_url(url: str) -> list[FoundSource]:
    """The files of a URL, of a pattern, or of a folder with those rules."""
    files, is_folder = remote.find_files(url)
    if not files and not is_folder:
        raise InputError(f"There is no file or folder {url}.")
    if is_folder:
        start = url.rstrip("/").count("/") + 1
        files = [
            file for file in files
            if format_ending(file) in ENDINGS
            and not any(part.startswith(".") for part in file.url.split("/")[start:])
        ]  # fmt: skip
        if not files:
            raise InputError(_no_text(url))
    return [FoundSource(file, is_folder and len(files) > 1) for file in files]


def file_size(path: Path | RemoteFile | Literal["-"]) -> int:
    """The bytes of a file."""
    return (Path(path) if isinstance(path, str) else path).stat().st_size


def format_ending(path: Path | RemoteFile) -> str:
    """The ending that determines the format, without that of the compression."""
    name = path.name.lower()
    for ending in COMPRESSION_ENDINGS:
        name = name.removesuffix(ending)
    return Path(name).suffix


def _walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise InputError(f"Cannot read the folder {error.filename}: {error.strerror}.")

    seen: set[tuple[int, int]] = set()
    for root, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        stat = Path(root).stat()
        if (stat.st_dev, stat.st_ino) in seen:  # a link that leads back would be read again
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders[:] = [name for name in sorted(folders) if not name.startswith(".")]
        paths = [Path(root, name) for name in files if not name.startswith(".")]
        known = (path for path in paths if format_ending(path) in ENDINGS)
        # A pipe in a folder would block; a broken link is reported.
        yield from (path for path in known if path.is_file() or not path.exists())


# ---- reading --------------------------------------------------------------------------------

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
    """A file or standard input, read once from its beginning; or the bytes of a part of a file."""

    def __init__(
        self, path: Path | RemoteFile | Literal["-"], start: int = 0, end: int | None = None
    ) -> None:
        self.path, self.start, self.end = path, start, end
        self.name = "standard input" if path == STDIN else str(path)
        self.format_ending = "" if isinstance(path, str) else format_ending(path)
        self.num_read = 0  # bytes from the disk; the reporter sets it back

    @property
    def file_name(self) -> str:
        """The name without its folder."""
        return self.path if isinstance(self.path, str) else self.path.name

    @property
    def is_part(self) -> bool:
        """Whether this is a part of a file."""
        return self.start > 0 or self.end is not None

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks of about BATCH_SIZE bytes."""
        try:
            if isinstance(self.path, RemoteFile):
                with remote.remote_errors(self.name), self.path.open() as file:
                    yield from self._content(file)
            elif isinstance(self.path, Path):
                with self.path.open("rb", buffering=0) as file:
                    yield from self._content(file)
            else:
                # Unbuffered: at Ctrl-C, a thread that waits in the buffer would abort the program.
                yield from self._content(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
        except OSError as error:
            raise InputError(f"Cannot read {self.name}: {error.strerror or error}.") from error

    def _read(self, file: BinaryIO, size: int) -> bytes:
        """Read `size` bytes, or fewer at the end; a pipe gives a few at a time."""
        parts: list[bytes] = []
        while size and (data := file.read(size)):
            parts.append(data)
            size -= len(data)
            self.num_read += len(data)
        return b"".join(parts)

    def _content(self, file: BinaryIO) -> Iterator[bytes]:
        if self.is_part:  # of a file that is not compressed
            file.seek(self.start)
            left = sys.maxsize if self.end is None else self.end - self.start
            while block := self._read(file, min(BATCH_SIZE, left)):
                left -= len(block)
                yield block
            return
        head = self._read(file, _COMPRESSED_SIZE)
        for magic, method, engine in _ENGINES:
            if head.startswith(magic):
                pieces = self._decompressed(head, file, method, engine)
                yield from map(b"".join, gathered(pieces, BATCH_SIZE, len))
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
                # One file may hold several streams, one after the other, padded with zeros.
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
                f"{self.name} is truncated: its {method} stream has no end; copy it again."
            )


_WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


_UTF8 = ("utf-8", "utf-8-sig")
# A file with a few wrong bytes stays readable; one in another encoding loses a third or more.
_MOST_LOST = 0.1
_MAX_BYTES = 1 << 26  # of a file that is read whole
_REPLACEMENT = "\ufffd".encode()
_FOREIGN_RUN = re.compile(r"[^\x00-\x7f]+")
_CHINESE_MARKS = "，。、：；！？“”（）《》"


def read_utf8(path: str | Path) -> str:
    """Read a small file that must be UTF-8: words, phrases, questions, predictions."""
    try:
        with open_regular(Path(path)) as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InputError(f"{path} is larger than {_MAX_BYTES:,} bytes.")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 (byte {error.start:,}); convert it, for instance with iconv."
        ) from None


def utf8_blocks(source: Source, settings: TextSettings) -> Iterator[bytes]:
    """The content of `source` as valid UTF-8, in blocks that end between two characters."""
    name, blocks = codecs.lookup(settings.encoding).name, source.blocks()
    first = next(blocks, b"")
    blocks, encoding = chain([first], blocks), settings.encoding
    if name in _UTF8 and not source.start and (wide := _wide_encoding(first)):
        name = encoding = wide
    if name in _UTF8:
        checked, name = _checked(blocks, source, settings.errors), "UTF-8"
    else:
        checked = _recoded(blocks, source.name, encoding, settings.errors)
    checked = checked if source.is_part else _with_newlines(checked)
    return _noting_loss(checked, source.name, name) if settings.errors == "replace" else checked


def has_old_newlines(first: bytes) -> bool:
    """Whether a file that starts with `first` ends its lines with a carriage return alone."""
    # The last character may be half of \r\n.
    return b"\r" in first[:-1] and b"\n" not in first


def _with_newlines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks; those of a file that ends lines with \\r alone, as on old Macs, get newlines."""
    first = next(blocks, b"")
    is_old = has_old_newlines(first)
    for block in chain([first], blocks):
        yield block.replace(b"\r", b"\n") if is_old else block


def _wrong_byte(
    name: str, offset: int, encoding: str, reason: str, sample: bytes = b""
) -> InputError:
    """The error for a wrong byte: its position and what to do; `sample` may show the encoding."""
    where = f"{name} is not {encoding} at byte {offset:,} ({reason}); "
    if found := _other_encoding(sample, encoding):
        return InputError(
            f"{where}it reads as {found}: try --encoding {found} (it holds for every file; "
            "convert those in another encoding, for instance with iconv)."
        )
    return InputError(
        f"{where}choose its encoding with --encoding (cp1252 for much Western European text) or "
        "fix it; --errors replace reads a corpus, but not labelled rows, with replacements."
    )


def _other_encoding(sample: bytes, encoding: str) -> str:
    """The encoding, not the given one, in which bytes read as text; "" if none is likely."""
    others = (found for found in ("utf-8", "gb18030") if found != encoding.lower())
    return next((found for found in others if _reads_as(sample, found)), "")


def can_be_cut(source: Source, settings: TextSettings) -> bool:
    """Whether a part of the bytes of a text file reads as it does within the whole file."""
    first = next(source.blocks(), b"")
    is_coded = any(first.startswith(magic) for magic, *_ in _ENGINES) or _wide_encoding(first)
    is_utf8 = codecs.lookup(settings.encoding).name in _UTF8
    return is_utf8 and not is_coded and not has_old_newlines(first)


def check_encoding(source: Source, name: str, settings: TextSettings) -> None:
    """Raise an error for a file that starts as text in another encoding.

    With replacements for invalid bytes, most of it would be lost.
    """
    encoding, sample = codecs.lookup(settings.encoding).name, next(source.blocks(), b"")
    if encoding in _UTF8 and _wide_encoding(sample):
        return
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError as error:
        if _other_encoding(sample, encoding):
            raise _wrong_byte(name, error.start, encoding, error.reason, sample) from None


def _reads_as(sample: bytes, encoding: str) -> bool:
    """Whether `sample`, perhaps cut within a character, is non-ASCII text in an encoding.

    GB18030 accepts nearly any bytes: most characters must be in common use, and some of them from
    the second half of the common ones, where Korean and Japanese bytes do not come. Chinese comes
    in runs; accents of Latin-1 would be single characters.
    """
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample[: 1 << 16])
    except UnicodeDecodeError:
        return False
    runs = _FOREIGN_RUN.findall(text)
    foreign = "".join(runs)
    num_common = sum("\u4e00" <= char <= "\u9fff" or char in _CHINESE_MARKS for char in foreign)
    if not foreign or encoding == "utf-8":
        return bool(foreign)
    num_late = sum(0xC9 <= char.encode(encoding)[0] <= 0xD7 for char in foreign)
    is_common = num_common > 0.9 * len(foreign) and num_late > 0.1 * len(foreign)
    return is_common and len(foreign) >= 2 * len(runs)


def _noting_loss(blocks: Iterator[bytes], name: str, encoding: str) -> Iterator[bytes]:
    """Pass the blocks on; warn about a file that lost much of its text."""
    num_lost = num_bytes = 0
    for block in blocks:
        num_lost += block.count(_REPLACEMENT) * len(_REPLACEMENT)
        num_bytes += len(block)
        yield block
    if num_lost > _MOST_LOST * num_bytes:
        warnings.warn(
            f"{name} does not look like {encoding}: {num_lost / num_bytes:.0%} of it became "
            "replacement characters. If it is in another encoding, exclude it or convert it.",
            stacklevel=2,
        )


def _wide_encoding(start: bytes) -> str:
    """UTF-16 or UTF-32, if a file starts with their mark, as Excel's Unicode text does; or ""."""
    return next((encoding for mark, encoding in _WIDE_MARKS if start.startswith(mark)), "")


def _checked(blocks: Iterator[bytes], source: Source, errors: str) -> Iterator[bytes]:
    """Valid UTF-8; a character split between blocks moves to the next one."""
    offset, rest, is_first = source.start, b"", not source.start
    for block in chain(blocks, [b""]):
        data = rest + block if rest else block
        if is_first:
            start = len(data)
            data = data.removeprefix(codecs.BOM_UTF8)
            offset += start - len(data)
        is_first = False
        try:
            text, size = codecs.utf_8_decode(data, errors, not block)
        except UnicodeDecodeError as error:
            raise _wrong_byte(
                source.name, offset + error.start, "UTF-8", error.reason, data
            ) from None
        yield data[:size] if errors == "strict" else text.encode()
        offset, rest = offset + size, data[size:]


def _recoded(blocks: Iterator[bytes], name: str, encoding: str, errors: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    offset = 0
    try:
        for block in blocks:
            pending = len(decoder.getstate()[0])
            text = decoder.decode(block)
            if not offset and _reads_as(block, "utf-8"):
                warnings.warn(
                    f"{name} reads as UTF-8, but is read as {encoding}: check a few of its words, "
                    "or try --encoding utf-8.",
                    stacklevel=2,
                )
            offset += len(block)
            yield text.encode("utf-8", "replace")
        pending, block = len(decoder.getstate()[0]), b""
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")
    except UnicodeDecodeError as error:
        place = offset - pending + error.start
        raise _wrong_byte(name, place, encoding, error.reason, block) from None
    except UnicodeError as error:  # UTF-16 without the mark that it needs
        raise InputError(f"{name} is not {encoding}: {error}.") from None
