"""LoRA: low-rank updates of matrices whose own weights stay fixed (Hu et al. 2022).

A matrix W of D rows and E columns becomes W + s B A: A has R rows and E columns, B has R columns
and the rows of W that it updates. B starts at zero, so training starts from W. An update may
belong to some rows alone: queries, keys and values are one matrix here, three in other programs.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.nn.layers import Linear, activate, drop_out


class LowRankUpdate(nn.Module):
    """The two matrices of an update: `down` is A, `up` is B."""

    def __init__(
        self, num_inputs: int, rows: slice, rank: int, *, scale: float, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.rows, self.scale, self.dropout = rows, scale, dropout
        self.down = nn.Parameter(torch.zeros(rank, num_inputs))
        self.up = nn.Parameter(torch.zeros(rows.stop - rows.start, rank))

    def initialise(self, generator: torch.Generator) -> None:
        """Draw A as PEFT does; B stays zero."""
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5), generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """What the update adds to its rows of the output."""
        kept = drop_out(x, self.dropout if self.training else 0.0)
        inner = functional.linear(kept, self.down.to(x.dtype))
        return self.scale * functional.linear(inner, self.up.to(x.dtype))

    def product(self) -> Tensor:
        """The matrix to add to the weight's rows."""
        return self.scale * (self.up @ self.down)


class AdaptedLinear(Linear):
    """A linear layer with fixed weights and low-rank updates."""

    def __init__(self, layer: Linear, updates: Sequence[LowRankUpdate]) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.updates = nn.ModuleList(updates)

    def forward(self, x: Tensor, activation: str = "") -> Tensor:
        """Map the last axis of x by the updated weights."""
        y = super().forward(x)
        for update in self.updates:
            y[..., update.rows] += update(x)  # type: ignore[index]
        return activate(y, activation) if activation else y

    @torch.no_grad()
    def merged(self) -> Linear:
        """The plain layer with the updates added to its weight, which this layer shares."""
        layer = Linear(1, 1, bias=False)
        layer.in_features, layer.out_features = self.in_features, self.out_features
        layer.weight, layer.bias, layer.training = self.weight, self.bias, self.training
        for update in self.updates:
            layer.weight[update.rows] += update.product()  # type: ignore[index, operator]
        return layer


def adapt(network: nn.Module, name: str, updates: Sequence[LowRankUpdate]) -> None:
    """Put updates on the linear layer of that name."""
    owner, _, own = name.rpartition(".")
    parent = network.get_submodule(owner)
    setattr(parent, own, AdaptedLinear(getattr(parent, own), updates))


def merge(network: nn.Module) -> None:
    """Add all updates to the weights, and leave plain layers."""
    for module in list(network.modules()):
        for name, part in list(module.named_children()):
            if isinstance(part, AdaptedLinear):
                setattr(module, name, part.merged())
