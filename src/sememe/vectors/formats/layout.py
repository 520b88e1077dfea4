"""Which vector format a file has, told by its first bytes, and what its header states."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from sememe.errors import ArtifactError
from sememe.vectors.formats.lines import LineError, count_numbers, parse_line

FileFormat = Literal["word2vec", "word2vec-binary", "glove", "fasttext", "floret"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)

# No published vectors come near this; a larger number is a damaged header.
MAX_DIM = 1_000_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"(\d{1,15})[ \t]+(\d{1,15})[ \t]*\r?")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r"))
_NUM_SAMPLED_LINES = 100


class Layout(NamedTuple):
    """A format, the rows its header states (None without one), numbers a row, where rows start."""

    format: FileFormat
    num_words: int | None
    dim: int
    start: int


def detect(path: Path, head: bytes, is_whole: bool, given: FileFormat | None = None) -> Layout:
    """Tell the layout from the first bytes; `is_whole` says that there are no others."""
    if not head.strip():
        raise ArtifactError(f"{path} is empty.")
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    line_end = head.find(b"\n", start)
    header = _HEADER.fullmatch(head, start, len(head) if line_end < 0 else line_end)
    if header and given != "glove":
        rows_start = len(head) if line_end < 0 else line_end + 1
        num_words, dim = int(header[1]), int(header[2])
        return _with_header(path, head, is_whole, given, (num_words, dim, rows_start))
    if given in ("word2vec", "word2vec-binary"):
        raise ArtifactError(
            f"{path} does not start with the line “words numbers” that the {given} format has."
        )
    return Layout("glove", None, _common_dim(path, head[start:], is_whole), start)


def _with_header(
    path: Path, head: bytes, is_whole: bool, given: FileFormat | None, stated: tuple[int, int, int]
) -> Layout:
    num_words, dim, start = stated
    body = head[start:]
    if num_words == 0 or not body.strip():
        raise ArtifactError(f"{path} holds no vectors.")
    if not 1 <= dim <= MAX_DIM:
        raise ArtifactError(f"{path} is damaged: its header states {dim:,} numbers in a vector.")
    if not (given == "word2vec" or (given is None and _is_text(body, num_words, dim, is_whole))):
        return Layout("word2vec-binary", num_words, dim, start)
    found = _common_dim(path, body, is_whole)
    if found != dim:
        raise ArtifactError(
            f"{path}: its header states {dim:,} numbers in a vector, its lines have {found:,}."
        )
    return Layout("word2vec", num_words, dim, start)


def _lines(body: bytes, is_whole: bool) -> list[bytes]:
    """The first lines that are complete and not blank."""
    lines = body.split(b"\n", 4 * _NUM_SAMPLED_LINES)
    if len(lines) > 1 and (not is_whole or len(lines) > 4 * _NUM_SAMPLED_LINES):
        lines.pop()
    return [line for line in lines if line.strip()][:_NUM_SAMPLED_LINES]


def _parses(line: bytes, dim: int) -> bool:
    try:
        parse_line(line, dim)
    except LineError:
        return False
    return True


def _is_text(body: bytes, num_words: int, dim: int, is_whole: bool) -> bool:
    if any(_parses(line, dim) for line in _lines(body, is_whole)[:1]):
        return True
    if is_whole and _is_whole_binary(body, num_words, dim):
        return False
    # Broken text is still text: numbers in binary form nearly always hold control characters.
    return body[:4096].translate(None, _CONTROLS) == body[:4096]


def _is_whole_binary(body: bytes, num_words: int, dim: int) -> bool:
    """Whether exactly the stated binary rows make up `body`."""
    position = 0
    for _ in range(min(num_words, len(body))):
        space = body.find(b" ", position)
        if space < 0:
            return False
        position = space + 1 + 4 * dim
    return position <= len(body) and not body[position:].strip()


def _common_dim(path: Path, body: bytes, is_whole: bool) -> int:
    """Numbers a line as most of the first lines have them (a word with spaces adds some)."""
    lines = _lines(body, is_whole)
    dims = Counter(count_numbers(line) for line in lines)
    dim = min(dims, key=lambda dim: (-dims[dim], dim)) if dims else 0
    if not 1 <= dim <= MAX_DIM or not any(_parses(line, dim) for line in lines):
        raise ArtifactError(
            f"{path} is not a vector file of a known format: word2vec text or binary, GloVe text, "
            "fastText .bin or .vec, or a folder of ours was expected."
        )
    return dim
