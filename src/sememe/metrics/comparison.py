"""Uncertainty of scores: bootstrap intervals (Efron 1979), and paired tests of two models.

N rows, K scores per row, R resamples.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# Ranks of a block of resamples take 8 bytes each: 2**21 of them stay around 50 MB with scratch.
_BLOCK_VALUES = 1 << 21


class Interval(NamedTuple):
    """An interval that contains the score with the stated probability; NaN if undefined."""

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


def _resampled(
    score: Callable[[np.ndarray], np.ndarray],
    num_rows: int,
    level: float,
    num_resamples: int,
    seed: int,
) -> Interval:
    """The interval of `score`, which takes the rows that each resample drew, (R, N)."""
    _check(num_resamples, level)
    if num_rows < 2:
        return Interval(math.nan, math.nan)
    random, block = np.random.default_rng(seed), max(1, _BLOCK_VALUES // num_rows)
    sizes = [min(block, num_resamples - start) for start in range(0, num_resamples, block)]
    scores = [score(random.integers(0, num_rows, (size, num_rows))) for size in sizes]
    return _percentiles(np.concatenate(scores), level)


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
    """Resample the pairs and take Spearman's correlation again each time."""
    from scipy.stats import rankdata

    x_N, y_N = np.asarray(first, np.float64), np.asarray(second, np.float64)

    return _resampled(
        lambda picks_RN: row_correlations(
            rankdata(x_N[picks_RN], axis=1), rankdata(y_N[picks_RN], axis=1)
        ),
        len(x_N), level, num_resamples, seed,
    )  # fmt: skip


def pearson_interval(
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    num_resamples: int = 1_000,
    seed: int = 1,
) -> Interval:
    """Resample the pairs and take Pearson's correlation again each time."""
    x_N, y_N = np.asarray(first, np.float64), np.asarray(second, np.float64)

    return _resampled(
        lambda picks_RN: row_correlations(x_N[picks_RN], y_N[picks_RN]),
        len(x_N), level, num_resamples, seed,
    )  # fmt: skip


def proportion_interval(
    num_correct: int,
    num_asked: int,
    *,
    level: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 1,
) -> Interval:
    """Resample right and wrong answers; the number of right ones is binomial."""
    _check(num_resamples, level)
    if not num_asked:
        return Interval(math.nan, math.nan)
    random = np.random.default_rng(seed)
    counts_R = random.binomial(num_asked, num_correct / num_asked, num_resamples)
    return _percentiles(counts_R / num_asked, level)


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, num_resamples: int = 10_000, seed: int = 1
) -> Interval:
    """Resample the values and take their mean again each time."""
    values_N = np.asarray(values, np.float64)

    return _resampled(
        lambda picks_RN: values_N[picks_RN].mean(axis=1), len(values_N), level, num_resamples, seed
    )


def mean_bounds(intervals: Sequence[Interval]) -> Interval:
    """The mean of the bounds of several intervals, such as those of several seeds."""
    return Interval(*(float(sum(own) / len(own)) for own in zip(*intervals, strict=True)))


# Draws of a block of resamples take 4 bytes each: 2**22 of them are 16 MB.
_PAIRED_BLOCK_VALUES = 1 << 22

Combine = Callable[[np.ndarray], np.ndarray]


class PairedBootstrap(NamedTuple):
    """The difference second − first, its interval, and its p-value."""

    first: float
    second: float
    difference: float
    interval: Interval
    p_value: float
    num_resamples: int


class McNemar(NamedTuple):
    """Rows that only one of two models has right, and the p-value of that split."""

    num_only_first: int
    num_only_second: int
    p_value: float


class Spread(NamedTuple):
    """Mean and sample standard deviation of a score over `num` seeds."""

    mean: float
    sd: float
    num: int


def mean_of_sums(sums_RK: np.ndarray) -> np.ndarray:
    """The mean of one score a row, from the columns (score, 1)."""
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
    """Resample the rows of both models together to find how their difference varies.

    Rows are single scores (the score is their mean), or K scores with a `combine` that turns R rows
    of sums into R scores. The p-value is two-sided: twice the fraction of resamples in which the
    difference has the other sign or is zero, never 0 (Davison and Hinkley 1997, 4.2).
    """
    a_NK, b_NK = _columns(first, combine), _columns(second, combine)
    if a_NK.shape != b_NK.shape:
        raise ValueError(f"{a_NK.shape} and {b_NK.shape} values cannot be paired")
    _check(num_resamples, level)
    score = combine or mean_of_sums
    num_rows = len(a_NK)
    if not num_rows:
        nothing = Interval(math.nan, math.nan)
        return PairedBootstrap(math.nan, math.nan, math.nan, nothing, math.nan, 0)
    a, b = (float(score(rows_NK.sum(axis=0, keepdims=True))[0]) for rows_NK in (a_NK, b_NK))
    random = np.random.default_rng(seed)
    block, differences = max(1, _PAIRED_BLOCK_VALUES // num_rows), []
    for start in range(0, num_resamples, block):
        draws_RN = _draw(random, min(block, num_resamples - start), num_rows).astype(np.float64)
        differences.append(score(draws_RN @ b_NK) - score(draws_RN @ a_NK))
    known = np.concatenate(differences)
    known = known[np.isfinite(known)]
    # Sums of another order differ in their last digits: what is that small is a tie.
    known[np.abs(known) < 1e-12] = 0
    fewest = min(int((known <= 0).sum()), int((known >= 0).sum()))
    p_value = min(1.0, 2 * (fewest + 1) / (len(known) + 1)) if len(known) else math.nan
    return PairedBootstrap(a, b, b - a, _percentiles(known, level), p_value, len(known))


def redrawn_interval(
    rows: ArrayLike,
    combine: Combine | None = None,
    *,
    counts: ArrayLike | None = None,
    level: float = 0.95,
    num_resamples: int = 1_000,
    seed: int = 1,
) -> Interval:
    """The interval of one score when its rows are drawn again (the percentile bootstrap).

    Rows are as in `paired_bootstrap`; `counts` says how often each occurs, 1 by default.
    """
    rows_NK = _columns(rows, combine)
    counts_N = np.ones(len(rows_NK), np.int64) if counts is None else np.asarray(counts, np.int64)
    _check(num_resamples, level)
    num_rows = int(counts_N.sum())
    if num_rows < 2:
        return Interval(math.nan, math.nan)
    score, random = combine or mean_of_sums, np.random.default_rng(seed)
    block, scores = max(1, _PAIRED_BLOCK_VALUES // len(rows_NK)), []
    for start in range(0, num_resamples, block):
        size = min(block, num_resamples - start)
        if 4 * len(rows_NK) < num_rows:
            draws_RN = random.multinomial(num_rows, counts_N / num_rows, size)
        else:
            # Drawing each row is faster where few are equal.
            all_N = np.repeat(np.arange(len(rows_NK)), counts_N)
            picks_RN = all_N[random.integers(0, num_rows, (size, num_rows))]
            picks_RN += np.arange(size)[:, None] * len(rows_NK)
            flat = np.bincount(picks_RN.ravel(), minlength=size * len(rows_NK))
            draws_RN = flat.reshape(size, len(rows_NK))
        scores.append(score(draws_RN.astype(np.float64) @ rows_NK))
    return _percentiles(np.concatenate(scores), level)


def _columns(values: ArrayLike, combine: Combine | None) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError("finite values are needed, one row per example")
    return array if combine else np.hstack([array, np.ones((len(array), 1))])


def mcnemar(is_right_first: ArrayLike, is_right_second: ArrayLike) -> McNemar:
    """Test whether two models are right equally often (McNemar 1947), exactly and two-sided.

    Rows on which both are right or both are wrong do not count; without a difference, the others
    split like coin tosses.
    """
    first, second = np.asarray(is_right_first, bool), np.asarray(is_right_second, bool)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"{first.shape} and {second.shape} answers cannot be paired")
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    from scipy.stats import binom

    split = binom.cdf(min(only_first, only_second), only_first + only_second, 0.5)
    return McNemar(only_first, only_second, float(min(1.0, 2 * split)))


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation (n − 1 in the denominator); NaN for one value."""
    array = np.asarray(values, np.float64)
    if not np.isfinite(array).all():
        raise ValueError("a score of one of the seeds is NaN or infinite")
    if not len(array):
        return Spread(math.nan, math.nan, 0)
    sd = float(array.std(ddof=1)) if len(array) > 1 else math.nan
    return Spread(float(array.mean()), sd, len(array))


def error_reduction(baseline: float, score: float, *, best: float = 100.0) -> tuple[float, float]:
    """Absolute gain and relative error reduction compared with the baseline, in percent.

    ELMo's SQuAD, 81.1 → 85.8, is 4.7 and 24.9 %.
    """
    gain = score - baseline
    error = best - baseline
    return gain, 100.0 * gain / error if error else math.nan
