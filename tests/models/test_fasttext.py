"""fastText: words from n-grams, sharing between words, chunks that fit, Chinese, files."""

from __future__ import annotations

import numpy as np
import pytest

import sememe
from sememe.errors import OptionError
from sememe.models.fasttext.model import chunk_size, part_size, used_rows
from sememe.tokens.ngrams import ngram_rows
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import convert

SENTENCES = [line.split() for line in (
    "walking talking singing dancing are things people like doing",
    "walked talked danced were things people liked before",
    "the king walks the queen talks the children dance",
)] * 40  # fmt: skip
SMALL = {"dim": 16, "min_count": 1, "epochs": 4, "workers": 1, "bucket": 5_000}

pytestmark = pytest.mark.usefixtures("place")


def test_an_unseen_word_gets_the_mean_of_its_known_ngrams():
    model = sememe.FastText(**SMALL).fit(SENTENCES)
    assert "walkings" not in model.vectors
    vector = model.vectors["walkings"]
    assert np.isfinite(vector).all() and np.abs(vector).max() > 0
    assert model.vectors.similarity("walkings", "walking") > model.vectors.similarity(
        "walkings", "queen"
    )


def test_a_word_is_the_mean_of_its_rows():
    model = sememe.FastText(**SMALL).fit(SENTENCES)
    buckets = dict(model.tensors["pruned"].tolist())
    ends, rows = ngram_rows(model.vocabulary, 3, 6, 5_000)
    word = model.vocabulary.id("king")
    mine = rows[ends[word - 1] : ends[word]]
    num_words = len(model.vocabulary)
    places = [r if r < num_words else num_words + buckets[r - num_words] for r in mine.tolist()]
    np.testing.assert_allclose(
        model.vectors["king"], model.input[places].mean(axis=0), rtol=1e-5, atol=1e-7
    )


def test_without_ngrams_it_is_word2vec():
    options = {**SMALL, "sample": 0.0, "learning_rate": 0.05, "noise_exponent": 0.75}
    word2vec = {name: value for name, value in options.items() if name != "bucket"}
    plain = sememe.Word2Vec(**word2vec, min_learning_rate=0.0).fit(SENTENCES)
    fast = sememe.FastText(**options, maxn=0).fit(SENTENCES)
    np.testing.assert_allclose(fast.vectors.vectors, plain.vectors.vectors, atol=1e-5)


def test_rows_that_no_word_uses_take_no_memory():
    model = sememe.FastText(**{**SMALL, "bucket": 2_000_000}).fit(SENTENCES)
    assert len(model.input) < 2_000
    assert len(np.unique(model.tensors["pruned"][:, 0])) == len(model.input) - len(model.vocabulary)


def test_used_rows_puts_the_busiest_buckets_first():
    vocabulary = Vocabulary.from_words(["ab", "ba", "xy"], [100, 10, 1])
    ends, rows = ngram_rows(vocabulary, 3, 3, 1_000)
    buckets, places = used_rows(rows, ends, np.asarray(vocabulary.counts))
    back = np.concatenate([np.arange(3), 3 + buckets])
    assert np.array_equal(back[places], rows)
    uses = np.bincount(places, np.repeat(vocabulary.counts, np.diff(ends, prepend=0)))[3:]
    assert np.all(np.diff(uses) <= 0)


def test_a_chunk_is_short_where_all_words_share_an_ngram():
    assert chunk_size(np.array([500.0, 3.0]), 500) == 32
    assert chunk_size(np.array([3.0, 5.0]), 5_000) == 512
    assert chunk_size(np.array([]), 500) > 10_000  # no n-grams at all


def test_many_workers_share_more_often():
    assert part_size(230.0, 1, 16) == part_size(230.0, 2, 16) > 512  # a whole chunk
    assert part_size(230.0, 14, 16) == 32
    assert part_size(230.0, 14, 12) == 24  # whole blocks
    assert part_size(230.0, 500, 16) == 16


@pytest.mark.parametrize("hash_count", [1, 2, 4])
def test_a_compact_table_needs_no_row_for_a_word(hash_count, place):
    options = {**SMALL, "bucket": 300, "hash_count": hash_count}
    model = sememe.FastText(**options).fit(SENTENCES)
    assert model.input.shape == (300, 16) and "pruned" not in model.tensors
    model.save("model")
    loaded, again = sememe.load("model"), sememe.FastText.load("model")
    for word in ("king", "walkings"):
        assert np.array_equal(loaded[word], model.vectors[word])
        assert np.array_equal(again.vectors[word], model.vectors[word])
    similarity = model.vectors.similarity
    assert similarity("walking", "walkings") > similarity("walkings", "queen")
    convert("model", "words.bin", "fasttext")
    np.testing.assert_allclose(sememe.load("words.bin")["king"], loaded["king"], atol=1e-7)
    model.continue_fit([["princess", "and", "prince"]] * 20)
    assert "princess" in model.vectors and model.input.shape == (300, 16)


def test_a_compact_table_cannot_start_from_vectors_of_words():
    start = sememe.WordVectors(["king"], np.ones((1, 16), np.float32))
    with pytest.raises(OptionError, match="hash_count"):
        sememe.FastText(**{**SMALL, "bucket": 30, "hash_count": 1}).fit(SENTENCES, start=start)


def test_words_that_share_every_ngram_do_not_diverge():
    lines = [[f"item-{n * 7 % 100:03d}" for n in range(k, k + 20)] for k in range(400)]
    options = {"dim": 16, "min_count": 1, "epochs": 10, "learning_rate": 0.1}
    model = sememe.FastText(**options, workers=1).fit(lines)
    assert np.abs(model.input).max() < 2
    # A worker that was paused adds old changes: on a busy machine vectors may grow for a while.
    model = sememe.FastText(**options, workers=2).fit(lines)
    assert np.isfinite(model.input).all() and np.isfinite(model.history[-1]["loss"])


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["negative", "hierarchical", "softmax"])
def test_every_loss_learns(architecture, loss):
    options = {**SMALL, "epochs": 30, "architecture": architecture, "loss": loss, "sample": 0.0}
    model = sememe.FastText(**options).fit(SENTENCES)
    losses = [record["loss"] for record in model.history if "loss" in record]
    assert np.mean(losses[-5:]) < 0.9 * losses[0]


def test_chinese_words_of_one_character():
    lines = [["我", "爱", "自然语言", "处理"], ["我们", "学习", "语言"], ["你", "爱", "学习"]] * 30
    model = sememe.FastText(**{**SMALL, "minn": 1, "maxn": 3}).fit(lines)
    assert np.abs(model.vectors["语"]).max() > 0 and np.abs(model.vectors["自然"]).max() > 0
    assert "我" in model.vectors


def test_training_goes_on_with_new_words():
    model = sememe.FastText(**SMALL).fit(SENTENCES)
    queen, walking, known = model.vectors["queen"], model.vectors["walking"], len(model.vocabulary)
    model.continue_fit([["princess", "and", "prince", "walks"]] * 30)
    assert "princess" in model.vectors and len(model.vocabulary) == known + 3
    assert np.array_equal(model.vectors["queen"], queen)
    assert 0 < np.abs(model.vectors["walking"] - walking).max() < 0.05  # it shares <wal with walks


def test_a_saved_model_becomes_facebooks_file_and_back(place):
    model = sememe.FastText(**{**SMALL, "bucket": 300}).fit(SENTENCES)
    model.save("model")
    loaded = sememe.load("model")
    for word in ("king", "walkings"):
        assert np.array_equal(loaded[word], model.vectors[word])
    convert("model", "model.bin", "fasttext")
    theirs = sememe.load("model.bin")
    np.testing.assert_allclose(theirs.vectors, model.vectors.vectors, atol=1e-7)
    assert theirs.similarity("walkings", "king") == pytest.approx(
        model.vectors.similarity("walkings", "king"), abs=1e-5
    )
    again = sememe.FastText.load("model")
    assert again.config == model.config
    assert np.array_equal(again.vectors.vectors, model.vectors.vectors)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"minn": 5, "maxn": 3}, "minn"), ({"bucket": -1}, "bucket"), ({"dim": 2.5}, "whole number")],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(OptionError, match=message):
        sememe.FastText(**options)
