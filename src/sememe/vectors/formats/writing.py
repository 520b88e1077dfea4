"""Writing vector files that other tools read: WordVectors in, one file out, atomically."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sememe.errors import OptionError
from sememe.storage.folder import write_file
from sememe.vectors.formats.compression import open_for_writing
from sememe.vectors.formats.fasttext.exchange import file_of
from sememe.vectors.formats.fasttext.writing import write_model
from sememe.vectors.formats.floret import write_floret
from sememe.vectors.formats.layout import FILE_FORMATS, FileFormat

if TYPE_CHECKING:
    from sememe.vectors.wordvectors import WordVectors

_NUM_ROWS = 4_096
MAX_DIM = 20_000
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
    """Write a vector file; an ending .gz, .bz2, .xz or .zst packs it.

    These formats end a word at white space: a word that holds some is refused, or gets `space`
    (such as "_") instead. `newline` ends each binary row as the C tool does; gensim leaves it out.
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
    if vectors.dim > MAX_DIM:
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
    """Lines with the shortest decimals that give the same float32 again."""
    import pyarrow as pa
    import pyarrow.compute as pc

    num_rows, dim = rows_BD.shape
    numbers = pc.cast(pa.array(np.ascontiguousarray(rows_BD).reshape(-1)), pa.string())
    ends = pa.array(np.arange(num_rows + 1, dtype=np.int32) * dim)
    lines = pc.binary_join(pa.ListArray.from_arrays(ends, numbers), " ").to_pylist()
    return b"".join(
        word + b" " + line.encode() + b"\n" for word, line in zip(words, lines, strict=True)
    )
