"""The Transformer against PyTorch's own, what it may see, its cache, and its smoothed labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from sememe.examples.pair_batches import PairBatch
from sememe.models.translation.coding import text_of, translation_inputs
from sememe.models.translation.config import transformer_config
from sememe.models.translation.training import TranslationObjective
from sememe.models.translation.transformer import TransformerNetwork
from sememe.nn.softmax import smoothing_of
from sememe.training.config import TrainingConfig
from sememe.training.optimizers import rate_at

SIZES = {
    "vocab_size": 50, "num_layers": 2, "width": 16, "num_heads": 2, "inner_size": 24,
    "dropout": 0.0, "attention_dropout": 0.0, "max_length": 40,
}  # fmt: skip


def network(**options) -> TransformerNetwork:
    return TransformerNetwork(transformer_config("tiny", **{**SIZES, **options}), seed=3)


def rows(*lengths, seed=0):
    draws = np.random.default_rng(seed)
    return [draws.integers(1, 50, length).astype(np.int32) for length in lengths]


def copy_linear(ours, theirs):
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


def copy_attention(ours, theirs):
    theirs.in_proj_weight.copy_(ours.projection.weight)
    theirs.in_proj_bias.copy_(ours.projection.bias)
    copy_linear(ours.output, theirs.out_proj)


@torch.no_grad()
def torch_twin(ours):
    config = ours.config
    theirs = torch.nn.Transformer(
        config.width, config.num_heads, config.num_layers, config.num_layers, config.inner_width,
        dropout=0.0, batch_first=True, norm_first=config.norm == "pre",
        layer_norm_eps=config.norm_eps,
    )  # fmt: skip
    if config.norm == "post":  # PyTorch normalises once more at the end, the paper does not
        theirs.encoder.norm = theirs.decoder.norm = None
    else:
        copy_linear(ours.encoder_norm, theirs.encoder.norm)
        copy_linear(ours.decoder_norm, theirs.decoder.norm)
    for block, layer in zip(ours.encoder, theirs.encoder.layers, strict=True):
        copy_attention(block.attention, layer.self_attn)
        copy_linear(block.feed_forward.inner, layer.linear1)
        copy_linear(block.feed_forward.output, layer.linear2)
        copy_linear(block.attention_norm, layer.norm1)
        copy_linear(block.feed_forward_norm, layer.norm2)
    for block, layer in zip(ours.decoder, theirs.decoder.layers, strict=True):
        copy_attention(block.attention, layer.self_attn)
        copy_linear(block.feed_forward.inner, layer.linear1)
        copy_linear(block.feed_forward.output, layer.linear2)
        for own, other in zip(
            (block.attention_norm, block.crossing_norm, block.feed_forward_norm),
            (layer.norm1, layer.norm2, layer.norm3),
            strict=True,
        ):
            copy_linear(own, other)
        crossing = block.crossing
        layer.multihead_attn.in_proj_weight.copy_(
            torch.cat([crossing.queries.weight, crossing.projection.weight])
        )
        layer.multihead_attn.in_proj_bias.copy_(
            torch.cat([crossing.queries.bias, crossing.projection.bias])
        )
        copy_linear(crossing.output, layer.multihead_attn.out_proj)
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # a word about speed
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_values_and_gradients_are_those_of_pytorch(norm):
    ours = network(norm=norm)
    with torch.no_grad():  # biases that are zero would hide where they are added
        for parameter in ours.parameters():
            if parameter.ndim == 1 and not bool((parameter == 1).all()):
                parameter.normal_(0, 0.1)
    theirs = torch_twin(ours)
    sources, targets = rows(5, 9, 3), rows(4, 2, 7, seed=1)
    source, target = text_of(sources), text_of(targets)
    mixed_ND = ours(source, target)

    padded = [
        torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row).long() for row in side], True)
        for side in (sources, targets)
    ]
    is_empty = [
        torch.arange(own.shape[1]) >= torch.tensor([len(row) for row in side])[:, None]
        for own, side in zip(padded, (sources, targets), strict=True)
    ]
    places = [torch.arange(own.shape[1]).expand_as(own) for own in padded]
    embedded = [
        ours.embedding(ids.flatten(), place.flatten()).unflatten(0, ids.shape)
        for ids, place in zip(padded, places, strict=True)
    ]
    causal = torch.nn.Transformer.generate_square_subsequent_mask(padded[1].shape[1])
    expected_BTD = theirs(
        *embedded, tgt_mask=causal, src_key_padding_mask=is_empty[0],
        memory_key_padding_mask=is_empty[0],
    )  # fmt: skip
    expected_ND = expected_BTD[~is_empty[1]]
    torch.testing.assert_close(mixed_ND, expected_ND, atol=1e-5, rtol=1e-4)

    weights = torch.randn_like(mixed_ND)
    table = ours.embedding.tokens.weight
    (mine,) = torch.autograd.grad((mixed_ND * weights).sum(), table)
    (other,) = torch.autograd.grad((expected_ND * weights).sum(), table)
    torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-3)


def test_no_token_sees_a_later_one_or_another_row():
    ours = network().eval()
    sources, targets = rows(6, 4), rows(7, 5, seed=1)
    before = ours(text_of(sources), text_of(targets))
    changed = [targets[0].copy(), targets[1]]
    changed[0][4:] = 1 + (changed[0][4:] + 7) % 49
    after = ours(text_of(sources), text_of(changed))
    torch.testing.assert_close(before[:4], after[:4])
    assert (before[4:7] - after[4:7]).abs().max() > 1e-3
    torch.testing.assert_close(before[7:], after[7:])
    # A source reaches its own target, wholly, and no other.
    other = [sources[0].copy(), sources[1]]
    other[0][-1] = 1 + other[0][-1] % 49
    after = ours(text_of(other), text_of(targets))
    assert ((before[:7] - after[:7]).abs().amax(1) > 1e-5).all()
    torch.testing.assert_close(before[7:], after[7:])


def test_rows_alone_are_as_rows_beside_longer_ones():
    ours = network().eval()
    sources, targets = rows(3, 12), rows(2, 9, seed=1)
    together = ours(text_of(sources), text_of(targets))
    alone = ours(text_of(sources[:1]), text_of(targets[:1]))
    torch.testing.assert_close(together[:2], alone)


@torch.no_grad()
def test_steps_with_a_memory_give_what_the_whole_gives():
    ours = network(norm="pre").eval()
    sources, targets = rows(6, 4, 9), rows(20, 20, 20, seed=1)
    whole_BTV = ours.next_logits(ours(text_of(sources), text_of(targets))).unflatten(0, (3, 20))
    writer = ours.writer(sources, 2)
    ids_BT = torch.from_numpy(np.stack(targets)).long()
    for step in range(20):
        logits_BKV = writer.step(ids_BT[:, step, None].expand(-1, 2))
        for beam in range(2):
            torch.testing.assert_close(logits_BKV[:, beam], whole_BTV[:, step], atol=1e-5, rtol=0)
        if step == 5:  # the first source is done, the others change places with their twins
            kept = torch.tensor([1, 2])
            writer.choose(kept, torch.tensor([[1, 0], [0, 0]]))
            ids_BT, whole_BTV = ids_BT[kept], whole_BTV[kept]


def test_attention_to_the_source_is_what_forward_uses():
    ours = network().eval()
    sources, targets = rows(5, 3), rows(4, 6, seed=1)
    maps = ours.maps(text_of(sources), text_of(targets))
    assert [tuple(own.shape) for own in maps] == [(2, 2, 6, 5)] * 2
    torch.testing.assert_close(maps[0].sum(-1)[0, :, :4], torch.ones(2, 4))
    assert float(maps[1][1, :, :, 3:].detach().abs().max()) == 0.0  # beyond the second source


def test_smoothed_labels_are_those_of_pytorch():
    draws = torch.Generator().manual_seed(1)
    hidden_MD = torch.randn(7, 12, generator=draws, requires_grad=True)
    table_VD = torch.randn(30, 12, generator=draws, requires_grad=True)
    targets_M = torch.randint(0, 30, (7,), generator=draws)
    logits_MV = hidden_MD @ table_VD.t()
    expected = functional.cross_entropy(logits_MV, targets_M, reduction="sum", label_smoothing=0.2)
    plain = functional.cross_entropy(logits_MV, targets_M, reduction="sum")
    ours = plain + 0.2 * smoothing_of(hidden_MD, table_VD, targets_M)
    torch.testing.assert_close(ours, expected)
    for own, other in zip(
        torch.autograd.grad(ours, (hidden_MD, table_VD), retain_graph=True),
        torch.autograd.grad(expected, (hidden_MD, table_VD)),
        strict=True,
    ):
        torch.testing.assert_close(own, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_a_batch(smoothing):
    """Rows of padding in the table have no part in it."""
    ours = network().train()
    batch = translation_inputs(PairBatch(rows(5, 3), rows(6, 4, seed=1)))
    loss, score = ours.loss(batch, smoothing)
    logits = ours.next_logits(ours(batch.source, batch.target))
    assert logits.shape[1] == 50 < len(ours.embedding.tokens.weight)
    expected = functional.cross_entropy(
        logits, batch.targets_N, reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(loss, expected)
    assert float(score.loss.detach()) == pytest.approx(
        float(functional.cross_entropy(logits, batch.targets_N, reduction="sum").detach()), rel=1e-5
    )
    assert len(batch.targets_N) == 5 + 3


def test_weights_that_are_cast_at_once_learn_the_same():
    ours = network()
    batch = translation_inputs(PairBatch(rows(5, 3), rows(6, 4, seed=1)))
    objective = TranslationObjective(ours, smoothing=0.1)
    objective.precision = torch.bfloat16
    loss, metrics = objective(batch, {"predicted": torch.tensor(8.0)})
    plain, _ = ours.loss(batch, 0.1)
    assert float(loss.detach()) == pytest.approx(float(plain.detach()) / 8, rel=1e-6)
    assert float(metrics["token_loss"]) == pytest.approx(8 * float(loss.detach()), rel=0.2)
    parameters = dict(ours.named_parameters())
    grads = [torch.autograd.grad(own, parameters.values()) for own in (loss, plain / 8)]
    for name, own, other in zip(parameters, *grads, strict=True):
        assert own.dtype == torch.float32
        torch.testing.assert_close(own, other, msg=name)


def test_the_schedule_of_the_paper():
    width, warmup = 512, 4_000
    config = TrainingConfig(
        learning_rate=(width * warmup) ** -0.5, warmup=warmup, schedule="inverse-sqrt"
    )
    for step in (1, 100, 3_999, 4_000, 4_001, 50_000):
        paper = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert rate_at(step - 1, 100_000, config) == pytest.approx(paper)


def test_the_paper_s_sizes():
    base = TransformerNetwork(transformer_config("base"))
    assert sum(p.numel() for p in base.parameters()) == pytest.approx(63e6, rel=0.02)
    config = transformer_config("big")
    assert (config.num_layers, config.width, config.num_heads, config.inner_width) == (
        6, 1024, 16, 4096,
    )  # fmt: skip
    small = TransformerNetwork(transformer_config("small"))
    assert sum(p.numel() for p in small.parameters()) == pytest.approx(9.5e6, rel=0.05)


def test_first_weights_are_drawn_by_the_seed():
    first, again, other = (
        TransformerNetwork(transformer_config("tiny", **SIZES), seed=seed).state_dict()
        for seed in (1, 1, 2)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embedding.tokens.weight"], other["embedding.tokens.weight"])
    bound = math.sqrt(6 / 32)
    weight = first["encoder.blocks.0.attention.projection.weight"]
    assert 0.9 * bound < float(weight.abs().max()) <= bound
