"""Correlations of two columns of finite figures.

NaN where one is constant or shorter than two, without a warning.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def _columns(first: ArrayLike, second: ArrayLike) -> tuple[np.ndarray, np.ndarray] | None:
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"two columns of one length are needed, not {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a figure is NaN or infinite")
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return None
    return x, y


def pearson(first: ArrayLike, second: ArrayLike) -> float:
    """Measure how well a line fits the two columns."""
    columns = _columns(first, second)
    if columns is None:
        return math.nan
    from scipy.stats import pearsonr

    return float(pearsonr(*columns).statistic)


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Measure how well the two orders agree; equal values share their mean rank."""
    columns = _columns(first, second)
    if columns is None:
        return math.nan
    from scipy.stats import spearmanr

    return float(spearmanr(*columns).statistic)
