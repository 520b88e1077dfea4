"""Budgets of time: measured, fixed, corrected, kept for a run that is resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from test_loop import StopAfter, run
from toys import ToyObjective, assert_equal

from sememe.errors import ArtifactError
from sememe.storage.checkpoints import Checkpoints
from sememe.training.duration import Extent, extent_of
from sememe.training.loop import Loop

MEASURED = 30  # steps, those by which the speed is measured among them
STEADY, SLOWER, FASTER = 0.01, 0.0125, 0.008


@pytest.fixture
def clocked(monkeypatch) -> Callable[[float], ToyObjective]:
    """Give a toy on whose clock the first steps take 0.01 seconds and the others so many."""
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    class Timed(ToyObjective):
        def __init__(self, step_s: float) -> None:
            super().__init__()
            self.step_s, self.num_done = step_s, 0

        def forward(self, *given: Any) -> Any:
            self.num_done += 1
            now[0] += STEADY if self.num_done <= MEASURED else self.step_s
            return super().forward(*given)

    return Timed


@pytest.mark.parametrize("step_s", [STEADY, SLOWER, FASTER])
@pytest.mark.parametrize("schedule", ["linear", "cosine", "slanted"])
def test_a_budget_is_met_though_the_speed_changes(clocked, step_s, schedule):
    _, loop = run(clocked(step_s), budget="6s", schedule=schedule)
    last = loop.history.last()
    assert last["seconds"] == pytest.approx(6.0, rel=0.03)
    assert last["step"] == loop.num_steps == pytest.approx(6.0 / step_s, rel=0.03)
    assert bool(loop.extent.turns) == (step_s != STEADY)
    rates = [record["learning_rate"] for record in loop.history]
    assert max(abs(after - before) for before, after in pairwise(rates)) < 0.02 * 0.2
    assert rates[-1] < 0.02 * 0.05


def test_a_run_by_time_is_that_of_as_many_steps_where_its_speed_stays(clocked, tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):  # the first steps are done twice
        run(clocked(STEADY), StopAfter(4, time=2), budget="3s", keeper=keeper)
    kept = json.loads((keeper.folder / "plan.json").read_text())
    _, resumed = run(clocked(STEADY), budget="3s", keeper=keeper, resume=True)
    assert resumed.num_steps == kept["num_steps"] == pytest.approx(300, abs=3)
    assert not resumed.extent.turns
    same, _ = run(ToyObjective(), steps=resumed.num_steps)
    assert_equal(same, resumed.objective)


class StoppedError(Exception):
    """What ends a training that is killed."""


@pytest.fixture
def killed(clocked, tmp_path, monkeypatch) -> Callable[[int], Checkpoints]:
    """Give a function that kills a run behind its turn; it leaves a checkpoint of some step."""
    keeper, look = Checkpoints(tmp_path / "run.checkpoints"), Loop._look

    def kill(saved: int) -> Checkpoints:
        def stop(own: Loop) -> None:
            look(own)
            if own.step == saved:
                own._checkpoint()
            if own.step == 100:
                raise StoppedError

        with monkeypatch.context() as patch, pytest.raises(StoppedError):
            patch.setattr(Loop, "_look", stop)
            run(clocked(SLOWER), budget="3s", keeper=keeper)
        assert keeper.latest().name == f"step-{saved}"
        return keeper

    return kill


@pytest.mark.parametrize("saved", [60, 90])
def test_a_corrected_run_that_is_killed_goes_on_to_the_bit(saved, clocked, killed):
    """From a checkpoint before the turn, or after it."""
    whole, loop = run(clocked(SLOWER), budget="3s")
    assert [step for step, *_ in loop.extent.turns] == [pytest.approx(75, abs=1)]
    objective = clocked(SLOWER)
    objective.num_done = MEASURED
    resumed, again = run(objective, budget="3s", keeper=killed(saved), resume=True)
    assert again.extent == loop.extent
    assert_equal(whole, resumed)
    for name in ("step", "loss", "learning_rate"):
        assert loop.history.column(name).tolist() == again.history.column(name).tolist()


def test_a_turn_that_is_known_is_taken_though_the_speed_is_another(clocked, killed):
    _, loop = run(clocked(SLOWER), budget="3s")
    _, again = run(clocked(FASTER), budget="3s", keeper=killed(60), resume=True)
    assert len(again.extent.turns) > 1 and again.extent.turns[:1] == loop.extent.turns
    num_same = again.extent.turns[1][0]
    for name in ("step", "loss", "learning_rate"):
        ours, theirs = (own.history.column(name)[:num_same].tolist() for own in (loop, again))
        assert ours == theirs and len(ours) == num_same


def test_a_later_turn_leaves_the_rates_before_it_to_the_bit():
    once = extent_of(799, 0).corrected(200, 31.0, 100.0)
    twice = once.corrected(400, 70.0, 100.0)
    steps = range(401)
    assert len(twice.turns) == 2
    assert [twice.place(step) for step in steps] == [once.place(step) for step in steps]


def test_a_run_that_an_earlier_version_began_goes_on(clocked, tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(clocked(STEADY), StopAfter(90), budget="3s", keeper=keeper)
    place = keeper.folder / "plan.json"
    kept = json.loads(place.read_text())
    earlier = {name: kept[name] for name in ("num_steps", "period", "plan")}
    place.write_text(json.dumps(earlier))
    _, resumed = run(clocked(STEADY), budget="3s", keeper=keeper, resume=True)
    same, _ = run(ToyObjective(), steps=kept["num_steps"])
    assert_equal(same, resumed.objective)
    for damaged in ({"turns": [[75]]}, {"num_steps": kept["num_steps"] + 1}, {"period": 2}):
        place.write_text(json.dumps(kept | damaged))
        with pytest.raises(ArtifactError, match=r"plan\.json is damaged"):
            run(budget="3s", keeper=keeper, resume=True)


def test_a_speed_that_changes_late_is_met_too(clocked, monkeypatch):
    objective = clocked(STEADY)
    forward = objective.forward

    def slower_after(*given: Any) -> Any:
        objective.step_s = STEADY if objective.num_done < 300 else 1.5 * STEADY
        return forward(*given)

    monkeypatch.setattr(objective, "forward", slower_after)
    _, loop = run(objective, budget="6s")
    assert len(loop.extent.turns) == 2
    assert loop.history.last()["seconds"] == pytest.approx(6.0, rel=0.05)


def test_a_correction_is_left_where_it_would_change_little_and_never_ends_a_run_at_once():
    extent = extent_of(800, 0)
    assert [step for step in range(1, 801) if extent.has_validation(step)] == [200, 400, 600]
    assert extent.place(700) == 700
    assert extent.corrected(200, 25.5, 100.0) is extent
    slower = extent.corrected(200, 40.0, 100.0)
    assert slower == Extent(500, 80, planned=800, turns=((200, 200.0, 500),))
    assert [slower.place(step) for step in (0, 200, 350, 500)] == [0, 200, 500, 800]
    assert [step for step in range(1, 501) if slower.has_validation(step)] == [300, 400]
    again = slower.corrected(300, 50.0, 100.0)
    assert again.num_steps == 600 and again.turns == ((200, 200.0, 500), (300, 400.0, 600))
    assert [again.place(step) for step in (250, 300, 450, 600)] == [300, 400, 600, 800]
    assert extent.corrected(200, 400.0, 100.0).num_steps == 350  # a quarter of what was left
    assert not any(extent_of(19, 0).has_validation(step) for step in range(20))  # too few to tell
