"""The length of a run: its options in, a number of steps out, corrected if a time is given.

The learning rate depends on the total number of steps, which must be known before the first. If a
time is given, the speed is measured first. Other work on the machine may change it later: after
each quarter the run checks its clock and stretches or shortens the rest of the schedule, without a
jump in the learning rate, so that it ends in time.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sememe.errors import ArtifactError
from sememe.storage.checkpoints import Checkpoints, check_plan
from sememe.storage.folder import read_json, write_json
from sememe.training.optimizers import rate_at

if TYPE_CHECKING:
    from sememe.training.loop import Loop

# The first steps also allocate, compile and fill caches.
WARM_STEPS = 3
_BLOCK = 5
# A shorter measurement of a fast device is too noisy.
_LEAST_S = 3.0
# With fewer, the learning rate has barely risen before it falls again.
_FEW_STEPS = 20
# A timed run keeps its plan if it would miss its time by no more than this fraction.
_TOLERANCE = 0.03
_PARTS = 4  # of a timed run, after each of which it checks its clock


class Extent(NamedTuple):
    """The length of a run, fixed before its first step: steps, and steps between validations.

    A timed run corrects its number of steps when its speed has changed. `planned` is the first
    number, over which the learning rate rises and falls; `turns` lists for each correction its
    step, its position in that schedule, and the number of steps from then on.
    """

    num_steps: int
    period: int
    planned: int
    turns: tuple[tuple[int, float, int], ...] = ()

    def place(self, step: int, delay: int = 0) -> float:
        """The position of a step in the schedule, whose rest is stretched from a correction on.

        With a delay, a correction counts only that many steps later.
        """
        # Later corrections do not change it by a bit: a run resumed before them did not know them.
        for turn, low, num_steps in reversed(self.turns):
            if turn + delay <= step:
                return low + (step - turn) / (num_steps - turn) * (self.planned - low)
        return step

    def has_validation(self, step: int) -> bool:
        """Whether a timed run checks its clock after `step` steps, or did at a known correction."""
        is_known = bool(self.turns) and step <= self.turns[-1][0]
        if is_known or step >= self.num_steps or self.planned < _FEW_STEPS:
            return False
        before, now = (
            math.floor(_PARTS * self.place(own) / self.planned) for own in (step - 1, step)
        )
        return before < now

    def corrected(self, step: int, seconds: float, budget_s: float) -> Extent:
        """The same length, or a corrected one if the steps so far took this many seconds."""
        num_steps = round(step * budget_s / max(seconds, 1e-9))
        if abs(num_steps - self.num_steps) <= _TOLERANCE * self.num_steps:
            return self
        # If the rate fell within a few steps, training would stop halfway.
        least = step + max(1, (self.num_steps - step) // 4)
        num_steps = max(least, num_steps)
        turns = (*self.turns, (step, float(self.place(step)), num_steps))
        return self._replace(num_steps=num_steps, turns=turns)


def extent_of(num_steps: int, evaluate_every: int, num_evaluations: int = 10) -> Extent:
    """This many steps, with a validation at an interval, or a number of times over the run."""
    period = evaluate_every or max(1, math.ceil(num_steps / num_evaluations))
    return Extent(num_steps, period, num_steps)


def budget_message(num_steps: int) -> str:
    """A warning about the number of steps that fit."""
    if num_steps >= _FEW_STEPS:
        return f"{num_steps:,} steps fit into the budget."
    steps = "step fits" if num_steps == 1 else "steps fit"
    return (
        f"Only {num_steps} {steps} into the budget: too few to learn much. Give it more time, a "
        "smaller model, shorter rows or smaller batches."
    )


@dataclass(frozen=True)
class StepSpeed:
    """Measured seconds of one step and of one validation."""

    step_s: float
    evaluation_s: float

    def extent_within(self, budget_s: float, evaluate_every: int) -> Extent:
        """The largest number of steps, with their validations, that fits into a budget."""
        if evaluate_every:
            per_step_s = self.step_s + self.evaluation_s / evaluate_every
            return extent_of(max(1, math.floor(budget_s / per_step_s)), evaluate_every)
        # Validations may take at most a tenth of the time.
        num = min(10, max(1, math.floor(budget_s / 10 / max(self.evaluation_s, 1e-9))))
        spare_s = budget_s - num * self.evaluation_s
        return extent_of(max(1, math.floor(spare_s / self.step_s)), 0, num)


def measure(
    step: Callable[[int], None],
    evaluate: Callable[[], object],
    wait: Callable[[], None],
    budget_s: float,
    decided: Callable[[bool], bool] = lambda choice: choice,
) -> StepSpeed:
    """Time some first steps and one validation, for about a twentieth of the budget.

    That time is not part of the budget, and its training is discarded. `wait` waits for the device.
    `decided` gives the choice of one process to all of them, because they must do the same steps.
    """
    begun_s = time.monotonic()
    for index in range(WARM_STEPS):
        step(index)
    evaluate()
    warm_s = time.monotonic()
    evaluate()
    stepping_s = time.monotonic()
    num_timed, times_s = 0, []

    def is_enough() -> bool:
        now_s = time.monotonic()
        is_late = now_s - begun_s > budget_s / 4  # compiling may have taken that long
        least_s = min(_LEAST_S if is_late else 20.0, budget_s / 25)
        return now_s - stepping_s >= least_s

    while not num_timed or not decided(is_enough()):
        block_s = time.monotonic()
        for _ in range(_BLOCK):  # a device is fastest if nothing waits for it
            step(WARM_STEPS + num_timed)
            num_timed += 1
        wait()
        times_s.append(time.monotonic() - block_s)
    step_s = _without_stalls(times_s) / _BLOCK
    return StepSpeed(step_s, stepping_s - warm_s)


def _without_stalls(times_s: list[float]) -> float:
    """The mean of the blocks, without outliers that compiled something for a new shape."""
    highest_s = 3 * statistics.median(times_s)
    return statistics.mean(time_s for time_s in times_s if time_s <= highest_s)


PLAN = "plan.json"


class Beginning(NamedTuple):
    """What a run fixes before its first step: its length, the precision, the parts of a step."""

    extent: Extent
    precision: str  # empty if an earlier version did not record it
    accumulate: int = 0  # the parts of a step; 0: those of the options


def kept_beginning(keeper: Checkpoints, plan: dict[str, Any]) -> Beginning | None:
    """What the run to resume had fixed, if there is one."""
    place = keeper.folder / PLAN
    if not place.exists():
        if keeper.latest() is not None:
            raise ArtifactError(f"{keeper.folder} has lost its {PLAN}: start without resume.")
        return None
    kept = read_json(place)
    try:
        if kept.pop("checksum", None) not in (None, _checksum(kept)):  # None: an earlier version
            raise ValueError
        # Before lengths were corrected, a run was as long as planned.
        planned = kept.get("planned", kept["num_steps"])
        turns = tuple((int(at), float(low), int(end)) for at, low, end in kept.get("turns", ()))
        extent = Extent(int(kept["num_steps"]), int(kept["period"]), int(planned), turns)
        beginning = Beginning(
            extent, str(kept.get("precision", "")), int(kept.get("accumulate", 0))
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ArtifactError(f"{place} is damaged: start again without resume.") from None
    check_plan(place, kept.get("plan"), plan)
    return beginning


def fixed_extent(loop: Loop) -> Extent:
    """The length of the run to resume, or of a new one, which is saved."""
    run, keeper = loop.run, loop.run.keeper
    if loop.begun is not None:
        return loop.begun.extent
    extent: Extent = run.processes.decided(_new_extent(loop))
    if keeper is not None and run.processes.is_main:
        if keeper.latest() is not None:
            run.reporter.note(
                f"Starting from scratch: the checkpoint in {keeper.folder} is removed."
            )
        keeper.clear()
    _keep(loop, extent)
    return extent


def correct_extent(loop: Loop) -> None:
    """Check occasionally whether a timed run will end in time; if not, correct its length.

    Corrections are saved: a run resumed from before one repeats it at the same step.
    """
    run, extent, budget_s = loop.run, loop.extent, loop.config.budget_s
    if not budget_s or not extent.has_validation(loop.step):
        return
    loop.recorder.wait()
    found = extent.corrected(loop.step, loop.recorder.seconds, budget_s)
    loop.extent = run.processes.decided(found)
    if loop.extent != extent:
        run.reporter.note(
            f"The speed has changed: {loop.extent.num_steps:,} steps fit into the budget."
        )
        _keep(loop, loop.extent)


def _keep(loop: Loop, extent: Extent) -> None:
    run = loop.run
    if run.keeper is not None and run.processes.is_main:
        fixed = {
            **extent._asdict(), "precision": loop.precision, "accumulate": loop.num_parts,
            "plan": run.plan,
        }  # fmt: skip
        write_json(run.keeper.folder / PLAN, fixed | {"checksum": _checksum(fixed)})


def _checksum(fixed: dict[str, Any]) -> str:
    """The SHA-256 of what a run has fixed, the same before writing and after reading."""
    return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()


def _new_extent(loop: Loop) -> Extent:
    config, run = loop.config, loop.run
    if config.steps:
        return extent_of(config.steps, config.evaluate_every, run.num_validations)
    if config.epochs:
        num_steps = max(1, run.source.num_steps(config.epochs))
        return extent_of(num_steps, config.evaluate_every, run.num_validations)
    run.reporter.note("Measuring the speed.")
    extent = _measured(loop, config.budget_s)
    run.reporter.note(budget_message(extent.num_steps))
    return extent


def _measured(loop: Loop, budget_s: float) -> Extent:
    """The steps that fit into a budget; the weights are restored afterwards."""
    lowest = rate_at(0, 1 << 40, loop.config)
    with loop.rehearsed() as step:
        speed = measure(
            lambda index: step(index, lowest), loop.validate, loop.recorder.wait, budget_s,
            loop.run.processes.decided,
        )  # fmt: skip
    return speed.extent_within(budget_s, loop.config.evaluate_every)
