"""Reading vector files block by block: a path in, WordVectors out. B rows of a block, D numbers."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from sememe.errors import ArtifactError, OptionError
from sememe.vectors.formats.binary import read_binary_rows
from sememe.vectors.formats.compression import compression_of, open_for_reading, stream_errors
from sememe.vectors.formats.fasttext.exchange import vectors_of
from sememe.vectors.formats.fasttext.reading import MAGIC_BYTES, is_fasttext, read_model
from sememe.vectors.formats.floret import read_floret, read_header
from sememe.vectors.formats.layout import FILE_FORMATS, FileFormat, Layout, detect
from sememe.vectors.formats.rows import Errors, Rows
from sememe.vectors.formats.text import read_text_rows
from sememe.vectors.wordvectors import WordVectors

# Long enough to hold a line of the widest vectors that exist.
_HEAD_SIZE = 1 << 20


def check_reading_options(limit: int | None, errors: str) -> None:
    """Refuse a limit or a way with errors that makes no sense."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise OptionError(f"limit must be a whole number of at least 1, not {limit!r}.")
    if errors not in ("strict", "replace"):
        raise OptionError(f"errors must be strict or replace, not {errors!r}.")


def read_vectors(
    path: str | Path,
    *,
    format: FileFormat | None = None,
    limit: int | None = None,
    errors: Errors = "strict",
) -> WordVectors:
    """Read a vector file, its format and compression told by content.

    With `errors="replace"` damage gives a warning instead of an error: bytes that are not UTF-8
    become U+FFFD, numbers that are not finite become 0, lines that cannot be parsed are left out,
    and a header that states another number of rows than the file has is not believed.
    """
    path = Path(path)
    check_reading_options(limit, errors)
    if format is not None and format not in FILE_FORMATS:
        raise OptionError(f"format must be one of {', '.join(FILE_FORMATS)}, not {format!r}.")
    try:
        if format == "fasttext" or (format is None and is_fasttext(path)):
            return vectors_of(read_model(path), limit)
        with open_for_reading(path) as file:
            return _read(path, file, format, limit, errors)
    except stream_errors() as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ArtifactError(f"{path} cannot be read: {reason}.") from error


def _read(
    path: Path, file: BinaryIO, given: FileFormat | None, limit: int | None, errors: Errors
) -> WordVectors:
    head = file.read(_HEAD_SIZE)
    if head.startswith(MAGIC_BYTES):
        raise ArtifactError(
            f"{path} is a packed fastText model, which is mapped rather than read: unpack it first."
        )
    if given in (None, "floret") and (header := read_header(head)) is not None:
        return read_floret(path, header, head, file)
    if given == "floret":
        raise ArtifactError(f"{path} does not start with the line that a floret table has.")
    layout = detect(path, head, len(head) < _HEAD_SIZE, given)
    rows = Rows(path, layout.dim, _expected_rows(path, layout, head), limit, errors)
    read_rows = read_binary_rows if layout.format == "word2vec-binary" else read_text_rows
    read_rows(rows, layout, head[layout.start :], file)
    stated = layout.num_words
    if stated is not None and rows.num_read < stated and not rows.is_full:
        rows.complain(
            f"its header states {stated:,} words, but the file ends after {rows.num_read:,}"
        )
    return rows.finish()


def _expected_rows(path: Path, layout: Layout, head: bytes) -> int:
    """Rows to make room for at first: what the header states, if the file is long enough."""
    if compression_of(path) is not None:
        return min(layout.num_words or 1_000, 1 + (1 << 24) // layout.dim)
    body = head[layout.start :]
    if layout.format == "word2vec-binary":
        row_size = 4 * layout.dim + 1
    else:
        row_size = max(2 * layout.dim, len(body) // (body.count(b"\n") + 1))
    fitting = (path.stat().st_size - layout.start) // row_size + 1
    return min(layout.num_words or fitting, fitting)
