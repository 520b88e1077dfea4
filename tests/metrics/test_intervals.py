"""Bootstrap intervals: seeded, ordered, around the score, and near what theory says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import bootstrap, spearmanr

from sememe.metrics import proportion_interval, spearman, spearman_interval


@settings(max_examples=30)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_proportion_lies_in_its_interval(counts: tuple[int, int]) -> None:
    correct, asked = counts
    low, high = proportion_interval(correct, asked)
    assert 0 <= low <= correct / asked <= high <= 1


def test_a_proportion_interval_is_near_the_normal_one() -> None:
    low, high = proportion_interval(300, 1000, seed=7)
    half = 1.96 * math.sqrt(0.3 * 0.7 / 1000)
    assert low == pytest.approx(0.3 - half, abs=0.003)
    assert high == pytest.approx(0.3 + half, abs=0.003)


def test_spearman_interval_agrees_with_scipy_and_its_seed() -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=120)
    y = x + random.normal(size=120)
    ours = spearman_interval(x, y, seed=5)
    theirs = bootstrap(
        (x, y), lambda a, b: spearmanr(a, b).statistic, paired=True, vectorized=False,
        n_resamples=600, method="percentile", rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.03)
    assert ours == spearman_interval(x, y, seed=5)
    assert ours != spearman_interval(x, y, seed=6)
    assert ours.low < spearman(x, y) < ours.high


def test_blocks_do_not_change_the_number_of_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 50))
    whole = spearman_interval(x, y, num_resamples=101)
    monkeypatch.setattr("sememe.metrics.comparison._BLOCK_VALUES", 50 * 7)
    assert spearman_interval(x, y, num_resamples=101) == pytest.approx(whole)


def test_nothing_gives_no_interval() -> None:
    assert all(math.isnan(value) for value in spearman_interval([1.0], [2.0]))
    assert all(math.isnan(value) for value in spearman_interval([1.0, 1.0], [2.0, 2.0]))
    assert all(math.isnan(value) for value in proportion_interval(0, 0))
    with pytest.raises(ValueError, match="level"):
        proportion_interval(1, 2, level=1.5)
