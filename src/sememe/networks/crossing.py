"""Attention from one text to another: how a decoder looks at what the encoder has read.

B rows, T positions of a row, N tokens of all rows laid end to end, M tokens of their sources, S
positions of a source, H heads, K numbers of a head, D = H × K width.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from sememe.networks.attention import attend, attend_across, row_mask
from sememe.networks.layers import Linear
from sememe.networks.memory import SourceMemory
from sememe.networks.rows import Rows


class Source(NamedTuple):
    """What an encoder made of the sources of a batch, and how they lie in it."""

    hidden_MD: Tensor
    rows: Rows


class CrossAttention(nn.Module):
    """Multi-head attention of the tokens of each row to its source (Vaswani et al. 2017, 3.2.3)."""

    def __init__(self, width: int, num_heads: int, *, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.queries = Linear(width, width)
        # One product for keys and values of the source.
        self.projection = Linear(width, 2 * width)
        self.output = Linear(width, width)

    def forward(self, hidden_ND: Tensor, rows: Rows, source: Source) -> Tensor:
        """Mix into each token what it needs of its source, (N, D)."""
        mixed_NHK = attend_across(
            self._queries(hidden_ND), self._project(source.hidden_MD), rows, source.rows,
            dropout=self.dropout if self.training else 0.0,
        )  # fmt: skip
        return self.output(mixed_NHK.flatten(1))

    def maps(self, hidden_ND: Tensor, rows: Rows, source: Source) -> tuple[Tensor, Tensor]:
        """What `forward` gives without dropout, and the attention itself, (B, H, T, S)."""
        memory = self.remember(source)
        queries_BHTK = rows.padded(self._queries(hidden_ND)).transpose(1, 2)
        mixed_BHTK, weights_BHTS = attend(
            queries_BHTK, memory.keys_BHSK, memory.values_BHSK, mask_TS=memory.mask
        )
        return self.output(rows.flat(mixed_BHTK.transpose(1, 2)).flatten(1)), weights_BHTS

    def remember(self, source: Source) -> SourceMemory:
        """The keys and values of sources, for `recall`."""
        keys, values = source.rows.padded(self._project(source.hidden_MD)).permute(2, 0, 3, 1, 4)
        return SourceMemory(keys, values, row_mask(source.rows, False, keys.device))

    def recall(self, hidden_ND: Tensor, memory: SourceMemory) -> Tensor:
        """What `forward` gives for rows of equal length, sources from memory, (N, D).

        Rows that follow each other may share a source: N is a multiple of the sources' number.
        """
        queries_BTHK = self._queries(hidden_ND).unflatten(0, (len(memory.keys_BHSK), -1))
        mixed_BHTK = functional.scaled_dot_product_attention(
            queries_BTHK.transpose(1, 2), memory.keys_BHSK, memory.values_BHSK,
            attn_mask=memory.mask,
        )  # fmt: skip
        return self.output(mixed_BHTK.transpose(1, 2).flatten(0, 1).flatten(1))

    def _queries(self, hidden_ND: Tensor) -> Tensor:
        return self.queries(hidden_ND).unflatten(-1, (self.num_heads, -1))

    def _project(self, source_MD: Tensor) -> Tensor:
        return self.projection(source_MD).unflatten(-1, (2, self.num_heads, -1))
