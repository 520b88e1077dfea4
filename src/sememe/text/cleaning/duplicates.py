"""Find repeated documents: fingerprints in; for each repeated document, the earlier one it is like.

Fingerprints are on disk. In memory there are about 30 bytes per document, whatever its length, and
some more for those that share a key with another. Equal texts have equal hashes; near-duplicates
share the key of a band, and are confirmed by the Jaccard similarity of their shingles. A document
is compared with earlier documents that are kept, so what is removed always resembles what remains.
"""

import mmap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from sememe.storage.folder import write_errors
from sememe.text.cleaning.fingerprints import MOST_KEPT, Fingerprints

NONE = np.uint32(0xFFFFFFFF)
# Kept documents of one group that another is compared with: the last ones. Groups are larger only
# where very many texts are alike, but less than the threshold asks.
_MOST_MEMBERS = 32
_AT_ONCE = 1 << 18  # documents
_MOST_SORTED = 1 << 24  # keys in memory


class Column:
    """Numbers of one type in a file: one or several per document, written in order."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        with write_errors(path):
            self._file: BinaryIO = path.open("wb")

    def add(self, values: np.ndarray) -> None:
        """Append values."""
        with write_errors(self.path):
            self._file.write(np.ascontiguousarray(values, self.dtype).data)

    def close(self) -> None:
        """Finish the file."""
        with write_errors(self.path):
            self._file.close()

    def read(self, first: int = 0, num: int = -1) -> np.ndarray:
        """`num` values from `first` on, or all."""
        return np.fromfile(self.path, self.dtype, num, offset=first * self.dtype.itemsize)


class Repeats(NamedTuple):
    """For each document the earlier one that it repeats, or NONE; and their similarity."""

    original: np.ndarray
    similarity: np.ndarray


class Duplicates:
    """The fingerprints of a corpus in a folder, and the documents that repeat others."""

    def __init__(self, folder: Path, num_bands: int) -> None:
        self._hashes = Column(folder / "hashes", np.uint64)
        self._bands = [Column(folder / f"band-{band}", np.uint32) for band in range(num_bands)]
        self._num_shingles = Column(folder / "num-shingles", np.uint16)
        self._shingles = Column(folder / "shingles", np.uint32)

    def add(self, own: Fingerprints) -> None:
        """Append the fingerprints of the next documents."""
        self._hashes.add(own.hashes)
        for band, keys in zip(self._bands, own.keys, strict=True):
            band.add(keys)
        self._num_shingles.add(own.num_shingles)
        self._shingles.add(own.shingles)

    def close(self) -> None:
        """Finish the files."""
        for column in (self._hashes, *self._bands, self._num_shingles, self._shingles):
            column.close()

    def find(
        self, is_kept: np.ndarray, *, exact: bool, threshold: float, workers: int
    ) -> Iterator[tuple[int, Repeats]]:
        """Yield the repeated ones among the kept documents: first equal texts, then similar ones.

        Each step gives the number of documents done, and the result, which grows.
        """
        repeats = Repeats(np.full(len(is_kept), NONE), np.zeros(len(is_kept), np.float32))
        if exact:
            self._match_hashes(is_kept, repeats)
        yield 0, repeats
        if self._bands:
            yield from self._match_shingles(is_kept, repeats, threshold, workers)
        self._follow(repeats)

    def _match_hashes(self, is_kept: np.ndarray, repeats: Repeats) -> None:
        for documents, starts in _equal(self._hashes.read(), is_kept):
            sizes = np.diff(starts, append=len(documents))
            is_first = np.zeros(len(documents), np.bool_)
            is_first[starts] = True
            firsts = np.repeat(documents[starts], sizes)
            repeats.original[documents[~is_first]] = firsts[~is_first]
            repeats.similarity[documents[~is_first]] = 1.0

    def _follow(self, repeats: Repeats) -> None:
        """Let copies of a row that is a near-duplicate itself name the row that is kept."""
        rows = np.flatnonzero(repeats.original != NONE)
        firsts = repeats.original[rows]
        is_chained = repeats.original[firsts] != NONE
        rows, firsts = rows[is_chained], firsts[is_chained]
        repeats.original[rows] = repeats.original[firsts]
        repeats.similarity[rows] = repeats.similarity[firsts]

    def _match_shingles(
        self, is_kept: np.ndarray, repeats: Repeats, threshold: float, workers: int
    ) -> Iterator[tuple[int, Repeats]]:
        from sememe.text.cleaning import kernels

        num_shingles = self._num_shingles.read()
        is_open = is_kept & (num_shingles > 0) & (repeats.original == NONE)
        shingle_ends = np.concatenate(([0], np.cumsum(num_shingles, dtype=np.int64)))
        del num_shingles
        with ThreadPoolExecutor(workers) as pool:
            sizes_of = list(pool.map(lambda band: _number_groups(band, is_open), self._bands))
        bases, sizes = np.cumsum([0, *map(len, sizes_of)]), np.concatenate(sizes_of)
        del sizes_of
        bounds = np.concatenate(([0], np.cumsum(np.minimum(sizes, _MOST_MEMBERS), dtype=np.int64)))
        filled = np.zeros(len(sizes), np.uint32)
        members = np.empty(bounds[-1], np.uint32)
        compared = np.zeros(len(is_open), np.uint32)
        with _mapped(self._shingles.path) as (shingles, forget):
            for first in range(0, len(is_open), _AT_ONCE):
                groups = np.stack([band.read(first, _AT_ONCE) for band in self._bands])
                kernels.match(
                    first, groups, bases, bounds, filled, members, compared, shingles, shingle_ends,
                    MOST_KEPT, threshold, repeats.original, repeats.similarity,
                )  # fmt: skip
                forget()
                yield min(first + _AT_ONCE, len(is_open)), repeats


def _number_groups(band: Column, is_open: np.ndarray) -> np.ndarray:
    """Replace the keys of a band by the number of their group from 1 on; the sizes of groups."""
    groups, sizes = np.zeros(len(is_open), np.uint32), [np.empty(0, np.uint32)]
    num = 0
    for documents, starts in _equal(band.read(), is_open):
        own = np.diff(starts, append=len(documents)).astype(np.uint32)
        groups[documents] = np.repeat(np.arange(num + 1, num + 1 + len(own)), own)
        sizes.append(own)
        num += len(own)
    with write_errors(band.path):
        groups.tofile(band.path)
    return np.concatenate(sizes)


def _equal(keys: np.ndarray, is_open: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Open documents with equal keys: in rising order by key, and where each key starts.

    Documents with a key of their own are left out. Many keys come in several parts.
    """
    num_parts = len(keys) // _MOST_SORTED + 1
    for part in range(num_parts):
        is_own = is_open if num_parts == 1 else is_open & (keys % num_parts == part)
        documents = np.flatnonzero(is_own).astype(np.uint32)
        if not len(documents):
            continue
        own = keys[documents]
        order = np.argsort(own, kind="stable")
        own, documents = own[order], documents[order]
        is_same = own[1:] == own[:-1]
        is_repeated = np.concatenate((is_same, [False])) | np.concatenate(([False], is_same))
        is_start = is_repeated & ~np.concatenate(([False], is_same))
        yield documents[is_repeated], np.flatnonzero(is_start[is_repeated])


@contextmanager
def _mapped(path: Path) -> Iterator[tuple[np.ndarray, Callable[[], None]]]:
    """A file of uint32, and what gives the memory of its pages back."""
    if not path.stat().st_size:
        yield np.empty(0, np.uint32), lambda: None
        return
    with path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

        def forget() -> None:
            if hasattr(mmap, "MADV_DONTNEED"):
                pages.madvise(mmap.MADV_DONTNEED)

        # Not closed here, because an array may still look at it; it ends with the last one.
        yield np.frombuffer(pages, np.uint32), forget
