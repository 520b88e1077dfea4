"""SGD that averages its weights once it comes no further: NT-ASGD (Merity et al. 2018, section 4).

Plain SGD at a constant rate first. When the validation is no better than it was some validations
ago, the mean of the weights of all steps from there on is kept beside them; that mean is validated,
and the training ends with it. What is kept lies in the optimizer's state, so a run goes on to the
bit after a stop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn, optim

from sememe.progress import History

MEAN, COUNT = "mean", "step"


class AveragedSGD(optim.SGD):
    """SGD with the mean of its weights since `begin_averaging`; equal to ASGD with λ = 0."""

    @property
    def is_averaging(self) -> bool:
        """Whether a mean is kept."""
        return any(MEAN in own for own in self.state.values())

    def begin_averaging(self) -> None:
        """Keep the mean of the weights after each step from now on."""
        for parameter in self._parameters():
            self.state[parameter] = {
                MEAN: parameter.detach().clone(),
                COUNT: torch.zeros((), device=parameter.device),
            }

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the weights, and the means after them."""
        result = super().step(closure)
        for parameter, own in self.state.items():
            if MEAN in own:
                own[COUNT] += 1
                own[MEAN].lerp_(parameter, 1 / own[COUNT])
        return result

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights and their means; a second time gives the weights back."""
        for parameter, own in self.state.items():
            # Before the first step there is nothing to take the mean of.
            if MEAN in own and own[COUNT] > 0:
                kept = parameter.clone()
                parameter.copy_(own[MEAN])
                own[MEAN].copy_(kept)

    def _parameters(self) -> Iterator[nn.Parameter]:
        for group in self.param_groups:
            yield from group["params"]


@contextmanager
def averaged(optimizer: optim.Optimizer) -> Iterator[None]:
    """Put the means in the place of the weights for a while, where means are kept."""
    if not isinstance(optimizer, AveragedSGD):
        yield
        return
    optimizer.swap()
    try:
        yield
    finally:
        optimizer.swap()


def begins_averaging(
    optimizer: optim.Optimizer, history: History, patience: int, is_late: bool
) -> bool:
    """Begin to average, if it is averaged at all, where validations come no further or it is late.

    Tells whether it begins here.
    """
    if not isinstance(optimizer, AveragedSGD) or optimizer.is_averaging:
        return False
    losses = [one["validation_loss"] for one in history if "validation_loss" in one]
    if not is_late and not is_stuck(losses, patience):
        return False
    optimizer.begin_averaging()
    return True


def is_stuck(losses: Sequence[float], patience: int) -> bool:
    """Whether the last loss is above the lowest of all but the `patience` losses before it."""
    *before, last = [loss if math.isfinite(loss) else math.inf for loss in losses] or [math.inf]
    return len(before) > patience and last > min(before[: len(before) - patience])


def end_averaged(optimizer: optim.Optimizer) -> None:
    """Leave the means as weights, where means are kept."""
    if isinstance(optimizer, AveragedSGD):
        optimizer.swap()
