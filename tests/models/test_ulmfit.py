"""AWD-LSTM against plain equations: what is left out and where, cells, gradients, the lesson."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.examples.word_rows import WordRows

torch = pytest.importorskip("torch")

from sememe.errors import OptionError
from sememe.models.ulmfit.config import AWDConfig
from sememe.models.ulmfit.model import ULMFiT
from sememe.models.ulmfit.network import (
    AWDNetwork,
    ULMFiTObjective,
    WeightDropLSTM,
    drop_out_locked,
)

SMALL = AWDConfig(vocab_size=12, num_layers=3, num_cells=7, width=5)


def small_network(**options) -> AWDNetwork:
    from dataclasses import replace

    network = AWDNetwork(replace(SMALL, **options), seed=3)
    with torch.no_grad():
        network.table_VE[:12].normal_(generator=torch.Generator().manual_seed(1))
    return network


def rows_of(*lines: list[int], length: int = 8) -> WordRows:
    ids = np.full((len(lines), length), 1, np.int32)
    for row, line in zip(ids, lines, strict=True):
        row[: len(line)] = line
    return WordRows(ids, np.array([len(line) for line in lines], np.int32), key=99)


def plain_lstm(x_TBD, w_ih, w_hh, bias):
    """The equations of an LSTM, a step after the other, in the precision of its input."""
    output = x_TBD.new_zeros(x_TBD.shape[1], w_hh.shape[1])
    cells, outputs = torch.zeros_like(output), []
    for x_BD in x_TBD:
        i, f, g, o = (x_BD @ w_ih.t() + output @ w_hh.t() + bias).chunk(4, 1)
        cells = f.sigmoid() * cells + i.sigmoid() * g.tanh()
        output = o.sigmoid() * cells.tanh()
        outputs.append(output)
    return torch.stack(outputs)


# ---- what is left out ---------------------------------------------------------------------------


def test_locked_dropout_is_the_same_at_all_positions_and_differs_between_rows():
    torch.manual_seed(1)
    found = drop_out_locked(torch.ones(6, 40, 30), 0.3)
    assert torch.equal(found, found[:1].expand_as(found))
    assert set(found.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.7))}
    assert float((found == 0).float().mean()) == pytest.approx(0.3, abs=0.05)
    assert not torch.equal(found[0, 0], found[0, 1])
    x = torch.randn(2, 3, 4)
    assert drop_out_locked(x, 0.0) is x


def test_weight_drop_thins_the_weights_between_steps_once_for_all_steps():
    layer = WeightDropLSTM(4, 6, 0.5).train()
    layer.initialise(torch.Generator().manual_seed(2))
    x = torch.randn(9, 3, 4, generator=torch.Generator().manual_seed(3))
    torch.manual_seed(5)
    from sememe.nn.layers import drop_out

    whole = layer.lstm.weight_hh_l0
    thinned = drop_out(whole.detach(), 0.5)  # what the layer will draw from the same seed
    assert 0.2 < float((thinned == 0).float().mean()) < 0.8
    torch.manual_seed(5)
    found, state = layer(x)
    found.square().sum().backward()
    own = {name: p.detach().double() for name, p in layer.lstm.named_parameters()}
    w_hh = thinned.double().requires_grad_()
    wanted = plain_lstm(
        x.double(), own["weight_ih_l0"], w_hh, own["bias_ih_l0"] + own["bias_hh_l0"]
    )
    wanted.square().sum().backward()
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(state.output_BP, found[-1])
    # Weights that are left out learn nothing; the others by what they were scaled up.
    scale = (thinned != 0).double() / 0.5
    torch.testing.assert_close(whole.grad.double(), w_hh.grad * scale, atol=1e-4, rtol=0)
    # Nothing is left out of them where nobody learns, and they are whole again afterwards.
    plain = layer.eval()(x)[0].detach()
    wanted = plain_lstm(x, *(own[n].float() for n in ("weight_ih_l0", "weight_hh_l0")),
                        (own["bias_ih_l0"] + own["bias_hh_l0"]).float())  # fmt: skip
    torch.testing.assert_close(plain, wanted, atol=1e-5, rtol=0)


def test_embedding_dropout_leaves_out_all_of_a_word():
    network = small_network(embedding_dropout=0.5).train()
    torch.manual_seed(4)
    ids = torch.arange(12).repeat(3, 1)
    found = network.words(ids).detach()
    is_gone = (found == 0).all(-1)
    assert torch.equal(is_gone, is_gone[:1].expand_as(is_gone)) and 0 < is_gone[0].sum() < 12
    kept = ~is_gone[0]
    torch.testing.assert_close(found[0][kept], 2 * network.table_VE[:12][kept].detach())
    assert torch.equal(network.eval().words(ids), network.table_VE[ids])


def test_dropout_changes_training_alone_and_a_seed_repeats_it():
    network, ids = small_network(), torch.arange(12).view(4, 3)
    torch.manual_seed(1)
    first = network.train()(ids).dropped_TBE
    torch.manual_seed(1)
    assert torch.equal(network(ids).dropped_TBE, first)
    assert not torch.equal(network(ids).dropped_TBE, first)
    outputs = network.eval()(ids)
    assert torch.equal(outputs.dropped_TBE, outputs.layers[-1])
    assert torch.equal(network(ids).dropped_TBE, outputs.dropped_TBE)


# ---- the network and its lesson -----------------------------------------------------------------


def test_loss_penalties_and_gradients_are_those_of_the_equations():
    network = small_network(dropout_factor=0.0)
    objective = ULMFiTObjective(network, activation=2.0, change=1.5).train()
    batch = rows_of([0, 3, 4, 5, 2, 1, 0, 99], [0, 7, 3, 1])
    counts = objective.counts(batch)
    assert counts == {"tokens": 12, "words": 9}  # no mark that begins a sentence is predicted
    loss, metrics = objective(objective.prepare(batch), {"words": torch.tensor(9.0)})
    loss.backward()

    own = {n: p.detach().double().requires_grad_() for n, p in network.named_parameters()}
    words, penalties = torch.zeros((), dtype=torch.float64), 0.0
    for line in ([0, 3, 4, 5, 2, 1, 0, 2], [0, 7, 3, 1]):
        x = own["table_VE"][torch.tensor(line)][:, None]
        for index in range(3):
            part = [own[f"layers.{index}.lstm.{name}_l0"] for name in ("weight_ih", "weight_hh")]
            bias = sum(own[f"layers.{index}.lstm.bias_{end}_l0"] for end in ("ih", "hh"))
            x = plain_lstm(x, *part, bias)
        for place, target in enumerate(line[1:]):
            if target == 0:
                continue
            y = own["bias_V"][:12] + own["table_VE"][:12] @ x[place, 0]
            words = words - y[target] + torch.logsumexp(y, 0)
            penalties = penalties + 2.0 * x[place].square().mean()
            if place:
                penalties = penalties + 1.5 * (x[place] - x[place - 1]).square().mean()
    ((words + penalties) / 9).backward()
    assert float(metrics["word_loss"]) == pytest.approx(float(words.detach()), rel=1e-5)
    assert float(loss.detach()) == pytest.approx(float((words + penalties).detach()) / 9, rel=1e-5)
    for name, value in network.named_parameters():
        torch.testing.assert_close(value.grad.double(), own[name].grad, atol=1e-5, rtol=0, msg=name)
    # A word's vector and its row of the softmax are one and the same.
    assert sum(value.shape[0] == network.config.padded_vocab_size and value.ndim == 2
               for value in network.parameters()) == 1  # fmt: skip
    # Validation knows no penalties.
    plain, _ = objective.eval()(objective.prepare(batch), {"words": torch.tensor(9.0)})
    assert float(plain.detach()) == pytest.approx(float(words.detach()) / 9, rel=1e-5)


def test_later_words_padding_and_other_rows_change_nothing():
    network = small_network().eval()
    ids = torch.randint(0, 12, (9, 4), generator=torch.Generator().manual_seed(7))
    before = network(ids).dropped_TBE
    changed = ids.clone()
    changed[5:, 1] = (changed[5:, 1] + 1) % 12
    after = network(changed).dropped_TBE
    assert torch.equal(after[:5], before[:5]) and not torch.equal(after[5:, 1], before[5:, 1])
    others = [0, 2, 3]
    assert torch.equal(after[:, others], before[:, others])
    # Cells that are handed on make one reading of two.
    first = network(ids[:4])
    second = network(ids[4:], first.states)
    torch.testing.assert_close(
        torch.cat([first.dropped_TBE, second.dropped_TBE]), before, atol=1e-6, rtol=0
    )


def test_new_words_start_as_the_mean_and_others_as_they_were():
    old = small_network()
    with torch.no_grad():
        old.bias_V[:12] = torch.arange(12.0)
    new = AWDNetwork(AWDConfig(vocab_size=6, num_layers=3, num_cells=7, width=5), seed=9)
    new.take_from(old, np.array([0, 1, 2, 7, -1, 3]))
    assert torch.equal(new.table_VE[[0, 1, 2, 3, 5]], old.table_VE[[0, 1, 2, 7, 3]])
    torch.testing.assert_close(new.table_VE[4], old.table_VE[:12].mean(0))
    assert new.bias_V[:6].tolist() == [0, 1, 2, 7, 5.5, 3]
    for layer, other in zip(new.layers, old.layers, strict=True):
        assert torch.equal(layer.lstm.weight_hh_l0, other.lstm.weight_hh_l0)


def test_sizes_are_those_of_the_paper_and_bad_ones_are_refused():
    config = ULMFiT("original", vocab_size=64).config
    assert [config.share(place) for place in ("embedding", "input", "hidden", "output", "weight")] \
        == [0.05, 0.4, 0.3, 0.4, 0.5]  # fmt: skip
    shapes = [layer.lstm.weight_hh_l0.shape[1] for layer in AWDNetwork(config).layers]
    assert shapes == [1_150, 1_150, 400]
    for wrong in ({"weight_dropout": 1.0}, {"num_layers": 0}, {"dropout_factor": -1}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            ULMFiT("tiny", **wrong)
    with pytest.raises(OptionError, match="preset"):
        ULMFiT("huge")
