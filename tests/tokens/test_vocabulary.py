"""Vocabulary: flat arrays that behave as a sequence of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sememe.errors import ArtifactError, OptionError, UnknownWordError
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.vocabulary import Vocabulary, sort_words

WORDS = ["the", "猫", "cat", "a b", "naïve", "\ud800", "zebra"]


def test_it_is_a_sequence_of_words() -> None:
    vocabulary = Vocabulary.from_words(WORDS, range(7, 0, -1))
    assert len(vocabulary) == 7 and list(vocabulary) == WORDS
    assert vocabulary[1] == "猫" and vocabulary[-1] == "zebra" and vocabulary[1:3] == WORDS[1:3]
    assert [vocabulary.find(word) for word in WORDS] == list(range(7))
    assert vocabulary.find("dog") == -1 and vocabulary.find(3) == -1
    assert "cat" in vocabulary and "dog" not in vocabulary
    with pytest.raises(IndexError):
        vocabulary[7]


def test_search_and_dictionary_agree() -> None:
    vocabulary = Vocabulary.from_words(WORDS)
    asked = [*WORDS, "", "ca", "cats", "犬", "\U0010ffff"]
    by_dictionary = [vocabulary.find(word) for word in asked]
    searched = Vocabulary.from_tensors(vocabulary.to_tensors())
    assert [searched.find(word) for word in asked] == by_dictionary
    assert searched._dict is None  # so few questions need no dictionary
    for _ in range(3_000):
        assert searched.find("猫") == 1
    assert searched._dict is not None


def test_an_unknown_word_names_near_spellings() -> None:
    with pytest.raises(UnknownWordError, match="zebra"):
        Vocabulary.from_words(WORDS).id("zebre")


def test_a_cut_keeps_the_first_words() -> None:
    vocabulary = Vocabulary.from_words(WORDS, range(7, 0, -1))
    for _ in range(2):  # without and with the order at hand
        short = vocabulary.cut(3)
        assert list(short) == WORDS[:3] and short.counts.tolist() == [7, 6, 5]
        assert short.find("cat") == 2 and short.find("zebra") == -1
        assert [short[word_id] for word_id in short.order] == ["cat", "the", "猫"]
        assert list(vocabulary.cut(0)) == [] and vocabulary.cut(99) is vocabulary
        assert len(vocabulary.order) == 7


def test_it_comes_back_from_a_file(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_words(WORDS, range(7, 0, -1))
    write_tensors(tmp_path / "v.safetensors", vocabulary.to_tensors())
    tensors = read_tensors(tmp_path / "v.safetensors")
    again = Vocabulary.from_tensors(tensors)
    assert list(again) == WORDS and again.counts.tolist() == vocabulary.counts.tolist()
    with pytest.raises(ArtifactError, match="word_order"):
        Vocabulary.from_tensors({name: tensors[name] for name in tensors if name != "word_order"})
    with pytest.raises(ArtifactError, match="do not fit"):
        Vocabulary.from_tensors({**tensors, "word_ends": tensors["word_ends"][:-1]})
    with pytest.raises(ArtifactError, match="do not fit"):
        Vocabulary.from_tensors({**tensors, "word_bytes": tensors["word_bytes"][:-1]})


DAMAGE = {
    "ends that do not rise": {"word_ends": [5, 2, 9, 10]},
    "ends that wrap round": {"word_ends": [2**63 - 1, -(2**63), 9, 10]},
    "a negative end": {"word_ends": [-1, 5, 9, 10]},
    "ends beyond the letters": {"word_ends": [3, 6, 2**40, 10]},
    "too few letters": {"word_ends": [3, 6, 9, 11]},
    "an end inside a character": {"word_ends": [3, 4, 9, 10]},
    "letters that are not UTF-8": {"word_bytes": np.frombuffer(b"the\xff\xff\xffcata", np.uint8)},
    "ends of another type": {"word_ends": [3.0, 6.0, 9.0, 10.0]},
    "ends in two dimensions": {"word_ends": [[3], [6], [9], [10]]},
    "letters of another type": {"word_bytes": np.arange(10, dtype=np.int64)},
    "negative counts": {"word_counts": [4, 3, -2, 1]},
    "counts without end": {"word_counts": [2**62, 2**62, 2**62, 1]},
    "counts of another type": {"word_counts": [True, True, False, True]},
    "an order beyond the words": {"word_order": [0, 1, 2, 4]},
    "an order with a word twice": {"word_order": [0, 1, 1, 3]},
    "a negative order": {"word_order": [0, 1, 2, -1]},
}


@pytest.mark.parametrize("changes", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_vocabularies_are_refused(changes: dict[str, Any]) -> None:
    tensors = Vocabulary.from_words(["the", "猫", "cat", "a"], [4, 3, 2, 1]).to_tensors()
    changed = {name: np.asarray(values) for name, values in changes.items()}
    with pytest.raises(ArtifactError, match=r"vocabulary\.safetensors"):
        Vocabulary.from_tensors({**tensors, **changed}, "vocabulary.safetensors")


def test_records_end_every_word() -> None:
    words = ["a", "猫", "bc"]
    assert Vocabulary.from_words(words).to_records().tobytes() == "a\x1f猫\x1fbc\x1f".encode()
    assert len(Vocabulary.from_words([]).to_records()) == 0


BYTES = st.one_of(
    st.lists(st.sampled_from([b"\0", b"a", b"aaaaaaaa", b"\xff"]), max_size=5).map(b"".join),
    st.binary(max_size=20),
)


@given(st.lists(BYTES, max_size=40))
def test_words_are_sorted_as_python_sorts_them(words: list[bytes]) -> None:
    word_bytes = np.frombuffer(b"".join(words), np.uint8)
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    assert sort_words(word_bytes, ends).tolist() == sorted(
        range(len(words)), key=lambda index: words[index]
    )


def test_a_large_vocabulary_is_searched_without_a_dict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememe.tokens.vocabulary._MANY_WORDS", 3)
    vocabulary = Vocabulary.from_words(["the", "苹果", "a", "the", "né"])
    assert [vocabulary.find(word) for word in ("the", "苹果", "né", "no", "")] == [0, 1, 4, -1, -1]
    assert vocabulary._dict is None


def test_words_are_given_once() -> None:
    assert list(Vocabulary.of(["a", "国"], [2, 1])) == ["a", "国"]
    known = Vocabulary.from_words(["a"])
    assert Vocabulary.of(known) is known
    with pytest.raises(OptionError, match="“国” is given more than once"):
        Vocabulary.of(["a", "国", "国"])
    with pytest.raises(OptionError, match="not one string"):
        Vocabulary.of("words")
