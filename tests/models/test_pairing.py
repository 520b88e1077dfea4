"""Scores and moves of all pairs of two groups of rows against NumPy's products."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.machine import kernel
from sememe.models.static.tile_kernels import MOST_ROWS, exchange_pairs, score_pairs

WIDTH, NUM_ROWS = 48, 12


@kernel
def score(few, few_rows, num_few, near, num_near, far, many_rows, num_many, width, scores):
    """Call the intrinsic, which has no Python face."""
    score_pairs(few, few_rows, num_few, near, num_near, far, many_rows, num_many, width, scores)


@kernel
def exchange(few, few_rows, num_few, near, num_near, far, many_rows, num_many, width, factors):
    """Call the intrinsic, which has no Python face."""
    exchange_pairs(few, few_rows, num_few, near, num_near, far, many_rows, num_many, width, factors)


@pytest.fixture
def matrices() -> list[np.ndarray]:
    """Three of them: the few, the near and the far ones of the many."""
    return list(np.random.default_rng(3).normal(size=(3, NUM_ROWS, WIDTH)).astype(np.float32))


def offsets(rows: list[int]) -> np.ndarray:
    return np.array([*rows, 0], np.int64) * WIDTH


@pytest.mark.parametrize("num_few", range(MOST_ROWS + 1))
@pytest.mark.parametrize(("num_near", "num_many"), [(0, 0), (0, 1), (1, 1), (2, 4), (3, 7)])
def test_scores_are_all_dot_products(matrices, num_few, num_near, num_many):
    few, near, far = matrices
    left, right = list(range(num_few))[::-1], [11, 3, 5, 0, 8, 1, 2][:num_many]
    scores = np.full(num_few * num_many + 32, np.nan, np.float32)
    score(few.reshape(-1), offsets(left), num_few, near.reshape(-1), num_near, far.reshape(-1),
          offsets(right), num_many, WIDTH, scores)  # fmt: skip
    found = scores[: num_few * num_many].reshape(num_many, num_few)
    many = np.concatenate([near[right[:num_near]], far[right[num_near:]]])
    np.testing.assert_allclose(found, many @ few[left].T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_few", range(MOST_ROWS + 1))
@pytest.mark.parametrize(("num_near", "num_many"), [(0, 0), (0, 1), (1, 1), (2, 4), (3, 7)])
def test_both_sides_move_by_what_the_other_was(matrices, num_few, num_near, num_many):
    few, near, far = matrices
    left = [4, 2, 4, 9, 0, 1, 2, 7, 4, 3][:num_few]  # some rows are there twice
    right = [11, 3, 5, 0, 8, 1, 2][:num_many]
    factors = np.random.default_rng(4).normal(size=(num_many, num_few)).astype(np.float32)
    expected = [matrix.copy() for matrix in matrices]
    many = np.concatenate([near[right[:num_near]], far[right[num_near:]]])
    np.add.at(expected[0], left, factors.T @ many)
    moves = factors @ few[left]
    expected[1][right[:num_near]] += moves[:num_near]
    expected[2][right[num_near:]] += moves[num_near:]
    exchange(few.reshape(-1), offsets(left), num_few, near.reshape(-1), num_near, far.reshape(-1),
             offsets(right), num_many, WIDTH, factors.reshape(-1))  # fmt: skip
    for matrix, wanted in zip(matrices, expected, strict=True):
        np.testing.assert_allclose(matrix, wanted, rtol=1e-5, atol=1e-5)
