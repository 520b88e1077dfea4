"""Queries that are not words as they are written: what is looked up for them, and what is said."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import LookupNote, UnknownWordError
from sememe.text.settings import TextSettings
from sememe.vectors import WordVectors
from sememe.vectors.formats import write_vectors

WORDS = (
    "germany", "new_york", "new", "york", "times", "don't", "ibm", "café", "哈利", "波特", "处理",
    "自然语言", "国王", "哈", "利", "国", "王", "邓",
)  # fmt: skip


def known(
    words: tuple[str, ...] = WORDS, text: TextSettings | None = None, **settings: object
) -> WordVectors:
    rows = np.random.default_rng(1).normal(size=(len(words), 8)).astype(np.float32)
    return WordVectors(words, rows, text=text or TextSettings(**settings) if settings else text)


CHINESE = TextSettings(language="zh")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("germany", ("germany",)),
        ("Germany", ("germany",)),
        ("New York", ("new_york",)),
        ("New_York", ("new_york",)),
        ("New York Times", ("new_york", "times")),
        ("York_Times", ("york", "times")),
        ("Don’t", ("don't",)),
        ("ger\u00admany", ("germany",)),  # a soft hyphen
        ("CAFE\u0301", ("café",)),  # an accent of its own
        ("ＩＢＭ", ("ibm",)),
        ("国王", ("国王",)),
        ("自然语言处理", ("自然语言", "处理")),
        ("哈利波特", ("哈利", "波特")),  # alone, the segmenter makes 哈利波 + 特 of it
        ("Germany国王", ("germany", "国王")),
    ],
)
def test_a_query_is_prepared_like_the_corpus(query: str, words: tuple[str, ...]):
    vectors = known(text=CHINESE)
    found = vectors.look_up(query)
    assert found.words == words
    assert bool(found.note) == (words != (query,))
    assert all(word in found.note for word in words) or not found.note
    # The combined vector is that of the text: the mean of its words.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LookupNote)
        np.testing.assert_array_equal(vectors.query_vectors([query])[0], vectors[words].mean(0))


def test_a_hyphen_separates_words_as_in_the_corpus():
    assert known(layout="line").look_up("New-York").words == ("new_york",)


def test_the_exact_word_comes_first_and_without_a_note():
    vectors = known(("Germany", "germany", "New York"))
    for word in vectors:
        assert vectors.look_up(word) == (word, (word,)) and not vectors.look_up(word).note


def test_characters_of_text_that_was_split_so():
    # The settings of English split Chinese into characters.
    vectors = known(("国", "王", "国王x"), lowercase=True, layout="line")
    assert vectors.look_up("国王").words == ("国", "王")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("germanx", "Near spellings: germany"),
        ("New Foobar", "new + foobar, and foobar is unknown"),
        ("邓布利多", "邓 + 布利 + 多, and 布利, 多 is unknown"),
        ("哈利王", None),  # 哈利 + 王
        ("哈国利王", "unknown"),  # only single characters: no combination of words
        ("", "“” is not among"),
        ("!!", "“!!” is not among"),
    ],
)
def test_what_cannot_be_found_is_told_with_its_parts(query: str, says: str | None):
    vectors = known(text=CHINESE)
    if says is None:
        assert vectors.look_up(query).words == ("哈利", "王")
        return
    with pytest.raises(UnknownWordError, match=says.replace("+", r"\+")):
        vectors.look_up(query)


def test_case_is_kept_where_the_corpus_kept_it():
    vectors = known(("apple", "Paris"), lowercase=False)
    assert vectors.look_up("apple").words == ("apple",)
    with pytest.raises(UnknownWordError, match="apple"):
        vectors.look_up("Apple")


def test_a_foreign_file_is_read_in_lower_case_only_if_it_is(tmp_path: Path):
    for name, words, found in (
        ("lower", ("paris", "new_york", "国王", "故事"), ("paris",)),
        ("cased", ("paris", "London", "国王", "故事"), None),
    ):
        write_vectors(known(words), tmp_path / f"{name}.txt")
        vectors = sememe.load(tmp_path / f"{name}.txt")
        assert not vectors.has_text_settings
        if found:
            assert vectors.look_up("Paris").words == found
            assert vectors.look_up("New York").words == ("new_york",)
        else:
            with pytest.raises(UnknownWordError):
                vectors.look_up("Paris")
        # Nothing says that the file is Chinese: the query does.
        assert vectors.look_up("国王故事").words == ("国王", "故事")
        vectors.save(tmp_path / name)
        assert not sememe.load(tmp_path / name).has_text_settings


def test_a_phrase_of_a_foreign_file_keeps_its_case(tmp_path: Path):
    write_vectors(known(("New_York", "new", "York")), tmp_path / "news.txt")
    vectors = sememe.load(tmp_path / "news.txt")
    assert vectors.look_up("New York").words == ("New_York",)
    assert vectors.look_up("new York").words == ("new", "York")


def test_every_method_takes_such_queries_and_says_so():
    vectors = known(text=CHINESE)
    by_words = {"Germany": ["germany"], "哈利波特": ["哈利", "波特"]}
    for query, words in by_words.items():
        mean = vectors[words].mean(0)
        with pytest.warns(LookupNote, match=query):
            near = vectors.neighbors(query, num=20)
        assert {neighbor.word for neighbor in near} == set(WORDS) - set(words)
        expected = vectors.neighbors(mean, num=20)
        assert near == [neighbor for neighbor in expected if neighbor.word not in words]
        with pytest.warns(LookupNote):
            assert vectors.similarity(query, "国王") == pytest.approx(
                vectors.similarity(mean, "国王")
            )
        with pytest.warns(LookupNote):
            assert vectors.similarities("国王", [query]) == pytest.approx(
                [vectors.similarity("国王", mean)]
            )
        with pytest.warns(LookupNote):
            answers = vectors.analogy("国王", query, "new", num=30)
        assert not {*words, "国王", "new"} & {answer.word for answer in answers}
    with pytest.warns(LookupNote):
        assert vectors.neighbors_of_many(["Germany", "New York"], 1)
    words = ["Germany", "New York", "times"]
    with pytest.warns(LookupNote):
        assert vectors.odd_one_out(words) in words


def test_what_asks_for_the_exact_word_still_does():
    vectors = known(text=CHINESE)
    assert "Germany" not in vectors and not vectors.has_vector("Germany")
    for call in (vectors.__getitem__, vectors.count, lambda word: vectors.subset([word])):
        with pytest.raises(UnknownWordError):
            call("Germany")


def test_all_unknown_words_are_in_one_error():
    with pytest.raises(UnknownWordError, match="2 words are not among") as error:
        known(text=CHINESE).odd_one_out(["abc", "germany", "def"])
    assert "abc" in str(error.value) and "def" in str(error.value)


def test_a_model_knows_how_its_corpus_was_prepared(tmp_path: Path):
    rest = [f"word{number} is here ." for number in range(900)]
    lines = ["Berlin is in Germany .", "New York is in America ."] * 12 + rest
    options = {"dim": 4, "epochs": 1, "min_count": 1, "workers": 1}
    lower = sememe.Word2Vec(**options).fit(lines, phrases=1)
    lower.save(tmp_path / "lower")
    for vectors in (lower.vectors, sememe.load(tmp_path / "lower")):
        assert vectors.look_up("Germany").words == ("germany",)
        assert vectors.look_up("New York").words == ("new_york",)
    cased = sememe.Word2Vec(**options).fit(lines, lowercase=False)
    with pytest.raises(UnknownWordError):
        cased.vectors.look_up("germany")
    subwords = sememe.FastText(**options, bucket=50).fit(lines, phrases=1)
    assert subwords.vectors.look_up("Germany").words == ("germany",)
    assert subwords.vectors.look_up("Germanys").words == ("germanys",)  # from its n-grams
    assert subwords.vectors.look_up("New York").words == ("new_york",)
    assert subwords.vectors.look_up("Unseen Words").words == ("unseen", "words")


def test_evaluation_takes_words_by_its_own_rules(tmp_path: Path):
    """A question with a word that is only found in parts stays unknown."""
    (tmp_path / "pairs.tsv").write_text("哈利波特\t国王\t5\nnew\tyork\t4\ntimes\tibm\t3\n")
    score = sememe.evaluate_words(known(text=CHINESE), tmp_path / "pairs.tsv").scores[0]
    assert (score.num_asked, score.num_questions) == (2, 3)
