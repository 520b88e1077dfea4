"""Floors: each says exactly what its rule says, and logistic regression is the known one."""

import numpy as np
import pytest

pytest.importorskip("torch")

from sememe.errors import OptionError
from sememe.evaluation import floors
from sememe.evaluation.logistic import fit_logistic
from sememe.examples.labelled import Answer, AnswerRow, TagRow, TextRow
from sememe.vectors import WordVectors


def test_the_commonest_label_and_tag():
    train = [TextRow("a", label=label) for label in "yxxy"]
    assert floors.majority_labels(train, train[:2]) == ["x", "x"]  # of equals the first
    tagged = [TagRow(("int", "n"), ("B-TYPE", "O")), TagRow(("n",), ("O",))]
    assert floors.majority_tags(tagged, [TagRow(("n", "int", "new"))]) == [["O", "B-TYPE", "O"]]


def test_the_commonest_answer_that_a_context_holds():
    train = [AnswerRow("1", "?", "int", (Answer(text, 0),)) for text in ("int", "int", "str")]
    rows = [AnswerRow("2", "?", context) for context in ("a str b", "an int or str", "printed")]
    assert floors.majority_answers(train, rows) == ["str", "int", ""]


def test_regular_expressions_find_types_and_their_neighbors():
    words = ("axis", "int", "or", "none", "the", "axis", "fill_value", "wave", "printed")
    tags = ["B-NAME", "B-TYPE", "I-TYPE", "I-TYPE", "O", "O", "B-NAME", "O", "O"]
    assert floors.regex_tags([TagRow(words)]) == [tags]
    context = "axis int or none the axis list of str names wave color"
    for name, answer in (("axis", "int or none"), ("names", "list of str"), ("color", "")):
        assert floors.regex_answer(AnswerRow("1", f"What type is {name}?", context)) == answer


def test_logistic_regression_equals_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(1)
    features = rng.normal(size=(120, 5))
    labels = (features[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int) + (features[:, 1] > 1)
    ours = fit_logistic(features, labels, 3, penalty=2.0)
    peer = linear_model.LogisticRegression(C=0.5, tol=1e-8, max_iter=2_000).fit(features, labels)
    theirs = np.concatenate([peer.coef_.T, peer.intercept_[None]])
    centered = [w - w.mean(1, keepdims=True) for w in (ours, theirs)]
    np.testing.assert_allclose(*centered, atol=5e-3)


def test_means_of_word_vectors_tell_topics_and_compare_texts():
    words = ["cat", "dog", "cow", "红", "car", "bus", "van", "蓝"]
    rows = np.random.default_rng(2).normal(0, 0.2, (8, 6))
    rows[:4, 0] += 2
    vectors = WordVectors(words, rows)
    train = [TextRow(f"{a} {b}", label="+") for a in words[:3] for b in words[:3]]
    train += [TextRow(f"{a} {b}", label="-") for a in words[4:7] for b in words[4:7]]
    asked = [TextRow("红"), TextRow("蓝 unknown"), TextRow("Cat!")]
    assert floors.mean_vector_labels(vectors, train, asked) == ["+", "-", "+"]
    pairs = [
        TextRow(a, b, label="same" if (a in words[:4]) == (b in words[:4]) else "other")
        for a in words for b in words
    ]  # fmt: skip
    for said, least in ((floors.mean_vector_labels, 0.9), (floors.cosine_labels, 0.65)):
        found = zip(said(vectors, pairs, pairs), pairs, strict=True)
        assert np.mean([own == row.label for own, row in found]) > least
    assert set(floors.floors("pairs", pairs, pairs, vectors)) == {
        "majority", "cosine of means", "compared means",
    }  # fmt: skip
    with pytest.raises(OptionError, match="no word vectors"):
        floors.cosine_labels(3, pairs, pairs)


def test_floors_of_each_kind():
    texts = [TextRow("cat", label="+"), TextRow("car", label="-"), TextRow("cat", label="+")]
    vectors = WordVectors(["cat", "car"], np.eye(2))
    found = floors.floors("classify", 50 * texts, texts, vectors)
    assert found == {"majority": pytest.approx(2 / 3), "mean of word vectors": 1.0}
    tagged = [TagRow(("size", "int", "bytes_read"), ("B-NAME", "B-TYPE", "O"))]
    assert floors.floors("tag", tagged, tagged) == {
        "majority": 1.0, "regular expression": pytest.approx(0.8),
    }  # fmt: skip
    asked = [AnswerRow("1", "What type is size?", "size int wave", (Answer("int", 5),))]
    assert floors.floors("answer", asked, asked) == {"majority": 1.0, "regular expression": 1.0}
