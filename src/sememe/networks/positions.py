"""Where a token stands: a learned vector for each position, or the Transformer's sine waves.

N tokens, T positions, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def sinusoidal_table(num_positions: int, width: int) -> Tensor:
    """The sine and cosine of each position, interleaved by dimension (Vaswani et al. 2017, 3.5).

    Dimension 2i holds sin(position / 10000^(2i/D)), dimension 2i + 1 the cosine of the same angle.
    """
    positions_T1 = torch.arange(num_positions, dtype=torch.float64)[:, None]
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
    angles = positions_T1 / 10_000.0**exponents
    table_TD = torch.empty(num_positions, width, dtype=torch.float64)
    table_TD[:, 0::2] = angles.sin()
    table_TD[:, 1::2] = angles.cos()[:, : width // 2]
    return table_TD.float()


class Positions(nn.Module):
    """A table of positions, learned or computed."""

    def __init__(self, num_positions: int, width: int, kind: str) -> None:
        super().__init__()
        if kind == "learned":
            self.weight: Tensor = nn.Parameter(torch.empty(num_positions, width))
        else:
            self.register_buffer("weight", sinusoidal_table(num_positions, width))

    def initialise(self, std: float, generator: torch.Generator) -> None:
        """Draw the vectors of learned positions; sine waves stay as they are."""
        if isinstance(self.weight, nn.Parameter):
            nn.init.normal_(self.weight, std=std, generator=generator)

    def forward(self, positions_N: Tensor) -> Tensor:
        """Look up the vectors of positions, (N, D)."""
        return functional.embedding(positions_N, self.weight)
