"""How long a run is: its options in, a number of steps out, which a run by time corrects.

The rate of a step follows from the number of all steps, which must thus be known before the first.
Where a time is given the speed is measured for it. Other work on the machine may change the speed
later: after each quarter a run looks at its clock, and the fall of the rate is stretched or
shortened from there on, without a leap, so that it ends with the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.training.budget import Extent, extent_of, measure, said_of_budget
from sememe.training.checkpointing import Beginning, keep_beginning
from sememe.training.schedules import rate_at

if TYPE_CHECKING:
    from sememe.training.loop import Loop


def fixed_extent(loop: Loop) -> Extent:
    """The length of the run to be resumed, or that of a new one, which is kept."""
    run, keeper = loop.run, loop.run.keeper
    if loop.begun is not None:
        return loop.begun.extent
    extent: Extent = run.processes.decided(_new_extent(loop))
    if keeper is not None and run.processes.is_main:
        if keeper.latest() is not None:
            run.reporter.note(f"Starting anew: the checkpoint in {keeper.folder} is removed.")
        keeper.clear()
    _keep(loop, extent)
    return extent


def correct_extent(loop: Loop) -> None:
    """Look now and then whether a run by time will end in time; if not, correct its length.

    What is found is kept: a run that is resumed from before a turn turns at the same step.
    """
    run, extent, budget_s = loop.run, loop.extent, loop.config.budget_s
    if not budget_s or not extent.has_look(loop.step):
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
        keep_beginning(run.keeper, Beginning(extent, loop.precision), run.plan)


def _new_extent(loop: Loop) -> Extent:
    config, run = loop.config, loop.run
    if config.steps:
        return extent_of(config.steps, config.evaluate_every, run.num_validations)
    if config.epochs:
        num_steps = max(1, run.source.num_steps(config.epochs))
        return extent_of(num_steps, config.evaluate_every, run.num_validations)
    run.reporter.note("Measuring the speed.")
    extent = _measured(loop, config.budget_s)
    run.reporter.note(said_of_budget(extent.num_steps))
    return extent


def _measured(loop: Loop, budget_s: float) -> Extent:
    """The steps that fit into a budget; the weights are afterwards as they were before."""
    lowest = rate_at(0, 1 << 40, loop.config)
    with loop.rehearsed() as step:
        speed = measure(
            lambda index: step(index, lowest), loop.validate, loop.recorder.wait, budget_s,
            loop.run.processes.decided,
        )  # fmt: skip
    return speed.extent_within(budget_s, loop.config.evaluate_every)
