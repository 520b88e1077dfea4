"""A vector for each word in its context, by one call for every language model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe import BERT, GPT, ELMo, ULMFiT
from sememe.errors import OptionError
from sememe.examples.word_rows import BEGIN_ID

TEXT = ["The red cat sat on the old mat .", "A blue dog ran .", "红色 的 猫 喜欢 牛奶 。"] * 6
QUICK: dict[str, Any] = {
    "steps": 2, "batch_size": 4, "length": 16, "workers": 1, "device": "cpu",
}  # fmt: skip
WORDS = ["the", "red", "cat"], ["猫"], ["the", "unseen", "dog", "ran"]
LSTMS = {"num_cells": 12, "width": 8, "num_layers": 2, "min_count": 1}
BLOCKS = {"vocab_size": 300, "num_layers": 2, "width": 16, "num_heads": 2}


@pytest.fixture(scope="module")
def ulmfit() -> ULMFiT:
    return ULMFiT(**LSTMS, **QUICK).fit(TEXT)


@pytest.mark.parametrize(("model", "dim"), [(ELMo, 16), (ULMFiT, 8), (BERT, 16), (GPT, 16)])
def test_words_or_texts_give_a_vector_for_each_word(model, dim):
    opened = model(**LSTMS if model in (ELMo, ULMFiT) else BLOCKS, **QUICK).fit(TEXT)
    for sentences in (WORDS, [" ".join(words) for words in WORDS]):
        found = opened.embed_words(sentences)
        assert [own.shape for own in found] == [(3, dim), (1, dim), (4, dim)]
        alone = opened.embed_words(sentences[2:])[0]
        np.testing.assert_allclose(alone, found[2], atol=1e-5)
    assert not np.allclose(*(opened.embed_words([["the", "dog"], ["a", "dog"]], layers=-1)))
    first = opened.embed_words([["red", "cat"], ["red", "dog"]], layers="first")
    assert np.allclose(first[0][0], first[1][0])


def test_ulmfit_gives_what_its_layers_say(ulmfit):
    ids = np.concatenate([[BEGIN_ID], ulmfit.ids_of(WORDS[0])])
    with torch.no_grad():
        layers = ulmfit.network(torch.from_numpy(ids)[:, None]).layers
    for number, layer in enumerate(layers, start=1):
        found = ulmfit.embed_words(WORDS, layers=number)[0]
        np.testing.assert_allclose(found, layer[1:, 0].numpy(), atol=1e-6)
    # A word later in the sentence changes nothing before it.
    longer = ulmfit.embed_words([[*WORDS[0], "ran"]])[0]
    np.testing.assert_allclose(longer[:3], ulmfit.embed_words(WORDS)[0], atol=1e-6)
    with pytest.raises(OptionError, match="cannot be added"):
        ulmfit.embed_words(WORDS, layers="sum-all")
    with pytest.raises(OptionError, match="has not learned"):
        ULMFiT().embed_words(WORDS)


def test_long_sentences_are_read_in_windows(ulmfit):
    words = ["the", "red", "cat"] * 300
    (found,) = ulmfit.embed_words([words])
    assert found.shape == (900, 8)
    np.testing.assert_allclose(found[:400], ulmfit.embed_words([words[:400]])[0], atol=1e-4)


@pytest.mark.parametrize("model", [BERT, GPT])
def test_rows_are_no_longer_than_those_of_the_training(model, tmp_path):
    from sememe.models.huggingface.folder import load_folder
    from sememe.models.language.features import room

    opened = model(**BLOCKS, max_length=64, **QUICK).fit(TEXT, out=tmp_path / "model")
    expected = 16 - (2 if model is BERT else 0)
    assert room(opened.network) == room(load_folder(tmp_path / "model")[0]) == expected
    again = model.load(tmp_path / "model")
    text = " ".join(TEXT)
    np.testing.assert_allclose(
        again.embed_words([text])[0], opened.embed_words([text])[0], atol=1e-5
    )
    # Positions that were never learned say nothing: changing them changes no vector.
    with torch.no_grad():
        again.network.embedding.positions.weight[16:] = 7.0
    np.testing.assert_allclose(
        again.embed_words([text])[0], opened.embed_words([text])[0], atol=1e-5
    )
    (tmp_path / "model" / "sememe.json").unlink()
    assert room(load_folder(tmp_path / "model")[0]) == 64 - (2 if model is BERT else 0)
