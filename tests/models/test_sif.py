"""SIF and uSIF against the papers' own steps; counts by Zipf; Chinese; what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sememe
from recorded_notes import Notes
from sememe.models.sif import reference
from sememe.vectors import WordVectors

WORDS = ["the", "of", "cat", "dog", "king", "queen", "sat", "ran", "castle", "sea"]


def sentences(num: int = 200, seed: int = 4) -> list[list[str]]:
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, len(WORDS) + 1)
    chances /= chances.sum()
    return [list(random.choice(WORDS, random.integers(1, 9), p=chances)) for _ in range(num)]


def vectors(*, has_counts: bool = True) -> WordVectors:
    random = np.random.default_rng(5)
    rows = random.normal(0.3, 1, (len(WORDS), 6)).astype(np.float32)
    return WordVectors(WORDS, rows, range(500, 0, -50) if has_counts else None)


@pytest.mark.parametrize("method", ["sif", "usif"])
@pytest.mark.parametrize("components", [0, 1, 3])
@pytest.mark.parametrize("has_counts", [True, False])
def test_it_is_what_the_papers_say(method: str, components: int, has_counts: bool) -> None:
    base, texts = vectors(has_counts=has_counts), sentences()
    model = sememe.SIF(base, method=method, components=components).fit(texts)
    counts = np.arange(500, 0, -50) if has_counts else 1 / np.arange(1, 11)
    ids = [[WORDS.index(word) for word in own] for own in texts]
    if method == "sif":
        weights = reference.sif_weights(counts, 1e-3)
    else:
        weights = reference.usif_weights(counts, np.mean([len(own) for own in ids]))
    means = reference.sentence_means(ids, base.vectors, weights)
    expected = reference.without_common(means, means, components, is_weighted=method == "usif")
    found = model.embed([" ".join(own) for own in texts])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found).max() > 0.01


def test_a_saved_folder_is_word_vectors(tmp_path: Path) -> None:
    model = sememe.SIF(vectors()).fit(sentences(), out=tmp_path / "sif")
    opened = sememe.load(tmp_path / "sif")
    assert opened.kind == "sif" and opened.words.neighbors("king", num=2)
    texts = ["The king sat by the sea.", "", "unknown words"]
    np.testing.assert_array_equal(opened.embed(texts), model.embed(texts))
    assert not opened.embed(texts)[1:].any()


def test_unknown_words_and_empty_sentences_do_not_count() -> None:
    texts = sentences()
    more = [[*own, "elephant"] for own in texts] + [["elephant", "giraffe"]] * 9
    plain, mixed = (sememe.SIF(vectors(), method="usif").fit(own) for own in (texts, more))
    np.testing.assert_allclose(mixed.vectors.vectors, plain.vectors.vectors, atol=1e-6)


def test_without_counts_it_says_where_they_come_from() -> None:
    notes = Notes()
    sememe.SIF(vectors(has_counts=False)).fit(sentences(), progress=notes)
    assert "Zipf" in notes


def test_the_vectors_decide_the_language(golden: Path) -> None:
    texts = ["国王喜欢花园。小猫在花园里。", "老师和小猫在河边。"] * 5
    model = sememe.SIF(golden / "word2vec-chinese").fit(texts)
    assert model.text.language == "zh" and "国王" in model.words
    assert np.abs(model.embed(["国王喜欢小猫"])).max() > 0


@pytest.mark.parametrize("base", [None, "onehot"])
def test_it_needs_word_vectors(base: str | None, golden: Path) -> None:
    with pytest.raises(sememe.SememeError, match="vectors"):
        sememe.SIF(base and golden / base).fit(sentences())


def test_a_corpus_of_other_words_is_refused() -> None:
    with pytest.raises(sememe.SememeError, match="none of the words"):
        sememe.SIF(vectors()).fit([["国王", "花园"]] * 5)
