"""Rankings of rows: scores or vectors in, (row ids, scores) with the best first out.

Q queries, N rows, D dimensions. Several rankings of the same rows become one by reciprocal rank
fusion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sememe.vectors.search import Found, best, inverse_norms, kth_bound, nearest, unit_rows

# Added to every rank, so that the first places do not decide alone (Cormack et al. 2009, 2).
_FUSION_K = 60


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


def fuse(rankings: Sequence[np.ndarray], num: int, k: int = _FUSION_K) -> Found:
    """One ranking from several, each the ids of rows, best first (reciprocal rank fusion).

    The score of a row is the sum of 1 / (k + rank) over the rankings that hold it, ranks from 1.
    """
    ids = np.concatenate([np.asarray(ranking, np.int64) for ranking in rankings])
    shares = np.concatenate([1 / (k + 1 + np.arange(len(ranking))) for ranking in rankings])
    rows, places = np.unique(ids, return_inverse=True)
    return best(rows, np.bincount(places, shares, len(rows)), num)
