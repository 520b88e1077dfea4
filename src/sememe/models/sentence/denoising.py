"""TSDAE's decoder (Wang et al. 2021): the text again, from its vector alone.

A BERT that shares every weight with the encoder, sees only earlier tokens, and attends to the
vector of its text. B texts, N tokens, M of them predicted, D width.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

from sememe.models.bert.network import BERTNetwork
from sememe.nn.blocks import Block
from sememe.nn.encoders import Inputs
from sememe.nn.layers import LayerNorm, Linear, draw_keys, initialise
from sememe.nn.softmax import ScoreSums, score


class _VectorAttention(nn.Module):
    """Attention to one vector, whose weight is always 1: its value, projected."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value, self.output = Linear(width, width), Linear(width, width)

    def forward(self, hidden_ND: Tensor, rows: Any, vectors_ND: Tensor) -> Tensor:
        """What every token takes from the vector of its text, (N, D)."""
        return self.output(self.value(vectors_ND))


def _decoding(block: Block, eps: float) -> Block:
    """A block with the same weights that sees earlier tokens, and a vector between its parts."""
    own, width = copy(block), block.attention.output.in_features
    own._modules = dict(block._modules)
    own.attention = copy(block.attention)
    own.attention.is_causal = True
    own.crossing, own.crossing_norm = _VectorAttention(width), LayerNorm(width, eps=eps)
    return own


class Decoder(nn.Module):
    """Predicts the tokens of a text from its vector and the tokens before each."""

    def __init__(self, network: BERTNetwork, *, seed: int) -> None:
        super().__init__()
        self.network = network
        config = network.config
        self.blocks = nn.ModuleList(_decoding(block, config.norm_eps) for block in network.stack)
        generator = torch.Generator().manual_seed(seed)
        for name, part in self.blocks.named_modules():
            if name.endswith("crossing"):
                initialise(part, config.initial_std, generator)
        for part in (network.masked_transform, network.masked_norm):
            part.requires_grad_(True)
        network.masked_bias.requires_grad_(True)

    def forward(self, vectors_BD: Tensor, inputs: Inputs, targets_M: Tensor) -> ScoreSums:
        """The loss of every token except the first of each text, and how many are right."""
        network, rows = self.network, inputs.rows
        assert rows.places_N is not None and rows.starts is not None
        rows_N = rows.places_N.div(rows.max_length, rounding_mode="floor")
        vectors_ND = vectors_BD.index_select(0, rows_N)
        hidden_ND = network.embed(*inputs[:3])
        keys_LP: list[Any] = [None] * len(self.blocks)
        if self.training:
            keys_LP = list(draw_keys(3 * len(self.blocks), hidden_ND.device).view(-1, 3))
        for block, keys in zip(self.blocks, keys_LP, strict=True):
            hidden_ND = block(hidden_ND, rows, keys, None, vectors_ND.to(hidden_ND.dtype))
        has_next_N = torch.ones_like(rows_N, dtype=torch.bool)
        has_next_N[rows.starts[1:].long() - 1] = False
        return score(network.masked_logits(hidden_ND[has_next_N]), targets_M)


def next_tokens(inputs: Inputs) -> Tensor:
    """The token that follows each one but the last of its text, (M,); on the host."""
    is_first_N = inputs.positions_N == 0
    return inputs.ids_N[~is_first_N]
