"""AdamW as the papers use it, or averaged SGD, and the learning rate as a function of the step.

Weights decay, biases and norm gains do not. NT-ASGD (Merity et al. 2018, section 4) starts as plain
SGD at a constant learning rate. When the validation loss is no better than some validations ago, it
starts to average the weights over all further steps; the average is validated, and becomes the
result. It is part of the optimizer's state, so a resumed run is bit-identical.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import nn, optim

from sememe.progress import History
from sememe.training.config import TrainingConfig

# The highest rate of a slanted schedule divided by its lowest.
RATIO = 32


def rate_at(step: float, num_steps: int, config: TrainingConfig) -> float:
    """The learning rate of a step: a linear warm-up, then a decay until the end of the run.

    The Transformer's own decay has no end: the step's inverse square root. A slanted triangle
    (Howard & Ruder 2018, 3.2) starts and ends at a 32nd of the rate, or at final_rate.
    """
    warmup = config.warmup * num_steps if config.warmup < 1 else config.warmup
    rising = min(num_steps, round(warmup))
    if config.schedule == "slanted":
        low = config.final_rate or 1 / RATIO
        height = step / rising if step < rising else (num_steps - step) / max(1, num_steps - rising)
        return config.learning_rate * (low + (1 - low) * height)
    if step < rising:
        return config.learning_rate * (step + 1) / rising
    if config.schedule == "inverse-sqrt":
        return config.learning_rate * math.sqrt(max(1, rising) / (step + 1))
    done = (step - rising) / max(1, num_steps - rising)
    low = config.final_rate
    if config.schedule == "linear":
        share = 1 - done
    elif config.schedule == "cosine":
        share = (1 + math.cos(math.pi * done)) / 2
    else:
        return config.learning_rate
    return config.learning_rate * (low + (1 - low) * share)


MEAN, COUNT = "mean", "step"


class AveragedSGD(optim.SGD):
    """SGD that averages its weights from `begin_averaging` on; equals ASGD with λ = 0."""

    def begin_averaging(self) -> None:
        """Average the weights after each step from now on."""
        for parameter in chain.from_iterable(group["params"] for group in self.param_groups):
            self.state[parameter] = {
                MEAN: parameter.detach().clone(),
                COUNT: torch.zeros((), device=parameter.device),
            }

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the weights, then the averages."""
        result = super().step(closure)
        for parameter, own in self.state.items():
            if MEAN in own:
                own[COUNT] += 1
                own[MEAN].lerp_(parameter, 1 / own[COUNT])
        return result

    @torch.no_grad()
    def swap(self) -> None:
        """Swap the weights and their averages; a second call swaps them back."""
        for parameter, own in self.state.items():
            # Before the first step there is nothing to average.
            if MEAN in own and own[COUNT] > 0:
                kept = parameter.clone()
                parameter.copy_(own[MEAN])
                own[MEAN].copy_(kept)


@contextmanager
def averaged(optimizer: optim.Optimizer) -> Iterator[None]:
    """Swap the averages in for the weights during the block, if there are any."""
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
    """Start averaging, if enabled, when validation stops improving or the run is near its end.

    Returns whether averaging starts here.
    """
    if not isinstance(optimizer, AveragedSGD):
        return False
    if any(MEAN in own for own in optimizer.state.values()):  # begun already
        return False
    losses = [one["validation_loss"] for one in history if "validation_loss" in one]
    if not is_late and not is_stuck(losses, patience):
        return False
    optimizer.begin_averaging()
    return True


def is_stuck(losses: Sequence[float], patience: int) -> bool:
    """Whether the last loss is above the lowest of all but the last `patience` losses."""
    *before, last = [loss if math.isfinite(loss) else math.inf for loss in losses] or [math.inf]
    return len(before) > patience and last > min(before[: len(before) - patience])


def end_averaged(optimizer: optim.Optimizer) -> None:
    """Leave the averages as the weights, if there are any."""
    if isinstance(optimizer, AveragedSGD):
        optimizer.swap()


class RateGroup(NamedTuple):
    """Parameters with their own learning rate: a factor for each step; at 0 they are frozen."""

    parameters: list[nn.Parameter]
    factor: Callable[[int], float]


def groups_by_depth(
    depths: Iterable[tuple[int, nn.Parameter]], factor_at: Callable[[int], Callable[[int], float]]
) -> list[RateGroup]:
    """Group parameters by depth; the depth gives the factor of a group."""
    by_depth: dict[int, list[nn.Parameter]] = {}
    for depth, parameter in depths:
        by_depth.setdefault(depth, []).append(parameter)
    return [RateGroup(own, factor_at(depth)) for depth, own in sorted(by_depth.items())]


def parameter_groups(
    module: nn.Module, weight_decay: float, groups: Sequence[RateGroup] | None = None
) -> list[dict[str, Any]]:
    """Split each group's trainable parameters into matrices with decay and vectors without."""
    if groups is None:
        groups = [RateGroup(list(module.parameters()), lambda step: 1.0)]
    # Biases and gains are the one-dimensional parameters (Devlin et al. 2018 list them by name).
    found = []
    for group in groups:
        trainable = [parameter for parameter in group.parameters if parameter.requires_grad]
        matrices = [p for p in trainable if p.ndim >= 2]
        vectors = [p for p in trainable if p.ndim < 2]
        for own, decay in ((matrices, weight_decay), (vectors, 0.0)):
            found.append({"params": own, "weight_decay": decay, "factor": group.factor})
    return found


def make_optimizer(
    module: nn.Module, config: TrainingConfig, groups: Sequence[RateGroup] | None = None
) -> optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019), fused over the parameters of each group.

    Or, if the options say so, SGD that averages its weights in the end.
    """
    own = parameter_groups(module, config.weight_decay, groups)
    if config.optimizer == "asgd":
        return AveragedSGD([group for group in own if group["params"]], lr=config.learning_rate)
    return optim.AdamW(
        own,
        lr=config.learning_rate,
        betas=(0.9, config.beta2),
        eps=config.epsilon,
        fused=True,
    )


def set_rates(optimizer: optim.Optimizer, step: int, rate: float) -> None:
    """Set each group's learning rate for a step."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"](step)


def rest(optimizer: optim.Optimizer, step: int) -> None:
    """Drop the gradients of groups frozen in this step, so that weights and moments stay."""
    for group in optimizer.param_groups:
        if not group["factor"](step):
            for parameter in group["params"]:
                parameter.grad = None
