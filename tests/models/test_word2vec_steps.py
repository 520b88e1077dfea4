"""word2vec for learners: explained steps equal the reference, a film is a real training."""

from __future__ import annotations

import math
from itertools import repeat

import numpy as np
import pytest

from sememe.errors import InputError, OptionError
from sememe.models.word2vec import reference
from sememe.models.word2vec.model import Word2Vec
from sememe.models.word2vec.snapshots import train_film
from sememe.models.word2vec.steps import sentence_pairs, training_step
from sememe.text.settings import TextSettings

TEXT = "The quick brown fox jumps over the lazy dog."
LINES = ("the king likes the old dog", "a queen sees the young cat", "the dog follows a cat")


def test_a_step_equals_the_reference_and_its_formula() -> None:
    before, at = training_step(TEXT, 200), training_step(TEXT, 201)
    center, context = (at.sentence[place] for place in at.pair)
    rows = {word: row for row, word in enumerate(at.words)}
    noise = np.array([rows[own.name] for own in at.decisions[1:]])
    input_VD, output_VD = before.input_VD.copy(), before.output_VD.copy()
    loss, _ = reference.skipgram_negative(
        np.array([rows[center], rows[context]]), np.array([0, 0]), np.array([0, 2]), noise,
        input_VD, output_VD, pool=3, block=2, negatives=3, rate=0.2,
    )  # fmt: skip
    assert np.allclose(at.input_VD, input_VD, atol=1e-12) and at.loss == pytest.approx(loss)
    assert np.allclose(at.output_VD, output_VD, atol=1e-12)
    # And once more by the formulas that the page shows.
    hidden_D = np.array(at.input.before)
    change_D = np.zeros_like(hidden_D)
    for own in at.decisions:
        output_D = before.output_VD[rows[own.name]]
        assert own.score == pytest.approx(output_D @ hidden_D, abs=1e-12)
        assert own.probability == pytest.approx(1 / (1 + math.exp(-own.score)), abs=1e-12)
        assert own.step == pytest.approx(0.2 * (own.label - own.probability), abs=1e-12)
        change_D += own.step * output_D
    assert np.allclose(hidden_D + change_D, at.input.after, atol=1e-12)
    assert at.loss == pytest.approx(
        sum(-math.log(o.probability if o.label else 1 - o.probability) for o in at.decisions)
    )


def test_steps_start_and_continue_as_they_should() -> None:
    first = training_step(TEXT)
    assert first.sentence == TEXT.lower().rstrip(".").split() and first.words[0] == "the"
    assert first.pair == (0, 1) and first.decisions[0].name == "quick"
    assert first.loss == pytest.approx(4 * math.log(2))  # output vectors start at zero
    assert first.input.before == first.input.after
    assert 0 < np.abs(first.input.before).max() <= 0.5 / 8
    assert training_step(TEXT, first.num_pairs).pair == first.pair
    # The last pair of pass 60: a pass that has only begun is the loss of a few pairs, which varies.
    losses = training_step(TEXT, 60 * first.num_pairs - 1).losses
    assert len(losses) == 60 and np.mean(losses[-10:]) < losses[0] - 0.4
    after = training_step(TEXT, 60 * first.num_pairs)
    assert after.losses[:-1] == losses and after.losses[-1] == after.loss
    assert sentence_pairs(3, 1) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_noise_words_are_never_the_true_word() -> None:
    for step in range(60):
        at = training_step(TEXT, step, negatives=5)
        true, *noise = at.decisions
        assert true.label == 1 and true.name not in {own.name for own in noise}
        assert len(noise) == 5


def test_chinese_sentences_are_cut_into_words() -> None:
    at = training_step("国王喜欢音乐，老师也喜欢音乐。", settings=TextSettings(language="zh"))
    assert at.sentence == ["国王", "喜欢", "音乐", "老师", "也", "喜欢", "音乐"]


def test_bad_sentences_and_options_are_refused() -> None:
    for text in ("", "one", "one one one", "word " * 30 + "other " * 40):
        with pytest.raises(InputError):
            training_step(text)
    with pytest.raises(OptionError):
        training_step(TEXT, -1)
    with pytest.raises(OptionError):
        training_step(TEXT, dim=0)


def test_a_film_is_a_training_of_word2vec() -> None:
    def corpus() -> object:
        return (line for lines in repeat(LINES, 40) for line in lines)

    shares: list[float] = []
    film = train_film(
        corpus(), num_snapshots=10, num_words=6, min_count=1, epochs=40, dim=12, seed=5,
        report=lambda share, _: shares.append(share),
    )  # fmt: skip
    model = Word2Vec(dim=12, epochs=40, min_count=1, workers=1, seed=5).fit(list(LINES) * 40)
    assert np.array_equal(film.model.vectors["dog"], model.vectors["dog"])
    assert "a" not in film.words and {"the", "dog", "cat"} <= set(film.words)
    num = len(film.num_words_S)
    assert film.positions_SN2.shape == (num, 6, 2) and 5 <= num <= 10
    assert film.num_words_S[0] == 0 and film.num_words_S[-1] == 40 * 40 * 17
    assert film.losses_S[0] == pytest.approx(6 * math.log(2)) and len(film.losses_S) == num
    assert film.losses_S[-1] < film.losses_S[0] and shares[-1] == 1.0
    # The last snapshot is the PCA of the trained vectors.
    last_ND = np.stack([model.vectors[word] for word in film.words])
    last_ND = last_ND - last_ND.mean(0)
    axes = np.linalg.svd(last_ND, full_matrices=False)[2][:2]
    assert np.allclose(np.abs(last_ND @ axes.T), np.abs(film.positions_SN2[-1]), atol=1e-4)


def test_a_film_needs_words() -> None:
    with pytest.raises(InputError):
        train_film(iter(["a b 1 2"] * 9), min_count=1)
    with pytest.raises(OptionError):
        train_film(iter(LINES), num_snapshots=1)
