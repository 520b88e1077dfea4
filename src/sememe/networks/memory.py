"""Keys and values of tokens already seen, so that each new token costs one step and not all again.

B rows, S places of a row, T new tokens of a row, H heads, K numbers of a head. Rows may have
different lengths: each token says its own place, and what lies beyond a row's end is never looked
at before it is overwritten.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sememe.networks.config import GPTConfig


class LayerMemory:
    """The keys and values of one layer, (B, S, H, K)."""

    def __init__(self, keys_BSHK: Tensor, values_BSHK: Tensor) -> None:
        self.keys_BSHK, self.values_BSHK = keys_BSHK, values_BSHK
        self.num_used = 0

    def extend(
        self, places_BT: Tensor, keys_BTHK: Tensor, values_BTHK: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Take in new tokens at their places; give the keys and values of all in use."""
        rows_B1 = torch.arange(len(places_BT), device=places_BT.device)[:, None]
        self.keys_BSHK[rows_B1, places_BT] = keys_BTHK
        self.values_BSHK[rows_B1, places_BT] = values_BTHK
        return self.keys_BSHK[:, : self.num_used], self.values_BSHK[:, : self.num_used]


class Memory:
    """The keys and values of every layer of a network."""

    def __init__(
        self,
        config: GPTConfig,
        num_rows: int,
        num_places: int,
        *,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        shape = num_rows, num_places, config.num_heads, config.head_size
        self.layers = [
            LayerMemory(*(torch.zeros(shape, device=device, dtype=dtype) for _ in range(2)))
            for _ in range(config.num_layers)
        ]

    def use(self, num_places: int) -> None:
        """Say how many places of the longest row are in use, the coming tokens among them."""
        for layer in self.layers:
            layer.num_used = num_places
