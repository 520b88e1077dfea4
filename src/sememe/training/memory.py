"""The parts of a step that fit into a GPU's memory: doubled until a short trial succeeds."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import torch

from sememe.training.optimizers import rate_at

if TYPE_CHECKING:
    from sememe.training.loop import Loop

# Kinds of devices with memory of their own, whose end is an error that a program survives.
LIMITED = ("cuda",)
_STEPS = 2  # the first has no moments of the optimizer yet


def parts_that_fit(loop: Loop, num_phases: int) -> int:
    """Try steps with ever more parts, until one fits; raise the error of memory if none does.

    Gradients are summed over the parts, so the result is that of a whole batch. Batches that change
    over a run are tried in all of their phases.
    """
    is_changing = hasattr(loop.run.source, "follow")
    num_parts = loop.num_parts
    while True:
        try:
            _try(loop, num_phases if is_changing else _STEPS)
            break
        except torch.OutOfMemoryError:
            if 2 * loop.num_parts > loop.config.batch_size:
                raise
        # Outside of the handler, which holds the frames and so the tensors of the failed step.
        loop.num_parts *= 2
        loop.guide_source()
        _release(loop)
    if loop.num_parts > num_parts:
        rows = -(-loop.config.batch_size // loop.num_parts)
        loop.run.reporter.note(
            f"A batch of {loop.config.batch_size:,} rows does not fit into memory at once: it is "
            f"computed in {loop.num_parts} parts of {rows:,} rows."
        )
    return loop.num_parts


def _try(loop: Loop, num_steps: int) -> None:
    lowest = rate_at(0, 1 << 40, loop.config)
    with loop.rehearsed() as step:
        for index in range(num_steps):
            step(index, lowest)
        loop.recorder.wait()
        loop.validate()  # which is also compiled here, not during the training


def _release(loop: Loop) -> None:
    """Free what a failed step left."""
    loop.objective.zero_grad(set_to_none=True)
    loop.stepper.renew(loop.num_steps)
    gc.collect()
    if loop.device.type == "cuda":
        torch.cuda.empty_cache()
