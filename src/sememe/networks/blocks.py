"""The Transformer block: attention, then a feed-forward part, each added to its own input.

N tokens, D width. Post-norm normalises after each sum (the Transformer, GPT-1, BERT), pre-norm
before each part (GPT-2), which leaves a straight path for the gradient. A block that writes a
translation looks at the source between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sememe.networks.attention import SelfAttention
from sememe.networks.config import TransformerConfig
from sememe.networks.crossing import CrossAttention, Source
from sememe.networks.dropout import draw_keys, drop
from sememe.networks.layers import LayerNorm, Linear, activate
from sememe.networks.memory import LayerMemory, Memory
from sememe.networks.rows import Rows


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between, for each token by itself."""

    def __init__(self, width: int, inner_width: int, activation: str) -> None:
        super().__init__()
        self.activation = activation
        self.inner = Linear(width, inner_width)
        self.output = Linear(inner_width, width)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """Map each token, (N, D)."""
        return self.output(activate(self.inner(hidden_ND), self.activation))


class Block(nn.Module):
    """One layer of a Transformer."""

    def __init__(
        self,
        config: TransformerConfig,
        *,
        is_causal: bool,
        is_prenorm: bool,
        has_source: bool = False,
    ) -> None:
        super().__init__()
        self.is_prenorm = is_prenorm
        self.dropout = config.dropout
        self.attention = SelfAttention(
            config.width, config.num_heads, dropout=config.attention_dropout, is_causal=is_causal
        )
        self.attention_norm = LayerNorm(config.width, eps=config.norm_eps)
        self.crossing: CrossAttention | None = None
        if has_source:
            self.crossing = CrossAttention(
                config.width, config.num_heads, dropout=config.attention_dropout
            )
            self.crossing_norm = LayerNorm(config.width, eps=config.norm_eps)
        self.feed_forward = FeedForward(config.width, config.inner_width, config.activation)
        self.feed_forward_norm = LayerNorm(config.width, eps=config.norm_eps)

    def forward(
        self,
        hidden_ND: Tensor,
        rows: Rows,
        keys: Tensor | None = None,
        wanted_M: Tensor | None = None,
        source: Source | None = None,
    ) -> Tensor:
        """Give each token what it needs of its row, (N, D); a key a part switches dropout on.

        With `wanted_M` only these tokens are followed to the end, (M, D).
        """

        def attention(x_ND: Tensor) -> Tensor:
            return self.attention(x_ND, rows, wanted_M)

        def crossing(x_ND: Tensor) -> Tensor:
            assert self.crossing is not None and source is not None
            return self.crossing(x_ND, rows, source)

        return self._around(attention, hidden_ND, keys, wanted_M, crossing)

    def maps(
        self, hidden_ND: Tensor, rows: Rows, source: Source | None = None
    ) -> tuple[Tensor, Tensor]:
        """What `forward` gives without dropout, and the attention, (B, H, T, S).

        With a source it is the attention to the source.
        """
        maps: list[Tensor] = []

        def attention(x_ND: Tensor) -> Tensor:
            mixed_ND, weights_BHTS = self.attention.maps(x_ND, rows)
            maps.append(weights_BHTS)
            return mixed_ND

        def crossing(x_ND: Tensor) -> Tensor:
            assert self.crossing is not None and source is not None
            mixed_ND, weights_BHTS = self.crossing.maps(x_ND, rows, source)
            maps.append(weights_BHTS)
            return mixed_ND

        return self._around(attention, hidden_ND, crossing=crossing), maps[-1]

    def extend(self, hidden_ND: Tensor, places_BT: Tensor, memory: LayerMemory) -> Tensor:
        """What `forward` gives for tokens that come after those in memory, (N, D)."""

        def crossing(x_ND: Tensor) -> Tensor:
            assert self.crossing is not None and memory.source is not None
            return self.crossing.recall(x_ND, memory.source)

        return self._around(
            lambda x_ND: self.attention.extend(x_ND, places_BT, memory), hidden_ND,
            crossing=crossing,
        )  # fmt: skip

    def _around(
        self,
        attention: Callable[[Tensor], Tensor],
        hidden_ND: Tensor,
        keys: Tensor | None = None,
        wanted_M: Tensor | None = None,
        crossing: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        first, *middle, last = [None] * self.num_parts if keys is None else keys.unbind()
        mixed_ND = attention(self.attention_norm(hidden_ND) if self.is_prenorm else hidden_ND)
        if wanted_M is not None:
            hidden_ND = hidden_ND.index_select(0, wanted_M)
        hidden_ND = hidden_ND + drop(mixed_ND, self.dropout, first)
        if not self.is_prenorm:
            hidden_ND = self.attention_norm(hidden_ND)
        if self.crossing is not None:
            assert crossing is not None
            hidden_ND = self._added(crossing, self.crossing_norm, hidden_ND, middle[0])
        return self._added(self.feed_forward, self.feed_forward_norm, hidden_ND, last)

    def _added(
        self,
        part: Callable[[Tensor], Tensor],
        norm: LayerNorm,
        hidden_ND: Tensor,
        key: Tensor | None,
    ) -> Tensor:
        """What a part makes of the tokens, added to them, (N, D)."""
        if self.is_prenorm:
            return hidden_ND + drop(part(norm(hidden_ND)), self.dropout, key)
        return norm(hidden_ND + drop(part(hidden_ND), self.dropout, key))

    @property
    def num_parts(self) -> int:
        """How many parts are added to the tokens; each leaves out numbers by a key of its own."""
        return 2 if self.crossing is None else 3


class Stack(nn.Module):
    """Blocks one after the other."""

    def __init__(
        self,
        config: TransformerConfig,
        *,
        is_causal: bool,
        is_prenorm: bool,
        has_source: bool = False,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(config, is_causal=is_causal, is_prenorm=is_prenorm, has_source=has_source)
            for _ in range(config.num_layers)
        )
        self.num_parts = 3 if has_source else 2
        # Keep only the input of each block for the backward pass and compute the rest again:
        # a third more time for a fraction of the memory.
        self.recompute = False

    def __iter__(self) -> Iterator[Block]:
        return cast(Iterator[Block], iter(self.blocks))

    def forward(
        self,
        hidden_ND: Tensor,
        rows: Rows,
        wanted_M: Tensor | None = None,
        source: Source | None = None,
    ) -> Tensor:
        """Send the tokens through every block, (N, D).

        With `wanted_M` the last block ends with these tokens, (M, D): others are of no use to a
        loss that does not ask for them.
        """
        keys_LP: list[Any] = [None] * len(self.blocks)
        if self.training:
            num_keys = self.num_parts * len(self.blocks)
            keys_LP = list(draw_keys(num_keys, hidden_ND.device).view(-1, self.num_parts))
        for index, (block, keys) in enumerate(zip(self, keys_LP, strict=True), start=1):
            own = hidden_ND, rows, keys, wanted_M if index == len(self.blocks) else None, source
            if self.training and self.recompute:
                hidden_ND = checkpoint(block, *own, use_reentrant=False)
            else:
                hidden_ND = block(*own)
        return hidden_ND

    def layers(self, hidden_ND: Tensor, rows: Rows) -> list[Tensor]:
        """The tokens before the first block and after each one: L + 1 tensors (N, D)."""
        layers = [hidden_ND]
        for block in self:
            layers.append(block(layers[-1], rows))
        return layers

    def maps(self, hidden_ND: Tensor, rows: Rows, source: Source | None = None) -> list[Tensor]:
        """The attention of every block, L tensors (B, H, T, S), by the plain path."""
        maps = []
        for block in self:
            hidden_ND, weights_BHTS = block.maps(hidden_ND, rows, source)
            maps.append(weights_BHTS)
        return maps

    def extend(self, hidden_ND: Tensor, places_BT: Tensor, memory: Memory) -> Tensor:
        """Send tokens through every block that come after those in memory, (N, D)."""
        for block, layer in zip(self, memory.layers, strict=True):
            hidden_ND = block.extend(hidden_ND, places_BT, layer)
        return hidden_ND
