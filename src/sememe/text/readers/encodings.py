"""Bytes in any encoding in, checked UTF-8 out; a wrong byte is named by file and offset."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Iterator

from sememe.errors import InputError
from sememe.text.readers.sources import Source
from sememe.text.settings import TextSettings

_WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


# A file with stray bytes is read well enough; one in another encoding loses a third or more.
_MOST_LOST = 0.1
_REPLACEMENT = "\ufffd".encode()


def utf8_blocks(source: Source, settings: TextSettings) -> Iterator[bytes]:
    """The content of `source` as valid UTF-8, in blocks that end between two characters."""
    name = codecs.lookup(settings.encoding).name
    blocks = source.blocks()
    if name in ("utf-8", "utf-8-sig"):
        checked, name = _checked(blocks, source.name, settings.errors), "UTF-8"
    else:
        checked = _recoded(blocks, source.name, name, settings.errors)
    return _told_of_loss(checked, source.name, name) if settings.errors == "replace" else checked


def _wrong_byte(
    name: str, offset: int, encoding: str, reason: str, sample: bytes = b""
) -> InputError:
    """Say where the wrong byte stands and what to do; `sample` tells whether UTF-8 was right."""
    where = f"{name} is not {encoding} at byte {offset:,} ({reason}); "
    if _is_utf8(sample):
        return InputError(
            f"{where}it reads as UTF-8: leave --encoding out (it holds for every file; convert "
            "those in another encoding, for instance with iconv)."
        )
    return InputError(
        f"{where}choose its encoding with --encoding (gb18030 for much Chinese text, latin-1 for "
        "Western European) or mend it; a text, but no labelled rows, is read on with "
        "--errors replace."
    )


def _is_utf8(sample: bytes) -> bool:
    """Whether `sample`, whose last character may be cut off, is UTF-8 and more than ASCII."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return not sample.isascii()


def _told_of_loss(blocks: Iterator[bytes], name: str, encoding: str) -> Iterator[bytes]:
    """Pass the blocks on; warn of a file whose text was lost rather than mended."""
    num_lost = num_bytes = 0
    for block in blocks:
        num_lost += block.count(_REPLACEMENT) * len(_REPLACEMENT)
        num_bytes += len(block)
        yield block
    if num_lost > _MOST_LOST * num_bytes:
        warnings.warn(
            f"{name} is hardly {encoding}: {num_lost / num_bytes:.0%} of it became replacement "
            "characters. If it is in another encoding, leave it out or convert it.",
            stacklevel=2,
        )


def _without_mark(block: bytes, name: str) -> bytes:
    for mark, encoding in _WIDE_MARKS:
        if block.startswith(mark):
            raise InputError(
                f"{name} starts with the mark of {encoding.upper()}; read it with "
                f"--encoding {encoding}."
            )
    return block.removeprefix(codecs.BOM_UTF8)


def _incomplete_size(data: bytes) -> int:
    """How many bytes at the end of `data` start a character that the next block finishes."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needed > back else 0
        if byte < 0x80:
            return 0
    return 0


def _checked(blocks: Iterator[bytes], name: str, errors: str) -> Iterator[bytes]:
    offset, rest, is_first = 0, b"", True
    for block in blocks:
        data = rest + block if rest else block
        if is_first:
            start = len(data)
            data = _without_mark(data, name)
            offset += start - len(data)
        is_first = False
        cut = len(data) - _incomplete_size(data)
        rest, data = data[cut:], data[:cut]
        yield _valid(data, offset, name, errors)
        offset += cut
    if rest:
        yield _valid(rest, offset, name, errors)


def _valid(data: bytes, offset: int, name: str, errors: str) -> bytes:
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if errors == "replace":
            return data.decode(errors="replace").encode()
        raise _wrong_byte(name, offset + error.start, "UTF-8", error.reason) from None
    return data


def _recoded(blocks: Iterator[bytes], name: str, encoding: str, errors: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    offset = 0
    try:
        for block in blocks:
            pending = len(decoder.getstate()[0])
            text = decoder.decode(block)
            offset += len(block)
            yield text.encode("utf-8", "replace")
        pending, block = len(decoder.getstate()[0]), b""
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")
    except UnicodeDecodeError as error:
        place = offset - pending + error.start
        raise _wrong_byte(name, place, encoding, error.reason, block) from None
    except UnicodeError as error:  # UTF-16 without the mark that it needs
        raise InputError(f"{name} is not {encoding}: {error}.") from None
