"""Files that go between gensim and us, and the same questions asked of both."""

from pathlib import Path

import numpy as np
import pytest

from sememe.vectors import WordVectors, load
from sememe.vectors.formats import write_vectors

KeyedVectors = pytest.importorskip("gensim.models").KeyedVectors

WORDS = [f"w{index}" for index in range(400)] + ["国王", "王后", "男人", "女人", "né\u00a0e"]
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def ours() -> WordVectors:
    table = np.random.default_rng(5).standard_normal((len(WORDS), 25), np.float32)
    return WordVectors(WORDS, table * np.float32(0.3))


@pytest.fixture(scope="module")
def theirs(ours: WordVectors):
    keyed = KeyedVectors(ours.dim)
    keyed.add_vectors(list(ours), ours.vectors)
    return keyed


def assert_same_answers(ours, theirs) -> None:
    assert [word for word, _ in ours] == [word for word, _ in theirs]
    np.testing.assert_allclose([s for _, s in ours], [s for _, s in theirs], atol=TOLERANCE)


@pytest.mark.parametrize(
    ("format", "is_binary", "newline"),
    [("word2vec", False, True), ("word2vec-binary", True, True), ("word2vec-binary", True, False)],
)
def test_gensim_reads_ours(ours, tmp_path: Path, format: str, is_binary: bool, newline) -> None:
    write_vectors(ours, tmp_path / "v", format, newline=newline)
    read = KeyedVectors.load_word2vec_format(str(tmp_path / "v"), binary=is_binary)
    assert read.index_to_key == WORDS
    assert np.array_equal(read.vectors, ours.vectors)
    assert_same_answers(ours.neighbors("国王"), read.most_similar("国王"))


def test_gensim_reads_our_glove(ours, tmp_path: Path) -> None:
    write_vectors(ours, tmp_path / "v", "glove")
    read = KeyedVectors.load_word2vec_format(str(tmp_path / "v"), no_header=True)
    assert read.index_to_key == WORDS
    assert np.array_equal(read.vectors, ours.vectors)


@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("has_header", [False, True])
def test_we_read_gensim(theirs, ours, tmp_path: Path, is_binary: bool, has_header: bool) -> None:
    if is_binary and not has_header:
        pytest.skip("binary rows cannot be told without a header")
    theirs.save_word2vec_format(
        str(tmp_path / "v"), binary=is_binary, write_header=has_header, sort_attr="none"
    )
    read = load(tmp_path / "v")
    assert list(read) == theirs.index_to_key
    assert np.array_equal(read.vectors, theirs.vectors)
    assert_same_answers(read.neighbors("w7"), theirs.most_similar("w7"))
    assert list(load(tmp_path / "v", limit=9)) == theirs.index_to_key[:9]


QUESTIONS = [
    (["国王", "女人"], ["男人"]),
    (["w1"], []),
    (["w1", "w2", "w3"], ["w4", "w5"]),
    ([("w1", 2.0), "w2"], [("w4", 0.25)]),
]


@pytest.mark.parametrize(("positive", "negative"), QUESTIONS)
@pytest.mark.parametrize("restrict_vocab", [None, 50])
def test_sums(ours, theirs, positive, negative, restrict_vocab) -> None:
    # gensim takes a negative weight where we take a weight among the negatives.
    signed = [term if isinstance(term, str) else (term[0], -term[1]) for term in negative]
    expected = theirs.most_similar(positive, signed, topn=12, restrict_vocab=restrict_vocab)
    found = ours.neighbors(
        positive=positive, negative=negative, num=12, restrict_vocab=restrict_vocab
    )
    assert_same_answers(found, expected)


@pytest.mark.parametrize(("positive", "negative"), QUESTIONS[:3])
def test_products(ours, theirs, positive, negative) -> None:
    expected = theirs.most_similar_cosmul(positive, negative, topn=12)
    found = ours.neighbors_by_product(positive, negative, num=12)
    assert [near.word for near in found] == [word for word, _ in expected]
    np.testing.assert_allclose(
        [near.score for near in found], [score for _, score in expected], rtol=1e-5
    )
    if len(positive) == 2:
        answer = ours.analogy(negative[0], *positive, num=12, method="mul")
        assert answer == found


def test_a_vector(ours, theirs) -> None:
    vector = np.linspace(-1, 1, 25, dtype=np.float32)
    assert_same_answers(ours.neighbors(vector), theirs.similar_by_vector(vector))


def test_similarities_and_the_odd_one(ours, theirs) -> None:
    assert ours.similarity("国王", "w3") == pytest.approx(
        theirs.similarity("国王", "w3"), abs=TOLERANCE
    )
    np.testing.assert_allclose(1 - ours.similarities("w1"), theirs.distances("w1"), atol=TOLERANCE)
    generator = np.random.default_rng(0)
    for _ in range(20):
        words = generator.choice(WORDS, 5, replace=False).tolist()
        assert ours.odd_one_out(words) == theirs.doesnt_match(words)
