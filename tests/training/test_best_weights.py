"""Best weights, patience and rates by group: what fine-tuning asks of the loop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.storage.checkpoints import Checkpoints
from sememe.training import TrainingConfig
from sememe.training.loop import Loop
from sememe.training.optimizers import RateGroup
from sememe.training.run import TrainingRun
from sememe.training.weights import Best

sys.path.insert(0, str(Path(__file__).parent))
from toys import ToyObjective, ToySource, assert_equal, weights


class Marks:
    """A validation that gives marks by a list, and remembers the weights that got them."""

    def __init__(self, marks: list[float]) -> None:
        self.marks, self.seen = marks, []

    def __call__(self, objective: Any, device: Any, processes: Any) -> dict[str, float]:
        self.seen.append(weights(objective))
        return {"mark": self.marks[len(self.seen) - 1]}


class Stopping(ToySource):
    """A source that fails at a step, once."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def batch(self, step: int) -> Any:
        if step == self.step:
            raise KeyboardInterrupt
        return super().batch(step)


def loop(marks: list[float], source: Any = None, **more: Any) -> tuple[Any, Loop, Marks]:
    options = {"batch_size": 16, "learning_rate": 0.02, "device": "cpu", "workers": 1, "steps": 50}
    places = {
        name: more.pop(name) for name in list(more) if name in TrainingRun.__dataclass_fields__
    }
    objective, validation = ToyObjective(), Marks(marks)
    config = TrainingConfig(**options, evaluate_every=10, **more)
    run = TrainingRun(source=source or ToySource(), config=config, validation=validation, **places)
    return objective, Loop(objective, run), validation


def assert_same(objective: Any, kept: dict[str, np.ndarray]) -> None:
    for name, value in weights(objective).items():
        np.testing.assert_array_equal(value, kept[name], err_msg=name)


def test_a_run_ends_with_the_weights_of_its_best_validation():
    objective, own, marks = loop([1, 3, 2, 3, float("nan")], best=Best("mark"))
    own.train()
    assert len(marks.seen) == 5
    assert_same(objective, marks.seen[1])  # the first of equals


def test_patience_ends_a_run_early():
    best = Best("mark", patience=2)
    objective, own, marks = loop([1, 2, 1.5, 1, 5], best=best)
    own.train()
    assert own.step == 40 and best.step == 20 and best.value == 2
    assert_same(objective, marks.seen[1])


def test_a_resumed_run_remembers_its_best(tmp_path):
    whole, own, _ = loop([4, 1, 2, 3, 2], best=Best("mark"))
    own.train()
    keeper = Checkpoints(tmp_path / "run")
    _, own, _ = loop([4, 1], Stopping(27), best=Best("mark"), keeper=keeper,
                     checkpoint_minutes=1e-9)  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        own.train()
    resumed, own, _ = loop([2, 3, 2], best=Best("mark"), keeper=keeper, resume=True,
                           checkpoint_minutes=1e-9)  # fmt: skip
    own.train()
    assert own.run.best.step == 10 and own.run.best.value == 4
    assert_equal(whole, resumed)


def test_groups_learn_at_their_own_rates_and_rest_at_zero():
    objective, own, marks = loop([1] * 5)

    def groups(num_steps: int) -> list[RateGroup]:
        assert num_steps == 50
        late = RateGroup(list(objective.first.parameters()), lambda step: float(step >= 20))
        still = RateGroup(list(objective.norm.parameters()), lambda step: 0.0)
        return [late, still, RateGroup(list(objective.second.parameters()), lambda step: 1.0)]

    own.run.rate_groups = groups
    before = weights(objective)
    own.train()
    second, third = marks.seen[1], marks.seen[2]
    np.testing.assert_array_equal(second["first.weight"], before["first.weight"])
    assert np.abs(third["first.weight"] - before["first.weight"]).max() > 1e-3
    np.testing.assert_array_equal(third["norm.weight"], before["norm.weight"])
    assert np.abs(second["second.weight"] - before["second.weight"]).max() > 1e-3
    assert not own.stepper.optimizer.state.get(objective.norm.weight)  # no moments either


def test_a_smaller_factor_moves_weights_by_less():
    moved = []
    for share in (1.0, 0.1):
        objective, own, marks = loop([1] * 5, schedule="constant", warmup=0.0, weight_decay=0.0)
        groups = [RateGroup(list(objective.parameters()), lambda step, share=share: share)]
        own.run.rate_groups = lambda num_steps, groups=groups: groups
        before = weights(objective)
        own.train()
        moved.append(np.abs(marks.seen[0]["second.weight"] - before["second.weight"]).mean())
    assert 0.05 < moved[1] / moved[0] < 0.2
