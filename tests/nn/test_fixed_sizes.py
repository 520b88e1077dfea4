"""Batches filled up to few sizes, and the whole step as one graph, beside the plain step."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.errors import OptionError
from sememe.examples.batches import Batch
from sememe.models.bert.config import BERTConfig, BERTTrainingConfig
from sememe.models.bert.families import FamilyConfig
from sememe.models.bert.network import BERTNetwork, MaskedObjective
from sememe.models.bert.replaced import (
    ReplacedObjective,
    discriminator_config,
    new_generator,
    share_embedding,
)
from sememe.nn.rows import NO_LABEL, filled_up

LENGTH = 24


def draw_batch(seed: int, num_rows: int, *, has_pairs: bool = True) -> Batch:
    random = np.random.default_rng(seed)
    width = 16
    lengths = random.integers(5, width + 1, num_rows).astype(np.int32)
    lengths[0] = width
    ids = random.integers(5, 50, (num_rows, width)).astype(np.int32)
    hidden = np.sort(np.arange(num_rows) * width + random.integers(1, 5, num_rows))
    return Batch(
        ids_BT=ids, lengths_B=lengths, num_tokens=int(lengths.sum()),
        segments_BT=np.zeros_like(ids, np.int8) if has_pairs else None, hidden_N=hidden,
        targets_N=random.integers(5, 50, num_rows).astype(np.int32),
        is_next_B=(np.arange(num_rows) % 3 - 1).astype(np.int8) if has_pairs else None,
    )  # fmt: skip


def network(**more: object) -> BERTNetwork:
    config = BERTConfig(vocab_size=50, num_layers=2, width=32, num_heads=4, max_length=32,
                        dropout=0.0, attention_dropout=0.0)  # fmt: skip
    return BERTNetwork(FamilyConfig.modern(config) if more else config)


@pytest.mark.parametrize("seed", range(4))
def test_few_sizes_occur(seed):
    batch = draw_batch(seed, 9)
    filled = filled_up(batch, LENGTH, 64, 16)
    assert filled.num_tokens % 64 == 0 == len(filled.targets_N) % 16
    assert filled.num_tokens == filled.lengths_B.sum() and len(filled.lengths_B) == 9 + 4
    assert filled.lengths_B.min() >= 1 and filled.lengths_B.max() <= LENGTH
    assert (filled.targets_N[9:] == NO_LABEL).all() and (filled.is_next_B[9:] == -1).all()
    places = filled.hidden_N[:9]
    np.testing.assert_array_equal(
        filled.ids_BT.reshape(-1)[places], batch.ids_BT.reshape(-1)[batch.hidden_N]
    )
    with pytest.raises(OptionError, match="length"):
        filled_up(batch, 16, 4096, 16)


@pytest.mark.parametrize("is_modern", [False, True])
def test_one_graph_gives_the_loss_and_gradients_of_the_plain_step(is_modern, monkeypatch):
    monkeypatch.setattr("sememe.models.bert.network.FIXED_TOKENS", 64)
    monkeypatch.setattr("sememe.models.bert.network.FIXED_TARGETS", 16)
    torch.compiler.reset()
    more = {"is_modern": True} if is_modern else {}
    plain = MaskedObjective(network(**more), has_pairs=not is_modern)
    whole = MaskedObjective(network(**more), has_pairs=not is_modern)
    graphs = []

    def backend(graph: object, inputs: object) -> object:
        graphs.append(graph)
        return graph

    whole.compile_step(LENGTH, backend=backend, fullgraph=True)
    for seed in (1, 2, 3):
        batch = draw_batch(seed, 9, has_pairs=not is_modern)
        counts = {name: torch.tensor(float(max(1, own))) for name, own in
                  plain.counts(batch).items()}  # fmt: skip
        found = []
        for objective in (plain, whole):
            objective.zero_grad()
            loss, metrics = objective(objective.prepare(batch), counts)
            loss.backward()
            gradients = {
                name: p.grad for name, p in objective.network.named_parameters() if p.requires_grad
            }
            found.append((loss, metrics, gradients))
        torch.testing.assert_close(*(own[0] for own in found), atol=1e-5, rtol=1e-5)
        for name, value in found[0][1].items():
            torch.testing.assert_close(found[1][1][name], value, atol=1e-4, rtol=1e-5)
        for name, value in found[0][2].items():
            torch.testing.assert_close(found[1][2][name], value, atol=1e-5, rtol=1e-4)
    assert len(graphs) <= 2  # sizes that occur, not batches


@pytest.mark.parametrize("more", [{"objective": "rtd"}, {"last_rate": 0.3}, {"batch_warmup": 0.1}])
def test_what_is_refused(more):
    with pytest.raises(OptionError, match="step"):
        BERTTrainingConfig(compile="step", **more)


@pytest.mark.parametrize("is_modern", [False, True])
def test_no_part_of_the_network_breaks_a_graph(is_modern):
    torch.compiler.reset()
    objective = MaskedObjective(
        network(**{"is_modern": True} if is_modern else {}), has_pairs=False
    )
    batch = draw_batch(1, 9, has_pairs=False)
    counts = {name: torch.tensor(float(max(1, own))) for name, own in
              objective.counts(batch).items()}  # fmt: skip
    plain, _ = objective(objective.prepare(batch), counts)
    objective.compile(backend="eager", fullgraph=True)  # raises an error where a graph ends
    found, _ = objective(objective.prepare(batch), counts)
    torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-5)


def replaced_objective() -> ReplacedObjective:
    own = BERTNetwork(discriminator_config(network(is_modern=True).config))
    generator = new_generator(own.config, 0.5, 1)
    share_embedding(own, generator)
    return ReplacedObjective(own, generator, weight=1.0)


def test_every_variant_of_a_block_is_compiled():
    """PyTorch stops compiling at a limit over all modules, with no more than a warning."""
    torch.compiler.reset()
    objective = replaced_objective()
    objective.compile(backend="eager")
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        for is_training, num_rows in ((True, 9), (False, 9), (True, 7), (False, 5)):
            batch = draw_batch(num_rows, num_rows, has_pairs=False)
            counts = {name: torch.tensor(float(own)) for name, own in
                      objective.counts(batch).items()}  # fmt: skip
            objective.train(is_training)
            with torch.set_grad_enabled(is_training):
                objective(objective.prepare(batch), counts)


def test_nothing_stays_compiled():
    torch.compiler.reset()
    masked = MaskedObjective(network(), has_pairs=True)
    masked.compile_step(LENGTH, backend="eager")
    for objective in (masked, replaced_objective()):
        objective.compile(backend="eager")
        compiled = [part for part in objective.modules() if part._compiled_call_impl is not None]
        assert compiled and "head_loss" in vars(objective.network)
        objective.uncompile()
        assert not any(part._compiled_call_impl for part in objective.modules())
        assert not {"head_loss", "loss"} & set(vars(objective.network))
