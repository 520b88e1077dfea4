"""Vectors of texts, words and tokens; guesses behind [MASK]; long texts in windows."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, strategies as st

from presets import bert_config
from sememe.errors import InputError, OptionError, UnsupportedError
from sememe.models.bert.model import BERT
from sememe.models.bert.network import BERTNetwork
from sememe.models.language import pooling
from sememe.models.language.features import (
    attention_maps,
    batched,
    embed_words,
    token_vectors,
)
from sememe.models.language.pooling import embed_texts
from sememe.nn.feature_layers import choose_layers
from sememe.nn.rows import windows

TEXTS = ["The cat sat on the mat.", "", "猫坐在垫子上。", "Strawberries!"]
LONG = "The animal did not cross the street because it was too tired. " * 5


@given(st.integers(0, 400), st.integers(1, 60), st.data())
def test_windows_answer_for_every_token_once(num_tokens, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    cut = windows(num_tokens, size, overlap)
    assert [place for own in cut for place in range(own.first, own.last)] == list(range(num_tokens))
    for own in cut:
        assert own.start <= own.first <= own.last <= own.end <= num_tokens
        assert own.end - own.start <= size
    for left, right in pairwise(cut):
        assert left.end - right.start >= overlap


def test_choices_of_layers():
    layers = [torch.full((1, 2), float(index)) for index in range(7)]
    values = {
        "first": [0.0, 0.0], "last": [6.0, 6.0], "second-to-last": [5.0, 5.0],
        "sum-all": [21.0, 21.0], "sum-last-four": [18.0, 18.0],
        "concat-last-four": [3.0, 3.0, 4.0, 4.0, 5.0, 5.0, 6.0, 6.0],
    }  # fmt: skip
    for choice, expected in values.items():
        assert choose_layers(layers, choice)[0].tolist() == expected
    assert choose_layers(layers, 2)[0].tolist() == [2.0, 2.0]
    with pytest.raises(OptionError, match="needs four layers"):
        choose_layers(layers[:3], "sum-last-four")
    with pytest.raises(OptionError, match="between 0 and 6"):
        choose_layers(layers, 9)
    with pytest.raises(OptionError, match="one of first"):
        choose_layers(layers, "middle")


def by_hand(bert, wordpiece, text):
    ids = [wordpiece.cls_id, *map(int, wordpiece.encode(text).ids), wordpiece.sep_id]
    with torch.no_grad():
        return bert(torch.tensor([ids]))[0].numpy()


def test_pooling_is_what_it_says(bert, wordpiece):
    pools = {"mean": lambda x: x.mean(0), "max": lambda x: x.max(0), "cls": lambda x: x[0]}
    for pool, own in pools.items():
        vectors = embed_texts(bert, wordpiece, TEXTS, pool=pool)
        assert vectors.dtype == np.float32
        expected = np.stack([own(by_hand(bert, wordpiece, text)) for text in TEXTS])
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert embed_texts(bert, wordpiece, []).shape == (0, bert.config.width)
    blank = embed_texts(bert, wordpiece, ["", ""])
    np.testing.assert_allclose(
        blank, np.stack(2 * [by_hand(bert, wordpiece, "").mean(0)]), atol=1e-5
    )


def test_texts_tokenized_ahead_have_the_same_vectors(bert, wordpiece, monkeypatch):
    texts = [*TEXTS, LONG, *(LONG[:size] for size in range(5, 60, 7))]
    expected = embed_texts(bert, wordpiece, texts)
    monkeypatch.setattr(pooling, "TEXTS_AT_ONCE", 3)
    np.testing.assert_allclose(embed_texts(bert, wordpiece, texts), expected, atol=1e-5)


def test_rows_for_a_gpu_are_not_padded_beyond_a_limit():
    lengths = [2] * 50_000 + [512]
    groups = list(batched(lengths, torch.device("meta")))
    assert sorted(chain(*groups)) == list(range(len(lengths)))
    assert max(len(own) * max(lengths[index] for index in own) for own in groups) <= 65_536


@pytest.mark.parametrize("layers", ["last", "sum-all", 1])
@pytest.mark.parametrize("pool", ["mean", "cls", "max"])
def test_pooling_long_texts_equals_pooling_their_tokens(bert, wordpiece, layers, pool):
    """Windows, batches of a few texts and texts of all lengths beside the vectors of each token."""
    texts = [*TEXTS, LONG, LONG[:90], *(LONG[:size] for size in range(5, 60, 7)), LONG[7:]]
    own = token_vectors(bert, wordpiece, texts, layers=layers)
    expected = []
    for text, found in zip(texts, own, strict=True):
        assert len(found.vectors_TD) == len(wordpiece.encode(text).ids)
        all_TD = np.concatenate([found.vectors_TD, [found.before_D, found.after_D]])
        expected.append({"mean": all_TD.mean(0), "max": all_TD.max(0), "cls": found.before_D}[pool])
    vectors = embed_texts(bert, wordpiece, texts, layers=layers, pool=pool)
    np.testing.assert_allclose(vectors, np.stack(expected), atol=1e-5)


def test_words_are_means_of_their_pieces(bert, wordpiece):
    text = "The flightless animal 猫"
    (own,) = embed_words(bert, wordpiece, [text])
    assert own.words == ["The", "flightless", "animal", "猫"]
    assert [text[start:end] for start, end in zip(own.starts, own.ends, strict=True)] == own.words
    encoding = wordpiece.encode(text)
    vectors = by_hand(bert, wordpiece, text)[1:-1]
    for index, (start, end) in enumerate(zip(own.starts, own.ends, strict=True)):
        inside = (encoding.starts >= start) & (encoding.ends <= end)
        np.testing.assert_allclose(own.vectors_WD[index], vectors[inside].mean(0), atol=1e-5)


def test_given_spans_join_chinese_characters(bert, wordpiece):
    text = "语言模型"
    (own,) = embed_words(bert, wordpiece, [text], spans=[np.array([[0, 2], [2, 4]])])
    assert own.words == ["语言", "模型"]
    vectors = by_hand(bert, wordpiece, text)[1:-1]
    np.testing.assert_allclose(own.vectors_WD[1], vectors[2:].mean(0), atol=1e-5)
    (blank,) = embed_words(bert, wordpiece, ["a b"], spans=[np.array([[1, 2], [2, 3]])])
    assert blank.is_known_W.tolist() == [False, True]
    assert not blank.vectors_WD[0].any() and blank.vectors_WD[1].any()


def test_long_texts_are_split_never_cut(bert, wordpiece, gpt, bpe):
    for network, tokenizer in ((bert, wordpiece), (gpt, bpe)):
        encoding = tokenizer.encode(LONG)
        assert len(encoding.ids) > 2 * network.config.max_length
        (own,) = token_vectors(network, tokenizer, [LONG])
        assert own.vectors_TD.shape == (len(encoding.ids), network.config.width)
        assert np.isfinite(own.vectors_TD).all() and own.vectors_TD.any(1).all()
        changed = embed_texts(network, tokenizer, [LONG + " again", LONG])
        assert not np.allclose(changed[0], changed[1], atol=1e-6)


def test_guesses_are_the_likeliest(bert, wordpiece):
    guesses = BERT.around(bert, wordpiece).fill("The [MASK] sat on the [MASK].", top=4)
    assert len(guesses) == 2 and all(len(own) == 4 for own in guesses)
    ids = [wordpiece.cls_id, *map(int, wordpiece.encode("The [MASK] sat on the [MASK].").ids)]
    hidden = bert(torch.tensor([[*ids, wordpiece.sep_id]]))[0, ids.index(wordpiece.mask_id)]
    probabilities = bert.masked_logits(hidden[None]).softmax(-1)[0]
    for guess in guesses[0]:
        assert guess.probability == pytest.approx(probabilities[guess.token_id].item(), abs=1e-6)
        assert guess.token_id not in wordpiece.special_ids
        assert guess.token == wordpiece.token(guess.token_id)
    values = [guess.probability for guess in guesses[0]]
    assert values == sorted(values, reverse=True)
    assert len(BERT.around(bert, wordpiece).fill("猫[MASK]在垫子上", top=1)) == 1


def test_masks_of_a_long_text_come_in_order(bert, wordpiece):
    text = LONG + "The [MASK] sat. " + LONG + "A [MASK]."
    assert len(BERT.around(bert, wordpiece).fill(text)) == 2


def test_next_sentence_probability(bert, wordpiece):
    probability = BERT.around(bert, wordpiece).follows("The cat sat.", "It was tired.")
    first, second = (wordpiece.encode(text).ids for text in ("The cat sat.", "It was tired."))
    ids = [wordpiece.cls_id, *first, wordpiece.sep_id, *second, wordpiece.sep_id]
    segments = torch.tensor([[0] * (len(first) + 2) + [1] * (len(second) + 1)])
    with torch.no_grad():
        pooled = bert.pool(bert(torch.tensor([[int(i) for i in ids]]), segments)[:, 0])
        expected = bert.next_logits(pooled).softmax(-1)[0, 0].item()
    assert probability == pytest.approx(expected, abs=1e-6)


def test_maps_of_text_and_pair(bert, wordpiece, gpt, bpe):
    own = attention_maps(bert, wordpiece, "The cat sat.", "It ran.")
    assert own.tokens[0] == "[CLS]" and own.tokens.count("[SEP]") == 2
    assert own.segments[0] == 0 and own.segments[-1] == 1
    size = len(own.tokens)
    assert own.weights_LHTS.shape == (2, 2, size, size)
    np.testing.assert_allclose(own.weights_LHTS.sum(-1), 1, atol=1e-5)
    causal = attention_maps(gpt, bpe, "The cat sat.").weights_LHTS
    assert (causal[..., np.triu_indices(causal.shape[-1], 1)[0],
                   np.triu_indices(causal.shape[-1], 1)[1]] == 0).all()  # fmt: skip


def test_bad_input_is_named(bert, wordpiece, gpt, bpe):
    with pytest.raises(InputError, match=r"no \[MASK\]"):
        BERT.around(bert, wordpiece).fill("The cat sat.")
    with pytest.raises(InputError, match="tokens together"):
        BERT.around(bert, wordpiece).follows(LONG, "The cat.")
    with pytest.raises(InputError, match="shorten it"):
        attention_maps(bert, wordpiece, LONG)
    with pytest.raises(InputError, match="not a pair"):
        attention_maps(gpt, bpe, "The", "cat")
    with pytest.raises(OptionError, match="no \\[CLS\\]"):
        embed_texts(gpt, bpe, ["The"], pool="cls")
    with pytest.raises(OptionError, match="pool must be one of"):
        embed_texts(bert, wordpiece, ["The"], pool="sum")
    bare = BERTNetwork(bert_config("tiny", vocab_size=wordpiece.vocab_size, width=32)).eval()
    bare.untrained = frozenset({"masked head", "next head"})
    with pytest.raises(UnsupportedError, match="without masked head"):
        BERT.around(bare, wordpiece).fill("The [MASK]")
    with pytest.raises(UnsupportedError, match="next head"):
        BERT.around(bare, wordpiece).follows("The", "cat")
