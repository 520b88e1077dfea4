"""WordVectors in use: look-up, neighbors, analogies, and one clear sentence for every mistake."""

import numpy as np
import pytest

from sememe.errors import OptionError, UnknownWordError
from sememe.vectors import Neighbor, WordVectors

WORDS = ["king", "queen", "man", "woman", "苹果", "none"]
TABLE = np.float32([[3, 1, 0], [3, -1, 0], [1, 1, 0], [1, -1, 0], [0, 0.1, 2], [0, 0, 0]])


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, TABLE.copy(), counts=[6, 5, 4, 3, 2, 1])


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_look_up(vectors: WordVectors) -> None:
    assert vectors["queen"].tolist() == [3, -1, 0]
    assert vectors[["苹果", "man"]].tolist() == TABLE[[4, 2]].tolist()
    assert vectors[[]].shape == (0, 3)
    assert "苹果" in vectors
    assert "梨" not in vectors
    assert 3 not in vectors
    assert list(vectors) == WORDS
    assert (len(vectors), vectors.dim) == (6, 3)
    assert vectors.vocabulary.counts.tolist() == [6, 5, 4, 3, 2, 1]
    assert vectors.count("queen") == 5
    assert repr(vectors) == "WordVectors(6 words × 3 dimensions: king, queen, man, …)"


def test_look_up_gives_a_copy(vectors: WordVectors) -> None:
    vectors["king"][:] = 0
    vectors[["king"]][:] = 0
    assert vectors.vectors[0].tolist() == [3, 1, 0]


def test_neighbors_of_a_word_and_of_its_vector(vectors: WordVectors) -> None:
    found = vectors.neighbors("king", num=2)
    assert [neighbor.word for neighbor in found] == ["man", "queen"]
    assert found[0].score == pytest.approx(cosine(TABLE[0], TABLE[2]))
    assert isinstance(found[0], Neighbor)
    assert [near.word for near in vectors.neighbors(TABLE[0], num=2)] == ["king", "man"]
    assert vectors.neighbors("king", include_inputs=True)[0].word == "king"


def test_more_neighbors_than_words(vectors: WordVectors) -> None:
    assert len(vectors.neighbors("king", num=1_000)) == 5


def test_weights_and_signs(vectors: WordVectors) -> None:
    units = TABLE[:4] / np.linalg.norm(TABLE[:4], axis=1, keepdims=True)
    aim = 2 * units[0] - 0.5 * units[2]
    found = vectors.neighbors(
        positive=[("king", 2.0)], negative=[("man", 0.5)], include_inputs=True, num=1
    )
    assert found[0].score == pytest.approx(max(cosine(aim, row) for row in TABLE[:5]))
    assert vectors.neighbors(["king", "man"]) == vectors.neighbors(positive=["king", "man"])
    assert vectors.neighbors("king", positive="man") == vectors.neighbors(["king", "man"])


def test_raw_vectors_weigh_by_length(vectors: WordVectors) -> None:
    aim = TABLE[0] - TABLE[2] + TABLE[3]
    found = vectors.analogy("man", "king", "woman", normalize=False)
    assert found == [Neighbor("queen", pytest.approx(cosine(aim, TABLE[1])))]


def test_many_at_once(vectors: WordVectors) -> None:
    together = vectors.neighbors_of_many(["king", "苹果", TABLE[1]], 3)
    assert together == [vectors.neighbors(term, num=3) for term in ("king", "苹果", TABLE[1])]


@pytest.mark.parametrize("method", ["add", "mul"])
def test_analogy(vectors: WordVectors, method: str) -> None:
    assert vectors.analogy("man", "king", "woman", method=method)[0].word == "queen"
    questions = [("man", "king", "woman"), ("king", "man", "queen")]
    answers = vectors.analogies(questions, method=method)
    assert [answer[0].word for answer in answers] == ["queen", "woman"]
    assert answers[0] == vectors.analogy("man", "king", "woman", method=method)


def test_restricted_vocabulary(vectors: WordVectors) -> None:
    found = vectors.neighbors("苹果", restrict_vocab=3)
    assert {neighbor.word for neighbor in found} == {"king", "queen", "man"}
    words = [near.word for near in vectors.neighbors_by_product("苹果", restrict_vocab=2)]
    assert sorted(words) == ["king", "queen"]


def test_a_zero_vector_is_similar_to_nothing(vectors: WordVectors) -> None:
    assert vectors.similarity("none", "king") == 0
    assert vectors.similarity("none", "none") == 0
    assert all(near.score == 0 for near in vectors.neighbors("none"))
    assert not np.isnan(vectors.normalized().vectors).any()


def test_similarities(vectors: WordVectors) -> None:
    assert vectors.similarity("king", "man") == pytest.approx(cosine(TABLE[0], TABLE[2]))
    every = vectors.similarities("king")
    assert every.tolist() == [pytest.approx(vectors.similarity("king", word)) for word in WORDS]
    assert vectors.similarities("king", ["苹果", "king"]).tolist() == every[[4, 0]].tolist()


def test_odd_one_out(vectors: WordVectors) -> None:
    assert vectors.odd_one_out(["king", "queen", "苹果", "man"]) == "苹果"


def test_subset_and_normalized(vectors: WordVectors) -> None:
    part = vectors.subset(["woman", "king", "woman"])
    assert list(part) == ["woman", "king"]
    assert part.vocabulary.counts.tolist() == [3, 6]
    assert part["king"].tolist() == [3, 1, 0]
    lengths = np.linalg.norm(vectors.normalized().vectors[:5], axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)
    assert vectors["king"].tolist() == [3, 1, 0]


def test_unknown_words_name_near_spellings(vectors: WordVectors) -> None:
    for ask in (
        lambda: vectors["quen"],
        lambda: vectors[["king", "quen"]],
        lambda: vectors.neighbors("quen"),
        lambda: vectors.neighbors("king", negative=["quen"]),
        lambda: vectors.analogy("man", "quen", "woman"),
        lambda: vectors.similarity("king", "quen"),
        lambda: vectors.odd_one_out(["king", "man", "quen"]),
        lambda: vectors.subset(["quen"]),
    ):
        with pytest.raises(UnknownWordError, match=r"“quen” is not among.*queen"):
            ask()


def test_all_unknown_words_are_named_at_once(vectors: WordVectors) -> None:
    with pytest.raises(UnknownWordError, match=r"“国玉” is not among"):
        vectors["国玉"]
    with pytest.raises(UnknownWordError) as told:
        vectors[["quen", "king", "国玉", "quen"]]
    assert "2 words are not among the " in str(told.value)
    assert "“quen” (near: queen), “国玉”. Spell them" in str(told.value)
    with pytest.raises(UnknownWordError, match=r"“z9”, 4 more\. Spell"):
        vectors[[f"z{number}" for number in range(14)]]


@pytest.mark.parametrize(
    "ask",
    [
        lambda v: v.neighbors(),
        lambda v: v.neighbors([]),
        lambda v: v.neighbors(positive=[], negative=[]),
        lambda v: v.neighbors("king", num=0),
        lambda v: v.neighbors("king", num=2.5),
        lambda v: v.neighbors("king", restrict_vocab=0),
        lambda v: v.neighbors("king", restrict_vocab=-3),
        lambda v: v.neighbors(np.zeros(4)),
        lambda v: v.neighbors(np.full(3, np.nan)),
        lambda v: v.neighbors(5),
        lambda v: v.neighbors([None]),
        lambda v: v.neighbors([("king", float("inf"))]),
        lambda v: v.neighbors_of_many([]),
        lambda v: v.neighbors_of_many("king"),
        lambda v: v.neighbors_by_product([("king", 2.0)]),
        lambda v: v.neighbors_by_product([]),
        lambda v: v.analogy("king", "man", "woman", method="divide"),
        lambda v: v.analogies([]),
        lambda v: v.odd_one_out([]),
        lambda v: v.odd_one_out("king"),
        lambda v: v.subset([]),
        lambda v: v.subset("king"),
        lambda v: WordVectors([], np.empty((0, 3))),
        lambda v: WordVectors(["a"], np.ones((2, 3))),
        lambda v: WordVectors(["a"], np.ones(3)),
        lambda v: WordVectors(["a", "a"], np.ones((2, 3))),
        lambda v: WordVectors(["a"], np.ones((1, 3)), counts=[1, 2]),
        lambda v: WordVectors("a", np.ones((1, 3))),
    ],
)
def test_senseless_requests_are_refused(vectors: WordVectors, ask) -> None:
    with pytest.raises(OptionError) as caught:
        ask(vectors)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
