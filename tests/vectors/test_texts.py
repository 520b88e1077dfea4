"""Word vectors as a model: vectors of texts, of words in sentences, and what they say of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import InputError, OptionError, UnsupportedError
from sememe.text.settings import TextSettings
from sememe.vectors import SubwordVectors, WordVectors
from sememe.vectors.onehot import OneHotVectors

WORDS = ["king", "queen", "man", "Paris", "国王"]
TABLE = np.float32([[3, 1, 0], [3, -1, 0], [1, 1, 0], [0, 2, 5], [0, 0.1, 2]])


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, TABLE.copy(), counts=[6, 5, 4, 3, 2])


def test_a_text_is_the_mean_or_the_maximum_of_its_known_words(vectors: WordVectors) -> None:
    texts = ["The King met a queen. A man!", "", "nothing known"]
    assert vectors.embed(texts).dtype == np.float32
    expected = [TABLE[:3].mean(0), np.zeros(3), np.zeros(3)]
    np.testing.assert_allclose(vectors.embed(texts), expected, rtol=1e-6)
    assert vectors.embed(texts, pool="max")[0].tolist() == [3, 1, 0]
    assert vectors.embed([]).shape == (0, 3)


def test_ids_give_the_vectors_of_their_texts(vectors: WordVectors) -> None:
    texts = ["The King met a queen. A man!", "", "nothing known"]
    ids = vectors.token_ids(texts)
    assert ids == [[-1, 0, -1, -1, 1, -1, 2], [], [-1, -1]]
    assert vectors.embed_token_ids(ids).tolist() == vectors.embed(texts).tolist()
    assert vectors.embed_token_ids([]).shape == (0, 3)
    for wrong in (5, -2, 2**70):
        with pytest.raises(OptionError, match=f"{wrong} does not exist: ids are 0 to 4"):
            vectors.embed_token_ids([[0], [1, wrong]])
    one_hot = OneHotVectors(["king"])
    assert not one_hot.embeds_ids
    with pytest.raises(OptionError, match="texts, not token ids"):
        one_hot.embed_token_ids([[0]])


def test_texts_are_cut_as_the_settings_say(vectors: WordVectors) -> None:
    assert not vectors.embed(["Paris"]).any()  # turned into lower case, as the text of a corpus
    vectors.text = TextSettings(lowercase=False)
    assert vectors.embed(["Paris"])[0].tolist() == TABLE[3].tolist()
    vectors.text = TextSettings(language="zh")
    assert vectors.embed(["国王来了。"])[0].tolist() == TABLE[4].tolist()


def test_words_have_the_same_vector_in_every_sentence(vectors: WordVectors) -> None:
    found = vectors.embed_words([["king", "Queen", "unknown", "Paris"], "The king and a MAN", []])
    assert [rows.shape for rows in found] == [(4, 3), (2, 3), (0, 3)]
    assert found[0].tolist() == [*TABLE[:2].tolist(), [0, 0, 0], TABLE[3].tolist()]
    assert found[1].tolist() == TABLE[[0, 2]].tolist()


def test_words_in_a_text_have_their_places(vectors: WordVectors) -> None:
    text = "The King, a MAN"
    (own,) = vectors.embed_spans([text])
    places = list(zip(own.starts.tolist(), own.ends.tolist(), strict=True))
    assert [text[start:end] for start, end in places] == ["The", "King", "a", "MAN"]
    assert own.words == ["the", "king", "a", "man"]
    assert own.is_known_W.tolist() == [False, True, False, True]
    assert own.vectors_WD[own.is_known_W].tolist() == TABLE[[0, 2]].tolist()
    (given,) = vectors.embed_spans([text], [np.array([[4, 8]])])
    assert given.words == ["king"] and given.vectors_WD.tolist() == [TABLE[0].tolist()]
    (empty,) = vectors.embed_spans([""])
    assert empty.words == [] and empty.vectors_WD.shape == (0, 3)
    assert vectors.layer_widths == (3,)


def test_unknown_words_have_vectors_from_subwords() -> None:
    table = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    vectors = SubwordVectors(["king", "man"], table, minn=2, maxn=3)
    (rows,) = vectors.embed_words([["kings"]])
    assert np.array_equal(rows[0], vectors["kings"]) and rows.any()
    assert np.array_equal(vectors.embed(["The kings"]), vectors[["the", "kings"]].mean(0)[None])


def test_one_hot_vectors_count_words() -> None:
    vectors = OneHotVectors(["the", "cat", "dog"])
    assert vectors.embed(["the cat the dog"]).tolist() == [[0.5, 0.25, 0.25]]
    assert vectors.is_one_hot and not vectors.has_subwords


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v: v.embed("one text"),
        lambda v: v.embed_words("one text"),
        lambda v: v.embed(["a"], pool="cls"),
        lambda v: v.embed(["a"], layers=0),
        lambda v: v.embed_words(["a"], layers="first"),
    ],
)
def test_what_word_vectors_lack_is_refused(wrong, vectors: WordVectors) -> None:
    with pytest.raises((InputError, OptionError)):
        wrong(vectors)


def test_vectors_are_a_model_of_words(vectors: WordVectors, tmp_path: Path) -> None:
    assert vectors.words is vectors and vectors.kind == "vectors"
    told = vectors.describe()
    assert (told["words"], told["dim"], told["occurrences"]) == (5, 3, 20)
    assert {"embed", "words", "embed_words"} <= vectors.capabilities
    with pytest.raises(UnsupportedError, match="bert"):
        vectors.fill("a [MASK]")
    vectors.save(tmp_path / "v")
    assert sememe.load(tmp_path / "v").describe() == told | {"format": 1}


def test_copies_read_texts_as_the_vectors_do(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.text = TextSettings(language="zh")
    vectors.save(tmp_path / "v")
    for copy in (sememe.load(tmp_path / "v"), vectors.subset(["国王"]), vectors.normalized()):
        assert copy.text == vectors.text


def test_notebooks_show_tables(vectors: WordVectors) -> None:
    hostile = WordVectors(["<b>", "a"], TABLE[:2])
    shown = hostile.neighbors("a")._repr_html_()
    assert "&lt;b&gt;" in shown and "<b>" not in shown and "score" in shown
    assert vectors.neighbors("king") == list(vectors.neighbors("king"))
    assert "occurrences" in vectors._repr_html_() and "<table>" in vectors._repr_html_()
