"""Cached keys and values of earlier tokens, so that each new token costs one step.

B rows, S positions of a row, T new tokens of a row, H heads, K dimensions per head. Rows may have
different lengths: each token has its own position, and entries beyond a row's end are never read
before they are overwritten.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sememe.training.config import TransformerConfig


class SourceCache(NamedTuple):
    """The keys and values of sources in one layer, computed once for all steps of a decoder."""

    keys_BHSK: Tensor
    values_BHSK: Tensor
    mask: Tensor | None  # (B, 1, 1, S): False where a source has ended

    def choose(self, rows_C: Tensor) -> SourceCache:
        """The cache of only these rows."""
        mask = None if self.mask is None else self.mask[rows_C]
        return SourceCache(self.keys_BHSK[rows_C], self.values_BHSK[rows_C], mask)


class LayerCache:
    """The keys and values of one layer, (B, S, H, K), and those of its source."""

    def __init__(self, keys_BSHK: Tensor, values_BSHK: Tensor) -> None:
        self.keys_BSHK, self.values_BSHK = keys_BSHK, values_BSHK
        self.source: SourceCache | None = None
        self.num_used = 0

    def extend(
        self, places_BT: Tensor, keys_BTHK: Tensor, values_BTHK: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Add new tokens at their positions; return the keys and values of all in use."""
        rows_B1 = torch.arange(len(places_BT), device=places_BT.device)[:, None]
        self.keys_BSHK[rows_B1, places_BT] = keys_BTHK
        self.values_BSHK[rows_B1, places_BT] = values_BTHK
        return self.keys_BSHK[:, : self.num_used], self.values_BSHK[:, : self.num_used]

    def use(self, num_places: int) -> None:
        """Allocate this many positions if there are fewer."""
        missing = num_places - self.keys_BSHK.shape[1]
        if missing > 0:
            wider = 0, 0, 0, 0, 0, max(missing, self.keys_BSHK.shape[1])
            self.keys_BSHK = functional.pad(self.keys_BSHK, wider)
            self.values_BSHK = functional.pad(self.values_BSHK, wider)
        self.num_used = num_places

    def choose(self, rows_C: Tensor) -> None:
        """Continue with only these rows; a row may occur twice."""
        self.keys_BSHK = self.keys_BSHK.index_select(0, rows_C)
        self.values_BSHK = self.values_BSHK.index_select(0, rows_C)


class KVCache:
    """The keys and values of every layer of a network."""

    def __init__(
        self,
        config: TransformerConfig,
        num_rows: int,
        num_places: int,
        *,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        head_size = config.width // config.num_heads
        shape = num_rows, num_places, config.num_heads, head_size
        self.layers = [
            LayerCache(*(torch.zeros(shape, device=device, dtype=dtype) for _ in range(2)))
            for _ in range(config.num_layers)
        ]

    def use(self, num_places: int) -> None:
        """Set how many positions of the longest row are in use, including the coming tokens."""
        for layer in self.layers:
            layer.use(num_places)

    def choose(self, rows_C: Tensor) -> None:
        """Continue with these rows alone."""
        for layer in self.layers:
            layer.choose(rows_C)
