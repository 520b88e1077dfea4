"""Fast attention beside the plain function; unpadded batches beside padded ones; dropout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from presets import bert_config, gpt_config
from sememe.examples.batches import Batch
from sememe.models.bert.network import BERTNetwork, MaskedObjective
from sememe.models.gpt.network import GPTNetwork
from sememe.nn.attention import SelfAttention, attend, attend_rows, causal_mask, near_mask, runs_of
from sememe.nn.layers import draw_keys, drawn, drop, drop_out, kept
from sememe.nn.rows import bert_inputs, gpt_inputs, padded_rows, unpadded_rows
from sememe.training.device import to_device

LENGTHS = np.array([9, 1, 5], np.int32)
SMALL = {"vocab_size": 90, "max_length": 9, "width": 32, "num_heads": 4}


def draw_batch(seed: int = 1) -> Batch:
    rng = np.random.default_rng(seed)
    hidden = np.array([0, 4, 8, 9, 20, 22])
    return Batch(
        ids_BT=rng.integers(0, 90, (3, 9)).astype(np.int32),
        lengths_B=LENGTHS,
        num_tokens=15,
        segments_BT=rng.integers(0, 2, (3, 9)).astype(np.int8),
        hidden_N=hidden,
        targets_N=rng.integers(0, 90, len(hidden)).astype(np.int32),
        is_next_B=np.array([1, 0, 1], np.int8),
    )


@pytest.mark.parametrize("is_causal", [False, True])
def test_every_row_attends_to_itself_alone(is_causal):
    projected = torch.randn(15, 3, 2, 8, requires_grad=True)
    rows = unpadded_rows(LENGTHS, 9)
    mixed = attend_rows(projected, rows, is_causal=is_causal)
    expected = []
    start = 0
    for length in LENGTHS:
        queries, keys, values = projected[start : start + length].permute(1, 2, 0, 3)
        mask = causal_mask(length, length) if is_causal else None
        expected.append(attend(queries, keys, values, mask_TS=mask)[0].transpose(0, 1))
        start += length
    plain = torch.cat(expected)
    torch.testing.assert_close(mixed, plain, atol=1e-6, rtol=1e-5)
    weights = torch.randn_like(mixed)
    (fast_gradient,) = torch.autograd.grad((mixed * weights).sum(), projected)
    (plain_gradient,) = torch.autograd.grad((plain * weights).sum(), projected)
    torch.testing.assert_close(fast_gradient, plain_gradient, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("lengths", "num_runs"),
    [
        ([0, 0, 1, 2, 2, 3, 4, 20, 20, 29, 31], 5),
        ([7], 1),
        ([5, 5, 5], 1),
        ([9, 1, 5], 1),
        ([0], 0),
    ],
)
@pytest.mark.parametrize("window", [0, 2])
@pytest.mark.parametrize("is_causal", [False, True])
def test_rows_that_are_sorted_are_computed_in_runs(lengths, num_runs, window, is_causal):
    rows = unpadded_rows(np.array(lengths, np.int32), max(lengths))
    assert len(runs_of(rows.starts.numpy().tobytes())) == num_runs
    projected = torch.randn(sum(lengths), 3, 2, 8)
    with torch.inference_mode():
        mixed = attend_rows(projected, rows, is_causal=is_causal, window=window)
    assert mixed.shape == (sum(lengths), 2, 8)
    start = 0
    for length in lengths:
        queries, keys, values = projected[start : start + length].permute(1, 2, 0, 3)
        mask = near_mask(length, window) if window else torch.ones(length, length, dtype=bool)
        if is_causal:
            mask &= causal_mask(length, length)
        expected, _ = attend(queries, keys, values, mask_TS=mask)
        torch.testing.assert_close(mixed[start : start + length], expected.transpose(0, 1))
        start += length


@pytest.mark.parametrize("is_causal", [False, True])
def test_maps_path_equals_fast_path(is_causal):
    attention = SelfAttention(32, 4, dropout=0.1, is_causal=is_causal).eval()
    rows = unpadded_rows(LENGTHS, 9)
    hidden = torch.randn(15, 32)
    plain, weights = attention.maps(hidden, rows)
    torch.testing.assert_close(attention(hidden, rows), plain, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 9), atol=1e-5, rtol=0)
    assert not weights[1, :, 0, 1:].any()  # the second row has one token


def test_padding_is_without_effect():
    network = BERTNetwork(bert_config("tiny", **SMALL)).eval()
    batch = draw_batch()
    inputs = bert_inputs(batch)
    ids = torch.from_numpy(batch.ids_BT.astype(np.int64))
    segments = torch.from_numpy(batch.segments_BT.astype(np.int64))
    padded = network(ids, segments, torch.from_numpy(LENGTHS))
    flat = network.encode(inputs.ids_N, inputs.segments_N, inputs.positions_N, inputs.rows)
    torch.testing.assert_close(inputs.rows.flat(padded), flat, atol=1e-5, rtol=1e-5)
    for index, length in enumerate(LENGTHS):
        alone = network(ids[index : index + 1, :length], segments[index : index + 1, :length])
        torch.testing.assert_close(padded[index, :length], alone[0], atol=1e-5, rtol=1e-5)


def test_rows_go_there_and_back():
    rows = unpadded_rows(LENGTHS, 9)
    flat = torch.arange(15.0)[:, None]
    assert torch.equal(rows.flat(rows.padded(flat)), flat)
    assert rows.first_tokens().tolist() == [0, 9, 10]
    assert padded_rows(torch.zeros(3, 9)).first_tokens().tolist() == [0, 9, 18]


def test_targets_find_their_tokens():
    batch = draw_batch()
    inputs = bert_inputs(batch)
    assert torch.equal(
        inputs.ids_N[inputs.hidden_M], torch.from_numpy(batch.ids_BT.reshape(-1)[batch.hidden_N])
    )
    following = gpt_inputs(batch)
    assert len(following.hidden_M) == 15 - 3
    assert torch.equal(following.targets_M, following.ids_N[following.hidden_M + 1])
    same = to_device(inputs, torch.device("cpu"))
    assert torch.equal(same.rows.starts, inputs.rows.starts) and same.rows.max_length == 9


def test_loss_of_parts_is_that_of_the_whole():
    network = BERTNetwork(bert_config("tiny", **SMALL)).eval()
    batch = draw_batch()
    whole, sums = network.loss(bert_inputs(batch))
    count = torch.tensor(float(len(batch.hidden_N)))
    parts = [batch.part(index, 2) for index in range(2)]
    losses = [
        network.loss(bert_inputs(part)._replace(num_targets=count, num_pairs=torch.tensor(3.0)))[0]
        for part in parts
    ]
    torch.testing.assert_close(sum(losses), whole, atol=1e-5, rtol=1e-5)
    means = sums["masked_loss"] / count + sums["next_loss"] / len(batch.lengths_B)
    assert whole.item() == pytest.approx(means.item(), abs=1e-5)


def test_rows_without_a_label_have_no_next_sentence_loss():
    network = BERTNetwork(bert_config("tiny", **SMALL)).eval()
    batch, objective = draw_batch(), MaskedObjective(network, has_pairs=True)
    alone = replace(batch, is_next_B=None)
    unlabelled = replace(batch, is_next_B=np.full(3, -1, np.int8))
    loss, sums = network.loss(bert_inputs(unlabelled))
    assert objective.counts(unlabelled)["pairs"] == 0
    assert sums["next_loss"] == sums["next_accuracy"] == 0
    torch.testing.assert_close(loss, network.loss(bert_inputs(alone))[0])
    loss.backward()
    assert not network.next_head.weight.grad.any()

    one = replace(batch, is_next_B=np.array([-1, 1, -1], np.int8))
    inputs = bert_inputs(one)
    assert inputs.num_pairs == objective.counts(one)["pairs"] == 1
    _, sums = network.loss(inputs)
    first_D = network.encode(*inputs[:4], inputs.rows.first_tokens(torch.device("cpu")))[1]
    chances_2 = network.next_logits(network.pool(first_D)).log_softmax(-1)
    torch.testing.assert_close(sums["next_loss"], -chances_2[0].detach())
    assert sums["next_accuracy"] == float(chances_2[0] > chances_2[1])
    with torch.no_grad():
        torch.testing.assert_close(network.loss(inputs)[1], sums)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recomputing_gives_the_same_gradients(dropout):
    config = bert_config("tiny", **SMALL, dropout=dropout, attention_dropout=dropout)
    gradients = []
    for recompute in (False, True):
        network = BERTNetwork(config).train()
        network.stack.recompute = recompute
        torch.manual_seed(7)
        loss, _ = network.loss(bert_inputs(draw_batch()))
        loss.backward()
        gradients.append(network.stack.blocks[0].attention.projection.weight.grad)
    assert torch.equal(*gradients)


def test_lower_precision_stays_close_and_weights_stay_float():
    for network, inputs in (
        (BERTNetwork(bert_config("tiny", **SMALL)).eval(), bert_inputs(draw_batch())),
        (GPTNetwork(gpt_config("tiny", **SMALL)).eval(), gpt_inputs(draw_batch())),
    ):
        exact, _ = network.loss(inputs)
        network.precision = torch.bfloat16
        close, _ = network.loss(inputs)
        close.backward()
        assert close.item() == pytest.approx(exact.item(), rel=0.01)
        assert all(p.dtype == torch.float32 for p in network.parameters())
        assert network.embedding.tokens.weight.grad.dtype == torch.float32


def test_hashed_dropout_leaves_out_its_share():
    size, share = torch.Size((400, 512)), 0.1
    keys = draw_keys(3, torch.device("cpu"))
    masks = [kept(size, share, key) for key in keys]
    count = size.numel()
    for mask in masks:
        left_out = (~mask).sum().item()
        assert abs(left_out - share * count) < 5 * (share * (1 - share) * count) ** 0.5
    both = (~masks[0] & ~masks[1]).sum().item()
    expected = share**2 * count
    assert abs(both - expected) < 5 * expected**0.5
    assert torch.equal(masks[0], kept(size, share, keys[0]))


def test_drawn_dropout_leaves_out_its_share_and_scales_the_rest():
    count, share = 200_003, 0.1
    is_kept = drawn((count,), share).bool()
    left_out = (~is_kept).sum().item()
    assert abs(left_out - share * count) < 5 * (share * (1 - share) * count) ** 0.5
    for step in (1, 2, 3, 4):  # numbers of the same draw are as strangers
        both = (~is_kept[step:] & ~is_kept[:-step]).sum().item()
        assert abs(both - share**2 * count) < 6 * share * count**0.5
    x = torch.ones(50, 30, requires_grad=True)
    out = drop_out(x, share)
    assert out.detach().unique().tolist() == pytest.approx([0.0, 1 / 0.9])
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())
    torch.manual_seed(3)
    first = drawn((10, 10), 0.5)
    torch.manual_seed(3)
    assert torch.equal(first, drawn((10, 10), 0.5))
    assert drawn((9, 3), 0.5, torch.bfloat16).unique().tolist() == [0, 1]


def test_attention_left_out_on_average_is_attention():
    projected = torch.randn(15, 3, 2, 8)
    rows = unpadded_rows(LENGTHS, 9)
    for is_causal in (False, True):
        whole = attend_rows(projected, rows, is_causal=is_causal)
        drawn_often = [
            attend_rows(projected, rows, is_causal=is_causal, dropout=0.2) for _ in range(150)
        ]
        mean = torch.stack(drawn_often).mean(0)
        assert (mean - whole).abs().mean() < 0.04 < (drawn_often[0] - whole).abs().mean()


def test_dropout_inside_a_compiled_graph():
    compiled = torch.compile(drop, backend="eager", fullgraph=True, dynamic=True)
    x = torch.ones(64, 32, requires_grad=True)
    key = torch.tensor(123, dtype=torch.int32)
    out = compiled(x, 0.25, key)
    assert torch.equal(out > 0, kept(x.shape, 0.25, key))
    assert torch.equal(out[out > 0], torch.full_like(out[out > 0], 4 / 3))
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())
    assert torch.equal(drop(x, 0.25, None), x)


def test_sine_positions_are_no_parameters():
    learned = BERTNetwork(bert_config("tiny", **SMALL))
    waves = BERTNetwork(bert_config("tiny", **SMALL, positions="sinusoidal"))
    names = [{name for name, _ in network.named_parameters()} for network in (learned, waves)]
    assert names[0] - names[1] == {"embedding.positions.weight"}
