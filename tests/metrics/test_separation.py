"""Like among like: perfect, random, opposite and tied vectors, and a plain count beside ours."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sememe.metrics import mean_interval, separation

LABELS = ["a"] * 5 + ["b"] * 6


def groups(noise: float, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centers = {"a": np.eye(8)[0], "b": np.eye(8)[1]}
    return np.stack([centers[label] for label in LABELS]) + noise * random.normal(size=(11, 8))


def test_groups_apart_are_found_whole():
    found = separation(groups(0.01), LABELS)
    assert (found.nearest, found.auc) == (1.0, 1.0)
    assert found.chance == pytest.approx((5 * 4 + 6 * 5) / (11 * 10))


def test_length_does_not_count():
    scales = np.linspace(0.1, 50, 11)[:, None]
    assert separation(groups(0.3) * scales, LABELS) == separation(groups(0.3), LABELS)


@pytest.mark.parametrize("rows", [np.ones((11, 3)), np.zeros((11, 3)), np.full((11, 3), 1e-30)])
def test_one_vector_for_all_scores_exactly_chance(rows):
    found = separation(rows, LABELS)
    assert found.nearest == pytest.approx(found.chance, abs=1e-15)
    assert found.auc == 0.5


def test_last_digits_break_no_tie():
    random = np.random.default_rng(1)
    rows = np.ones((11, 64), np.float32) * (1 + 1e-7 * random.normal(size=(11, 64)))
    found = separation(rows, LABELS)
    assert (found.nearest, found.auc) == (pytest.approx(found.chance), 0.5)


def test_some_ties_count_by_their_share():
    # The third is as near to one of its own kind as to one of the other.
    rows = np.array([[1, 0], [0, 1], [1, 1], [1, 0.0]])
    found = separation(rows, ["x", "y", "x", "y"])
    # first: the fourth (y) is equal to it; second: the third; third: all three; fourth: the first
    assert found.nearest == pytest.approx((0 + 0 + 1 / 3 + 0) / 4)


def test_random_vectors_are_near_chance():
    random = np.random.default_rng(2)
    found = [separation(random.normal(size=(11, 50)), LABELS) for _ in range(300)]
    assert np.mean([one.nearest for one in found]) == pytest.approx(found[0].chance, abs=0.02)
    assert np.mean([one.auc for one in found]) == pytest.approx(0.5, abs=0.02)


def test_neighbors_of_the_other_kind_only():
    rows = np.array([[1, 0], [0, 1], [1, 0.01], [0.01, 1]])
    found = separation(rows, ["x", "x", "y", "y"])
    assert found.nearest == 0.0 and found.auc < 0.5


def test_against_counting_one_by_one():
    rows = groups(0.6, seed=4)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    right = [
        LABELS[max((j for j in range(11) if j != i), key=lambda j: units[i] @ units[j])]
        == LABELS[i]
        for i in range(11)
    ]
    same, other = [], []
    for i in range(11):
        for j in range(i):
            (same if LABELS[i] == LABELS[j] else other).append(units[i] @ units[j])
    found = separation(rows, LABELS)
    assert 0 < found.nearest < 1
    assert found.nearest == pytest.approx(np.mean(right))
    assert found.auc == pytest.approx(np.mean([a > b for a in same for b in other]))


def test_what_cannot_be_compared():
    with pytest.raises(ValueError, match="2 vectors with 3 labels"):
        separation(np.ones((2, 2)), ["a", "b", "a"])
    with pytest.raises(ValueError, match="finite"):
        separation(np.array([[1.0, math.nan], [1, 1]]), ["a", "b"])
    assert math.isnan(separation(np.eye(2), ["a", "b"]).auc)


def test_the_interval_of_a_mean():
    values = np.random.default_rng(3).normal(2, 1, size=400)
    low, high = mean_interval(values)
    half = 1.96 * values.std() / math.sqrt(400)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.01)
    assert mean_interval(values, seed=5) == mean_interval(values, seed=5)
    assert mean_interval([1.0, 1.0]) == (1.0, 1.0)
    assert math.isnan(mean_interval([1.0]).low)
