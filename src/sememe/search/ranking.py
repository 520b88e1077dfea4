"""Rankings of rows: scores or vectors in, (row ids, scores) with the best first out.

Q queries, N rows, D dimensions, W words of 64 bits. Vectors may be stored as int8 or as the bits
of their signs; the best by their bits are scored again by int8. Several rankings of the same rows
become one by reciprocal rank fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from sememe.vectors.search import (
    Found,
    best,
    cosines,
    in_blocks,
    inverse_norms,
    kth_bound,
    nearest,
    unit_rows,
)

# Added to every rank, so that the first places do not decide alone (Cormack et al. 2009, 2).
_FUSION_K = 60
# Rows that are scored again for each row that is wanted, where bits alone rank them.
_RESCORED, _MIN_RESCORED = 20, 200


def top_scores(scores_N: np.ndarray, num: int, is_allowed_N: np.ndarray | None = None) -> Found:
    """The `num` rows of largest score above 0, ties by id, perhaps among the allowed ones only."""
    if is_allowed_N is not None:
        scores_N = np.where(is_allowed_N, scores_N, 0)
    ids = np.flatnonzero(scores_N >= max(kth_bound(scores_N, num), 0))
    ids = ids[scores_N[ids] > 0]
    return best(ids, scores_N[ids], num)


def nearest_rows(
    rows_ND: np.ndarray,
    queries_QD: np.ndarray,
    num: int,
    *,
    inverse_N: np.ndarray | None = None,
    is_allowed_N: np.ndarray | None = None,
) -> list[Found]:
    """For each query the `num` rows of largest cosine: exact, in blocks, on all cores.

    `inverse_N` is one over each row's length (`inverse_norms`), if it is known already.
    """
    inverse_N = inverse_norms(rows_ND) if inverse_N is None else inverse_N
    return nearest(rows_ND, inverse_N, unit_rows(queries_QD), num, is_allowed_N)


def quantized(rows_ND: np.ndarray) -> np.ndarray:
    """Each row as int8, its largest value as ±127; cosines barely change."""
    largest_N = np.abs(rows_ND).max(axis=1, initial=0, keepdims=True)
    scale_N = np.divide(127, largest_N, out=np.zeros_like(largest_N), where=largest_N > 0)
    return np.rint(rows_ND * scale_N).astype(np.int8)


def packed_bits(rows_ND: np.ndarray) -> np.ndarray:
    """The signs of each row as bits, in words of 64: 1 where a value is positive."""
    bytes_NB = np.packbits(rows_ND > 0, axis=1)
    padding = -bytes_NB.shape[1] % 8
    return np.ascontiguousarray(np.pad(bytes_NB, ((0, 0), (0, padding)))).view(np.uint64)


def nearest_by_bits(
    bits_NW: np.ndarray,
    rows_ND: np.ndarray,
    queries_QD: np.ndarray,
    num: int,
    *,
    is_allowed_N: np.ndarray | None = None,
) -> list[Found]:
    """For each query the `num` rows of largest cosine among those whose signs fit it best."""
    from sememe.vectors.kernels import equal_bits

    found = []
    equal_N = np.empty(len(bits_NW), np.int32)
    for unit_D, query_W in zip(unit_rows(queries_QD), packed_bits(queries_QD), strict=True):
        in_blocks(len(bits_NW), partial(_count_equal, equal_bits, bits_NW, query_W, equal_N))
        candidates, _ = top_scores(equal_N, max(_MIN_RESCORED, _RESCORED * num), is_allowed_N)
        exact = cosines(rows_ND, np.sort(candidates), unit_D[None])[:, 0]
        found.append(best(np.sort(candidates), exact, num))
    return found


def _count_equal(
    kernel: Any, bits_NW: np.ndarray, query_W: np.ndarray, equal_N: np.ndarray, own: slice
) -> None:
    kernel(bits_NW[own], query_W, equal_N[own])


def fuse(rankings: Sequence[np.ndarray], num: int, k: int = _FUSION_K) -> Found:
    """One ranking from several, each the ids of rows, best first (reciprocal rank fusion).

    The score of a row is the sum of 1 / (k + rank) over the rankings that hold it, ranks from 1.
    """
    ids = np.concatenate([np.asarray(ranking, np.int64) for ranking in rankings])
    shares = np.concatenate([1 / (k + 1 + np.arange(len(ranking))) for ranking in rankings])
    rows, places = np.unique(ids, return_inverse=True)
    return best(rows, np.bincount(places, shares, len(rows)), num)
