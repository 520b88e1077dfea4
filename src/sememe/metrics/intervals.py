"""Bootstrap percentile intervals (Efron 1979): how far a score moves if the questions are redrawn.

R resamples, N observations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# Ranks of a block of resamples take 8 bytes each: 2**21 of them stay around 50 MB with scratch.
_BLOCK_VALUES = 1 << 21


class Interval(NamedTuple):
    """Where the score lies with the stated probability; NaN where it cannot be told."""

    low: float
    high: float


def _percentiles(scores_R: np.ndarray, level: float) -> Interval:
    known_R = scores_R[np.isfinite(scores_R)]
    if not len(known_R):
        return Interval(math.nan, math.nan)
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(known_R, [tail, 100.0 - tail])
    return Interval(float(low), float(high))


def _check(num_resamples: int, level: float) -> None:
    if num_resamples < 1 or not 0 < level < 1:
        raise ValueError(f"num_resamples {num_resamples} or level {level} is out of range")


def row_correlations(x_RN: np.ndarray, y_RN: np.ndarray) -> np.ndarray:
    """Pearson's correlation of each row of one array with the same row of another."""
    x_RN = x_RN - x_RN.mean(axis=1, keepdims=True)
    y_RN = y_RN - y_RN.mean(axis=1, keepdims=True)
    scale_R = np.sqrt(np.einsum("rn,rn->r", x_RN, x_RN) * np.einsum("rn,rn->r", y_RN, y_RN))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.einsum("rn,rn->r", x_RN, y_RN) / scale_R


def spearman_interval(
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    num_resamples: int = 1_000,
    seed: int = 1,
) -> Interval:
    """Resample the pairs and take Spearman's correlation anew each time."""
    _check(num_resamples, level)
    x_N, y_N = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if len(x_N) < 2:
        return Interval(math.nan, math.nan)
    from scipy.stats import rankdata

    random = np.random.default_rng(seed)
    block, scores = max(1, _BLOCK_VALUES // len(x_N)), []
    for start in range(0, num_resamples, block):
        num = min(block, num_resamples - start)
        picks_RN = random.integers(0, len(x_N), (num, len(x_N)))
        ranks = rankdata(x_N[picks_RN], axis=1), rankdata(y_N[picks_RN], axis=1)
        scores.append(row_correlations(*ranks))
    return _percentiles(np.concatenate(scores), level)


def proportion_interval(
    num_correct: int,
    num_asked: int,
    *,
    level: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 1,
) -> Interval:
    """Resample right and wrong answers; their number among the redrawn ones is binomial."""
    _check(num_resamples, level)
    if not num_asked:
        return Interval(math.nan, math.nan)
    random = np.random.default_rng(seed)
    counts_R = random.binomial(num_asked, num_correct / num_asked, num_resamples)
    return _percentiles(counts_R / num_asked, level)


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, num_resamples: int = 10_000, seed: int = 1
) -> Interval:
    """Resample the values and take their mean anew each time."""
    _check(num_resamples, level)
    values_N = np.asarray(values, np.float64)
    if len(values_N) < 2:
        return Interval(math.nan, math.nan)
    random = np.random.default_rng(seed)
    block, means = max(1, _BLOCK_VALUES // len(values_N)), []
    for start in range(0, num_resamples, block):
        num = min(block, num_resamples - start)
        means.append(values_N[random.integers(0, len(values_N), (num, len(values_N)))].mean(axis=1))
    return _percentiles(np.concatenate(means), level)
