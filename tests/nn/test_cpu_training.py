"""What training on a CPU computes in fewer passes beside the plain way, values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from presets import bert_config
from sememe.nn import softmax
from sememe.nn.attention import attend, attend_on_cpu, causal_mask, layout_of
from sememe.nn.blocks import Stack
from sememe.nn.rows import unpadded_rows
from sememe.nn.softmax import score_tokens

LENGTHS = np.array([3, 9, 1, 9, 5, 7, 2])


def projected(dtype=torch.float64):
    torch.manual_seed(1)
    return torch.randn(int(LENGTHS.sum()), 3, 2, 4, dtype=dtype, requires_grad=True)


def attend_row_by_row(projected_N3HK, is_causal):
    mixed = []
    for own_T3HK in projected_N3HK.split(LENGTHS.tolist()):
        queries, keys, values = own_T3HK.permute(1, 2, 0, 3)
        mask = causal_mask(len(own_T3HK), len(own_T3HK)) if is_causal else None
        mixed.append(attend(queries, keys, values, mask_TS=mask)[0].transpose(0, 1))
    return torch.cat(mixed)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_equals_that_of_each_row(is_causal):
    inputs = projected()
    rows = unpadded_rows(LENGTHS, 9)
    found = attend_on_cpu(inputs, rows, is_causal=is_causal, dropout=0.0)
    expected = attend_row_by_row(inputs, is_causal)
    weights = torch.randn_like(expected)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        *(torch.autograd.grad((side * weights).sum(), inputs)[0] for side in (found, expected))
    )


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_attention_with_dropout(is_causal):
    rows = unpadded_rows(LENGTHS, 9)

    def attended(inputs):
        torch.manual_seed(2)  # the same weights are left out each time
        return attend_on_cpu(inputs, rows, is_causal=is_causal, dropout=0.3)

    inputs = projected()
    assert torch.autograd.gradcheck(attended, inputs)
    assert not torch.allclose(attended(inputs), attend_row_by_row(inputs, is_causal))


def test_rows_are_grouped_and_every_head_has_a_place_of_its_own():
    num_heads = 2
    layout = layout_of(unpadded_rows(LENGTHS, 9).starts.numpy().tobytes(), num_heads)
    assert [sorted(group.lengths_B) for group in layout.groups] == [[1, 2, 3], [5], [7, 9, 9]]
    places = layout.places_NH.flatten()
    assert len(places.unique()) == len(places) == LENGTHS.sum() * num_heads
    heads = layout.tokens_P[layout.places_NH]
    expected = torch.arange(LENGTHS.sum())[:, None] * 3 * num_heads + torch.arange(num_heads)
    assert torch.equal(heads, expected)


def test_no_rows_and_nothing_to_predict():
    empty = torch.zeros(0, 3, 2, 4, requires_grad=True)
    rows = unpadded_rows(np.zeros(0, np.int64), 9)
    attend_on_cpu(empty, rows, is_causal=False, dropout=0.1).sum().backward()
    assert empty.grad.shape == empty.shape
    hidden, table = torch.zeros(0, 4, requires_grad=True), torch.ones(8, 4, requires_grad=True)
    found = score_tokens(hidden, table, torch.zeros(8), 8, torch.zeros(0, dtype=torch.long))
    found.loss.backward()
    assert found.loss == 0 and not table.grad.any()


def head(dtype):
    torch.manual_seed(4)
    vocab_size, size, width = 37, 40, 8
    hidden = torch.randn(11, width, dtype=dtype, requires_grad=True)
    table = torch.randn(size, width, dtype=torch.float32, requires_grad=True)
    bias = torch.randn(size, dtype=torch.float32, requires_grad=True)
    targets = torch.randint(vocab_size, (11,))
    targets[3] = (hidden[3].float() @ table.t() + bias)[:vocab_size].argmax()  # one is right
    return hidden, table, bias, vocab_size, targets


@pytest.mark.parametrize("max_scores", [1 << 25, 40 * 4, 1], ids=["at once", "by four", "by one"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_equal_the_plain_ones(monkeypatch, max_scores, dtype):
    monkeypatch.setattr(softmax, "_MAX_SCORES", max_scores)
    hidden, table, bias, vocab_size, targets = head(dtype)
    found = score_tokens(hidden, table, bias, vocab_size, targets)
    logits = functional.linear(hidden, table.to(dtype), bias.to(dtype))[:, :vocab_size].float()
    loss = functional.cross_entropy(logits, targets, reduction="sum")
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.02, "atol": 0.05}
    torch.testing.assert_close(found.loss, loss, **close)
    assert found.num_right == (logits.amax(-1) == logits[range(11), targets]).sum() >= 1
    inputs = (hidden, table, bias)
    expected = torch.autograd.grad(loss * 0.3, inputs)
    for own, theirs in zip(torch.autograd.grad(found.loss * 0.3, inputs), expected, strict=True):
        assert own.dtype == theirs.dtype
        torch.testing.assert_close(own, theirs, **close)
    with torch.no_grad():
        again = score_tokens(hidden, table, bias, vocab_size, targets)
    torch.testing.assert_close(again.loss, found.loss.detach(), **close)
    assert again.num_right == (logits.argmax(-1) == targets).sum() >= 1


def test_validation_counts_one_of_equal_scores():
    hidden, table = torch.zeros(8, 4), torch.zeros(8, 4)
    with torch.no_grad():
        found = score_tokens(hidden, table, torch.zeros(8), 8, torch.arange(8))
    assert found.num_right == 1


def test_scores_far_apart_stay_finite():
    hidden, table, bias, vocab_size, targets = head(torch.float32)
    scaled = (hidden.detach() * 1e4).requires_grad_()
    found = score_tokens(scaled, table, bias, vocab_size, targets)
    logits = functional.linear(scaled, table, bias)[:, :vocab_size]
    torch.testing.assert_close(
        found.loss, functional.cross_entropy(logits, targets, reduction="sum")
    )
    assert all(part.isfinite().all() for part in torch.autograd.grad(found.loss, (scaled, table)))


def test_a_second_way_back_is_refused():
    hidden, table, bias, vocab_size, targets = head(torch.float32)
    loss = score_tokens(hidden, table, bias, vocab_size, targets).loss
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("is_prenorm", [False, True])
@pytest.mark.parametrize("recompute", [False, True])
def test_the_last_block_follows_only_wanted_tokens(is_prenorm, recompute):
    config = bert_config("tiny", width=16, num_heads=2, dropout=0.0, attention_dropout=0.0)
    torch.manual_seed(5)
    stack = Stack(config, is_causal=False, is_prenorm=is_prenorm).double()
    rows = unpadded_rows(LENGTHS, 9)
    hidden = torch.randn(int(LENGTHS.sum()), 16, dtype=torch.float64, requires_grad=True)
    wanted = torch.tensor([20, 3, 0, 11, 3])
    for is_training in (True, False):
        stack.train(is_training)
        stack.recompute = recompute
        found, whole = stack(hidden, rows, wanted), stack(hidden, rows)
        torch.testing.assert_close(found, whole[wanted])
        inputs = (hidden, *stack.parameters())
        weights = torch.randn_like(found)
        for own, expected in zip(
            torch.autograd.grad((found * weights).sum(), inputs),
            torch.autograd.grad((whole[wanted] * weights).sum(), inputs),
            strict=True,
        ):
            torch.testing.assert_close(own, expected)
