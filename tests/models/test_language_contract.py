"""NNLM, ELMo, ULMFiT, GPT and BERT under the contract of every model."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, InputError, OptionError, UnsupportedError

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

TEXTS = [
    "The old king sees a cat in the garden.",
    "A cat likes the river, and the king likes the old garden.",
    "The river is old. The cat sees the king.",
] * 12
_RUN = {"steps": 4, "batch_size": 4, "length": 16, "workers": 1, "seed": 3, "device": "cpu"}
_BLOCKS = {"num_layers": 2, "width": 16, "num_heads": 2, "max_length": 32, "vocab_size": 200}
_LSTM = {"num_layers": 2, "num_cells": 12, "width": 8, "min_count": 1}
MADE = {
    "nnlm": lambda: sememe.NNLM(dim=8, num_hidden=8, window=3, min_count=1, **_RUN),
    "elmo": lambda: sememe.ELMo(filters="1:4 2:4", num_highways=1, **_LSTM, **_RUN),
    "ulmfit": lambda: sememe.ULMFiT(**_LSTM, **_RUN),
    "gpt": lambda: sememe.GPT(**_BLOCKS | {"vocab_size": 300}, **_RUN),
    "bert": lambda: sememe.BERT(**_BLOCKS, **_RUN),
}
IN_CONTEXT = ("elmo", "ulmfit", "gpt", "bert")
LANGUAGE_MODELS = ("nnlm", "elmo", "ulmfit", "gpt")


@pytest.fixture(scope="module")
def models():
    return {name: make().fit(TEXTS) for name, make in MADE.items()}


every_kind = pytest.mark.parametrize("kind", MADE)
in_context = pytest.mark.parametrize("kind", IN_CONTEXT)
language_models = pytest.mark.parametrize("kind", LANGUAGE_MODELS)


@every_kind
def test_a_folder_opens_as_the_same_model(models, kind, tmp_path):
    models[kind].save(tmp_path / "model")
    opened = sememe.load(tmp_path / "model")
    assert type(opened) is type(models[kind])
    assert opened.capabilities == models[kind].capabilities
    np.testing.assert_allclose(opened.embed(TEXTS[:3]), models[kind].embed(TEXTS[:3]), atol=1e-5)
    described = json.loads(json.dumps(opened.describe()))
    assert described["kind"] == kind and described["parameters"] > 0
    assert described["layer_widths"] == list(opened.layer_widths)
    assert "<table" in opened._repr_html_()


@every_kind
def test_texts_have_one_vector_each(models, kind):
    model, texts = models[kind], [*TEXTS[:3], ""]
    mean, most = model.embed(texts), model.embed(texts, pool="max")
    assert mean.dtype == np.float32 and mean.shape == most.shape == (4, model.layer_widths[-1])
    assert np.abs(mean[:3] - most[:3]).max() > 1e-4
    np.testing.assert_allclose(model.embed(texts[1:2])[0], mean[1], atol=1e-5)
    assert model.embed([]).shape == (0, model.layer_widths[-1])
    with pytest.raises(OptionError, match="sum"):
        model.embed(texts, pool="sum")
    with pytest.raises((InputError, OptionError)):
        model.embed("one text")


@every_kind
def test_words_of_lists_texts_and_spans_agree(models, kind):
    model = models[kind]
    text, words = "the old king", ["the", "old", "king"]
    by_text, by_words = model.embed_words([text])[0], model.embed_words([words])[0]
    assert by_text.shape == (3, model.layer_widths[-1])
    np.testing.assert_allclose(by_text, by_words, atol=1e-5)
    (own,) = model.embed_spans([text])
    assert [word.strip() for word in own.words] == words and own.is_known_W.all()
    (given,) = model.embed_spans([text], [np.array([[4, 7], [8, 12]])])
    assert given.words == words[1:] and given.starts.tolist() == [4, 8]
    (tokens,) = model.embed_tokens([text])
    assert len(tokens.words) == len(tokens.vectors_WD) >= 3
    assert (tokens.starts < tokens.ends).all()


@in_context
def test_layers_stand_side_by_side(models, kind):
    model = models[kind]
    widths, sentences = model.layer_widths, [["the", "cat"], ["a", "cat"]]
    both = model.embed_words(sentences, layers=(0, len(widths) - 1))
    first, last = (model.embed_words(sentences, layers=one) for one in ("first", "last"))
    for joined, *parts in zip(both, first, last, strict=True):
        np.testing.assert_allclose(joined, np.concatenate(parts, 1), atol=1e-6)
    assert [own.shape[1] for own in first] == [widths[0]] * 2
    if kind != "bert":  # whose words by themselves have their places added
        np.testing.assert_allclose(first[0][1], first[1][1], atol=1e-6)
    assert np.abs(last[0][1] - last[1][1]).max() > 1e-5
    with pytest.raises(OptionError, match="9"):
        model.embed_words(sentences, layers=9)


@every_kind
def test_words_by_themselves(models, kind):
    vectors = models[kind].words
    assert "king" in vectors and vectors is models[kind].words
    assert models[kind].describe()["words_are"]
    if kind != "elmo":
        word = next(iter(vectors))
        assert vectors[word].shape == (models[kind].layer_widths[0],)


@in_context
def test_what_is_expected_does_not_depend_on_the_word(models, kind):
    model = models[kind]
    texts = ["the old king sees a cat", "the old river sees a cat", "the big king sees a cat"]
    found = model.embed_expected(texts, [(8, 12), (8, 13), (8, 12)])
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 1e-5
    behind = model.embed_expected(["the king", "the king sees"], [(4, 8), (4, 8)])
    if kind in ("gpt", "ulmfit"):
        np.testing.assert_allclose(*behind, atol=1e-5)
    else:
        assert np.abs(behind[0] - behind[1]).max() > 1e-5


@language_models
def test_words_have_probabilities(models, kind):
    model = models[kind]
    text = "the old king sees. a cat"
    sentences = [np.array([[0, 3], [4, 7], [8, 12], [13, 17]]), np.array([[19, 20], [21, 24]])]
    first, second, nothing = model.word_log_probs(
        [(text, sentences), (text, sentences[:1]), ("", [])]
    )
    assert first.shape == (6,) and second.shape == (4,) and nothing.shape == (0,)
    np.testing.assert_allclose(first[:4], second, atol=1e-5)
    assert (first < 0).all()
    assert model.score("the king") < 0 and model.evaluate(TEXTS).perplexity > 1
    (unknown,) = model.word_log_probs([("the zyx", [np.array([[0, 3], [4, 7]])])])
    assert unknown[0] < 0 and math.isnan(unknown[1]) == (kind != "gpt")
    if kind == "gpt":
        whole = model.word_log_probs([("the old", [np.array([[0, 3], [3, 7]])])])[0].sum()
        ended = model.score("the old") * math.log(10)
        assert whole > ended > whole - 30
    else:
        likely = model.distribution(["the", "old"])[model.vocabulary.id("king")]
        assert first[2] == pytest.approx(math.log(likely), abs=1e-4)
        likely = model.distribution([])[model.vocabulary.id("a")]
        assert first[4] == pytest.approx(math.log(likely), abs=1e-4)


def test_chinese_words_are_those_of_the_segmenter(models):
    model = sememe.BERT(**_BLOCKS, **_RUN).fit(
        ["国王喜欢苹果。", "小猫在花园里睡觉。"] * 12, language="zh"
    )
    (own,) = model.embed_spans(["国王 喜欢苹果"])
    assert own.words == ["国王", "喜欢", "苹果"]
    assert len(model.embed_words(["国王喜欢苹果"])[0]) == 3
    model.text = model.text.for_language("en")
    assert len(model.embed_words(["国王喜欢苹果"])[0]) == 6


def test_bert_finds_hidden_tokens_and_keeps_its_heads(models):
    bert = models["bert"]
    (guesses,) = bert.fill("the old [MASK] sees", top=3)
    assert len(guesses) == 3 and guesses[0].probability >= guesses[1].probability
    assert 0 < bert.follows("the king", "the cat") < 1
    found = bert.evaluate(TEXTS, num_batches=2)
    assert 0 <= found.accuracy <= 1 and found.num_tokens > 10 and found.loss > 0
    assert "follows" in bert.capabilities and not bert.network.untrained
    assert bert.attention("the king", "a cat").weights_LHTS.shape[:2] == (2, 2)


def test_gpt_writes_on(models):
    gpt = models["gpt"]
    text = gpt.generate("the old", max_tokens=5, temperature=0)
    assert "".join(gpt.stream("the old", max_tokens=5, temperature=0)) == text
    assert len(gpt.generate(["the", "a"], max_tokens=2)) == 2


def test_heads_that_are_missing_are_no_capabilities(models, tmp_path):
    bert = sememe.BERT(**_BLOCKS, next_sentence=False, **_RUN).fit(TEXTS)
    assert {"fill"} == {"fill", "follows"} & bert.capabilities
    with pytest.raises(UnsupportedError, match="next head"):
        bert.follows("a", "b")
    with pytest.raises(UnsupportedError, match="bert"):
        models["gpt"].fill("the [MASK]")
    with pytest.raises(UnsupportedError, match="gpt"):
        bert.generate("the")
    with pytest.raises(UnsupportedError, match="ngram"):
        bert.score("the")


@pytest.mark.parametrize("kind", ["bert", "gpt"])
def test_a_folder_of_hugging_face_opens_as_ours(models, kind, tmp_path):
    models[kind].save(tmp_path / "model")
    for name in ("sememe.json", "history.json"):
        (tmp_path / "model" / name).unlink()
    opened = type(models[kind]).load(tmp_path / "model")
    np.testing.assert_allclose(opened.embed(TEXTS[:2]), models[kind].embed(TEXTS[:2]), atol=1e-5)
    assert opened.capabilities == models[kind].capabilities
    opened.save(tmp_path / "again")
    again = sememe.load(tmp_path / "again")
    np.testing.assert_allclose(again.embed(TEXTS[:2]), opened.embed(TEXTS[:2]), atol=1e-6)
    json.dumps(again.describe())
    other = sememe.GPT if kind == "bert" else sememe.BERT
    with pytest.raises(ArtifactError, match=kind):
        other.load(tmp_path / "model")
