"""An approximate index of the vectors (HNSW, by usearch): a few rows looked at instead of all.

Malkov & Yashunin 2018. The index is kept beside the vectors under a name that carries a
fingerprint of them, so that one made from other vectors is never used.
"""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import ArtifactError, MissingExtraError, OptionError, WriteError
from sememe.storage.folder import write_file
from sememe.vectors import search

if TYPE_CHECKING:
    from sememe.vectors.wordvectors import WordVectors

# Candidates looked at while adding and while searching: recall against time.
_EXPANSION_ADD, _EXPANSION_SEARCH, _CONNECTIVITY = 128, 128, 16


def _usearch() -> Any:
    try:
        from usearch import index
    except ImportError:
        raise MissingExtraError(
            "The approximate index needs usearch; install it with: pip install 'sememe[index]'"
        ) from None
    return index


def _fingerprint(vectors: WordVectors) -> str:
    """A name for these vectors: their shape and a thousand rows spread over all of them."""
    step = max(1, len(vectors) // 1_000)
    digest = hashlib.blake2b(repr(vectors.vectors.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(vectors.vectors[::step]).tobytes())
    return digest.hexdigest()


class ApproximateIndex:
    """The nearest rows of unit vectors, most of the time (a recall above 0.95 is usual)."""

    def __init__(self, usearch_index: Any) -> None:
        self._index = usearch_index

    def __len__(self) -> int:
        return len(self._index)

    @staticmethod
    def path_in(folder: Path, vectors: WordVectors) -> Path:
        """Where the index of `vectors` is kept in a folder."""
        return folder / f"index-{_fingerprint(vectors)}.usearch"

    @classmethod
    def build(cls, vectors: WordVectors) -> ApproximateIndex:
        """Add every vector; uses all cores."""
        index = _usearch().Index(
            ndim=vectors.dim,
            metric="cos",
            dtype="f32",
            connectivity=_CONNECTIVITY,
            expansion_add=_EXPANSION_ADD,
            expansion_search=_EXPANSION_SEARCH,
        )
        index.add(np.arange(len(vectors), dtype=np.uint64), np.asarray(vectors.vectors))
        return cls(index)

    def save(self, path: Path) -> None:
        """Write the index, atomically."""
        with write_file(path) as scratch:
            self._index.save(str(scratch))

    @classmethod
    def open(cls, path: Path, vectors: WordVectors) -> ApproximateIndex:
        """Map an index that `save` wrote."""
        try:
            index = _usearch().Index.restore(str(path), view=True)
        except (RuntimeError, ValueError, OSError) as error:
            raise ArtifactError(f"{path} is not a readable index; delete it ({error}).") from error
        if index is None or len(index) != len(vectors) or index.ndim != vectors.dim:
            raise ArtifactError(f"{path} does not fit the vectors; delete it to have it made anew.")
        return cls(index)

    def nearest(self, units_QD: np.ndarray, num: int) -> list[np.ndarray]:
        """For each query the ids of about `num` nearest rows, not in order."""
        if num > 10_000:
            raise OptionError(f"The index gives at most 10,000 neighbors, not {num:,}.")
        self._index.expansion_search = max(_EXPANSION_SEARCH, 2 * num)
        found = self._index.search(np.asarray(units_QD, np.float32), min(num, len(self)))
        if len(units_QD) == 1:  # usearch drops the axis of the queries
            return [found.keys.astype(np.int64)]
        counted = zip(found.keys, found.counts, strict=True)
        return [keys[:count].astype(np.int64) for keys, count in counted]


def open_or_build(vectors: WordVectors, folder: Path | None) -> ApproximateIndex:
    """The index kept in `folder` if it is of these vectors; else a new one, kept there."""
    _usearch()
    if folder is None:
        return ApproximateIndex.build(vectors)
    path = ApproximateIndex.path_in(folder, vectors)
    if path.exists():
        return ApproximateIndex.open(path, vectors)
    index = ApproximateIndex.build(vectors)
    try:
        index.save(path)
    except WriteError as error:  # a read-only place: the index serves this process
        warnings.warn(f"The index is not kept: {error}", stacklevel=3)
    return index


def nearest_approximately(
    index: ApproximateIndex, vectors_VD: np.ndarray, units_QD: np.ndarray, num: int
) -> list[search.Found]:
    """As `search.nearest`, among the rows that the index proposes; their scores are exact."""
    found = []
    for unit_D, ids in zip(units_QD, index.nearest(units_QD, num), strict=True):
        scores = search.cosines(vectors_VD, ids, unit_D[None])[:, 0]
        found.append(search.best(ids, scores, num))
    return found
