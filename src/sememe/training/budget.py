"""Time as an amount of work: the steps that fit into a budget."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

# The first steps also allocate, compile and fill caches.
WARM_STEPS = 3
_BLOCK = 5
# With fewer, the rate has hardly risen before it falls again.
_FEW_STEPS = 20
# A run by time is left as it was planned if it would miss its time by no more than this share.
_TOLERANCE = 0.03
_PARTS = 4  # of a run by time, between which it looks at the clock


class Extent(NamedTuple):
    """How long a run is, fixed before its first step: steps, and steps between validations.

    The number of steps of a run by time is corrected where its speed has changed. `planned` is the
    first number, over which the learning rate rises and falls; `turns` has the step of each
    correction, the place in that schedule which it had reached, and the steps from then on.
    """

    num_steps: int
    period: int
    planned: int
    turns: tuple[tuple[int, float, int], ...] = ()

    def place(self, step: int) -> float:
        """Where a step stands in the schedule: from a turn on the rest of it is stretched."""
        # Later turns leave it to the bit: a run that is resumed before them had not known them.
        for turn, low, num_steps in reversed(self.turns):
            if turn <= step:
                return low + (step - turn) / (num_steps - turn) * (self.planned - low)
        return step

    def has_look(self, step: int) -> bool:
        """Whether a run by time looks at its clock after so many steps; a known turn was a look."""
        is_known = bool(self.turns) and step <= self.turns[-1][0]
        if is_known or step >= self.num_steps or self.planned < _FEW_STEPS:
            return False
        before, now = (
            math.floor(_PARTS * self.place(own) / self.planned) for own in (step - 1, step)
        )
        return before < now

    def corrected(self, step: int, seconds: float, budget_s: float) -> Extent:
        """The same, or another number of steps where those so far have taken so many seconds."""
        num_steps = round(step * budget_s / max(seconds, 1e-9))
        if abs(num_steps - self.num_steps) <= _TOLERANCE * self.num_steps:
            return self
        # A rate that fell within a few steps would leave the network in the middle of its way.
        least = step + max(1, (self.num_steps - step) // 4)
        num_steps = max(least, num_steps)
        turns = (*self.turns, (step, float(self.place(step)), num_steps))
        return self._replace(num_steps=num_steps, turns=turns)


def extent_of(num_steps: int, evaluate_every: int, num_evaluations: int = 10) -> Extent:
    """So many steps, validated as often as asked, or so many times over the run."""
    period = evaluate_every or max(1, math.ceil(num_steps / num_evaluations))
    return Extent(num_steps, period, num_steps)


def said_of_budget(num_steps: int) -> str:
    """What a user should know of the steps that fit."""
    if num_steps >= _FEW_STEPS:
        return f"{num_steps:,} steps fit into the budget."
    steps = "step fits" if num_steps == 1 else "steps fit"
    return (
        f"Only {num_steps} {steps} into the budget: too few to learn much. Give it more time, a "
        "smaller model, shorter rows or smaller batches."
    )


@dataclass(frozen=True)
class Speed:
    """Seconds of one step and of one validation, as they were measured."""

    step_s: float
    evaluation_s: float

    def extent_within(self, budget_s: float, evaluate_every: int) -> Extent:
        """The most steps that fit, with their validations, into a budget."""
        if evaluate_every:
            per_step_s = self.step_s + self.evaluation_s / evaluate_every
            return extent_of(max(1, math.floor(budget_s / per_step_s)), evaluate_every)
        # Validations shall not take more than a tenth of the time.
        num = min(10, max(1, math.floor(budget_s / 10 / max(self.evaluation_s, 1e-9))))
        spare_s = budget_s - num * self.evaluation_s
        return extent_of(max(1, math.floor(spare_s / self.step_s)), 0, num)


def measure(
    step: Callable[[int], None],
    evaluate: Callable[[], object],
    wait: Callable[[], None],
    budget_s: float,
    decided: Callable[[bool], bool] = lambda choice: choice,
) -> Speed:
    """Time some first steps and one validation, for about a twentieth of the budget.

    That time is no part of the budget: what is learned in it is forgotten. `wait` waits for the
    device. `decided` gives the choice of one process to all of them, for they must do the same
    steps.
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
        return now_s - begun_s > budget_s / 4 or now_s - stepping_s >= min(20.0, budget_s / 25)

    while not num_timed or not decided(is_enough()):
        block_s = time.monotonic()
        for _ in range(_BLOCK):  # a device works best when it is not waited for
            step(WARM_STEPS + num_timed)
            num_timed += 1
        wait()
        times_s.append(time.monotonic() - block_s)
    step_s = _without_stalls(times_s) / _BLOCK
    return Speed(step_s, stepping_s - warm_s)


def _without_stalls(times_s: list[float]) -> float:
    """The mean of the blocks; one far above the others compiled something for a new shape."""
    highest_s = 3 * statistics.median(times_s)
    return statistics.mean(time_s for time_s in times_s if time_s <= highest_s)
