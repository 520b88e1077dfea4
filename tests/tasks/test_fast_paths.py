"""The short ways of a training step beside the plain ones: casts together, no idle tokens."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.examples.batches import TokenSequence
from sememe.models.language.encoder import NetworkEncoder
from sememe.nn.encoders import inputs_of
from sememe.nn.heads import ClassHead, TokenHead
from sememe.nn.layers import cast_at_once, trained_layers
from sememe.tasks.objective import Item, ItemBatch, TaskObjective

LENGTHS = (5, 3, 9, 1)
COUNTS = {"predicted": torch.tensor(4.0), "following": torch.tensor(14.0)}


def sequence(length: int) -> TokenSequence:
    segments = (np.arange(length) > length // 2).astype(np.int8)
    return TokenSequence(np.arange(5, 5 + length, dtype=np.int32), segments)


def objective_on(network, head=ClassHead, *, dtype=torch.bfloat16, lm_weight=0.0, **more):
    encoder = NetworkEncoder(copy.deepcopy(network), **more)
    own = head(encoder.width, 3, dropout=0.2, has_bias=encoder.has_bias)
    own.initialise(0.5, torch.Generator().manual_seed(1))
    objective = TaskObjective(encoder, own, lm_weight=lm_weight).train()
    objective.precision = dtype
    for block in encoder.network.stack:
        block.dropout = block.attention.dropout = 0.2
    return objective


def learned(objective, *, is_plain: bool):
    """The loss of a batch and the gradients of all parameters."""
    objective._is_compiled = is_plain  # a compiled objective leaves the casts to its layers
    if objective.head.takes == "tokens":
        targets = [np.arange(length) % 3 for length in LENGTHS]
    else:
        targets = [np.array(number % 3) for number in range(len(LENGTHS))]
    items = [Item((sequence(n),), i, targets[i]) for i, n in enumerate(LENGTHS)]
    torch.manual_seed(3)
    loss, _ = objective(objective.prepare(ItemBatch(items)), COUNTS)
    objective.zero_grad(set_to_none=True)
    (1024 * loss).backward()  # as a GradScaler does
    return loss.detach(), {name: own.grad for name, own in objective.named_parameters()}


@pytest.fixture(params=["bert", "gpt"])
def network(request):
    return request.getfixturevalue(request.param)[0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("head", [ClassHead, TokenHead])
@pytest.mark.parametrize("recompute", [False, True])
def test_casts_at_once_change_nothing(network, head, dtype, recompute):
    objective = objective_on(network, head, dtype=dtype)
    objective.encoder.network.stack.recompute = recompute
    loss, gradients = learned(objective, is_plain=False)
    plain_loss, plain = learned(objective, is_plain=True)
    assert torch.equal(loss, plain_loss)
    assert any(own is None for own in plain.values()) == hasattr(network, "masked_bias")
    for name, gradient in gradients.items():
        if plain[name] is None:
            assert gradient is None, name
        else:
            assert gradient.dtype == torch.float32
            assert torch.equal(gradient, plain[name]), name
            assert plain[name].any()


@pytest.mark.parametrize("more", [{"is_frozen": True}, {"features": "mix"}, {"reader_width": 8}])
def test_casts_at_once_leave_frozen_weights_alone(bert, more):
    objective = objective_on(bert[0], **more)
    loss, gradients = learned(objective, is_plain=False)
    plain_loss, plain = learned(objective, is_plain=True)
    assert torch.equal(loss, plain_loss)
    assert {name for name, own in plain.items() if own is not None} == {
        name for name, own in gradients.items() if own is not None
    }
    assert all(own is None or torch.equal(own, plain[name]) for name, own in gradients.items())


def test_the_table_of_a_language_model_learns_from_both_ends(gpt):
    objective = objective_on(gpt[0], lm_weight=0.5)
    loss, gradients = learned(objective, is_plain=False)
    plain_loss, plain = learned(objective, is_plain=True)
    assert torch.equal(loss, plain_loss)
    assert all(torch.equal(own, plain[name]) for name, own in gradients.items())


def test_whole_lines_come_first_and_all_is_forgotten(bert):
    objective = objective_on(bert[0])
    layers = trained_layers(objective)[::-1]  # the head, whose sizes are odd, is the first
    with cast_at_once(layers, torch.bfloat16):
        found = [own for layer in layers for own in layer.cast]
        assert all(own.is_contiguous() for own in found)
        assert not any(own.storage_offset() % 128 for own in found if not own.numel() % 128)
        assert len({own.untyped_storage().data_ptr() for own in found}) == 1
    assert all(layer.cast is None for layer in layers)
    objective.encoder.network.stack.blocks[0].attention.projection.weight.data.fill_(torch.nan)
    assert learned(objective, is_plain=False)[0].isnan()


def test_float32_is_not_cast(bert, monkeypatch):
    monkeypatch.setattr("sememe.tasks.objective.cast_at_once", None)
    loss, _ = learned(objective_on(bert[0], dtype=torch.float32), is_plain=False)
    assert loss.isfinite()


@pytest.mark.parametrize("more", [{}, {"is_frozen": True}, {"features": "last"}])
def test_sequences_alone_are_those_of_all_tokens(network, more):
    encoder = NetworkEncoder(copy.deepcopy(network), **more).eval()
    inputs = inputs_of([sequence(length) for length in LENGTHS])
    found = encoder.sequences_alone(inputs)
    expected = encoder.sequences(encoder.tokens(inputs), inputs)
    torch.testing.assert_close(found, expected)
    assert found.requires_grad == expected.requires_grad
    if found.requires_grad:
        weights = torch.randn_like(found)
        trained = [own for own in encoder.parameters() if own.requires_grad]
        sides = [
            torch.autograd.grad((side * weights).sum(), trained, allow_unused=True)
            for side in (found, expected)
        ]
        for own, other in zip(*sides, strict=True):
            assert (own is None) == (other is None)
            if own is not None:
                torch.testing.assert_close(own, other)


def test_the_last_block_works_for_the_tokens_that_stand_for_sequences(network):
    objective, seen = objective_on(network, dtype=torch.float32), []
    last = objective.encoder.network.stack.blocks[-1].feed_forward
    last.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    learned(objective, is_plain=False)
    assert seen == [len(LENGTHS)]
