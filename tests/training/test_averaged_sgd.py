"""SGD that averages in the end: against PyTorch's ASGD, when it begins, resume to the bit."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorded_notes import Notes

torch = pytest.importorskip("torch")

from sememe.options import option
from sememe.storage.checkpoints import Checkpoints
from sememe.training import TrainingConfig
from sememe.training.averaging import AveragedSGD, averaged, end_averaged, is_stuck
from sememe.training.device import Validation
from sememe.training.loop import Loop
from sememe.training.run import TrainingRun

sys.path.insert(0, str(Path(__file__).parent))
from test_loop import StopAfter
from toys import ToyObjective, ToySource, assert_equal, weights


@dataclass(frozen=True, kw_only=True)
class Averaged(TrainingConfig):
    """The options of the loop, with SGD."""

    optimizer: str = option("asgd", "")  # type: ignore[misc]
    average_after: int = option(1, "")  # type: ignore[misc]


class Rising:
    """Validation losses that rise from the second one on; remembers the weights it saw."""

    def __init__(self) -> None:
        self.seen: list[dict[str, np.ndarray]] = []

    def __call__(self, objective: Any, device: Any, processes: Any) -> dict[str, float]:
        self.seen.append(weights(objective))
        return {"loss": 1.0 + len(self.seen) / 10}


def run(source: Any = None, objective: Any = None, **options: Any) -> tuple[Any, Loop]:
    places = {
        name: options.pop(name)
        for name in list(options)
        if name in TrainingRun.__dataclass_fields__
    }
    own = {
        "batch_size": 16, "learning_rate": 0.3, "device": "cpu", "workers": 1, "steps": 40,
        "schedule": "constant", "warmup": 0.0, "weight_decay": 1e-4, "evaluate_every": 5,
    }  # fmt: skip
    objective, config = objective or ToyObjective(), Averaged(**own | options)
    loop = Loop(objective, TrainingRun(source=source or ToySource(), config=config, **places))
    loop.train()
    return objective, loop


def test_means_are_those_of_pytorchs_asgd():
    ours, theirs = ToyObjective(dropout=0), ToyObjective(dropout=0)
    mine = AveragedSGD(ours.parameters(), lr=0.2, weight_decay=0.01)
    # It copies the weights of two steps before it begins to take the mean.
    peer = torch.optim.ASGD(theirs.parameters(), lr=0.2, lambd=0.0, t0=0, weight_decay=0.01)
    source = ToySource()
    for step in range(12):
        if step == 1:
            mine.begin_averaging()
        for objective, optimizer in ((ours, mine), (theirs, peer)):
            prepared = objective.prepare(source.batch(step))
            optimizer.zero_grad()
            objective(prepared, {"asked": torch.tensor(8.0)})[0].backward()
            optimizer.step()
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(own, other)
        torch.testing.assert_close(mine.state[own]["mean"], peer.state[other]["ax"])
        assert not torch.equal(own, mine.state[own]["mean"])


def test_means_are_swapped_in_and_out():
    objective = ToyObjective()
    optimizer = AveragedSGD(objective.parameters(), lr=0.1)
    optimizer.begin_averaging()
    before = weights(objective)
    with averaged(optimizer):  # before the first step there is no mean
        assert_same(weights(objective), before)
    for size in (1.0, 2.0):
        for parameter in objective.parameters():
            parameter.grad = torch.full_like(parameter, size)
        optimizer.step()
    moved = weights(objective)
    with averaged(optimizer):
        for name, value in weights(objective).items():  # the mean of -0.1 and -0.3
            np.testing.assert_allclose(value, before[name] - 0.2, atol=1e-6)
    assert_same(weights(objective), moved)
    end_averaged(optimizer)
    for name, value in weights(objective).items():
        np.testing.assert_allclose(value, before[name] - 0.2, atol=1e-6)


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def test_averaging_begins_when_it_comes_no_further():
    # As in the paper's algorithm 1: worse than the best of all but the last n before it.
    assert not is_stuck([], 2) and not is_stuck([5, 4, 6], 2) and not is_stuck([5, 4, 3, 4], 2)
    assert is_stuck([3, 4, 3.5, 3.2], 2) and not is_stuck([3, 4, 3.5, 2.9], 2)
    assert is_stuck([3, 4], 0) and not is_stuck([4, 3], 0) and is_stuck([3, 4, float("nan")], 1)


def test_the_mean_is_validated_and_is_what_remains():
    validation = Rising()
    objective, _ = run(validation=validation, steps=25)
    plain, _ = run(validation=Rising(), steps=25, average_after=99)
    assert len(validation.seen) == 5
    assert_same(validation.seen[-1], weights(objective))
    with pytest.raises(AssertionError):
        assert_equal(objective, plain)


def test_until_it_begins_it_is_plain_sgd():
    validation = Validation(ToySource(seed=9), 2)
    never, _ = run(ToySource(), ToyObjective(dropout=0), validation=validation, average_after=100)
    expected, source = ToyObjective(dropout=0), ToySource()
    matrices = [own for own in expected.parameters() if own.ndim == 2]
    vectors = [own for own in expected.parameters() if own.ndim == 1]
    optimizer = torch.optim.SGD(
        [{"params": matrices, "weight_decay": 1e-4}, {"params": vectors}], lr=0.3
    )
    for step in range(40):
        batch = source.batch(step)
        optimizer.zero_grad()
        counts = {"asked": torch.tensor(float(batch.is_asked_B.sum()))}
        expected(expected.prepare(batch), counts)[0].backward()
        torch.nn.utils.clip_grad_norm_(expected.parameters(), 1.0)
        optimizer.step()
    found = weights(expected)
    for name, value in weights(never).items():
        np.testing.assert_allclose(value, found[name], atol=1e-5)


def test_without_validation_it_averages_the_second_half():
    notes = Notes()
    run(reporter=notes)
    assert "Averaging the weights from step 20 on." in notes.lines


@pytest.mark.parametrize("step", [8, 22, 33])
def test_it_goes_on_to_the_bit_before_and_after_averaging_has_begun(tmp_path, step):
    whole, first = run(validation=Rising())
    keeper = Checkpoints(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(StopAfter(step), validation=Rising(), keeper=keeper)
    # The losses of validations go on where they were.
    later = Rising()
    later.seen = [{}] * (step // 5)
    again, second = run(validation=later, keeper=keeper, resume=True)
    assert_equal(whole, again)
    assert [r.get("validation_loss") for r in first.history] == [
        r.get("validation_loss") for r in second.history
    ]
