"""Exact cosine search: unit queries and a matrix of vectors in, (ids, scores) out.

Q queries, V words, D numbers in a vector. The matrix is scanned in float32 by BLAS, on every
core and without a second copy; the few rows that may be among the best are then scored again in
float64. So the answer depends neither on the number of threads nor on how queries are grouped,
and equal scores come in the order of their ids.
"""

from __future__ import annotations

import math

import numpy as np

# Scores held at one time: 64 MB of float32.
_NUM_SCORES = 1 << 24
_NUM_QUERIES = 64
_BLOCK_SIZE = 8_192
# Shorter vectors than this count as zero: their inverse would not fit a float32.
_SHORTEST = 1e-37
# Keeps a quotient finite (Levy & Goldberg 2014, equation 4, as released and as gensim has it).
_COSMUL_EPSILON = 1e-6

Found = tuple[np.ndarray, np.ndarray]


def inverse_norms(vectors_VD: np.ndarray) -> np.ndarray:
    """One over each row's length in float32; 0 for rows that are zero or not finite."""
    inverse = np.zeros(len(vectors_VD), np.float32)
    for start in range(0, len(vectors_VD), _BLOCK_SIZE):
        block = vectors_VD[start : start + _BLOCK_SIZE].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        usable = np.isfinite(norms) & (norms > _SHORTEST)
        np.divide(1.0, norms, out=inverse[start : start + _BLOCK_SIZE], where=usable,
                  casting="unsafe")  # fmt: skip
    return inverse


def unit(vector: np.ndarray) -> np.ndarray:
    """`vector` in float64 at length 1; a zero vector stays zero."""
    vector = np.asarray(vector, np.float64)
    norm = math.sqrt(float(vector @ vector))
    return vector / norm if math.isfinite(norm) and norm > _SHORTEST else np.zeros_like(vector)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Every row in float64 at length 1; zero rows stay zero."""
    vectors = np.asarray(vectors, np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    usable = np.isfinite(norms) & (norms > _SHORTEST)
    units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=usable)
    return np.nan_to_num(units, copy=False, nan=0.0)


def kth_bound(scores: np.ndarray, num: int) -> float:
    """A value that at least `num` of the scores reach, close to the `num`-th largest.

    The maxima of separate blocks are `num` different scores, and they take a twentieth of the
    time of a partition.
    """
    if num >= len(scores):
        return -math.inf
    block_size = min(512, len(scores) // (4 * num))
    if block_size < 8:
        return float(np.partition(scores, -num)[-num])
    whole = len(scores) // block_size * block_size
    maxima = scores[:whole].reshape(-1, block_size).max(axis=1)
    return float(np.partition(maxima, -num)[-num])


def best(ids: np.ndarray, scores: np.ndarray, num: int) -> Found:
    """The `num` largest scores, equal ones by id."""
    order = np.lexsort((ids, -scores))[:num]
    return ids[order], scores[order]


def cosines(vectors_VD: np.ndarray, ids: np.ndarray, units_QD: np.ndarray) -> np.ndarray:
    """Cosines in float64 of the rows `ids` with the unit rows Q: shape (ids, Q)."""
    cosines_NQ = np.empty((len(ids), len(units_QD)))
    for start in range(0, len(ids), _BLOCK_SIZE):
        rows_ND = unit_rows(vectors_VD[ids[start : start + _BLOCK_SIZE]])
        # einsum adds in one order whatever the number of rows; BLAS does not.
        cosines_NQ[start : start + _BLOCK_SIZE] = np.einsum("nd,qd->nq", rows_ND, units_QD)
    return cosines_NQ


def _scan(vectors_VD: np.ndarray, inverse_V: np.ndarray, units_QD: np.ndarray) -> np.ndarray:
    """Approximate cosines (Q, V) in float32; rows that are not finite score 0."""
    if len(units_QD) == 1:
        scores_QV = (vectors_VD @ units_QD[0].astype(np.float32))[None]
    else:
        scores_QV = units_QD.astype(np.float32) @ vectors_VD.T
    with np.errstate(invalid="ignore"):
        scores_QV *= inverse_V
    if not math.isfinite(float(scores_QV.sum())):
        np.nan_to_num(scores_QV, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
    return scores_QV


def _error_bound(dim: int) -> float:
    """How far a float32 cosine of `dim` products can be from the true one."""
    return (dim + 8) * 2.0**-24


def nearest(
    vectors_VD: np.ndarray, inverse_V: np.ndarray, units_QD: np.ndarray, num: int
) -> list[Found]:
    """For each unit query the `num` rows of largest cosine."""
    found: list[Found] = []
    for start in range(0, len(units_QD), _NUM_QUERIES):
        found += _nearest_few(vectors_VD, inverse_V, units_QD[start : start + _NUM_QUERIES], num)
    return found


def _nearest_few(
    vectors_VD: np.ndarray, inverse_V: np.ndarray, units_QD: np.ndarray, num: int
) -> list[Found]:
    num_rows, num_queries = len(vectors_VD), len(units_QD)
    margin = 2 * _error_bound(vectors_VD.shape[1])
    parts: list[list[Found]] = [[] for _ in range(num_queries)]
    block_size = _NUM_SCORES // num_queries
    for start in range(0, num_rows, block_size):
        rows = slice(start, start + block_size)
        scores_QV = _scan(vectors_VD[rows], inverse_V[rows], units_QD)
        for query, scores in enumerate(scores_QV):
            ids = start + np.flatnonzero(scores >= kth_bound(scores, num) - margin)
            exact = cosines(vectors_VD, ids, units_QD[query : query + 1])[:, 0]
            parts[query].append(best(ids, exact, num))
    return [_join(part, num) for part in parts]


def _join(parts: list[Found], num: int) -> Found:
    if len(parts) == 1:
        return parts[0]
    return best(np.concatenate([ids for ids, _ in parts]),
                 np.concatenate([scores for _, scores in parts]), num)  # fmt: skip


def multiply(shifted_TV: np.ndarray, is_positive_T: np.ndarray, slack: float = 0.0) -> np.ndarray:
    """3CosMul of cosines shifted to [0, 1]; `slack` moves every factor towards a larger score."""
    positive = np.minimum(shifted_TV[is_positive_T] + slack, 1.0).clip(0.0)
    negative = np.maximum(shifted_TV[~is_positive_T] - slack, 0.0).clip(None, 1.0)
    return positive.prod(axis=0) / (negative.prod(axis=0) + _COSMUL_EPSILON)


def nearest_by_product(
    vectors_VD: np.ndarray,
    inverse_V: np.ndarray,
    units_TD: np.ndarray,
    is_positive_T: np.ndarray,
    num: int,
) -> Found:
    """The `num` rows of largest 3CosMul (Levy & Goldberg 2014, 6) for the unit terms T."""
    slack = _error_bound(vectors_VD.shape[1])
    # What the products and the quotient add to that by their own rounding in float32.
    rounding = 1 - (len(units_TD) + 4) * 2.0**-22
    parts: list[Found] = []
    block_size = _NUM_SCORES // (4 * len(units_TD))
    for start in range(0, len(vectors_VD), block_size):
        rows = slice(start, start + block_size)
        shifted_TV = _scan(vectors_VD[rows], inverse_V[rows], units_TD)
        shifted_TV += 1
        shifted_TV /= 2
        bound = kth_bound(multiply(shifted_TV, is_positive_T, -slack), num) * rounding
        ids = start + np.flatnonzero(multiply(shifted_TV, is_positive_T, slack) >= bound)
        exact_TN = (1 + cosines(vectors_VD, ids, units_TD).T) / 2
        parts.append(best(ids, multiply(exact_TN, is_positive_T), num))
    return _join(parts, num)


def reference_nearest(vectors_VD: np.ndarray, unit_D: np.ndarray, num: int) -> Found:
    """The same answer as `nearest`, by scoring and sorting everything."""
    scores = unit_rows(vectors_VD) @ unit_D
    order = np.lexsort((np.arange(len(scores)), -scores))[:num]
    return order, scores[order]


def reference_nearest_by_product(
    vectors_VD: np.ndarray, units_TD: np.ndarray, is_positive_T: np.ndarray, num: int
) -> Found:
    """The same answer as `nearest_by_product`, by scoring and sorting everything."""
    shifted_TV = (1 + units_TD @ unit_rows(vectors_VD).T) / 2
    positive, negative = shifted_TV[is_positive_T], shifted_TV[~is_positive_T]
    scores = positive.prod(axis=0) / (negative.prod(axis=0) + _COSMUL_EPSILON)
    order = np.lexsort((np.arange(len(scores)), -scores))[:num]
    return order, scores[order]
