"""Floors: each says exactly what its rule says."""

import sys
from pathlib import Path

import numpy as np
import pytest

from sememe.evaluation import baselines
from sememe.examples.labelled.rows import AnswerRow, AnswerSpan, TagRow, TextRow
from sememe.vectors import WordVectors

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import docstring_baselines as floors


def test_the_most_frequent_label_and_tag():
    train = [TextRow("a", label=label) for label in "yxxy"]
    assert baselines.majority_labels(train, train[:2]) == ["x", "x"]  # of equals the first
    tagged = [TagRow(("int", "n"), ("B-TYPE", "O")), TagRow(("n",), ("O",))]
    assert baselines.majority_tags(tagged, [TagRow(("n", "int", "new"))]) == [["O", "B-TYPE", "O"]]


def test_the_most_frequent_answer_that_a_context_holds():
    train = [AnswerRow("1", "?", "int", (AnswerSpan(text, 0),)) for text in ("int", "int", "str")]
    rows = [AnswerRow("2", "?", context) for context in ("a str b", "an int or str", "printed")]
    assert baselines.majority_answers(train, rows) == ["str", "int", ""]


def test_regular_expressions_find_types_and_their_neighbors():
    words = ("axis", "int", "or", "none", "the", "axis", "fill_value", "wave", "printed")
    tags = ["B-NAME", "B-TYPE", "I-TYPE", "I-TYPE", "O", "O", "B-NAME", "O", "O"]
    assert floors.regex_tags([TagRow(words)]) == [tags]
    context = "axis int or none the axis list of str names wave color"
    for name, answer in (("axis", "int or none"), ("names", "list of str"), ("color", "")):
        assert floors.regex_answer(AnswerRow("1", f"What type is {name}?", context)) == answer


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


def test_baselines_of_each_kind():
    texts = [TextRow("cat", label="+"), TextRow("car", label="-"), TextRow("cat", label="+")]
    vectors = WordVectors(["cat", "car"], np.eye(2))
    found = floors.floors("classify", 50 * texts, texts, vectors)
    assert found == {"majority": pytest.approx(2 / 3), "mean of word vectors": 1.0}
    tagged = [TagRow(("size", "int", "bytes_read"), ("B-NAME", "B-TYPE", "O"))]
    assert floors.floors("tag", tagged, tagged) == {
        "majority": 1.0, "regular expression": pytest.approx(0.8),
    }  # fmt: skip
    asked = [AnswerRow("1", "What type is size?", "size int wave", (AnswerSpan("int", 5),))]
    assert floors.floors("answer", asked, asked) == {"majority": 1.0, "regular expression": 1.0}
