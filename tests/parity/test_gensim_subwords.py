"""Facebook's files opened by gensim and by us: the same words, known or not, and neighbors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sememe
from fasttext_models import DATA
from sememe.vectors import convert

fasttext = pytest.importorskip("gensim.models.fasttext")

MODELS = ["skipgram.bin", "words-only.bin"]
UNSEEN = ["snowstorm", "天气预报", "naïveté", "🥧🥧", "龙"]


@pytest.mark.parametrize("model", MODELS)
def test_the_same_vectors_and_neighbors(model: str) -> None:
    ours, theirs = sememe.load(DATA / model), fasttext.load_facebook_vectors(str(DATA / model))
    assert list(ours) == theirs.index_to_key
    # gensim gives n-grams to </s>, the first word; Facebook's program and ours do not.
    np.testing.assert_allclose(ours.vectors[1:], theirs.vectors[1:], atol=1e-6)
    unseen = UNSEEN if ours.has_subwords else []  # type: ignore[attr-defined]
    for word in ["bread", "天气", *unseen]:
        np.testing.assert_allclose(ours[word], theirs[word], atol=1e-6)
        near = [pair for pair in ours.neighbors(word, num=6) if pair.word != "</s>"][:5]
        expected = [pair for pair in theirs.most_similar(word, topn=6) if pair[0] != "</s>"][:5]
        assert [name for name, _ in near] == [name for name, _ in expected]
        np.testing.assert_allclose(
            [score for _, score in near], [score for _, score in expected], atol=1e-5
        )


def test_gensim_opens_what_we_write(tmp_path: Path) -> None:
    ours = sememe.load(DATA / "skipgram.bin")
    ours.save(tmp_path / "folder")
    convert(tmp_path / "folder", tmp_path / "ours.bin", "fasttext")
    theirs = fasttext.load_facebook_vectors(str(tmp_path / "ours.bin"))
    for word in ["bread", *UNSEEN]:
        np.testing.assert_allclose(ours[word], theirs[word], atol=1e-6)
