"""Paired tests: known chances, known differences, and refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sememe.metrics import error_reduction, mcnemar, paired_bootstrap, pearson, spread
from sememe.metrics.comparison import f1_of_sums, pearson_of_sums


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40))
def test_mcnemar_is_the_chance_of_a_coin(rows: list[tuple[bool, bool]]) -> None:
    found = mcnemar([a for a, _ in rows], [b for _, b in rows])
    num, fewest = found.num_only_first + found.num_only_second, min(found[:2])
    exact = sum(Fraction(math.comb(num, k), 2**num) for k in range(fewest + 1))
    assert found.p_value == pytest.approx(float(min(Fraction(1), 2 * exact)))


def test_a_real_difference_is_found_and_noise_is_not() -> None:
    random = np.random.default_rng(5)
    first = random.random(2_000) < 0.80
    better = first | (random.random(2_000) < 0.20)
    found = paired_bootstrap(first, better)
    assert found.difference == pytest.approx(better.mean() - first.mean())
    assert found.interval.low > 0.02 and found.p_value < 0.001
    assert mcnemar(first, better).p_value < 1e-6
    # As good on the average, right elsewhere.
    other = random.permutation(first)
    found = paired_bootstrap(first, other)
    assert found.interval.low < 0 < found.interval.high and found.p_value > 0.05


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    held = 0
    for trial in range(300):
        a = random.random(150) < 0.7
        b = np.where(random.random(150) < 0.5, a, random.random(150) < 0.9)
        low, high = paired_bootstrap(a, b, num_resamples=400, seed=trial).interval
        held += low <= 0.1 <= high  # 0.5 × (0.9 − 0.7)
    assert 0.91 <= held / 300 <= 0.985


def test_equal_models_have_no_difference() -> None:
    right = [True, False, True, True]
    found = paired_bootstrap(right, right)
    assert (found.difference, found.interval, found.p_value) == (0, (0, 0), 1)
    assert mcnemar(right, right).p_value == 1
    # Sums of other orders must not look like differences.
    metrics = np.random.default_rng(2).random(500)
    assert paired_bootstrap(metrics, metrics + 1e-17).p_value == 1


def test_scores_of_sums() -> None:
    counts = np.array([[2, 3, 2], [0, 1, 1], [1, 1, 2]])
    assert f1_of_sums(counts.sum(axis=0, keepdims=True))[0] == pytest.approx(6 / 10)
    assert f1_of_sums(np.zeros((1, 3)))[0] == 0
    x, y = np.random.default_rng(3).random((2, 30))
    rows = np.column_stack([np.ones(30), x, y, x * x, y * y, x * y])
    assert pearson_of_sums(rows.sum(axis=0, keepdims=True))[0] == pytest.approx(pearson(x, y))
    found = paired_bootstrap(rows, rows, pearson_of_sums, num_resamples=50)
    assert found.first == pytest.approx(pearson(x, y)) and found.difference == 0


def test_the_same_seed_gives_the_same_interval() -> None:
    a, b = np.random.default_rng(4).random((2, 99))
    assert paired_bootstrap(a, b, seed=7) == paired_bootstrap(a, b, seed=7)
    assert paired_bootstrap(a, b, seed=7).interval != paired_bootstrap(a, b, seed=8).interval
    # Swapping the models turns the difference round.
    turned = paired_bootstrap(b, a, seed=7)
    assert turned.difference == pytest.approx(-paired_bootstrap(a, b, seed=7).difference)


def test_what_cannot_be_paired_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_bootstrap([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="finite"):
        paired_bootstrap([1.0, math.nan], [1.0, 2.0])
    with pytest.raises(ValueError, match="cannot be paired"):
        mcnemar([True], [True, False])
    with pytest.raises(ValueError, match="out of range"):
        paired_bootstrap([1.0], [1.0], level=1.0)
    assert math.isnan(paired_bootstrap([], []).difference)


def test_mean_and_deviation_of_seeds() -> None:
    assert spread([1.0, 2.0, 3.0]) == (2, 1, 3)
    mean, sd, num = spread([0.5])
    assert (mean, num) == (0.5, 1) and math.isnan(sd)
    assert spread([]).num == 0 and math.isnan(spread([]).mean)
    with pytest.raises(ValueError, match="NaN"):
        spread([1.0, math.nan])


@pytest.mark.parametrize(
    ("baseline", "score", "gain", "reduction"),
    [(81.1, 85.8, 4.7, 24.9), (88.0, 88.7, 0.7, 5.8), (90.15, 92.22, 2.07, 21.0)],
)
def test_gains_as_elmos_table_prints_them(baseline, score, gain, reduction) -> None:
    found = error_reduction(baseline, score)
    assert found == (pytest.approx(gain, abs=0.005), pytest.approx(reduction, abs=0.05))
