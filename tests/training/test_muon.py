"""Muon: against PyTorch's, its groups, averaging with it and with AdamW, resume to the bit."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorded_notes import Notes

torch = pytest.importorskip("torch")

from sememe.models.bert.config import BERTConfig
from sememe.models.bert.network import BERTNetwork
from sememe.options import option
from sememe.storage.checkpoints import Checkpoints
from sememe.training import TrainingConfig
from sememe.training.averaging import averaged, end_averaged
from sememe.training.device import Validation
from sememe.training.loop import Loop
from sememe.training.muon import IS_MUON, Muon, orthogonal
from sememe.training.optimizers import RateGroup, make_optimizer, rest, set_rates
from sememe.training.run import TrainingRun

sys.path.insert(0, str(Path(__file__).parent))
from test_loop import StopAfter
from toys import ToyObjective, ToySource, assert_equal, weights

needs_peer = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch is below 2.9")


@dataclass(frozen=True, kw_only=True)
class Options(TrainingConfig):
    """The options of the loop, with Muon."""

    optimizer: str = option("muon", "")  # type: ignore[misc]
    average_share: float = option(0.0, "")  # type: ignore[misc]


class Blocks(ToyObjective):
    """The toy with its matrices in blocks; the first consists of two."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.blocks = torch.nn.ModuleList([self.first, self.second])
        self.first.num_parts = 2


def run(source: Any = None, objective: Any = None, **options: Any) -> tuple[Any, Loop]:
    places = {
        name: options.pop(name)
        for name in list(options)
        if name in TrainingRun.__dataclass_fields__
    }
    own = {"batch_size": 16, "learning_rate": 0.02, "device": "cpu", "workers": 1, "steps": 40}
    objective, config = objective or Blocks(), Options(**own | options)
    loop = Loop(objective, TrainingRun(source=source or ToySource(), config=config, **places))
    loop.train()
    return objective, loop


def matrices(shapes: list[tuple[int, int]]) -> list[Any]:
    generator = torch.Generator().manual_seed(7)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


SHAPES = [(24, 16), (16, 24), (24, 16), (16, 16), (1, 16), (24, 16)]


def moved(steps: int, make: Any) -> list[Any]:
    """Matrices after some steps with the same gradients each time it is called."""
    own = matrices(SHAPES)
    optimizer = make(own)
    generator = torch.Generator().manual_seed(11)
    for _ in range(steps):
        for parameter in own:
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    return own


def ours(own: list[Any]) -> Muon:
    group = {"params": own, IS_MUON: True, "parts": [1] * len(own), "weight_decay": 0.1}
    return Muon([group], lr=0.03)


def theirs(own: list[Any]) -> Any:
    return torch.optim.Muon(own, lr=0.03, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")


@needs_peer
def test_updates_are_those_of_pytorch(monkeypatch):
    # PyTorch's always computes in bfloat16; here both do in float32.
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda x: x.clone())
    monkeypatch.setattr("sememe.training.muon.precision_on", lambda device: torch.float32)
    for mine, other in zip(moved(5, ours), moved(5, theirs), strict=True):
        torch.testing.assert_close(mine, other, atol=2e-6, rtol=1e-5)


@needs_peer
def test_updates_are_those_of_pytorch_in_bfloat16(monkeypatch):
    monkeypatch.setattr("sememe.training.muon.precision_on", lambda device: torch.bfloat16)
    before = matrices(SHAPES)
    for own, mine, other in zip(before, moved(5, ours), moved(5, theirs), strict=True):
        assert (mine - other).norm() < 0.02 * (own - other).norm()


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (20, 20)])
def test_updates_are_nearly_orthogonal(shape):
    stacked = torch.randn(3, *shape, generator=torch.Generator().manual_seed(1))
    for found in orthogonal(stacked, torch.float32):
        values = torch.linalg.svdvals(found)
        assert values.min() > 0.6 and values.max() < 1.25
    left, _, right = torch.linalg.svd(stacked, full_matrices=False)
    nearest = left @ right
    cosine = torch.nn.functional.cosine_similarity(
        orthogonal(stacked, torch.float32).flatten(1), nearest.flatten(1)
    )
    assert cosine.min() > 0.97


def test_parts_of_a_weight_are_matrices_of_their_own():
    whole, parts = matrices([(24, 8)])[0], matrices([(24, 8)])[0].detach()
    thirds = [torch.nn.Parameter(own.clone()) for own in parts.chunk(3)]
    gradient = torch.randn(24, 8, generator=torch.Generator().manual_seed(2))
    whole.grad = gradient
    for own, part in zip(thirds, gradient.chunk(3), strict=True):
        own.grad = part
    Muon([{"params": [whole], IS_MUON: True, "parts": [3]}], lr=0.1).step()
    Muon([{"params": thirds, IS_MUON: True, "parts": [1, 1, 1]}], lr=0.1).step()
    assert torch.equal(whole, torch.cat(thirds))


def test_only_matrices_of_blocks_are_muons_and_queries_are_apart_from_keys():
    network = BERTNetwork(BERTConfig(vocab_size=40, num_layers=2, width=16, num_heads=2))
    optimizer = make_optimizer(network, Options(steps=1))
    names = {parameter: name for name, parameter in network.named_parameters()}
    own = {
        names[parameter].split(".", 3)[-1]: num
        for group in optimizer.param_groups
        if group.get(IS_MUON)
        for parameter, num in zip(group["params"], group["parts"], strict=True)
    }
    assert own == {
        "attention.projection.weight": 3, "attention.output.weight": 1,
        "feed_forward.inner.weight": 1, "feed_forward.output.weight": 1,
    }  # fmt: skip
    every = [p for group in optimizer.param_groups for p in group["params"]]
    assert len(every) == len(set(every)) == len(names)


def test_the_others_move_as_with_adamw():
    plain, mixed = ToyObjective(dropout=0), ToyObjective(dropout=0)
    for objective, name in ((plain, "adamw"), (mixed, "muon")):  # no matrix is in a block
        run(objective=objective, optimizer=name, steps=5)
    assert_equal(plain, mixed)
    with pytest.raises(AssertionError):
        assert_equal(plain, run(steps=5, objective=Blocks(dropout=0))[0])


def test_layers_have_their_own_rates_and_may_rest():
    objective = Blocks(dropout=0)
    groups = [
        RateGroup([objective.first.weight], lambda step: 0.0),
        RateGroup([objective.second.weight], lambda step: 0.5),
    ]
    optimizer = make_optimizer(objective, Options(steps=1, weight_decay=0.0), groups)
    before = weights(objective)
    for parameter in objective.parameters():
        parameter.grad = torch.ones_like(parameter)
    set_rates(optimizer, 0, 0.1)
    rest(optimizer, 0)
    optimizer.step()
    after = weights(objective)
    np.testing.assert_array_equal(before["first.weight"], after["first.weight"])
    step = after["second.weight"] - before["second.weight"]
    # A gradient of rank one becomes one of the same direction whose norm is about one.
    assert 0.6 < np.linalg.norm(step) / (0.5 * 0.1 * 0.2 * 16**0.5) < 1.25


def test_it_learns_and_clips():
    _, loop = run(
        steps=200, learning_rate=0.05, clip=0.5, validation=Validation(ToySource(seed=9), 8)
    )
    assert loop.history[0]["loss"] > 1.0 > 0.5 > loop.history.last()["loss"]
    assert loop.history.last()["gradient_norm"] > 0


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("step", [8, 36])
def test_it_goes_on_to_the_bit(tmp_path, step, optimizer):
    options = {"optimizer": optimizer, "average_share": 0.2}
    whole, _ = run(**options)
    keeper = Checkpoints(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(StopAfter(step), keeper=keeper, **options)
    again, _ = run(keeper=keeper, resume=True, **options)
    assert_equal(whole, again)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_the_last_fifth_is_averaged(optimizer):
    notes, seen = Notes(), []

    class Remembering(Blocks):
        """Remembers the weights before every step, so after the one before."""

        def forward(self, batch: Any, counts: Any) -> Any:
            if self.training:
                seen.append(weights(self))
            return super().forward(batch, counts)

    objective, loop = run(
        ToySource(), Remembering(), optimizer=optimizer, average_share=0.2, reporter=notes, steps=20
    )
    assert "Averaging the weights from step 16 on." in notes.lines
    found = weights(objective)
    optimizer = loop.stepper.optimizer
    end_averaged(optimizer)  # swaps the weights of the last step in
    last = weights(objective)
    for name, value in found.items():
        mean = np.mean([*(own[name] for own in seen[17:]), last[name]], axis=0)
        np.testing.assert_allclose(value, mean, atol=1e-6)
    with averaged(optimizer):
        for name, value in weights(objective).items():
            np.testing.assert_array_equal(value, found[name])
