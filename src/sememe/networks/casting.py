"""Weights of many layers cast at once: float32 weights in, short ones for one pass out.

A layer casts its own weights where it uses them (layers.py): for each of them a launch on the way
forward and one on the way back. The steps of a small network on a GPU are made of launches, and
casts were two fifths of them; here they are one each way. Compiled layers cast for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._utils import _unflatten_dense_tensors

from sememe.networks.layers import LayerNorm, Linear

_LINE = 128  # numbers


class _Cast(torch.autograd.Function):
    """Several weights in another precision; their gradients come back in that of the weights."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:
        """Cast every weight."""
        ctx.set_materialize_grads(False)  # a weight that was not used gets no gradient
        ctx.dtype = weights[0].dtype if weights else dtype
        return tuple(_cast(weights, dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Cast the gradients that there are."""
        found = iter(_cast([own for own in gradients if own is not None], ctx.dtype))
        return None, *(None if own is None else next(found) for own in gradients)


def _cast(tensors: Sequence[Tensor], dtype: torch.dtype) -> Sequence[Tensor]:
    if not tensors:
        return []
    # Sizes that would shift what comes after them come last: kernels read whole lines of memory.
    order = sorted(range(len(tensors)), key=lambda index: bool(tensors[index].numel() % _LINE))
    ordered = [tensors[index] for index in order]
    memory = torch.empty(sum(map(Tensor.numel, tensors)), dtype=dtype, device=tensors[0].device)
    parts = _unflatten_dense_tensors(memory, ordered)
    torch._foreach_copy_(parts, ordered)
    found: list[Any] = [None] * len(tensors)
    for index, part in zip(order, parts, strict=True):
        found[index] = part
    return found


def trained_layers(module: nn.Module) -> list[Linear | LayerNorm]:
    """The layers of a module that cast their weights and learn."""
    return [
        part
        for part in module.modules()
        if isinstance(part, Linear | LayerNorm) and part.weight.requires_grad
    ]


@contextmanager
def cast_at_once(layers: Sequence[Linear | LayerNorm], dtype: torch.dtype) -> Iterator[None]:
    """Give the layers weights of that precision, all cast together, for as long as this lasts."""
    weights = [(layer.weight, layer.bias) for layer in layers]
    found = iter(_Cast.apply(dtype, *(own for pair in weights for own in pair if own is not None)))
    for layer, (_, bias) in zip(layers, weights, strict=True):
        layer.cast = next(found), None if bias is None else next(found)
    try:
        yield
    finally:
        for layer in layers:
            layer.cast = None
