"""Exact search, BM25 and rank fusion against plain references."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sememe.search.lexical import BM25, words_of_texts
from sememe.search.ranking import fuse, nearest_rows, top_scores
from sememe.text.settings import TextSettings


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    norms = np.linalg.norm(one) * np.linalg.norm(other)
    return float(one @ other / norms) if norms else 0.0


@pytest.mark.parametrize("has_filter", [False, True])
@pytest.mark.parametrize("num_rows", [3, 50, 5_000])
def test_nearest_rows_equal_sorting_all_cosines(num_rows: int, has_filter: bool) -> None:
    draw = np.random.default_rng(num_rows)
    rows, queries = draw.normal(size=(num_rows, 7)).astype("f4"), draw.normal(size=(70, 7))
    rows[1] = 0
    allowed = draw.random(num_rows) < 0.3 if has_filter else np.ones(num_rows, bool)
    allowed[0] = True
    found = nearest_rows(rows, queries, 5, is_allowed_N=allowed if has_filter else None)
    for query, (ids, scores) in zip(queries, found, strict=True):
        expected = sorted(
            (-cosine(rows[row].astype("f8"), query), row) for row in np.flatnonzero(allowed)
        )[:5]
        assert ids.tolist() == [row for _, row in expected]
        np.testing.assert_allclose(scores, [-score for score, _ in expected], atol=1e-6)


def test_top_scores_leave_out_zeros_and_order_ties_by_id() -> None:
    scores = np.array([0, 2, 0, 3, 2, 1], np.float32)
    assert top_scores(scores, 10)[0].tolist() == [3, 1, 4, 5]
    assert top_scores(scores, 2)[0].tolist() == [3, 1]
    assert top_scores(scores, 2, np.array([1, 0, 1, 0, 1, 1], bool))[0].tolist() == [4, 5]


def reference_bm25(texts: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """The formula of Lucene, text by text and word by word."""
    mean_length = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        counts, score = Counter(text), 0.0
        for word in query:
            num_with = sum(word in other for other in texts)
            rarity = math.log(1 + (len(texts) - num_with + 0.5) / (num_with + 0.5))
            norm = k1 * (1 - b + b * len(text) / mean_length)
            score += rarity * counts[word] / (counts[word] + norm)
        scores.append(score)
    return scores


TEXTS = [
    "The cat sat on the mat.",
    "",
    "A dog and a cat: the dog's dinner!",
    "…",
    "Stock markets fell. Stock prices fell too.",
]


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4)])
def test_bm25_equals_its_formula(k1: float, b: float) -> None:
    words = list(words_of_texts(TEXTS, TextSettings()))
    assert words[0] == ["the", "cat", "sat", "on", "the", "mat"]
    assert words[1] == words[3] == []
    index = BM25.build(TEXTS, k1=k1, b=b)
    for query in ("The CAT", "stock fell fell", "dog unicorn"):
        (asked,) = words_of_texts([query], TextSettings())
        expected = reference_bm25(words, asked, k1, b)
        np.testing.assert_allclose(index.scores(query), expected, rtol=1e-5)


def test_bm25_finds_rows_and_nothing_for_unknown_words(tmp_path: Path) -> None:
    index = BM25.build(TEXTS)
    index.save(tmp_path)
    for own in (index, BM25.load(tmp_path, len(TEXTS), TextSettings())):
        (first, _), (second, _), (third, _) = own.search(["cat", "unicorn", ""], 5)
        assert first.tolist() == [0, 2]
        assert not len(second) and not len(third)


def test_bm25_of_chinese_matches_words() -> None:
    index = BM25.build(
        ["我来到北京清华大学", "他在北大读书", "明天的天气很好"], TextSettings(language="zh")
    )
    ((ids, _),) = index.search(["清华大学"], 3)
    assert ids.tolist() == [0]
    ((ids, _),) = index.search(["天气"], 3)
    assert ids.tolist() == [2]
    ((ids, _),) = index.search(["清华"], 3)  # a word inside a longer one
    assert ids.tolist() == [0]


def test_bm25_without_any_word(tmp_path: Path) -> None:
    index = BM25.build(["", "…"])
    index.save(tmp_path / "empty")
    again = BM25.load(tmp_path / "empty", 2, TextSettings())
    assert not len(index.search(["word"], 3)[0][0]) and not len(again.search(["word"], 3)[0][0])


def test_fusion_adds_reciprocal_ranks() -> None:
    ids, scores = fuse([np.array([7, 3, 5]), np.array([3, 9])], 10)
    expected = {7: 1 / 61, 3: 1 / 62 + 1 / 61, 5: 1 / 63, 9: 1 / 62}
    assert ids.tolist() == [3, 7, 9, 5]
    np.testing.assert_allclose(scores, [expected[row] for row in ids.tolist()])
    assert fuse([np.array([2]), np.array([1])], 1)[0].tolist() == [1]  # ties by id
    assert not len(fuse([np.array([], np.int64), np.array([])], 3)[0])
