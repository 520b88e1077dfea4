"""Budgets of time: measured, fixed, corrected once, kept for a run that is resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from test_loop import StopAfter, run  # noqa: E402
from toys import ToyObjective, assert_equal  # noqa: E402

from sememe.storage.checkpoints import Checkpoints  # noqa: E402
from sememe.training.budget import Extent  # noqa: E402
from sememe.training.loop import Loop  # noqa: E402

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
    assert bool(loop.extent.turn) == (step_s != STEADY)
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
    assert resumed.extent.turn == 0
    same, _ = run(ToyObjective(), steps=resumed.num_steps)
    assert_equal(same, resumed.objective)


class StoppedError(Exception):
    """What ends a training that is killed."""


@pytest.mark.parametrize("saved", [80, 120])
def test_a_corrected_run_that_is_killed_goes_on_to_the_bit(saved, clocked, tmp_path, monkeypatch):
    """From a checkpoint after the turn, or before it: the step of the turn is known by then."""
    whole, loop = run(clocked(SLOWER), budget="3s")
    assert loop.extent.turn == loop.extent.planned // 3 == pytest.approx(100, abs=1)
    keeper, look = Checkpoints(tmp_path / "run.checkpoints"), Loop._look

    def stop(own: Loop) -> None:
        look(own)
        if own.step == saved:
            own._checkpoint()
        if own.step == 130:
            raise StoppedError

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(Loop, "_look", stop)
        run(clocked(SLOWER), budget="3s", keeper=keeper)
    assert keeper.latest().name == f"step-{saved}"
    resumed, again = run(clocked(FASTER), budget="3s", keeper=keeper, resume=True)
    assert again.extent == loop.extent
    assert_equal(whole, resumed)
    for name in ("step", "loss", "learning_rate"):
        assert loop.history.column(name).tolist() == again.history.column(name).tolist()


def test_a_correction_is_left_where_it_would_change_little_and_never_ends_a_run_at_once():
    extent = Extent(num_steps=900, period=90)
    assert extent.look == 300 and extent.place(700) == 700
    assert extent.corrected(34.0, 100.0) is extent
    slower = extent.corrected(50.0, 100.0)
    assert slower == Extent(600, 90, turn=300, planned=900)
    assert [slower.place(step) for step in (0, 300, 450, 600)] == [0, 300, 600, 900]
    assert extent.corrected(25.0, 100.0).num_steps == 1_200
    assert extent.corrected(400.0, 100.0).num_steps == 450  # a quarter of what was left
    assert Extent(19, 2).look == 0  # too few to tell a speed from
