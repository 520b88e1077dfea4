"""The optimizer of a training, its groups of parameters, and the learning rate of a step.

AdamW as the papers use it, Muon, or averaged SGD. Weights decay, biases and norm gains do not.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn, optim

from sememe.training.averaging import AdamW, AveragedSGD
from sememe.training.config import TrainingConfig
from sememe.training.muon import IS_MUON, PARTS, Muon

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


def block_matrices(module: nn.Module) -> dict[Tensor, int]:
    """The matrices of the blocks of a network, with the number of matrices that each consists of.

    Tables and heads are not among them: their rows belong to tokens and classes.
    """
    return {
        layer.weight: getattr(layer, "num_parts", 1)
        for name, layer in module.named_modules(remove_duplicate=False)
        if isinstance(layer, nn.Linear) and ".blocks." in f".{name}"
    }


def _split_for_muon(
    groups: list[dict[str, Any]], matrices: dict[Tensor, int]
) -> list[dict[str, Any]]:
    """The same groups, with the matrices of the blocks in groups of their own."""
    found = []
    for group in groups:
        own = [parameter for parameter in group["params"] if parameter in matrices]
        others = [parameter for parameter in group["params"] if parameter not in matrices]
        parts = [matrices[parameter] for parameter in own]
        found.append({**group, "params": others})
        if own:
            found.append({**group, "params": own, IS_MUON: True, PARTS: parts})
    return found


def make_optimizer(
    module: nn.Module, config: TrainingConfig, groups: Sequence[RateGroup] | None = None
) -> optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019), fused over the parameters of each group.

    Or, if the options say so, Muon for the matrices of blocks, or SGD that averages its weights.
    """
    own = parameter_groups(module, config.weight_decay, groups)
    if config.optimizer == "asgd":
        return AveragedSGD([group for group in own if group["params"]], lr=config.learning_rate)
    options: dict[str, Any] = {
        "lr": config.learning_rate, "betas": (0.9, config.beta2), "eps": config.epsilon,
        "fused": True,
    }  # fmt: skip
    if config.optimizer == "muon":
        return Muon(_split_for_muon(own, block_matrices(module)), **options)
    return AdamW(own, **options)


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
