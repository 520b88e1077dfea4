"""Floors: each says exactly what its rule says."""

import sys
from pathlib import Path

import numpy as np
import pytest

from sememe.examples.labelled.rows import AnswerRow, AnswerSpan, TagRow, TextRow
from sememe.metrics import baselines
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


THINGS = ("film", "story", "song", "book", "day", "play")
GOOD, BAD = ("good", "great", "lovely", "fine"), ("bad", "poor", "awful", "dull")
OPINIONS = [
    TextRow(f"the {word} {thing}", label=label)
    for words, label in ((GOOD, "pro"), (BAD, "contra"), (("old",), "pro"))
    for word in words
    for thing in THINGS
]


def _gold(rows):
    return [row.label if row.labels is None else sorted(row.labels) for row in rows]


def test_the_regression_learns_what_the_most_frequent_label_cannot():
    found = baselines.Baselines("classify", OPINIONS[::2]).scores(
        OPINIONS[1::2], _gold(OPINIONS[1::2]), "accuracy"
    )
    assert [one.name for one in found] == [baselines.TFIDF, "most frequent label"]
    assert found[0].score > 0.9 > found[1].score == pytest.approx(15 / 27)
    assert found[1].interval.low < found[1].score < found[1].interval.high
    assert {one.num_train for one in found} == {27}


def test_the_regression_is_scikit_learns_on_tf_idf_weights():
    """Parity with the pipeline that a reader of the page would write."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    train, rows = OPINIONS[::2], OPINIONS[1::2]
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\b\w+\b")
    theirs = make_pipeline(words, LogisticRegression(C=10, solver="liblinear"))
    theirs.fit([row.text for row in train], [row.label for row in train])
    ours = baselines.TextRegression("classify", train)  # too few rows to choose C by
    assert ours.predict(rows) == theirs.predict([row.text for row in rows]).tolist()


def test_chinese_is_read_by_characters_with_or_without_blanks():
    texts = [("电影很好看", "好"), ("故事真精彩", "好"), ("电影很无聊", "差"), ("故事真难看", "差")]
    train = [TextRow(text, label=label) for text, label in texts * 5]
    asked = [TextRow("歌曲很无聊"), TextRow("歌 曲 真 精 彩")]
    assert baselines.TextRegression("classify", train).predict(asked) == ["差", "好"]
    spaced = [TextRow(" ".join(row.text), label=row.label) for row in train]
    assert baselines.TextRegression("classify", spaced).predict(asked) == ["差", "好"]


def test_every_kind_of_rows_has_its_baselines():
    sets = [
        TextRow(f"{word} {thing}", labels=(word, "x") if word == "good" else ())
        for word in ("good", "bad")
        for thing in THINGS
    ]
    found = baselines.Baselines("classify", sets).predict(sets)
    assert found[baselines.TFIDF] == [sorted(row.labels) for row in sets]
    assert found["most frequent label"] == [["good"]] * len(sets)
    pairs = [
        TextRow(f"a {thing}", f"{word} {thing}", label=word)
        for thing in THINGS
        for word in ("good", "bad")
    ]
    found = baselines.Baselines("pairs", pairs).predict(pairs)
    assert found[baselines.TFIDF] == [row.label for row in pairs]
    scores = [TextRow(f"{'very ' * n}good", score=float(n)) for n in range(6)]
    own = baselines.Baselines("regress", scores)
    ridge, mean = own.scores(scores, [row.score for row in scores], "pearson")
    assert (ridge.name, mean.name) == (baselines.TFIDF_RIDGE, "mean score")
    assert ridge.score > 0.9 and np.isnan(mean.score) and mean.to_dict()["score"] is None
    choices = [
        TextRow("who is it?", choices=("bad", f"good {thing}"), label="1") for thing in THINGS
    ] + [TextRow("who is it?", choices=(f"good {thing}", "bad"), label="0") for thing in THINGS]
    said = baselines.Baselines("choose", choices).predict(choices)
    assert said[baselines.TFIDF] == [row.label for row in choices]
    for kind in ("tag", "answer"):
        assert kind[:3] in baselines.Baselines(kind, []).regression


def test_rows_without_words_or_with_one_label_have_a_reason():
    silent = [TextRow("…", label=label) for label in "ab" * 20]
    found = baselines.Baselines("classify", silent).scores(silent, _gold(silent), "accuracy")
    assert found[-1].name == baselines.TFIDF and "vocabulary" in found[-1].why
    assert found[-1].to_dict()["score"] is None


def test_much_text_is_sampled_the_same_way_every_time(monkeypatch):
    monkeypatch.setattr(baselines, "_MOST_CHARACTERS", 600)
    own = baselines.Baselines("classify", OPINIONS * 2)
    num = own.regression[1]
    assert 30 <= num < 108
    assert own.scores(OPINIONS, _gold(OPINIONS), "accuracy")[0].num_train in (num, 108)
    again = baselines.Baselines("classify", OPINIONS * 2)
    assert again.predict(OPINIONS) == own.predict(OPINIONS)


def test_runs_on_the_same_rows_share_their_baselines():
    first = baselines.baselines_of("classify", OPINIONS)
    assert baselines.baselines_of("classify", list(OPINIONS)) is first
    assert baselines.baselines_of("classify", OPINIONS[1:]) is not first
