"""Correlations against their definitions, with ties and without."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sememe.metrics import pearson, spearman
from sememe.metrics.comparison import row_correlations

PAIRS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=40)


def mean_ranks(values: np.ndarray) -> np.ndarray:
    below = (values[:, None] > values).sum(axis=1)
    return below + ((values[:, None] == values).sum(axis=1) + 1) / 2


@given(PAIRS)
def test_spearman_is_pearson_of_mean_ranks(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert math.isnan(spearman(x, y)) and math.isnan(pearson(x, y))
        return
    assert spearman(x, y) == pytest.approx(np.corrcoef(mean_ranks(x), mean_ranks(y))[0, 1])
    assert pearson(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert row_correlations(x[None], y[None])[0] == pytest.approx(pearson(x, y))


@given(PAIRS)
def test_spearman_sees_only_the_order(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert spearman(np.exp(x), y**3) == pytest.approx(spearman(x, y))


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        spearman([1, 2], [1, 2, 3])
    assert math.isnan(spearman([1], [2]))
