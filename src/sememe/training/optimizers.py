"""AdamW as the papers use it, or averaged SGD: weights decay, biases and gains of norms do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import nn, optim

from sememe.training.averaged_sgd import AveragedSGD
from sememe.training.config import TrainingConfig


class RateGroup(NamedTuple):
    """Parameters that learn at a rate of their own: a factor for each step; at 0 they rest."""

    parameters: list[nn.Parameter]
    factor: Callable[[int], float]


def parameter_groups(
    module: nn.Module, weight_decay: float, groups: Sequence[RateGroup] | None = None
) -> list[dict[str, Any]]:
    """The trainable parameters of each group in two, matrices with decay and vectors without."""
    if groups is None:
        groups = [RateGroup(list(module.parameters()), lambda step: 1.0)]
    # Biases and gains are the parameters of one axis (Devlin et al. 2018 name them by hand).
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
    """AdamW (Loshchilov & Hutter 2019) in one fused pass over the parameters of each group.

    Or, where the options say so, SGD that averages its weights in the end.
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
    """Give each group its share of the rate of a step."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"](step)


def rest(optimizer: optim.Optimizer, step: int) -> None:
    """Drop the gradients of groups that rest in this step: neither weights nor moments move."""
    for group in optimizer.param_groups:
        if not group["factor"](step):
            for parameter in group["params"]:
                parameter.grad = None
