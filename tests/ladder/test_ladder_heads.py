"""The light heads: sparse and dense agree, and what can be told is told."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sememe.ladder import heads
from sememe.ladder.reading import Reader, cut, given
from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors


@pytest.fixture
def words():
    return np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)


def test_rows_from_words_are_the_same_sparse_and_dense(words):
    sizes = [4, 0, 5]
    sparse = csr_matrix(words)
    pooled = heads.pooled(words, sizes)
    np.testing.assert_allclose(pooled[0], words[:4].mean(0), rtol=1e-6)
    assert not pooled[1].any()
    np.testing.assert_allclose(heads.pooled(sparse, sizes).toarray(), pooled, rtol=1e-6)
    around = heads.windowed(words, sizes, 1)
    np.testing.assert_array_equal(around[1], words[:3].ravel())
    assert not around[0, :4].any() and not around[3, 8:].any() and not around[4, :4].any()
    np.testing.assert_array_equal(heads.windowed(sparse, sizes, 1).toarray(), around)
    both = heads.compared(words[:3], words[3:6])
    np.testing.assert_allclose(heads.compared(sparse[:3], sparse[3:6]).toarray(), both, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_a_linear_rule_is_found_and_noise_is_not(kind):
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(600, 12)).astype(np.float32)
    classes = (rows @ draw.normal(size=(12, 3))).argmax(1)
    head = heads.fit_classes(kind(rows[:400]), classes[:400], 3)
    assert (head.scores(kind(rows[400:])).argmax(1) == classes[400:]).mean() > 0.85
    shuffled = draw.permutation(classes)
    head = heads.fit_classes(kind(rows[:400]), shuffled[:400], 3)
    assert (head.scores(kind(rows[400:])).argmax(1) == shuffled[400:]).mean() < 0.5


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_without_features_the_most_frequent_class_is_said(kind):
    head = heads.fit_classes(kind(np.zeros((5, 3), np.float32)), np.array([2, 0, 2, 2, 1]), 4)
    assert head.scores(kind(np.ones((2, 3), np.float32))).argmax(1).tolist() == [2, 2]


def test_the_right_row_of_each_group_is_chosen():
    draw = np.random.default_rng(2)
    rows = draw.normal(size=(900, 5)).astype(np.float32)
    firsts = np.arange(0, 900, 9)
    right = firsts + rows[:, 2].reshape(-1, 9).argmax(1)
    chooser = heads.fit_choices(rows[:630], firsts[:70], right[:70])
    said = firsts[70:] + chooser.scores(rows[630:]).reshape(-1, 9).argmax(1)
    assert (said == right[70:]).mean() > 0.9


def test_words_are_cut_and_written_as_the_store_has_them():
    own = cut(["Return the X-axis, or None."], TextSettings())[0]
    assert own.words[:2] == ["return", "the"] and own.words[-1] == "none"
    assert [own.text[a:b] for a, b in zip(own.starts, own.ends, strict=True)][-1] == "None"
    chinese = cut(["中国的首都是北京。"], TextSettings(language="zh"))[0]
    assert "中国" in chinese.words and "北京" in chinese.words and "。" not in chinese.words
    row = given(["a", "Bc"], TextSettings())
    assert row.text == "a Bc" and row.words == ["a", "bc"] and row.ends.tolist() == [1, 4]


def test_chinese_words_are_written_without_spaces():
    row = given(["我", "的", "iPhone", "13", "手机"], TextSettings(language="zh"))
    assert row.text == "我的iPhone 13手机"
    spans = zip(row.starts, row.ends, strict=True)
    assert [row.text[a:b] for a, b in spans] == ["我", "的", "iPhone", "13", "手机"]
    assert given([], TextSettings(language="zh")).text == ""


def test_static_vectors_look_words_up_and_give_zeros_for_others():
    vectors = WordVectors(Vocabulary.from_words(["a", "b"]), np.eye(2, dtype=np.float32))
    rows = Reader(vectors).read([given(["b", "nothing", "a"], TextSettings())])
    assert rows.tolist() == [[0, 1], [0, 0], [1, 0]]
