"""Recurrent encoder and decoder against cells step by step; what they may see; their search."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from sememe.errors import OptionError
from sememe.examples.pair_batches import PairBatch
from sememe.models.translation.beam_search import search
from sememe.models.translation.coding import text_of, translation_inputs
from sememe.models.translation.config import SearchConfig, seq2seq_config
from sememe.models.translation.seq2seq import Seq2SeqNetwork

SIZES = {
    "vocab_size": 40, "num_layers": 2, "width": 12, "embedding_size": 8, "dropout": 0.0,
    "max_length": 40,
}  # fmt: skip
VARIANTS = [
    (cell, attention, context)
    for cell in ("lstm", "gru")
    for attention in ("none", "additive", "multiplicative")
    for context in ("after", "feeding", "before")
]
variants = pytest.mark.parametrize(("cell", "attention", "context"), VARIANTS)


def network(cell="lstm", attention="multiplicative", context="after", **options):
    config = seq2seq_config(
        "tiny", **{**SIZES, "cell": cell, "attention": attention, "context": context, **options}
    )
    made = Seq2SeqNetwork(config, seed=3)
    with torch.no_grad():  # larger weights: no gate is nearly linear
        for parameter in made.parameters():
            parameter.mul_(2) if parameter.ndim > 1 else parameter.normal_(0, 0.2)
    return made


def rows(*lengths, seed=0):
    draws = np.random.default_rng(seed)
    return [draws.integers(1, 40, length).astype(np.int32) for length in lengths]


# ---- the plain way: one text at a time, one cell after the other ------------------------------


def run_cell(layer, x_TE, state, is_lstm, suffix=""):
    """What a layer says at every position of one text, by PyTorch's cells."""
    kind = torch.nn.LSTMCell if is_lstm else torch.nn.GRUCell
    cell = kind(layer.input_size, layer.hidden_size)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = {name: getattr(layer, f"{name}_l0{suffix}") for name in names}
    said = []
    for x_E in x_TE:
        given = (state[0][None], state[1][None]) if is_lstm else state[0][None]
        found = torch.func.functional_call(cell, weights, (x_E[None], given))
        state = tuple(part[0] for part in found) if is_lstm else (found[0],)
        said.append(state[0])
    return torch.stack(said), state


def zeros(layer, is_lstm):
    return tuple(torch.zeros(layer.hidden_size) for _ in range(2 if is_lstm else 1))


def plain_encoder(net, ids):
    is_lstm = net.config.cell == "lstm"
    x_SE, states = net.tokens(torch.from_numpy(ids).long()), []
    for layer in net.encoder.layers:
        forward, first = run_cell(layer, x_SE, zeros(layer, is_lstm), is_lstm)
        backward, second = run_cell(layer, x_SE.flip(0), zeros(layer, is_lstm), is_lstm, "_reverse")
        x_SE = torch.cat([forward, backward.flip(0)], 1)
        states.append(tuple(torch.cat(own) for own in zip(first, second, strict=True)))
    return x_SE, states


def plain_context(net, query_D, source_SD, final_D):
    if net.attention is None:
        return final_D, None
    attention = net.attention
    if attention.kind == "additive":
        scores_S = torch.stack(
            [
                attention.score.weight[0]
                @ torch.tanh(
                    attention.queries.weight @ query_D
                    + attention.keys.weight @ key_D
                    + attention.keys.bias
                )
                for key_D in source_SD
            ]
        )
    else:
        scores_S = torch.stack([query_D @ attention.keys.weight @ key_D for key_D in source_SD])
    weights_S = scores_S.softmax(0)
    return weights_S @ source_SD, weights_S


def plain(net, source, target):
    """What tells the next tokens of one target, (T, E), and the attention."""
    is_lstm = net.config.cell == "lstm"
    source_SD, states = plain_encoder(net, source)
    final_D, told_E = states[-1][0], torch.zeros(net.config.embedding_size)
    told, weights = [], []
    for x_E in net.tokens(torch.from_numpy(target).long()):
        if net.config.context == "feeding":
            x_E = torch.cat([x_E, told_E])
        if net.config.context == "before":
            context_D, weights_S = plain_context(net, states[-1][0], source_SD, final_D)
            x_E = torch.cat([x_E, context_D])
        for index, layer in enumerate(net.decoder.layers):
            said, states[index] = run_cell(layer, x_E[None], states[index], is_lstm)
            x_E = said[0]
        if net.config.context != "before":
            context_D, weights_S = plain_context(net, x_E, source_SD, final_D)
        told_E = torch.tanh(net.output(torch.cat([x_E, context_D])))
        told.append(told_E)
        weights.append(weights_S)
    return torch.stack(told), weights


@variants
def test_values_and_gradients_are_those_of_cells(cell, attention, context):
    net = network(cell, attention, context)
    sources, targets = rows(5, 3), rows(4, 6, seed=1)
    told_NE = net(text_of(sources), text_of(targets))
    expected = [plain(net, *pair) for pair in zip(sources, targets, strict=True)]
    expected_NE = torch.cat([own for own, _ in expected])
    torch.testing.assert_close(told_NE, expected_NE, atol=1e-5, rtol=1e-4)
    weights_NE = torch.randn(told_NE.shape, generator=torch.Generator().manual_seed(1))
    parameters = [p for _, p in net.named_parameters()]
    ours = torch.autograd.grad((told_NE * weights_NE).sum(), parameters)
    theirs = torch.autograd.grad((expected_NE * weights_NE).sum(), parameters)
    for (name, _), own, other in zip(net.named_parameters(), ours, theirs, strict=True):
        torch.testing.assert_close(own, other, atol=1e-4, rtol=1e-3, msg=name)
    if attention == "none":
        with pytest.raises(OptionError, match="no attention"):
            net.maps(text_of(sources), text_of(targets))
        return
    (maps,) = net.maps(text_of(sources), text_of(targets))
    assert maps.shape == (2, 1, 6, 5)
    torch.testing.assert_close(maps[1, 0, :, :3], torch.stack(expected[1][1]), atol=1e-5, rtol=1e-4)
    assert float(maps[1, 0, :, 3:].detach().abs().max()) == 0.0


@variants
def test_no_token_sees_a_later_one_or_another_row(cell, attention, context):
    net = network(cell, attention, context).eval()
    sources, targets = rows(6, 4), rows(7, 5, seed=1)
    before = net(text_of(sources), text_of(targets))
    changed = [targets[0].copy(), targets[1]]
    changed[0][4:] = 1 + (changed[0][4:] + 7) % 39
    after = net(text_of(sources), text_of(changed))
    torch.testing.assert_close(before[:4], after[:4])
    assert (before[4:7] - after[4:7]).abs().max() > 1e-3
    torch.testing.assert_close(before[7:], after[7:])
    # Beside a longer pair, whose padding it gets, a row is what it is alone.
    together = net(text_of([*sources[1:], *rows(9)]), text_of([*targets[1:], *rows(11)]))
    torch.testing.assert_close(before[7:], together[:5])


@variants
@torch.no_grad()
def test_steps_give_what_the_whole_gives(cell, attention, context):
    net = network(cell, attention, context).eval()
    sources, targets = rows(6, 4, 9), rows(8, 8, 8, seed=1)
    whole_BTV = net.next_logits(net(text_of(sources), text_of(targets))).unflatten(0, (3, 8))
    writer = net.writer(sources, 2)
    ids_BT = torch.from_numpy(np.stack(targets)).long()
    for step in range(8):
        logits_BKV = writer.step(ids_BT[:, step, None].expand(-1, 2))
        for beam in range(2):
            torch.testing.assert_close(logits_BKV[:, beam], whole_BTV[:, step], atol=1e-5, rtol=0)
        if step == 3:
            kept = torch.tensor([1, 2])
            writer.choose(kept, torch.tensor([[1, 0], [0, 0]]))
            ids_BT, whole_BTV = ids_BT[kept], whole_BTV[kept]


@torch.no_grad()
def test_a_search_says_how_likely_its_translations_are():
    net = network(context="feeding").eval()
    sources = rows(5, 8)
    config = SearchConfig(beam=3, n_best=3, penalty="none")
    found = search(net.writer(sources, 3), [6, 9], config, start_id=0, end_id=1, barred=[0])
    for source, own in zip(sources, found, strict=True):
        for one in own:
            told = net(text_of([source]), text_of([np.array([0, *one.ids])]))
            logs = net.next_logits(told).log_softmax(-1)
            total = sum(float(logs[place, token]) for place, token in enumerate([*one.ids, 1]))
            assert one.log_probability == pytest.approx(total, abs=1e-4)
            assert one.score == one.log_probability


def test_the_loss_of_a_batch():
    net = network().train()
    batch = translation_inputs(PairBatch(rows(5, 3), rows(6, 4, seed=1)))
    loss, score = net.loss(batch, 0.1)
    logits = net.next_logits(net(batch.source, batch.target))
    expected = functional.cross_entropy(
        logits, batch.targets_N, reduction="sum", label_smoothing=0.1
    )
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(
        score.loss, functional.cross_entropy(logits, batch.targets_N, reduction="sum")
    )


def test_dropout_is_drawn_from_the_seed_of_the_step():
    net = network(dropout=0.5).train()
    texts = text_of(rows(6, 4)), text_of(rows(7, 5, seed=1))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(net(*texts))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    net.eval()
    assert torch.equal(net(*texts), net(*texts))


def test_sizes():
    small = Seq2SeqNetwork(seq2seq_config("small"))
    assert sum(p.numel() for p in small.parameters()) == pytest.approx(9e6, rel=0.05)
    bias = small.decoder.layers[0].bias_ih_l0
    assert bias[512:1024].tolist() == [1.0] * 512 and float(bias.detach().sum()) == 512
    weight = small.decoder.layers[0].weight_hh_l0
    assert float(weight.detach().abs().max()) <= 1 / math.sqrt(512)
    with pytest.raises(OptionError, match="even"):
        seq2seq_config("small", width=33)
    with pytest.raises(OptionError, match="preset"):
        seq2seq_config("huge")
