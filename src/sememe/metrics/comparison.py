"""Is one model better than another on the same rows? Paired tests: per-row figures in, chances out.

N rows, K figures a row, R resamples. Accuracy, F1, Matthews' and Pearson's correlation are all
functions of sums over the rows; so a resample is a vector of how often each row was drawn, and the
sums of all resamples are one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sememe.metrics.intervals import Interval

# Draws of a block of resamples take 4 bytes each: 2**22 of them are 16 MB.
_BLOCK_VALUES = 1 << 22

Combine = Callable[[np.ndarray], np.ndarray]


class PairedBootstrap(NamedTuple):
    """The difference second − first, where it lies, and the chance of it under no difference."""

    first: float
    second: float
    difference: float
    interval: Interval
    p_value: float
    num_resamples: int


class McNemar(NamedTuple):
    """Rows that only one of two models has right, and the chance of so uneven a split."""

    num_only_first: int
    num_only_second: int
    p_value: float


class Spread(NamedTuple):
    """Mean and sample standard deviation of a figure over `num` seeds."""

    mean: float
    sd: float
    num: int


def mean_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    """The mean of one figure a row, from the columns (figure, 1)."""
    return sums_RK[:, 0] / sums_RK[:, 1]


def f1_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    """F1 from the columns (right, gold, predicted), 0 where there is nothing."""
    marked_R = sums_RK[:, 1] + sums_RK[:, 2]
    return np.divide(2 * sums_RK[:, 0], marked_R, out=np.zeros(len(marked_R)), where=marked_R > 0)


def pearson_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    """Pearson's correlation from the columns (1, x, y, xx, yy, xy); NaN where one is constant."""
    n, x, y, xx, yy, xy = sums_RK.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


def _draw(random: np.random.Generator, num_resamples: int, num_rows: int) -> np.ndarray:
    """How often each row is drawn in each resample."""
    picks_RN = random.integers(0, num_rows, (num_resamples, num_rows))
    picks_RN += np.arange(num_resamples)[:, None] * num_rows
    counts = np.bincount(picks_RN.ravel(), minlength=num_resamples * num_rows)
    return counts.reshape(num_resamples, num_rows)


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    combine: Combine | None = None,
    *,
    level: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 1,
) -> PairedBootstrap:
    """Redraw the rows of both models together and see how the difference of their scores moves.

    Rows are single figures (the score is their mean), or K figures with a `combine` that turns
    R rows of sums into R scores. The chance is two-sided: twice the share of resamples in which
    the difference has the other sign or none, never 0 (Davison and Hinkley 1997, 4.2).
    """
    a_NK, b_NK = _columns(first, combine), _columns(second, combine)
    if a_NK.shape != b_NK.shape:
        raise ValueError(f"{a_NK.shape} and {b_NK.shape} figures cannot be paired")
    if num_resamples < 1 or not 0 < level < 1:
        raise ValueError(f"num_resamples {num_resamples} or level {level} is out of range")
    score = combine or mean_of_sums
    num_rows = len(a_NK)
    if not num_rows:
        nothing = Interval(math.nan, math.nan)
        return PairedBootstrap(math.nan, math.nan, math.nan, nothing, math.nan, 0)
    a, b = (float(score(rows_NK.sum(axis=0, keepdims=True))[0]) for rows_NK in (a_NK, b_NK))
    random = np.random.default_rng(seed)
    block, differences = max(1, _BLOCK_VALUES // num_rows), []
    for start in range(0, num_resamples, block):
        draws_RN = _draw(random, min(block, num_resamples - start), num_rows).astype(np.float64)
        differences.append(score(draws_RN @ b_NK) - score(draws_RN @ a_NK))
    known = np.concatenate(differences)
    known = known[np.isfinite(known)]
    # Sums of another order differ in their last digits: what is that small is a tie.
    known[np.abs(known) < 1e-12] = 0
    interval, p_value = _chances(known, level)
    return PairedBootstrap(a, b, b - a, interval, p_value, len(known))


def _columns(figures: ArrayLike, combine: Combine | None) -> np.ndarray:
    array = np.asarray(figures, np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError("finite figures are needed, a row for each example")
    return array if combine else np.hstack([array, np.ones((len(array), 1))])


def _chances(differences: np.ndarray, level: float) -> tuple[Interval, float]:
    if not len(differences):
        return Interval(math.nan, math.nan), math.nan
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(differences, [tail, 100.0 - tail])
    fewest = min((differences <= 0).sum(), (differences >= 0).sum())
    p_value = min(1.0, 2 * (int(fewest) + 1) / (len(differences) + 1))
    return Interval(float(low), float(high)), p_value


def mcnemar(is_right_first: ArrayLike, is_right_second: ArrayLike) -> McNemar:
    """Test whether two models are right equally often (McNemar 1947), exactly and two-sided.

    Rows on which both are right or both are wrong say nothing; the others split like a coin's
    throws if there is no difference.
    """
    first, second = np.asarray(is_right_first, bool), np.asarray(is_right_second, bool)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"{first.shape} and {second.shape} answers cannot be paired")
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    from scipy.stats import binom

    split = binom.cdf(min(only_first, only_second), only_first + only_second, 0.5)
    return McNemar(only_first, only_second, float(min(1.0, 2 * split)))


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation (n − 1 below the line); the latter NaN for one value."""
    array = np.asarray(values, np.float64)
    if not np.isfinite(array).all():
        raise ValueError("a figure of one of the seeds is NaN or infinite")
    if not len(array):
        return Spread(math.nan, math.nan, 0)
    sd = float(array.std(ddof=1)) if len(array) > 1 else math.nan
    return Spread(float(array.mean()), sd, len(array))


def error_reduction(baseline: float, score: float, *, best: float = 100.0) -> tuple[float, float]:
    """Absolute gain and the share of the baseline's error that is gone (both in per cent points).

    ELMo's SQuAD, 81.1 → 85.8, is 4.7 and 24.9 %.
    """
    gain = score - baseline
    error = best - baseline
    return gain, 100.0 * gain / error if error else math.nan
