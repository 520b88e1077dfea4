"""Muon: orthogonal updates for the matrices of the blocks, AdamW for everything else.

The momentum of a matrix is replaced by the nearest orthogonal one before it is subtracted (Jordan
et al. 2024), so that all its directions move equally far. Scaled as by Liu et al. (2025, 2.2), an
update is as large as one of AdamW: rates and weight decay suit both. PyTorch's Muon computes one
matrix at a time; here all matrices of one shape are computed together.

N matrices of one shape, A rows, B columns, A ≤ B.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, optim

from sememe.training.averaging import AdamW
from sememe.training.device import multiplies_bf16
from sememe.training.sharding import divided_like, is_divided, whole

MOMENTUM = 0.95
# The polynomial of one iteration, steepest at zero; singular values end between 0.7 and 1.2.
_FIRST, _THIRD, _FIFTH = 3.4445, -4.7750, 2.0315
_NUM_ITERATIONS = 5
_LEAST_NORM = 1e-7
# What makes the root mean square of an update that of AdamW's.
_SCALE = 0.2

IS_MUON, PARTS = "is_muon", "parts"  # keys of a group of parameters
BUFFER = "momentum"  # of a parameter's state


def orthogonal(matrices_NAB: Tensor, dtype: torch.dtype) -> Tensor:
    """Approximately U Vᵀ of each matrix U S Vᵀ, by Newton and Schulz's iteration, (N, A, B)."""
    is_tall = matrices_NAB.shape[1] > matrices_NAB.shape[2]
    x_NAB = matrices_NAB.to(dtype)
    x_NAB = x_NAB.mT if is_tall else x_NAB
    x_NAB = x_NAB / x_NAB.norm(dim=(1, 2), keepdim=True).clamp_min(_LEAST_NORM)
    for _ in range(_NUM_ITERATIONS):
        squares_NAA = x_NAB @ x_NAB.mT
        update_NAA = torch.baddbmm(squares_NAA, squares_NAA, squares_NAA, beta=_THIRD, alpha=_FIFTH)
        x_NAB = torch.baddbmm(x_NAB, update_NAA, x_NAB, beta=_FIRST)
    return x_NAB.mT if is_tall else x_NAB


def precision_on(device: torch.device) -> torch.dtype:
    """The precision of the iteration: bfloat16 where it is fast, which is exact enough."""
    is_fast = device.type == "cuda" or (device.type == "cpu" and multiplies_bf16())
    return torch.bfloat16 if is_fast else torch.float32


class Muon(AdamW):
    """Muon for the groups marked IS_MUON, AdamW for the others.

    Such a group lists for each parameter the number of matrices, one below the other, in it.
    """

    def __init__(self, groups: Sequence[dict[str, Any]], **options: Any) -> None:
        """Take groups of parameters and the options of AdamW."""
        super().__init__(groups, **options)
        # A step whose gradients overflow is left out as a whole by the scaler.
        self._step_supports_amp_scaling = False

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the matrices and the other weights, then the averages."""
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group.get(IS_MUON)]
        try:
            result = optim.AdamW.step(self, closure)
        finally:
            self.param_groups = groups
        self._move([group for group in groups if group.get(IS_MUON)])
        self.update_means()
        return result

    def _move(self, groups: list[dict[str, Any]]) -> None:
        """Update the parameters of these groups; matrices of one shape together."""
        matrices: dict[Any, list[tuple[Tensor, Tensor]]] = {}  # with their momentum, by shape
        # A divided matrix has no orthogonal part: all processes compute the whole update.
        divided: list[tuple[Tensor, Tensor]] = []  # parameters with their updates
        for group in groups:
            moving = [(p, num) for p, num in zip(group["params"], group[PARTS], strict=True)
                      if p.grad is not None]  # fmt: skip
            if not moving:
                continue
            parameters = [parameter for parameter, _ in moving]
            gradients = [parameter.grad for parameter in parameters]
            buffers = [self._buffer(parameter) for parameter in parameters]
            torch._foreach_lerp_(buffers, gradients, 1 - MOMENTUM)
            # Nesterov's: one step further in the direction of the momentum.
            momenta = torch._foreach_lerp(gradients, buffers, MOMENTUM)
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            for (parameter, num_parts), one in zip(moving, momenta, strict=True):
                moved, momentum = parameter, whole(one)
                if is_divided(parameter):
                    moved = torch.zeros_like(momentum)
                    divided.append((parameter, moved))
                for own, part in zip(moved.chunk(num_parts), momentum.chunk(num_parts),
                                     strict=True):  # fmt: skip
                    key = tuple(own.shape), own.device, group["lr"]
                    matrices.setdefault(key, []).append((own, part))
        for (shape, device, rate), own in matrices.items():
            stacked_NAB = torch.stack([momentum for _, momentum in own])
            updates_NAB = orthogonal(stacked_NAB, precision_on(device)).to(stacked_NAB.dtype)
            step = -rate * _SCALE * max(shape) ** 0.5
            torch._foreach_add_([matrix for matrix, _ in own], list(updates_NAB), alpha=step)
        for parameter, update in divided:
            parameter.add_(divided_like(update, parameter))

    def _buffer(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if BUFFER not in state:
            state[BUFFER] = torch.zeros_like(parameter)
        found: Tensor = state[BUFFER]
        return found
