"""Do vectors of one kind lie together? Vectors with labels in, shares of like neighbors out.

N vectors, D numbers. Equal cosines are ties and count by what is expected of a draw among them, so
that vectors that are all the same score exactly what chance does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# The same vector computed twice may differ in its last digits.
_TIE = 1e-6


class Separation(NamedTuple):
    """How well labels are kept apart; `nearest` and `chance` are shares, `auc` is 0.5 by chance."""

    nearest: float  # of the vectors whose nearest other one has the same label
    chance: float  # the same share if neighbors were drawn
    auc: float  # how often a pair of one label is nearer than a pair of two


def separation(vectors_ND: np.ndarray, labels: Sequence[object]) -> Separation:
    """Compare each vector with all others by cosine; zeros are at right angles to everything."""
    num = len(labels)
    if len(vectors_ND) != num or num < 2:
        raise ValueError(f"{len(vectors_ND)} vectors with {num} labels cannot be compared")
    cosines_NN = _cosines(vectors_ND)
    numbers_N = np.unique(np.array([str(label) for label in labels]), return_inverse=True)[1]
    is_same_NN = numbers_N[:, None] == numbers_N
    is_other_NN = ~np.eye(num, dtype=bool)
    best_N1 = np.where(is_other_NN, cosines_NN, -np.inf).max(axis=1, keepdims=True)
    is_near_NN = is_other_NN & (cosines_NN >= best_N1 - _TIE)
    like_N = (is_near_NN & is_same_NN).sum(axis=1) / is_near_NN.sum(axis=1)
    chance_N = (is_same_NN.sum(axis=1) - 1) / (num - 1)
    pairs = np.triu_indices(num, 1)
    is_same = is_same_NN[pairs]
    return Separation(
        nearest=float(like_N.mean()),
        chance=float(chance_N.mean()),
        auc=_auc(cosines_NN[pairs][is_same], cosines_NN[pairs][~is_same]),
    )


def _cosines(vectors_ND: np.ndarray) -> np.ndarray:
    rows_ND = np.asarray(vectors_ND, np.float64)
    if not np.isfinite(rows_ND).all():
        raise ValueError("finite vectors are needed")
    lengths_N1 = np.linalg.norm(rows_ND, axis=1, keepdims=True)
    units_ND = rows_ND / np.where(lengths_N1 > 0, lengths_N1, 1)
    return units_ND @ units_ND.T


def _auc(same: np.ndarray, different: np.ndarray) -> float:
    if not len(same) or not len(different):
        return math.nan
    gaps = same[:, None] - different
    return float((gaps > _TIE).mean() + (np.abs(gaps) <= _TIE).mean() / 2)
