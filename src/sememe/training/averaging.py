"""Optimizers that can average their weights, and when they do.

The averages are part of the optimizer's state, so a resumed run is bit-identical. They are
validated instead of the weights, and are the result. NT-ASGD (Merity et al. 2018, section 4) starts
as plain SGD at a constant learning rate; when the validation loss is no better than some
validations ago, it starts to average the weights over all further steps. With AdamW and Muon the
average is over a given last fraction of the run.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import optim

from sememe.progress import History
from sememe.training.config import TrainingConfig

MEAN, COUNT = "mean", "num_averaged"


class Averaging(optim.Optimizer):
    """What an optimizer needs to average its weights, from `begin_averaging` on."""

    # Whether a parameter without state has not been moved yet.
    needs_state = True

    def begin_averaging(self) -> None:
        """Average the weights after each step from now on."""
        for parameter in chain.from_iterable(group["params"] for group in self.param_groups):
            if self.state[parameter] or not self.needs_state:
                self.state[parameter][MEAN] = parameter.detach().clone()
                # On the CPU, where reading it waits for no device.
                self.state[parameter][COUNT] = torch.zeros(())

    @property
    def is_averaging(self) -> bool:
        """Whether it has begun."""
        return any(MEAN in own for own in self.state.values())

    @torch.no_grad()
    def update_means(self) -> None:
        """Add the weights of one more step to their averages."""
        parameters = [parameter for parameter, own in self.state.items() if MEAN in own]
        if not parameters:
            return
        counts, means = ([self.state[own][key] for own in parameters] for key in (COUNT, MEAN))
        torch._foreach_add_(counts, 1.0)
        torch._foreach_lerp_(means, parameters, 1 / float(counts[0]))

    @torch.no_grad()
    def swap(self) -> None:
        """Swap the weights and their averages; a second call swaps them back."""
        for parameter, own in self.state.items():
            # Before the first step there is nothing to average.
            if MEAN in own and own[COUNT] > 0:
                kept = parameter.clone()
                parameter.copy_(own[MEAN])
                own[MEAN].copy_(kept)


class AveragedSGD(Averaging, optim.SGD):
    """SGD that averages its weights; equals ASGD with λ = 0."""

    needs_state = False

    def step(self, closure: Any = None) -> Any:
        """Update the weights, then the averages."""
        result = super().step(closure)
        self.update_means()
        return result


class AdamW(Averaging, optim.AdamW):
    """AdamW (Loshchilov & Hutter 2019), which can average its weights."""

    def step(self, closure: Any = None) -> Any:
        """Update the weights, then the averages."""
        result = super().step(closure)
        self.update_means()
        return result


@contextmanager
def averaged(optimizer: optim.Optimizer) -> Iterator[None]:
    """Swap the averages in for the weights during the block, if there are any."""
    if not isinstance(optimizer, Averaging):
        yield
        return
    optimizer.swap()
    try:
        yield
    finally:
        optimizer.swap()


def begins_averaging(
    optimizer: optim.Optimizer,
    config: TrainingConfig,
    history: History,
    *,
    done: float,
    has_validation: bool,
) -> bool:
    """Start averaging, if it is time to after this fraction of the run; returns whether it is."""
    if not isinstance(optimizer, Averaging) or optimizer.is_averaging:
        return False
    if isinstance(optimizer, AveragedSGD):
        losses = [one["validation_loss"] for one in history if "validation_loss" in one]
        # Without validations there is no measure of progress.
        is_late = not has_validation and done >= 0.5
        is_due = is_late or is_stuck(losses, config.average_after)
    else:
        is_due = config.average_share > 0 and done >= 1 - config.average_share
    if is_due:
        optimizer.begin_averaging()
    return is_due


def is_stuck(losses: Sequence[float], patience: int) -> bool:
    """Whether the last loss is above the lowest of all but the last `patience` losses."""
    *before, last = [loss if math.isfinite(loss) else math.inf for loss in losses] or [math.inf]
    return len(before) > patience and last > min(before[: len(before) - patience])


def end_averaged(optimizer: optim.Optimizer) -> None:
    """Leave the averages as the weights, if there are any."""
    if isinstance(optimizer, Averaging):
        optimizer.swap()
