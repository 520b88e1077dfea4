"""The blocked search against sorting everything, ties and zero rows included."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.vectors import search


def reference_nearest(vectors_VD: np.ndarray, unit_D: np.ndarray, num: int) -> search.Found:
    """The same answer as `nearest`, by scoring and sorting everything."""
    scores = search.unit_rows(vectors_VD) @ unit_D
    order = np.lexsort((np.arange(len(scores)), -scores))[:num]
    return order, scores[order]


def reference_nearest_by_product(
    vectors_VD: np.ndarray, units_TD: np.ndarray, is_positive_T: np.ndarray, num: int
) -> search.Found:
    """The same answer as `nearest_by_product`, by scoring and sorting everything."""
    shifted_TV = (1 + units_TD @ search.unit_rows(vectors_VD).T) / 2
    positive, negative = shifted_TV[is_positive_T], shifted_TV[~is_positive_T]
    scores = positive.prod(axis=0) / (negative.prod(axis=0) + search._COSMUL_EPSILON)
    order = np.lexsort((np.arange(len(scores)), -scores))[:num]
    return order, scores[order]


@pytest.mark.parametrize(("num_rows", "num"), [(1, 1), (7, 10), (100, 3), (5_000, 10), (40_001, 7)])
def test_search_equals_reference(num_rows: int, num: int) -> None:
    vectors = np.random.default_rng(num_rows).standard_normal((num_rows, 20), np.float32)
    queries = search.unit_rows(np.random.default_rng(1).standard_normal((70, 20)))
    found = search.nearest(vectors, search.inverse_norms(vectors), queries, num)
    for query, (ids, scores) in zip(queries, found, strict=True):
        expected_ids, expected = reference_nearest(vectors, query, num)
        assert ids.tolist() == expected_ids.tolist()
        np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_many_queries_at_once_answer_as_one_by_one() -> None:
    vectors = np.random.default_rng(3).standard_normal((3_000, 33), np.float32)
    inverse, queries = search.inverse_norms(vectors), search.unit_rows(vectors[:130])
    together = search.nearest(vectors, inverse, queries, 5)
    for query, (ids, scores) in zip(queries, together, strict=True):
        alone_ids, alone_scores = search.nearest(vectors, inverse, query[None], 5)[0]
        assert ids.tolist() == alone_ids.tolist()
        assert scores.tolist() == alone_scores.tolist()


def test_blocks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(4).standard_normal((999, 8), np.float32)
    inverse, query = search.inverse_norms(vectors), search.unit(vectors[17])
    expected = reference_nearest(vectors, query, 12)[0].tolist()
    monkeypatch.setattr(search, "_NUM_SCORES", 100)
    assert search.nearest(vectors, inverse, query[None], 12)[0][0].tolist() == expected


def test_equal_scores_come_by_id() -> None:
    vectors = np.tile(np.float32([[1, 2], [2, 1], [3, 6]]), (2_000, 1))
    ids, scores = search.nearest(
        vectors, search.inverse_norms(vectors), search.unit(vectors[0])[None], 6
    )[0]
    assert ids.tolist() == [0, 2, 3, 5, 6, 8]
    np.testing.assert_allclose(scores, 1.0)


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 3), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_product_equals_reference(seed: int, positive: int, negative: int, num: int) -> None:
    generator = np.random.default_rng(seed)
    # Small whole numbers make exact opposites, the hardest case for a quotient.
    vectors = generator.integers(-2, 3, (300, 3)).astype(np.float32)
    terms = search.unit_rows(generator.integers(-2, 3, (positive + negative, 3)))
    is_positive = np.arange(len(terms)) < positive
    inverse = search.inverse_norms(vectors)
    _, scores = search.nearest_by_product(vectors, inverse, terms, is_positive, num)
    _, expected = reference_nearest_by_product(vectors, terms, is_positive, num)
    np.testing.assert_allclose(scores, expected, rtol=1e-7)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=200), st.integers(1, 30))
def test_bound_is_reached_often_enough(values: list[float], num: int) -> None:
    scores = np.repeat(np.float32(values), 20)
    bound = search.kth_bound(scores, num)
    assert np.count_nonzero(scores >= bound) >= min(num, len(scores))


def test_rows_without_direction_score_zero() -> None:
    vectors = np.float32([[0, 0], [np.nan, 1], [np.inf, 1], [1e-40, 0], [1e30, 0], [1e-30, 0]])
    ids, scores = search.nearest(vectors, search.inverse_norms(vectors), np.array([[1.0, 0.0]]), 6)[
        0
    ]
    assert ids.tolist() == [4, 5, 0, 1, 2, 3]
    np.testing.assert_allclose(scores, [1, 1, 0, 0, 0, 0])
