"""Read and write vector files: a path in, WordVectors out, and back, atomically; also compressed.

word2vec text and binary, GloVe text, fastText's own files, and compact tables of the floret
program, whose header is `bucket dim minn maxn hashes seed before after`; the last two are the
characters added around a word before its n-grams are taken.
"""

import importlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.storage.folder import open_regular, write_file
from sememe.text.sources import Source
from sememe.tokens.ngrams import Marks
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.fasttext import (
    MAGIC_BYTES,
    MAX_DIM,
    FastTextArgs,
    FastTextFile,
    is_fasttext,
    read_model,
    write_model,
)
from sememe.vectors.formats.rows import (
    FILE_FORMATS,
    Errors,
    FileFormat,
    FileLayout,
    VectorRows,
    detect,
    read_binary_rows,
    read_text_rows,
)
from sememe.vectors.subwords import (
    HashedWords,
    NGrams,
    QuantizedMatrix,
    SubwordVectors,
    Table,
    cut_table,
)
from sememe.vectors.wordvectors import WordVectors

# The first bytes of compressed files, and their endings.
_COMPRESSIONS = {
    b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst",
}  # fmt: skip
STREAM_ERRORS = (OSError, InputError)  # what a file that cannot be unpacked raises


def compression_of(path: Path) -> str | None:
    """The compression of the file's content, if any."""
    with open_regular(path) as file:
        start = file.read(8)
    return next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), None)


class _Unpacked(io.RawIOBase):
    """The decompressed content of a file."""

    def __init__(self, path: Path) -> None:
        self._blocks, self._block = Source(path).blocks(), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            self._block = memoryview(next(self._blocks, b""))
        num_bytes = min(len(buffer), len(self._block))
        buffer[:num_bytes], self._block = self._block[:num_bytes], self._block[num_bytes:]
        return num_bytes


def open_for_reading(path: Path) -> BinaryIO:
    """Open the file's content, decompressed."""
    if compression_of(path) is None:
        return open_regular(path)
    return cast(BinaryIO, io.BufferedReader(_Unpacked(path), 1 << 20))


def open_for_writing(path: Path) -> BinaryIO:
    """Open a file for writing, compressed if its ending (.gz, .bz2, .xz, .zst) says so."""
    module = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma", ".zst": "zstandard"}
    if (name := module.get(path.suffix.lower())) is None:
        return path.open("wb")
    options = {"compresslevel": 6} if name == "gzip" else {}
    return cast(BinaryIO, importlib.import_module(name).open(path, "wb", **options))


_FLORET_HEADER = re.compile(
    rb"(\d{1,10}) (\d{1,7}) (\d{1,4}) (\d{1,4}) ([1-4]) (\d{1,10}) (\S+) (\S+) ?\r?\n"
)
_NUM_ROWS = 4_096


def _read_floret(
    path: Path, header: re.Match[bytes], head: bytes, file: BinaryIO
) -> SubwordVectors:
    """Read the rows after `head`; they must be numbered from 0 without a gap."""
    bucket, dim, minn, maxn, hash_count, seed = map(int, header.groups()[:6])
    if not (1 <= dim <= MAX_DIM and bucket >= 1 and seed < 2**32):
        raise ArtifactError(
            f"{path} is damaged: its header states {bucket:,} rows of {dim:,} numbers and the seed "
            f"{seed:,}."
        )
    # Room for what the file has at most, whatever its header states.
    rows = VectorRows(path, dim, min(bucket, 1 + (1 << 24) // dim), None, "strict")
    read_text_rows(
        rows, FileLayout("word2vec", bucket, dim, header.end()), head[header.end() :], file
    )
    found = rows.finish()
    if len(found) != bucket or list(found) != [str(number) for number in range(bucket)]:
        raise ArtifactError(f"{path} is damaged: {bucket:,} rows numbered from 0 on were expected.")
    return SubwordVectors.hashed(
        found.vectors, minn=minn, maxn=maxn, hash_count=hash_count, seed=seed,
        marks=Marks(header[7], header[8]),
    )  # fmt: skip


def write_floret(vectors: WordVectors, path: Path) -> None:
    """Write a compact table as the floret program does, with every digit."""

    if not isinstance(vectors, SubwordVectors) or not isinstance(vectors.subwords, HashedWords):
        raise OptionError(
            "Only vectors of hashed words have a compact table that a floret file can hold."
        )
    scheme, table = vectors.subwords, np.asarray(vectors.table)
    before, after = scheme.marks
    numbers = (len(table), vectors.dim, scheme.minn, scheme.maxn, scheme.hash_count, scheme.seed)
    with write_file(path) as scratch, open_for_writing(scratch) as file:
        file.write(" ".join(map(str, numbers)).encode() + b" " + before + b" " + after + b"\n")
        for start in range(0, len(table), _NUM_ROWS):
            block = table[start : start + _NUM_ROWS]
            names = [str(start + index).encode() for index in range(len(block))]
            file.write(text_rows(names, block))


def vectors_of(model: FastTextFile, limit: int | None = None) -> SubwordVectors:
    """The vectors of a model's words and of all other words; searches use `limit` words."""
    args = model.args
    vectors = SubwordVectors(
        model.words, model.input, minn=args.minn, maxn=args.maxn, bucket=args.bucket,
        pruned=model.pruned, spellings=model.spellings, limit=limit,
    )  # fmt: skip
    vectors.about = {
        "occurrences": model.num_tokens,
        "labels": len(model.labels),
        "quantized": isinstance(model.input, QuantizedMatrix),
        "output_quantized": isinstance(model.output, QuantizedMatrix),
        **({} if model.pruned is None else {"kept_ngrams": len(model.pruned)}),
        "options": vars(args),
    }
    return vectors


def file_of(vectors: WordVectors) -> FastTextFile:
    """The model file of some vectors; what is not known of their training is zero or omitted."""
    if not isinstance(vectors, SubwordVectors) or not isinstance(vectors.subwords, NGrams):
        args = FastTextArgs(dim=vectors.dim, min_count=1, bucket=0, minn=0, maxn=0)
        return unsupervised(args, vectors.vocabulary, vectors.vectors, None)
    scheme, num_words = vectors.subwords, len(vectors)
    table = cut_table(vectors.table, num_words, len(scheme.words))
    spellings = None if scheme.spellings is None else scheme.spellings.cut(num_words)
    args = FastTextArgs(
        dim=vectors.dim, min_count=1, bucket=scheme.bucket, minn=scheme.minn, maxn=scheme.maxn
    )
    return unsupervised(args, vectors.vocabulary, table, None, scheme.pruned, spellings)


def unsupervised(
    args: FastTextArgs,
    words: Vocabulary,
    input: Table,
    output: np.ndarray | None,
    pruned: np.ndarray | None = None,
    spellings: Vocabulary | None = None,
) -> FastTextFile:
    """The model file of word vectors; without `output` its second matrix is zero."""
    if output is None:
        output = np.broadcast_to(np.zeros((1, args.dim), np.float32), (len(words), args.dim))
    elif len(output) < len(words):  # a tree has one node less than leaves
        output = np.pad(output, ((0, len(words) - len(output)), (0, 0)))
    if pruned is not None and not isinstance(input, QuantizedMatrix):
        input, pruned = _with_all_buckets(input, pruned, len(words), args.bucket), None
    # The program draws by count when it opens a file, so a word must have been seen.
    counts = np.maximum(np.asarray(words.counts, np.int64), 1)
    counted = Vocabulary(*words.to_arrays(), counts)
    return FastTextFile(
        args=args, words=counted, labels=Vocabulary.from_words([]), num_tokens=int(counts.sum()),
        pruned=pruned, input=input, output=output, spellings=spellings,
    )  # fmt: skip


def _with_all_buckets(
    input: np.ndarray, pruned: np.ndarray, num_words: int, bucket: int
) -> np.ndarray:
    """The table with a row for every bucket, as required in files that are not quantised.

    Rows without an n-gram of the text are zero. The program includes them in the mean of an unseen
    word, and we do not: such vectors are shorter there, with the same direction.
    """
    full = np.zeros((num_words + bucket, input.shape[1]), np.float32)
    full[:num_words] = input[:num_words]
    full[num_words + pruned[:, 0]] = input[num_words + pruned[:, 1]]
    return full


# Long enough to hold a line of the widest vectors that exist.
_HEAD_SIZE = 1 << 20


def check_reading_options(limit: int | None, errors: str) -> None:
    """Raise an error for an invalid limit or error handling."""
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
    """Read a vector file; its format and compression are detected by content.

    With `errors="replace"` damage gives a warning instead of an error: bytes that are not UTF-8
    become U+FFFD, values that are not finite become 0, lines that cannot be parsed are omitted, and
    a wrong number of rows in the header is ignored.
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
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror or error}.") from error
    except InputError as error:
        raise ArtifactError(str(error)) from error


def _read(
    path: Path, file: BinaryIO, given: FileFormat | None, limit: int | None, errors: Errors
) -> WordVectors:
    head = file.read(_HEAD_SIZE)
    if head.startswith(MAGIC_BYTES):
        raise ArtifactError(
            f"{path} is a packed fastText model, which is mapped rather than read: unpack it first."
        )
    if given in (None, "floret") and (header := _FLORET_HEADER.match(head)) is not None:
        return _read_floret(path, header, head, file)
    if given == "floret":
        raise ArtifactError(f"{path} does not start with the line that a floret table has.")
    layout = detect(path, head, len(head) < _HEAD_SIZE, given)
    rows = VectorRows(path, layout.dim, _expected_rows(path, layout, head), limit, errors)
    read_rows = read_binary_rows if layout.format == "word2vec-binary" else read_text_rows
    read_rows(rows, layout, head[layout.start :], file)
    stated = layout.num_words
    if stated is not None and rows.num_read < stated and not rows.is_full:
        rows.complain(
            f"its header states {stated:,} words, but the file ends after {rows.num_read:,}"
        )
    return rows.finish()


def _expected_rows(path: Path, layout: FileLayout, head: bytes) -> int:
    """The initial number of rows to allocate: that of the header, if the file is long enough."""
    if compression_of(path) is not None:
        return min(layout.num_words or 1_000, 1 + (1 << 24) // layout.dim)
    body = head[layout.start :]
    if layout.format == "word2vec-binary":
        row_size = 4 * layout.dim + 1
    else:
        row_size = max(2 * layout.dim, len(body) // (body.count(b"\n") + 1))
    fitting = (path.stat().st_size - layout.start) // row_size + 1
    return min(layout.num_words or fitting, fitting)


WIDEST_FILE = 20_000
_SURROGATES = re.compile("[\ud800-\udfff]")
_SEPARATORS = str.maketrans(dict.fromkeys(" \t\n\r", "_"))


def write_vectors(
    vectors: WordVectors,
    path: str | Path,
    format: FileFormat = "word2vec",
    *,
    space: str | None = None,
    newline: bool = True,
) -> None:
    """Write a vector file; an ending .gz, .bz2, .xz or .zst compresses it.

    In these formats white space ends a word: a word with white space is refused, or gets `space`
    (such as "_") instead. `newline` ends each binary row as in the C tool; gensim omits it.
    """
    path = Path(path)
    if format not in FILE_FORMATS:
        raise OptionError(f"format must be one of {', '.join(FILE_FORMATS)}, not {format!r}.")
    if path.is_dir():
        raise OptionError(f"{path} is a folder; a {format} file needs the name of a file.")
    if format == "fasttext":
        write_model(path, file_of(vectors))
        return
    if format == "floret":
        write_floret(vectors, path)
        return
    if vectors.dim > WIDEST_FILE:
        raise OptionError(
            f"A file of {len(vectors):,} × {vectors.dim:,} numbers is of no use (one-hot vectors "
            "have one for each word): keep them as a folder."
        )
    words = _writable_words(vectors, space)
    with write_file(path) as scratch, open_for_writing(scratch) as file:
        if format != "glove":
            file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for start in range(0, len(vectors), _NUM_ROWS):
            rows_BD = vectors.vectors[start : start + _NUM_ROWS]
            block = [next(words) for _ in range(len(rows_BD))]
            if format == "word2vec-binary":
                file.write(_binary_rows(block, rows_BD, b"\n" if newline else b""))
            else:
                file.write(text_rows(block, rows_BD))


def _writable_words(vectors: WordVectors, space: str | None) -> Iterator[bytes]:
    """The words in UTF-8, checked before anything is written."""
    if space is not None and (not space or space.translate(_SEPARATORS) != space):
        raise OptionError(f"space must be one or more characters other than spaces, not {space!r}.")
    replacing = str.maketrans(dict.fromkeys(" \t\n\r", space or "_"))
    for word in vectors.vocabulary:
        if space is None and word.translate(_SEPARATORS) != word:
            raise OptionError(
                f"The word {word!r} holds white space, which the format cannot keep; "
                "space=“_” writes another character for it."
            )
        if not word.isascii() and _SURROGATES.search(word):
            raise OptionError(f"The word {word!r} cannot be written as UTF-8.")
    return (word.translate(replacing).encode() for word in vectors.vocabulary)


def _binary_rows(words: list[bytes], rows_BD: np.ndarray, end: bytes) -> bytes:
    data, width = np.ascontiguousarray(rows_BD, "<f4").tobytes(), 4 * rows_BD.shape[1]
    return b"".join(
        word + b" " + data[at * width : (at + 1) * width] + end for at, word in enumerate(words)
    )


def text_rows(words: list[bytes], rows_BD: np.ndarray) -> bytes:
    """Lines with the shortest decimals that give the same float32 values."""
    lines = (" ".join(map(str, row)).encode() for row in np.asarray(rows_BD, np.float32))
    return b"".join(word + b" " + line + b"\n" for word, line in zip(words, lines, strict=True))
