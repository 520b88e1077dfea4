"""Write vectors row by row, each with the text or word that it belongs to.

A .npy file has the vectors alone; words are in a .tsv file beside it. A .safetensors file has the
tensor `vectors` and, of each row, the index of its text and the characters of its word. A table
(csv, tsv, jsonl, parquet) has all columns of the text as well.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np

from sememe.errors import WriteError
from sememe.storage.folder import write_file
from sememe.storage.tables import (
    Table,
    check_free,
    table_format,
    write_table,
)
from sememe.storage.tensors import RowWriter, write_rows

_ARRAYS = (".npy", ".safetensors")
_HEADING = "text\tword\tstart\tend\n"
_EARLIER_HEADING = b"text\tword"  # earlier versions wrote no more
_HEADER_SIZE = 1_024


class PlacedWord(NamedTuple):
    """A word, and its first and last character in its text."""

    word: str
    start: int
    end: int


class VectorFile:
    """A file that grows: the number of its rows, and their width."""

    num_rows, dim = 0, 0

    def add(
        self, rows_ND: np.ndarray, cells: Sequence[Mapping[str, Any]], words: Sequence[PlacedWord]
    ) -> None:
        """Write rows, each with the cells of its text, whose number is `row`, and its word."""
        if not self.dim:
            self.dim = rows_ND.shape[1]
        self.num_rows += len(rows_ND)
        self._write(rows_ND, cells, words)

    def _write(
        self, rows_ND: np.ndarray, cells: Sequence[Mapping[str, Any]], words: Sequence[PlacedWord]
    ) -> None:
        raise NotImplementedError


def check_vector_file(path: Path, *, overwrite: bool, has_words: bool) -> None:
    """Refuse a name without a format, and a file that exists, unless it may be replaced."""
    ending, _ = table_format(path, _ARRAYS)
    check_free(path, overwrite=overwrite)
    if ending == ".npy" and has_words:
        # A name of our own choice: what another program wrote there must stay.
        beside = path.with_suffix(".tsv")
        with suppress(FileNotFoundError), beside.open("rb") as there:
            if there.read(len(_EARLIER_HEADING)) != _EARLIER_HEADING:
                raise WriteError(
                    f"{beside} exists and is not of this command: choose another --out."
                )
            check_free(beside, overwrite=overwrite)


@contextmanager
def write_vectors(path: Path, *, has_words: bool) -> Iterator[VectorFile]:
    """Yield a file to add vectors to; it appears when the block ends without error."""
    ending, _ = table_format(path, _ARRAYS)
    if ending == ".npy" and has_words:
        beside = write_file(path.with_suffix(".tsv"))
        with beside as scratch, scratch.open("w", encoding="utf-8", newline="") as words:
            words.write(_HEADING)
            with write_rows(path) as rows:
                yield _NpyFile(rows, words)
    elif ending == ".npy":
        with write_rows(path) as rows:
            yield _NpyFile(rows, None)
    elif ending == ".safetensors":
        with write_file(path) as scratch, scratch.open("wb") as file:
            own = _SafetensorsFile(file)
            yield own
            own.finish()
    else:
        with write_table(path) as table:
            yield _VectorTable(table, ending, has_words)


class _NpyFile(VectorFile):
    def __init__(self, rows: RowWriter, words: TextIO | None) -> None:
        self._rows, self._words = rows, words

    def _write(
        self, rows_ND: np.ndarray, cells: Sequence[Mapping[str, Any]], words: Sequence[PlacedWord]
    ) -> None:
        self._rows.add(rows_ND)
        if self._words is not None:
            self._words.writelines(
                f"{own['row'] - 1}\t{' '.join(word.split())}\t{start}\t{end}\n"
                for own, (word, start, end) in zip(cells, words, strict=True)
            )


class _SafetensorsFile(VectorFile):
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._places = [array("q") for _ in ("text", "start", "end")]
        file.write(b" " * _HEADER_SIZE)  # the header is known at the end

    def _write(
        self, rows_ND: np.ndarray, cells: Sequence[Mapping[str, Any]], words: Sequence[PlacedWord]
    ) -> None:
        self._file.write(np.ascontiguousarray(rows_ND, "<f4").data)
        texts, starts, ends = self._places
        texts.extend(own["row"] - 1 for own in cells)
        starts.extend(own.start for own in words)
        ends.extend(own.end for own in words)

    def finish(self) -> None:
        """Write the places of the rows, and the header."""
        end = 4 * self.num_rows * self.dim
        shape = [self.num_rows, self.dim]
        header = {"vectors": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}
        for name, numbers in zip(("text", "start", "end"), self._places, strict=True):
            if numbers:
                start, end = end, end + 8 * len(numbers)
                own = {"dtype": "I64", "shape": [len(numbers)], "data_offsets": [start, end]}
                header[name] = own
                self._file.write(np.array(numbers, "<i8").data)
        text = json.dumps(header).encode().ljust(_HEADER_SIZE - 8)
        self._file.seek(0)
        self._file.write(len(text).to_bytes(8, "little") + text)


class _VectorTable(VectorFile):
    def __init__(self, table: Table, ending: str, has_words: bool) -> None:
        self._table, self._ending, self._has_words = table, ending, has_words

    def _write(
        self, rows_ND: np.ndarray, cells: Sequence[Mapping[str, Any]], words: Sequence[PlacedWord]
    ) -> None:
        if not self._table.new:
            own = {"word": str, "start": int, "end": int} if self._has_words else {}
            is_wide = self._ending in (".csv", ".tsv")
            names = [f"v{n}" for n in range(1, self.dim + 1)] if is_wide else ["vector"]
            self._table.new = own | dict.fromkeys(names, list[np.float32])
        vectors: Any = [[row_D] for row_D in rows_ND]
        if self._ending != ".parquet":
            # The shortest digits that give the same float32 again.
            vectors = rows_ND.astype(np.float32).astype(str).tolist()
        if self._ending == ".jsonl":
            vectors = [[[*map(float, row)]] for row in vectors]
        placed: Sequence[Any] = words if self._has_words else [()] * len(cells)
        self._table.add(cells, [[*w, *v] for w, v in zip(placed, vectors, strict=True)])
