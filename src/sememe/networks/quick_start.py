"""First weights with which a small network soon learns to look at other tokens.

The papers draw every weight with a spread of 0.02, which suits vectors of 768 numbers. Of vectors
of 128 attention then hands on next to nothing, and a training stays for thousands of steps where
the frequencies of tokens alone bring it. V vocabulary, T positions, D width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sememe.networks.blocks import Stack
from sememe.networks.positions import sinusoidal_table

_LENGTH = 0.02 * math.sqrt(768)  # of the first vector of a token in BERT base


@torch.no_grad()
def start_quickly(
    tokens_VD: Tensor, positions_TD: Tensor, stack: Stack, generator: torch.Generator
) -> None:
    """Draw tokens as long as BERT base's, let positions begin as waves, and values keep size."""
    width = tokens_VD.shape[1]
    nn.init.normal_(tokens_VD, std=_LENGTH / math.sqrt(width), generator=generator)
    if isinstance(positions_TD, nn.Parameter):
        # A step to the left or right is the same rotation everywhere, so it is learned once.
        waves_TD = sinusoidal_table(*positions_TD.shape)
        positions_TD.copy_(waves_TD * (_LENGTH * math.sqrt(2 / width)))
    for block in stack:
        for weight in (
            block.attention.projection.weight[2 * width :],
            block.attention.output.weight,
        ):
            nn.init.normal_(weight, std=1 / math.sqrt(width), generator=generator)
