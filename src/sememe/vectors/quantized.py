"""Quantised matrices (Jégou et al. 2011; Joulin et al. 2016): a byte for each part of a row.

A row of D numbers is cut into parts; each part is replaced by the nearest of 256 centroids of that
part. With `norm_codes` rows were scaled to length 1 first and their lengths quantised likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NUM_CENTROIDS = 256


@dataclass(frozen=True, kw_only=True)
class ProductQuantizer:
    """Centroids of each part: flat float32, 256 rows for the first part, then for the next.

    The last part has `last_part_size` numbers, every other `part_size`.
    """

    dim: int
    num_parts: int
    part_size: int
    last_part_size: int
    centroids: np.ndarray

    def part(self, index: int) -> np.ndarray:
        """The centroids of a part, (256, size of the part)."""
        size = self.last_part_size if index == self.num_parts - 1 else self.part_size
        start = index * NUM_CENTROIDS * self.part_size
        return self.centroids[start : start + NUM_CENTROIDS * size].reshape(NUM_CENTROIDS, size)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The rows (N, dim) that codes (N, num_parts) stand for."""
        parts = [self.part(index)[codes[:, index]] for index in range(self.num_parts)]
        return np.concatenate(parts, axis=1, dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class QuantizedMatrix:
    """A matrix of `shape` as codes (rows, num_parts), with or without quantised lengths."""

    codes: np.ndarray
    quantizer: ProductQuantizer
    shape: tuple[int, int]
    norm_codes: np.ndarray | None = None
    norm_quantizer: ProductQuantizer | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The bytes that the codes and centroids take."""
        arrays = [self.codes, self.quantizer.centroids]
        if self.norm_codes is not None and self.norm_quantizer is not None:
            arrays += [self.norm_codes, self.norm_quantizer.centroids]
        return sum(array.nbytes for array in arrays)

    def directions(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """The rows `ids` as the centroids give them, before they get their lengths."""
        return self.quantizer.decode(self.codes[np.asarray(ids, np.int64)])

    def norms(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """The quantised lengths of the rows `ids` in float32; 1 where lengths are not kept."""
        ids = np.asarray(ids, np.int64)
        if self.norm_codes is None or self.norm_quantizer is None:
            return np.ones(len(ids), np.float32)
        return self.norm_quantizer.centroids[self.norm_codes[ids]].astype(np.float32)

    def rows(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """The rows `ids` in float32, (len(ids), dim)."""
        return self.norms(ids)[:, None] * self.directions(ids)

    def sum(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """Add up the rows `ids` in this order, rounding as Facebook's program does, (dim,).

        Compilers make a fused multiply-add of a length times a centroid plus the sum; float64
        holds that product exactly.
        """
        total = np.zeros(self.shape[1], np.float32)
        norms = self.norms(ids).astype(np.float64)
        for norm, direction in zip(norms, self.directions(ids), strict=True):
            total = (total + norm * direction).astype(np.float32)
        return total
