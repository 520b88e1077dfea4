"""Rows of vector files, text or binary, read block by block into a table that grows.

The first bytes tell the format. Of equal words the first is kept. The kernel in kernels.py parses
the common lines of a text file and leaves every other line to `parse_line`. B rows of a block,
D dimensions.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import compress, pairwise
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, get_args

import numpy as np

from sememe.errors import ArtifactError
from sememe.machine import available_cores
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.fasttext import MAX_DIM
from sememe.vectors.wordvectors import WordVectors

# Words may hold any other white space (U+00A0, U+3000, U+0085): only these two separate.
_SEPARATORS = b" \t"
_NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)", re.I)


class LineError(ValueError):
    """A line that is not a word and its values."""


def parse_line(line: bytes, dim: int) -> tuple[bytes, list[float]]:
    """Split a line into its word and its last `dim` fields as floats; words may contain spaces."""
    stripped = line.rstrip(b" \t\r\n")
    end = word_end = len(stripped)
    numbers: list[float] = []
    for _ in range(dim):
        start = max(stripped.rfind(b" ", 0, end), stripped.rfind(b"\t", 0, end)) + 1
        field = stripped[start:end]
        if start == 0 or not _NUMBER.fullmatch(field):
            if start == 0 or field == b"":
                raise LineError(f"it has {len(numbers)} numbers where {dim} were expected")
            shown = field[:40].decode("utf-8", "replace")
            raise LineError(
                f"“{shown}” is not a number ({dim} numbers were expected after the word)"
            )
        numbers.append(float(field))
        word_end = end = start - 1
        while end > 0 and stripped[end - 1] in _SEPARATORS and len(numbers) < dim:
            end -= 1
    return stripped[:word_end], numbers[::-1]


FileFormat = Literal["word2vec", "word2vec-binary", "glove", "fasttext", "floret"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"(\d{1,15})[ \t]+(\d{1,15})[ \t]*\r?")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r"))
_NUM_SAMPLED_LINES = 100


class FileLayout(NamedTuple):
    """A format, the number of rows in its header (or None), dimensions, and where rows start."""

    format: FileFormat
    num_words: int | None
    dim: int
    start: int


def detect(path: Path, head: bytes, is_whole: bool, given: FileFormat | None = None) -> FileLayout:
    """Detect the layout from the first bytes; `is_whole` says that there are no others."""
    if not head.strip():
        raise ArtifactError(f"{path} is empty.")
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    line_end = head.find(b"\n", start)
    line_end = len(head) if line_end < 0 else line_end
    header = _HEADER.fullmatch(head, start, line_end)
    if not header or given == "glove":
        if given in ("word2vec", "word2vec-binary"):
            raise ArtifactError(
                f"{path} does not start with the line “words numbers” that the {given} format has."
            )
        return FileLayout("glove", None, _common_dim(path, head[start:], is_whole), start)
    body, num_words, dim = head[line_end + 1 :], int(header[1]), int(header[2])
    if num_words == 0 or not body.strip():
        raise ArtifactError(f"{path} holds no vectors.")
    if not 1 <= dim <= MAX_DIM:
        raise ArtifactError(f"{path} is damaged: its header states {dim:,} dimensions.")
    if not (given == "word2vec" or (given is None and _is_text(body, num_words, dim, is_whole))):
        return FileLayout("word2vec-binary", num_words, dim, line_end + 1)
    if (found := _common_dim(path, body, is_whole)) != dim:
        raise ArtifactError(
            f"{path}: its header states {dim:,} dimensions, its lines have {found:,}."
        )
    return FileLayout("word2vec", num_words, dim, line_end + 1)


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
    """The most frequent number of values in the first lines (a word with spaces adds some)."""
    lines = _lines(body, is_whole)
    # How many fields follow the first word of a line, numbers or not.
    fields = (line.rstrip().replace(b"\t", b" ").split(b" ")[1:] for line in lines)
    dims = Counter(sum(map(bool, own)) for own in fields)
    dim = min(dims, key=lambda dim: (-dims[dim], dim)) if dims else 0
    if not 1 <= dim <= MAX_DIM or not any(_parses(line, dim) for line in lines):
        raise ArtifactError(
            f"{path} is not a vector file of a known format: word2vec text or binary, GloVe text, "
            "fastText .bin or .vec, or a sememe folder was expected."
        )
    return dim


Errors = Literal["strict", "replace"]
# Where a row of a block is in the file, for messages.
Place = Callable[[int], str]


class VectorRows:
    """A table of at most `limit` rows; damage is an error, or fixed if `errors` is "replace"."""

    def __init__(
        self, path: Path, dim: int, capacity: int, limit: int | None, errors: Errors
    ) -> None:
        self.path, self.dim, self.limit, self.errors = path, dim, limit, errors
        self._matrix = np.empty((max(1, min(capacity, limit or capacity)), dim), np.float32)
        self._ids: dict[bytes, int] = {}
        self.num_read = 0

    @property
    def is_full(self) -> bool:
        """Whether `limit` words are there."""
        return self.limit is not None and len(self._ids) >= self.limit

    def complain(self, message: str) -> None:
        """Raise an error for damage, or continue with a warning."""
        if self.errors == "strict":
            raise ArtifactError(
                f"{self.path}: {message}; errors=replace reads what can be read "
                "(`sememe convert FROM TO --errors replace`)."
            )
        warnings.warn(f"{self.path}: {message}.", stacklevel=2)

    def add(self, words: list[bytes], rows_BD: np.ndarray, place: Place) -> None:
        """Append a block of rows, without duplicate words."""
        self.num_read += len(words)
        words = self._checked_words(words, place)
        self._check_numbers(words, rows_BD, place)
        kept: list[int] = []
        first = len(self._ids)
        for index, word in enumerate(words):
            next_id = first + len(kept)
            if self._ids.setdefault(word, next_id) == next_id:
                kept.append(index)
                if self.is_full:
                    break
        end = first + len(kept)
        self._reserve(end)
        self._matrix[first:end] = rows_BD if len(kept) == len(rows_BD) else rows_BD[kept]

    def _reserve(self, num_rows: int) -> None:
        if num_rows > len(self._matrix):
            # The operating system remaps pages instead of copying them, so this needs no second
            # table; nothing else refers to the first.
            grown = max(num_rows, len(self._matrix) * 5 // 4)
            self._matrix.resize((grown, self.dim), refcheck=False)

    def _checked_words(self, words: list[bytes], place: Place) -> list[bytes]:
        try:
            # No character goes across a line end, so one look at all words is enough.
            b"\n".join(words).decode()
        except UnicodeDecodeError:
            return [self._checked_word(word, index, place) for index, word in enumerate(words)]
        return words

    def _checked_word(self, word: bytes, index: int, place: Place) -> bytes:
        try:
            word.decode()
        except UnicodeDecodeError as error:
            self.complain(f"{place(index)}: the word {word[:40]!r} is not UTF-8 ({error.reason})")
            return word.decode("utf-8", "replace").encode()
        return word

    def _check_numbers(self, words: list[bytes], rows_BD: np.ndarray, place: Place) -> None:
        is_finite_BD = np.isfinite(rows_BD)
        if is_finite_BD.all():
            return
        index = int(np.argmin(is_finite_BD.all(axis=1)))
        word = words[index][:40].decode("utf-8", "replace")
        self.complain(f"{place(index)}: the vector of “{word}” has a number that is not finite")
        rows_BD[~is_finite_BD] = 0

    def finish(self) -> WordVectors:
        """The words and vectors read."""
        if not self._ids:
            raise ArtifactError(f"{self.path} holds no vectors.")
        self._matrix.resize((len(self._ids), self.dim), refcheck=False)
        ends = np.cumsum([len(word) for word in self._ids], dtype=np.int64)
        word_bytes = np.frombuffer(b"".join(self._ids), np.uint8)
        vocabulary = Vocabulary(word_bytes, ends, np.zeros(len(ends), np.int64))
        return WordVectors(vocabulary, self._matrix)


_BLOCK_SIZE = 1 << 24
# Up to this size plain Python is faster than loading the compiled parser.
_SMALL_SIZE = 1 << 21
_LONGEST_WORD = 1 << 20


# A block's words and rows, and where each line or row starts in the block.
Parsed = tuple[list[bytes], np.ndarray, list[int]]


def read_text_rows(rows: VectorRows, layout: FileLayout, head: bytes, file: BinaryIO) -> None:
    """Parse every line after `head` was read; line numbers count the header."""
    base, stated, parse = 0 if layout.num_words is None else 1, layout.num_words, None
    for block in _blocks(rows, head, file, base):
        # The first block says whether the file is small.
        parse = parse or (_parse_text_plain if len(block) < _SMALL_SIZE else _parse_text_fast)

        def place(start: int, block: bytes = block, base: int = base) -> str:
            number = base + block.count(b"\n", 0, start) + 1
            return f"line {number:,}"

        words, table, starts = parse(rows, block, place)
        if words:
            num_read, is_cut = rows.num_read, rows.limit is not None and rows.limit <= (stated or 0)
            if stated is not None and not is_cut and num_read <= stated < num_read + len(words):
                rows.complain(f"its header states {stated:,} words, but more lines follow")
            rows.add(words, table, lambda index: place(starts[index]))  # noqa: B023
        if rows.is_full:
            return
        base += block.count(b"\n")


def _blocks(rows: VectorRows, head: bytes, file: BinaryIO, num_lines: int) -> Iterator[bytes]:
    """Yield complete lines, some megabytes at a time."""
    longest = 64 * rows.dim + _LONGEST_WORD
    rest = head
    # The head alone may be the whole file; then it is one block.
    while chunk := file.read(_BLOCK_SIZE):
        block, _, rest = (rest + chunk).rpartition(b"\n")
        num_lines += block.count(b"\n") + 1
        if len(rest) > longest:
            raise ArtifactError(
                f"{rows.path}: line {num_lines + 1:,} has more than {longest:,} bytes without an "
                "end; the file is damaged or of another format."
            )
        if block:
            yield block + b"\n"
    if rest:
        yield rest


def _parse_text_plain(rows: VectorRows, block: bytes, place: Place) -> Parsed:
    """The reference: every line by `parse_line`."""
    words, vectors, starts, start = [], [], [], 0
    for line in block.split(b"\n"):
        if line.strip(b" \t\r") and (parsed := _parse_or_complain(rows, line, place, start)):
            words.append(parsed[0])
            vectors.append(parsed[1])
            starts.append(start)
        start += len(line) + 1
    with np.errstate(over="ignore"):
        table = np.array(vectors, np.float64).reshape(-1, rows.dim).astype(np.float32)
    return words, table, starts


def _parse_or_complain(
    rows: VectorRows, line: bytes, place: Place, start: int
) -> tuple[bytes, list[float]] | None:
    try:
        return parse_line(line, rows.dim)
    except LineError as error:
        rows.complain(f"{place(start)}: {error}")
        rows.num_read += 1
        return None


def _parse_text_fast(rows: VectorRows, block: bytes, place: Place) -> Parsed:
    """Same result as `_parse_text_plain`: simple lines by compiled code, on all cores."""
    num_parts = available_cores()
    cuts = [0]
    for part in range(1, num_parts):
        cuts.append(max(cuts[-1], block.find(b"\n", part * len(block) // num_parts) + 1))
    cuts.append(len(block))
    with ThreadPoolExecutor(num_parts) as pool:
        jobs = [pool.submit(_parse_part, block, *cut, rows.dim) for cut in pairwise(cuts)]
        parts = [job.result() for job in jobs]
    rows_BD, starts, ends, is_simple = map(np.concatenate, zip(*parts, strict=True))
    words = [block[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    is_kept = np.ones(len(words), np.bool_)
    for index in np.flatnonzero(is_simple == 0).tolist():
        parsed = _parse_or_complain(rows, words[index], place, int(starts[index]))
        is_kept[index] = parsed is not None
        if parsed is not None:
            words[index] = parsed[0]
            with np.errstate(over="ignore"):
                rows_BD[index] = np.array(parsed[1], np.float64)
    if not is_kept.all():
        words, rows_BD, starts = list(compress(words, is_kept)), rows_BD[is_kept], starts[is_kept]
    return words, rows_BD, starts.tolist()


def _parse_part(block: bytes, start: int, end: int, dim: int) -> tuple[np.ndarray, ...]:
    from sememe.vectors.kernels import parse_lines

    num_lines = block.count(b"\n", start, end) + 1
    rows_BD, is_simple = np.empty((num_lines, dim), np.float32), np.empty(num_lines, np.uint8)
    starts, ends = np.empty((2, num_lines), np.int64)
    parsed = (rows_BD, starts, ends, is_simple)
    num_rows = parse_lines(np.frombuffer(block, np.uint8), start, end, *parsed)
    return tuple(array[:num_rows] for array in parsed)


_LONGEST_BINARY_WORD = 1 << 16


def read_binary_rows(rows: VectorRows, layout: FileLayout, head: bytes, file: BinaryIO) -> None:
    """Copy the rows of a binary file, as many as the header says or the file has."""
    assert layout.num_words is not None  # a binary file has a header
    rest, offset = head, layout.start
    while rows.num_read < layout.num_words and not rows.is_full:
        chunk = file.read(_BLOCK_SIZE)
        block = rest + chunk
        words, table, starts, stop = _parse_binary(
            block, rows.dim, layout.num_words - rows.num_read
        )
        if words:

            def place(index: int, starts: list[int] = starts, offset: int = offset) -> str:
                return f"byte {offset + starts[index]:,}"

            rows.add(words, table, place)
        rest, offset = block[stop:], offset + stop
        if not chunk:
            break
        if len(rest) > _LONGEST_BINARY_WORD and b" " not in rest[:_LONGEST_BINARY_WORD]:
            raise ArtifactError(
                f"{rows.path}: byte {offset:,}: a word of more than {_LONGEST_BINARY_WORD:,} "
                "bytes; the file is damaged or of another format."
            )
    is_whole = not rows.is_full and rows.num_read == layout.num_words
    if is_whole and (rest + file.read(1 << 10)).strip():
        rows.complain(f"its header states {layout.num_words:,} words, but more bytes follow")


def _parse_binary(
    block: bytes, dim: int, num_wanted: int
) -> tuple[list[bytes], np.ndarray, list[int], int]:
    """The words and rows of a block, their starts, and where the rest of it begins.

    A space ends a word; the newline that the C tool writes after a vector is skipped.
    """
    starts: list[int] = []
    ends: list[int] = []
    position, width = 0, 4 * dim
    while len(ends) < num_wanted:
        start = position
        while block[start : start + 1] == b"\n":
            start += 1
        end = block.find(b" ", start)
        if end < 0 or end + 1 + width > len(block):
            break
        starts.append(start)
        ends.append(end)
        position = end + 1 + width
    words = [block[a:b] for a, b in zip(starts, ends, strict=True)]
    table = np.empty((0, dim), np.float32)
    if words:
        rows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(block, np.uint8), width)
        table = rows[np.array(ends) + 1].view("<f4").astype(np.float32, copy=False)
    return words, table, starts, position
