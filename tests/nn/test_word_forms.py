"""Words by their characters and sub-words: ids, marks, the CNN against a plain one; samples."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.models.elmo.config import ELMoConfig
from sememe.models.elmo.network import forms_of, input_layer
from sememe.nn.character_cnn import (
    PADDING,
    SENTENCE_BEGIN,
    SENTENCE_END,
    WORD_BEGIN,
    WORD_END,
    CharacterCNN,
    Highway,
    spell_ids,
    spell_words,
    trimmed,
)
from sememe.nn.softmax import Sampler, chances, sampled_loss
from sememe.tokens.vocabulary import Vocabulary

WORDS = ["cat", "苹果", "a", "strawberries" * 6]


def test_words_are_bytes_between_marks():
    cat, apple, _, long = spell_words(WORDS, 50)
    assert cat[:6].tolist() == [WORD_BEGIN, *b"cat", WORD_END, PADDING]
    assert apple[:8].tolist() == [WORD_BEGIN, *"苹果".encode(), WORD_END]
    assert long.tolist() == [WORD_BEGIN, *(b"strawberries" * 6)[:48], WORD_END]
    begin, end = spell_words(["<S>", "</S>"], 5)
    assert begin.tolist() == [WORD_BEGIN, SENTENCE_BEGIN, WORD_END, PADDING, PADDING]
    assert end.tolist() == [WORD_BEGIN, SENTENCE_END, WORD_END, PADDING, PADDING]


def test_ids_are_spelled_as_their_words_are():
    vocabulary = Vocabulary.from_words(WORDS)
    found = spell_ids(np.array([6, 0, 3, 2, 1, 4]), vocabulary, 20)
    wanted = spell_words([WORDS[3], "<S>", WORDS[0], "<UNK>", "</S>", WORDS[1]], 20)
    assert np.array_equal(found, wanted)
    assert np.array_equal(
        spell_ids(np.array([1]), Vocabulary.from_words([])), spell_words(["</S>"])
    )


def cnn_of(activation: str = "relu") -> CharacterCNN:
    cnn = CharacterCNN([(1, 3), (2, 4), (4, 5)], 6, char_width=4, activation=activation)
    cnn.initialise(torch.Generator().manual_seed(1))
    with torch.no_grad():
        for part in cnn.filters:
            part.weight.mul_(20)
            part.bias.normal_(generator=torch.Generator().manual_seed(2))
    return cnn


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_cnn_takes_each_filter_at_its_best_place(activation):
    cnn = cnn_of(activation)
    chars = spell_words(WORDS, 12)
    table = cnn.characters.weight.detach().numpy()
    rows = []
    for row in chars:
        found = []
        for part, size in zip(cnn.filters, cnn.sizes, strict=True):
            weight, bias = part.weight.detach().numpy(), part.bias.detach().numpy()
            windows = [table[row[i : i + size]].T.reshape(-1) for i in range(len(row) - size + 1)]
            found.append((np.stack(windows) @ weight.T + bias).max(0))
        rows.append(np.concatenate(found))
    x = np.maximum(rows, 0) if activation == "relu" else np.tanh(rows)
    for highway in cnn.highways:
        gate, new = (
            x @ part.weight.detach().numpy().T + part.bias.detach().numpy()
            for part in (highway.gate, highway.transform)
        )
        gate = 1 / (1 + np.exp(-gate))
        x = gate * np.maximum(new, 0) + (1 - gate) * x
    wanted = cnn.projection(torch.tensor(x).float()).detach().numpy()
    np.testing.assert_allclose(cnn(torch.from_numpy(chars)).detach(), wanted, atol=1e-5)


def test_filling_that_no_filter_needs_is_left_out_and_changes_nothing():
    cnn, chars = cnn_of(), spell_words(["cat", "苹果", "a"], 50)
    short = trimmed(chars, 4)
    assert short.shape == (3, 8 + 4)
    assert torch.equal(cnn(torch.from_numpy(short)), cnn(torch.from_numpy(chars)))
    whole = spell_words(WORDS, 50)  # one word fills all places
    assert trimmed(whole, 4).shape == (4, 50)


def test_highways_let_words_pass_at_first():
    highway = Highway(8)
    highway.initialise(torch.Generator().manual_seed(1))
    x = torch.rand(4, 8, generator=torch.Generator().manual_seed(2))
    assert (highway(x) - x).abs().mean() < 0.35 * x.abs().mean()


@pytest.mark.parametrize("kind", ["characters", "words", "subwords"])
def test_known_words_have_one_form_by_id_and_by_name(kind):
    config = ELMoConfig(
        vocab_size=6, num_cells=8, width=6, input=kind, filters="1:3 2:4", bucket=50
    )
    layer = input_layer(config)
    layer.initialise(torch.Generator().manual_seed(1))
    forms = forms_of(Vocabulary.from_words(WORDS), config)
    by_id = layer(*forms.of_ids(np.array([0, 1, 2, 3, 4, 5, 6])))
    by_name = layer(*forms.of_words(["<S>", "</S>", "<UNK>", *WORDS]))
    assert torch.equal(by_id, by_name) and by_id.shape == (7, 6)
    # The last word is none of those that are predicted, and 狗 was never seen.
    unseen = layer(*forms.of_words(["狗", "never"]))
    is_unknown = torch.allclose(unseen[0], by_id[2])
    assert is_unknown == (kind == "words")
    if kind == "subwords":
        rows, starts = forms.of_words(["cat", "never"])
        assert rows[0] == 3 and rows[starts[1]] == 2
        torch.testing.assert_close(
            layer(rows, starts)[0], layer.rows.weight[rows[: starts[1]]].mean(0)
        )


# ---- samples of a softmax ---------------------------------------------------------------------


COUNTS = np.array([400, 90, 60, 30, 10, 5, 3, 1, 0, 1])


def test_chances_sum_up_and_none_passes_one():
    found = chances(np.maximum(COUNTS, 1).astype(float), 4)
    assert found.sum() == pytest.approx(4) and found[0] == 1.0 and (found <= 1).all()
    # Below 1 they go with the counts.
    is_unsure = found < 1
    assert is_unsure.sum() == 7
    np.testing.assert_allclose(found[is_unsure] / found[-1], np.maximum(COUNTS, 1)[is_unsure])
    assert (chances(np.ones(3), 5) == 1).all()


def test_each_word_is_drawn_with_its_chance_and_never_twice():
    sampler = Sampler(COUNTS, 4)
    seen = np.zeros(len(COUNTS))
    starts = (np.arange(2_000) + 0.5) / 2_000
    for start in starts:
        ids = sampler.at(start).ids_S.numpy()
        assert len(set(ids)) == len(ids) == 4
        seen[ids] += 1 / len(starts)
    np.testing.assert_allclose(seen, sampler.chances_V, atol=1.5e-3)
    draws = [sampler.draw(key).ids_S.tolist() for key in range(8)]
    assert sampler.draw(3).ids_S.tolist() == draws[3] and len({tuple(d) for d in draws}) > 1


def softmax_parts():
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(6, 4, generator=generator).double()
    table = torch.randn(10, 4, generator=generator).double()
    bias = torch.randn(10, generator=generator).double()
    return hidden, table, bias, torch.tensor([0, 3, 3, 9, 7, 1])


def test_a_sample_of_all_words_gives_the_full_loss_and_its_gradient():
    hidden, table, bias, targets = softmax_parts()
    gradients = []
    for is_sampled in (False, True):
        own = [part.clone().requires_grad_() for part in (hidden, table, bias)]
        if is_sampled:
            loss = sampled_loss(*own, targets, Sampler(COUNTS, 10).draw(1))
        else:
            scores = own[0] @ own[1].t() + own[2]
            loss = torch.nn.functional.cross_entropy(scores, targets, reduction="sum")
        loss.backward()
        gradients.append([loss.detach(), *(part.grad for part in own)])
    for full, sampled in zip(*gradients, strict=True):
        torch.testing.assert_close(sampled.double(), full, rtol=1e-5, atol=1e-6)


def test_the_mean_over_samples_is_the_sum_over_all_words():
    hidden, table, bias, targets = softmax_parts()
    wanted = (hidden @ table.t() + bias).exp().sum(1)
    right = ((hidden * table[targets]).sum(1) + bias[targets]).exp()
    sampler, found = Sampler(COUNTS, 4), torch.zeros(6).double()
    starts = (np.arange(1_000) + 0.5) / 1_000
    for start in starts:
        samples = sampler.at(start)
        # exp(loss) of one prediction is the estimated sum over the right word's own part.
        losses = [
            sampled_loss(hidden[i : i + 1], table, bias, targets[i : i + 1], samples)
            for i in range(6)
        ]
        found += torch.stack(losses).exp() * right / len(starts)
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0)
