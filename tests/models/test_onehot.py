"""One-hot vectors: no similarity, no matrix, and every door open to them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.vectors import WordVectors
from sememe.vectors.onehot import OneHotVectors

WORDS = ["the", "king", "queen", "man", "woman", "国王", "女王", "King"]
MANY = 200_000

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def pair() -> tuple[OneHotVectors, WordVectors]:
    """One-hot vectors, and the same as an ordinary matrix."""
    return OneHotVectors(WORDS), WordVectors(WORDS, np.eye(len(WORDS)))


def test_every_cosine_is_zero_but_ones_own(pair):
    ours, _ = pair
    for word in WORDS:
        assert [ours.similarity(word, other) for other in WORDS] == [
            float(word == other) for other in WORDS
        ]


def test_answers_are_those_of_the_identity_matrix(pair):
    ours, plain = pair
    assert np.array_equal(ours.vectors, plain.vectors) and not ours.vectors.flags.writeable
    assert np.array_equal(ours["king"], plain["king"])
    assert np.array_equal(ours[["king", "国王"]], plain[["king", "国王"]])
    assert ours.neighbors("king") == plain.neighbors("king")
    assert ours.neighbors("king", num=2, restrict_vocab=3, include_inputs=True) == plain.neighbors(
        "king", num=2, restrict_vocab=3, include_inputs=True
    )
    questions = {"positive": ["king", "woman"], "negative": ["man"]}
    assert ours.neighbors(**questions) == plain.neighbors(**questions)
    assert ours.neighbors_by_product(**questions) == plain.neighbors_by_product(**questions)
    assert ours.analogy("man", "king", "woman") == plain.analogy("man", "king", "woman")
    assert ours.neighbors_of_many(["king", "queen"], 3) == plain.neighbors_of_many(
        ["king", "queen"], 3
    )
    assert np.array_equal(ours.similarities("king"), plain.similarities("king"))
    assert np.array_equal(
        ours.similarities("king", WORDS[:3]), plain.similarities("king", WORDS[:3])
    )
    assert np.array_equal(ours.subset(["queen", "king"]).vectors, np.eye(2))
    assert ours.normalized() is ours


def test_a_large_vocabulary_takes_no_large_matrix():
    vectors = OneHotVectors([f"w{number}" for number in range(MANY)])
    assert vectors.dim == MANY and vectors["w7"].sum() == 1
    assert [near.word for near in vectors.neighbors("w1", num=2)] == ["w0", "w2"]
    assert vectors.similarity("w5", "w6") == 0
    with pytest.raises(sememe.SememeError, match="no index"):
        vectors.index()


def test_fit_save_and_load(place):
    model = sememe.OneHot(min_count=1).fit([["the", "king", "的"], ["the", "queen"]], out="model")
    assert repr(model) == "OneHot(4 words)"
    assert json.loads((place / "model/sememe.json").read_text())["dim"] == 4
    again = sememe.load("model")
    assert isinstance(again, OneHotVectors) and list(again) == list(model.vectors)
    assert again.count("the") == 2 and "的" in again
    assert list(sememe.OneHot.load("model").vectors) == list(again)
    again.save("vectors")
    assert list(sememe.load("vectors", limit=2)) == list(again)[:2]
    assert sum(path.stat().st_size for path in (place / "vectors").iterdir()) < 4_000


def questions(place: Path) -> Path:
    folder = place / "questions"
    folder.mkdir()
    pairs = [("w1", "w2", 9), ("w3", "w4", 5), ("w5", "w6", 1), ("w2", "w9", 3)]
    (folder / "pairs.txt").write_text("".join(f"{a}\t{b}\t{s}\n" for a, b, s in pairs))
    (folder / "analogies.txt").write_text(": s\nw1 w2 w3 w0\nw1 w2 W3 w4\nw0 w2 w3 w1\n")
    (folder / "odd.txt").write_text("w1 w2 w3 | w150\nw5 w6 w7 | w8\n")
    (folder / "groups.txt").write_text("one: w1 w2 w3\ntwo: w160 w170 w180\n")
    (folder / "antonyms.txt").write_text("w1 w2\nw3 w150\n")
    return folder


def test_scores_are_those_of_the_identity_matrix(place):
    """Equal scores are no order, so Spearman is undefined; ties fall to the more frequent word."""
    words = [f"w{number}" for number in range(300)]
    folder = questions(place)
    ours, plain = (
        sememe.evaluate_words(vectors, folder)
        for vectors in (OneHotVectors(words), WordVectors(words, np.eye(len(words))))
    )
    assert (ours.num_words, ours.dim) == (plain.num_words, plain.dim) == (300, 300)
    assert len(ours.scores) == 5
    for mine, theirs in zip(ours.scores, plain.scores, strict=True):
        assert mine.name == theirs.name and mine.num_asked == theirs.num_asked
        assert mine.value == pytest.approx(theirs.value, nan_ok=True), mine.name
    by_name = {score.name: score for score in ours.scores}
    assert math.isnan(by_name["pairs"].value) and by_name["pairs"].num_asked == 4
    # The first word that is not asked about wins every analogy, and once it was the right one.
    assert by_name["analogies"].value == pytest.approx(2 / 3)


def test_a_large_vocabulary_is_evaluated_quickly(place):
    vectors = OneHotVectors([f"w{number}" for number in range(MANY)])
    result = sememe.evaluate_words(vectors, questions(place))
    assert result.dim == MANY and len(result.scores) == 5


def test_only_small_ones_become_a_vector_file(place):
    from sememe.vectors.formats import write_vectors

    write_vectors(OneHotVectors(WORDS), "small.txt")
    assert np.array_equal(sememe.load("small.txt").vectors, np.eye(len(WORDS)))
    many = OneHotVectors([f"w{number}" for number in range(MANY)])
    with pytest.raises(sememe.SememeError, match="keep them as a folder"):
        write_vectors(many, "large.txt")
    assert not (place / "large.txt").exists()


def test_bad_input():
    with pytest.raises(sememe.SememeError, match="at least one word"):
        OneHotVectors([])
    with pytest.raises(sememe.SememeError, match="min_count"):
        sememe.OneHot(min_count=0)
    with pytest.raises(sememe.SememeError, match="no option dim"):
        sememe.OneHot(dim=3)
    with pytest.raises(sememe.SememeError, match="start or callbacks"):
        sememe.OneHot(min_count=1).fit([["a", "b"]], start="x")
    with pytest.raises(sememe.SememeError, match="queen"):
        OneHotVectors(["king"]).neighbors("queen")
    with pytest.raises(sememe.SememeError, match="weights"):
        OneHotVectors(WORDS).neighbors_by_product([("king", 0.5)])
    with pytest.raises(sememe.SememeError, match="num must"):
        OneHotVectors(WORDS).neighbors("king", num=0)
