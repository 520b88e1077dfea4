"""The folder of an index: rows, passages, vectors and words, written once and memory-mapped.

    rows.jsonl           one row per line: id, text, cells
    arrays.safetensors   where each row ends; the row, start and end of each passage
    vectors.npy          one vector per passage, float32 or int8
    bits.npy             the signs of the vectors, if they are binary
    lexical/             BM25 over the passages, by bm25s
    sememe.json          the options, the model's hash, the files it was made from

A change writes a new folder and replaces the old one in one step; vectors of texts that were there
before are copied. R rows, P passages, D dimensions.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import ArtifactError, InputError
from sememe.machine import provenance
from sememe.models.inference import spread
from sememe.progress import Reporter
from sememe.search import passages
from sememe.search.config import SearchConfig
from sememe.search.lexical import BM25
from sememe.search.ranking import packed_bits, quantized
from sememe.search.rows import Row
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    read_errors,
    read_manifest,
    write_folder,
    write_json,
)
from sememe.storage.tensors import RowWriter, map_array, read_tensors, write_rows, write_tensors
from sememe.text.settings import TextSettings
from sememe.vectors.search import inverse_norms

KIND, FORMAT = "search", 1
_MODEL = ("path", "hash", "title", "stamp")  # what identifies a model
_ROWS, _ARRAYS, _VECTORS, _BITS, _LEXICAL = (
    "rows.jsonl", "arrays.safetensors", "vectors.npy", "bits.npy", "lexical",
)  # fmt: skip
_PASSAGES_AT_ONCE = 4_096
Embed = Callable[[list[str]], np.ndarray]
# A row, and its number in the index that is replaced, or -1 if it is new.
KnownRow = tuple[Row, int]


class IndexFolder:
    """An index on disk, read-only."""

    def __init__(self, folder: Path) -> None:
        """Map the files of a folder."""
        self.folder, self.manifest = folder, read_manifest(folder, FORMAT, KIND)
        with read_errors(folder):
            self.config = SearchConfig(**self.manifest["config"])
            self.settings = TextSettings.from_dict(self.manifest["text"])
            arrays = read_tensors(folder / _ARRAYS)
            self._row_ends_R = arrays["row_ends"]
            # Plain arrays over the mapped memory, whose elements are read faster.
            self.row_P, self.start_P, self.end_P, self.inverse_P = (
                np.asarray(arrays[name]) for name in ("row", "start", "end", "inverse")
            )
            self._content = np.asarray(np.memmap(folder / _ROWS, np.uint8, "r")).data
            has_vectors = (folder / _VECTORS).is_file()
            self.vectors_PD = map_array(folder / _VECTORS, 2) if has_vectors else None
            self.bits_PW = (
                map_array(folder / _BITS, 2).view(np.uint64) if (folder / _BITS).is_file() else None
            )
            self._check()
            self.first_P_of_R = np.searchsorted(self.row_P, np.arange(self.num_rows + 1))

    def _check(self) -> None:
        """Raise ValueError for damaged files, before they lead outside their arrays."""
        ends, model = self._row_ends_R, self.manifest["model"]
        own = [self.start_P, self.end_P, self.vectors_PD, self.bits_PW]
        own += [self.inverse_P] if self.vectors_PD is not None else []
        is_whole = (
            len(ends) > 0 and len(self.row_P) > 0 and ends[-1] == len(self._content)
            and ends[0] > 0 and (np.diff(ends) > 0).all() and (np.diff(self.row_P) >= 0).all()
            and self.row_P[0] == 0 and self.row_P[-1] == len(ends) - 1
            and all(len(one) == len(self.row_P) for one in own if one is not None)
            and (self.vectors_PD is None or self.vectors_PD.dtype in (np.float32, np.int8))
            and (self.bits_PW is None) == (self.config.vectors != "binary" or model is None)
            and (self.vectors_PD is None) == (model is None)
        )  # fmt: skip
        if not is_whole:
            raise ValueError("its files do not belong together")
        if model is not None and {*map(type, map(model.__getitem__, _MODEL))} != {str}:
            raise ValueError("it does not say which model it was built with")

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self._row_ends_R)

    @property
    def num_passages(self) -> int:
        """The number of passages."""
        return len(self.row_P)

    def row(self, number: int) -> Row:
        """One row."""
        start = int(self._row_ends_R[number - 1]) if number else 0
        return next(self._rows_at([start, int(self._row_ends_R[number])]))

    def rows(self) -> Iterator[Row]:
        """All rows, one after the other."""
        return self._rows_at([0, *self._row_ends_R.tolist()])

    def _rows_at(self, bounds: list[int]) -> Iterator[Row]:
        for start, end in pairwise(bounds):
            try:
                row = Row(**json.loads(str(self._content[start:end], "utf-8")))
                row.check()
            except (ValueError, TypeError, RecursionError) as error:
                raise ArtifactError(f"{self.folder / _ROWS} is damaged ({error}).") from error
            yield row

    def spans_of(self, number: int) -> list[passages.Span]:
        """The starts and ends of the passages of a row."""
        own = slice(*self.first_P_of_R[number : number + 2])
        return list(zip(self.start_P[own].tolist(), self.end_P[own].tolist(), strict=True))

    def passage_texts(self) -> Iterator[str]:
        """The texts of all passages, one after the other."""
        for number, row in enumerate(self.rows()):
            for start, end in self.spans_of(number):
                yield row.text[start:end]

    def lexical(self) -> BM25:
        """BM25 over the passages."""
        return BM25.load(self.folder / _LEXICAL, self.num_passages, self.settings)


class _Writer:
    """Writes rows with their passages and vectors, some thousands at a time."""

    def __init__(
        self,
        rows_file: Any,
        vectors: RowWriter | None,
        bits: RowWriter | None,
        config: SearchConfig,
        settings: TextSettings,
        embed: Embed | None,
        old: IndexFolder | None,
    ) -> None:
        self._file, self._vectors, self._bits = rows_file, vectors, bits
        self._config, self._settings, self._embed, self._old = config, settings, embed, old
        self.row_ends, self.rows = array("q"), array("i")
        self.starts, self.ends, self.inverse = array("i"), array("i"), array("f")
        self._size = 0
        self._waiting: list[tuple[str, int]] = []  # passages: the text, and the old number or -1
        self.num_new, self.num_unknown, self.columns = 0, 0, dict[str, None]()

    def add(self, row: Row, old_row: int) -> None:
        """Write a row; a row of the old index keeps its passages and vectors."""
        line = json.dumps(row.to_dict(), ensure_ascii=False, default=str) + "\n"
        self._size += self._file.write(line.encode("utf-8", "replace"))
        self.row_ends.append(self._size)
        self.columns |= dict.fromkeys(row.cells)
        if self._old is not None and old_row >= 0:
            spans = self._old.spans_of(old_row)
            first = int(self._old.first_P_of_R[old_row])
            numbers = list(range(first, first + len(spans)))
        else:
            config = self._config
            spans = passages.split(row.text, config.passage, config.overlap, self._settings)
            numbers = [-1] * len(spans)
        for (start, end), number in zip(spans, numbers, strict=True):
            self.rows.append(len(self.row_ends) - 1)
            self.starts.append(start)
            self.ends.append(end)
            self._waiting.append((row.text[start:end], number))
        if len(self._waiting) >= spread(_PASSAGES_AT_ONCE):
            self.flush()

    def flush(self) -> None:
        """Write the vectors of the passages that wait for them."""
        waiting, self._waiting = self._waiting, []
        if not waiting or self._vectors is None or self._embed is None:
            return
        is_new = np.array([number < 0 for _, number in waiting])
        numbers = np.array([number for _, number in waiting])[~is_new]
        texts = [text for text, number in waiting if number < 0]
        new_ND = self._embed(texts) if texts else None
        self.num_new += len(texts)
        if new_ND is not None:
            self.num_unknown += int((~new_ND.any(1)).sum())
        is_float = self._config.vectors == "float32"
        coded_ND = new_ND if is_float or new_ND is None else quantized(new_ND)
        self._vectors.add(self._merged(is_new, coded_ND, numbers, "vectors_PD"))
        if self._bits is not None:
            bits_NW = None if new_ND is None else packed_bits(new_ND)
            self._bits.add(self._merged(is_new, bits_NW, numbers, "bits_PW").view(np.uint8))
        inverse_N = None if coded_ND is None else inverse_norms(coded_ND)
        self.inverse.extend(self._merged(is_new, inverse_N, numbers, "inverse_P").tolist())

    def _merged(
        self, is_new: np.ndarray, new: np.ndarray | None, numbers: np.ndarray, name: str
    ) -> np.ndarray:
        """New and old values in the order of the passages."""
        if new is not None and is_new.all():
            return new
        old: np.ndarray = getattr(self._old, name)[numbers]
        merged = np.empty((len(is_new), *old.shape[1:]), old.dtype)
        merged[~is_new] = old
        if new is not None:
            merged[is_new] = new
        return merged


class Written(NamedTuple):
    """What was left out or is worth a remark."""

    num_empty: int
    num_bad: int
    num_new: int  # passages whose vectors were computed
    num_unknown: int  # of those, without a vector


def write_index(
    folder: Path,
    rows: Iterable[KnownRow],
    *,
    config: SearchConfig,
    settings: TextSettings,
    embed: Embed | None,
    old: IndexFolder | None,
    manifest: dict[str, Any],
    reporter: Reporter,
) -> Written:
    """Write an index of rows; it is complete, or absent if anything fails."""
    check_replaceable(folder, KIND)
    num_empty = num_bad = 0
    ids: set[str] = set()
    with write_folder(folder) as scratch:
        with ExitStack() as stack:
            rows_file = stack.enter_context((scratch / _ROWS).open("wb"))
            is_float, has_bits = config.vectors == "float32", config.vectors == "binary"
            vectors = bits = None
            if embed is not None:
                dtype = "<f4" if is_float else "|i1"
                vectors = stack.enter_context(write_rows(scratch / _VECTORS, dtype))
            if embed is not None and has_bits:
                bits = stack.enter_context(write_rows(scratch / _BITS, "|u1"))
            writer = _Writer(rows_file, vectors, bits, config, settings, embed, old)
            task = stack.enter_context(reporter.task("indexing", None, "rows"))
            for row, old_row in task.watch(rows):
                if row.problem:
                    if not config.skip_bad:
                        raise InputError(f"{row.problem} (--skip-bad skips such rows).")
                    num_bad += 1
                elif not row.text.strip():
                    num_empty += 1
                else:
                    if row.id in ids:
                        raise InputError(f"Two rows have the id {row.id!r}; ids must be unique.")
                    ids.add(row.id)
                    writer.add(row, old_row)
            writer.flush()
            if not ids:
                raise InputError("There is no text to index: every row is empty.")
        arrays: dict[str, np.ndarray] = {
            "row_ends": np.array(writer.row_ends, np.int64),
            "row": np.array(writer.rows, np.int32),
            "start": np.array(writer.starts, np.int32),
            "end": np.array(writer.ends, np.int32),
            "inverse": np.array(writer.inverse, np.float32),
        }
        write_tensors(scratch / _ARRAYS, arrays)
        own = manifest | {
            "kind": KIND, "format": FORMAT, "config": config.to_dict(), "text": settings.to_dict(),
            "rows": len(writer.row_ends), "passages": len(writer.rows),
            "dim": vectors.dim if vectors is not None else None,
            "columns": [*({"id": None} | writer.columns)], "provenance": provenance(),
        }  # fmt: skip
        write_json(scratch / MANIFEST, own)
        texts = IndexFolder(scratch).passage_texts()
        with reporter.task("counting words", len(writer.rows), "passages") as task:
            BM25.build(task.watch(texts), settings).save(scratch / _LEXICAL)
    return Written(num_empty, num_bad, writer.num_new, writer.num_unknown)


def known_rows(rows: Iterable[Row], old: IndexFolder) -> Iterator[KnownRow]:
    """Each row with the number of the row of the old index that has the same text, or -1."""
    places: dict[int, int] = {}
    for number, row in enumerate(old.rows()):
        places.setdefault(hash(row.text), number)
    for row in rows:
        number = places.get(hash(row.text), -1)
        yield row, number if number >= 0 and old.row(number).text == row.text else -1
