"""The Transformer block: attention, then a feed-forward part, each with a residual connection.

A stack has several of them; one compiled graph serves all blocks of a stack.

N tokens, D width. Post-norm normalises after each sum (the Transformer, GPT-1, BERT), pre-norm
before each part (GPT-2), which leaves a direct path for the gradient. A decoder block of a
translation model attends to the source between the two. `BlockVariant` has what else differs
between families: biases, gates, rotary positions and local attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sememe.nn.attention import AttendedSource, CrossAttention, SelfAttention
from sememe.nn.kv_cache import KVCache, LayerCache
from sememe.nn.layers import LayerNorm, Linear, activate, draw_keys, drop
from sememe.nn.rows import RowLayout, padded_rows
from sememe.training.config import TransformerConfig
from sememe.training.objective import NetworkObjective


class BlockVariant(NamedTuple):
    """What the blocks of some families have, or lack; by default those of BERT and GPT-2."""

    has_biases: bool = True
    is_gated: bool = False  # the feed-forward part has a gate (Shazeer 2020)
    has_attention_norm: bool = True
    theta: float = 0.0  # the base of rotary positions; 0: positions are in the embedding
    window: int = 0  # how far local attention reaches; 0: it is global


PLAIN = BlockVariant()


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between, for each token separately.

    With a gate, the first map has two halves: one is activated, and multiplied by the other.
    """

    def __init__(
        self, width: int, inner_width: int, activation: str, variant: BlockVariant = PLAIN
    ) -> None:
        super().__init__()
        self.activation, self.is_gated = activation, variant.is_gated
        num_parts = 2 if variant.is_gated else 1
        self.inner = Linear(width, num_parts * inner_width, bias=variant.has_biases)
        self.inner.num_parts = num_parts
        self.output = Linear(inner_width, width, bias=variant.has_biases)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """Map each token, (N, D)."""
        if not self.is_gated:
            return self.output(self.inner(hidden_ND, self.activation))
        inner, gate = self.inner(hidden_ND).chunk(2, -1)
        return self.output(activate(inner, self.activation) * gate)


class Block(nn.Module):
    """One layer of a Transformer."""

    def __init__(
        self,
        config: TransformerConfig,
        *,
        is_causal: bool,
        is_prenorm: bool,
        has_source: bool = False,
        variant: BlockVariant = PLAIN,
    ) -> None:
        super().__init__()
        self.is_prenorm = is_prenorm
        self.dropout = config.dropout
        has_bias = variant.has_biases
        self.attention = SelfAttention(
            config.width, config.num_heads, dropout=config.attention_dropout, is_causal=is_causal,
            has_bias=has_bias, theta=variant.theta, window=variant.window,
        )  # fmt: skip
        self.attention_norm: Any = nn.Identity()
        if variant.has_attention_norm:
            self.attention_norm = LayerNorm(config.width, eps=config.norm_eps, bias=has_bias)
        # Saved files call it `crossing`: a CrossAttention, where there is a source.
        self.crossing: Any = None
        if has_source:
            self.crossing = CrossAttention(
                config.width, config.num_heads, dropout=config.attention_dropout
            )
            self.crossing_norm = LayerNorm(config.width, eps=config.norm_eps)
        self.feed_forward = FeedForward(
            config.width, config.inner_width, config.activation, variant
        )
        self.feed_forward_norm = LayerNorm(config.width, eps=config.norm_eps, bias=has_bias)

    def forward(
        self,
        hidden_ND: Tensor,
        rows: RowLayout,
        keys: Tensor | None = None,
        wanted_M: Tensor | None = None,
        source: AttendedSource | None = None,
    ) -> Tensor:
        """Update each token from its row, (N, D); one key per part switches dropout on.

        With `wanted_M` only these tokens are computed to the end, (M, D).
        """

        def attention(x_ND: Tensor) -> Tensor:
            return self.attention(x_ND, rows, wanted_M)

        def cross_attention(x_ND: Tensor) -> Tensor:
            return self.crossing(x_ND, rows, source)

        return self._around(attention, cross_attention, hidden_ND, keys, wanted_M)

    def maps(
        self, hidden_ND: Tensor, rows: RowLayout, source: AttendedSource | None = None
    ) -> tuple[Tensor, Tensor]:
        """The output of `forward` without dropout, and the attention weights, (B, H, T, S).

        With a source these are the weights over the source.
        """
        maps: list[Tensor] = []

        def attention(x_ND: Tensor) -> Tensor:
            mixed_ND, weights_BHTS = self.attention.maps(x_ND, rows)
            maps.append(weights_BHTS)
            return mixed_ND

        def cross_attention(x_ND: Tensor) -> Tensor:
            mixed_ND, weights_BHTS = self.crossing.maps(x_ND, rows, source)
            maps.append(weights_BHTS)
            return mixed_ND

        return self._around(attention, cross_attention, hidden_ND), maps[-1]

    def extend(self, hidden_ND: Tensor, places_BT: Tensor, cache: LayerCache) -> Tensor:
        """The output of `forward` for tokens after those in the cache, (N, D)."""

        def cross_attention(x_ND: Tensor) -> Tensor:
            return self.crossing.attend_cached(x_ND, cache.source)

        return self._around(
            lambda x_ND: self.attention.extend(x_ND, places_BT, cache), cross_attention, hidden_ND
        )

    def _around(
        self,
        attention: Callable[[Tensor], Tensor],
        cross_attention: Callable[[Tensor], Tensor],
        hidden_ND: Tensor,
        keys: Tensor | None = None,
        wanted_M: Tensor | None = None,
    ) -> Tensor:
        first, *middle, last = [None] * self.num_parts if keys is None else keys.unbind()
        mixed_ND = attention(self.attention_norm(hidden_ND) if self.is_prenorm else hidden_ND)
        if wanted_M is not None:
            hidden_ND = hidden_ND.index_select(0, wanted_M)
        hidden_ND = hidden_ND + drop(mixed_ND, self.dropout, first)
        if not self.is_prenorm:
            hidden_ND = self.attention_norm(hidden_ND)
        if self.crossing is not None:
            hidden_ND = self._added(cross_attention, self.crossing_norm, hidden_ND, middle[0])
        return self._added(self.feed_forward, self.feed_forward_norm, hidden_ND, last)

    def _added(
        self,
        part: Callable[[Tensor], Tensor],
        norm: LayerNorm,
        hidden_ND: Tensor,
        key: Tensor | None,
    ) -> Tensor:
        """The output of a part, added to the tokens, (N, D)."""
        if self.is_prenorm:
            return hidden_ND + drop(part(norm(hidden_ND)), self.dropout, key)
        return norm(hidden_ND + drop(part(hidden_ND), self.dropout, key))

    @property
    def num_parts(self) -> int:
        """The number of residual parts; each has its own dropout key."""
        return 2 if self.crossing is None else 3


class Stack(nn.Module):
    """Blocks one after the other.

    `variants` has one entry per block. `order` has the index of the block of each layer, if layers
    share blocks.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        is_causal: bool,
        is_prenorm: bool,
        has_source: bool = False,
        variants: Sequence[BlockVariant] = (),
        order: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(
                config, is_causal=is_causal, is_prenorm=is_prenorm, has_source=has_source,
                variant=variant,
            )
            for variant in variants or [PLAIN] * config.num_layers
        )  # fmt: skip
        self.order = list(order) or list(range(config.num_layers))
        self.num_parts = 3 if has_source else 2
        # Keep only the input of each block for the backward pass and recompute the rest: a third
        # more time for a fraction of the memory.
        self.recompute = False

    def __iter__(self) -> Iterator[Block]:
        return (cast(Block, self.blocks[index]) for index in self.order)

    def __len__(self) -> int:
        return len(self.order)

    def forward(
        self,
        hidden_ND: Tensor,
        rows: RowLayout,
        wanted_M: Tensor | None = None,
        source: AttendedSource | None = None,
    ) -> Tensor:
        """Run the tokens through every block, (N, D).

        With `wanted_M` the last block ends with these tokens, (M, D), if the loss needs no others.
        """
        keys_LP: list[Any] = [None] * len(self)
        if self.training:
            num_keys = self.num_parts * len(self)
            keys_LP = list(draw_keys(num_keys, hidden_ND.device).view(-1, self.num_parts))
        for index, (block, keys) in enumerate(zip(self, keys_LP, strict=True), start=1):
            own = hidden_ND, rows, keys, wanted_M if index == len(self) else None, source
            if self.training and self.recompute:
                hidden_ND = checkpoint(block, *own, use_reentrant=False)
            else:
                hidden_ND = block(*own)
        return hidden_ND

    def layers(self, hidden_ND: Tensor, rows: RowLayout) -> list[Tensor]:
        """The tokens before the first block and after each one: L + 1 tensors (N, D)."""
        layers = [hidden_ND]
        for block in self:
            layers.append(block(layers[-1], rows))
        return layers

    def maps(
        self, hidden_ND: Tensor, rows: RowLayout, source: AttendedSource | None = None
    ) -> list[Tensor]:
        """The attention of every block, L tensors (B, H, T, S), by the plain path."""
        maps = []
        for block in self:
            hidden_ND, weights_BHTS = block.maps(hidden_ND, rows, source)
            maps.append(weights_BHTS)
        return maps

    def extend(self, hidden_ND: Tensor, places_BT: Tensor, cache: KVCache) -> Tensor:
        """Run tokens after those in the cache through every block, (N, D)."""
        for block, layer in zip(self, cache.layers, strict=True):
            hidden_ND = block.extend(hidden_ND, places_BT, layer)
        return hidden_ND


class TokenNetwork(nn.Module):
    """A stack of blocks over the embedding of rows of tokens. N tokens, M of them wanted."""

    embedding: Any
    stack: Stack
    norm: nn.Module  # after the last block

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        # The activation precision; the weights stay float32.
        self.precision = torch.float32
        # Heads that were never trained, because a file lacked them.
        self.untrained: frozenset[str] = frozenset()
        # The maximum length of its training: later positions are untrained.
        self.seen_length = config.max_length
        # What computes `encode` instead of the blocks where no gradients are needed, if anything.
        self.engine: Any = None
        # What LoRA added to its weights, for a folder that names the base and holds no more.
        self.adapter: Any = None

    def embed(self, ids_N: Tensor, segments_N: Tensor | None, positions_N: Tensor) -> Tensor:
        """The input of the first block, (N, D)."""
        return self.embedding(ids_N, segments_N, positions_N).to(self.precision)

    def encode(
        self,
        ids_N: Tensor,
        segments_N: Tensor | None,
        positions_N: Tensor,
        rows: RowLayout,
        wanted_M: Tensor | None = None,
    ) -> Tensor:
        """Vectors of concatenated tokens, (N, D), or of the wanted ones, (M, D)."""
        if self.engine is not None and not torch.is_grad_enabled():
            found_ND: Tensor = self.engine.encode(ids_N, segments_N, rows)
            return found_ND if wanted_M is None else found_ND.index_select(0, wanted_M)
        return self.norm(self.stack(self.embed(ids_N, segments_N, positions_N), rows, wanted_M))

    def encode_layers(
        self, ids_N: Tensor, segments_N: Tensor | None, positions_N: Tensor, rows: RowLayout
    ) -> list[Tensor]:
        """The embedding of tokens and the output of every block, L + 1 tensors (N, D)."""
        *layers, last = self.stack.layers(self.embed(ids_N, segments_N, positions_N), rows)
        return [*layers, self.norm(last)]

    def forward(self, *padded: Tensor | None) -> Tensor:
        """Vectors of the tokens of `padded_inputs`, (B, T, D)."""
        inputs = padded_inputs(*padded)
        return inputs[-1].padded(self.encode(*inputs))

    def layers(self, *padded: Tensor | None) -> list[Tensor]:
        """The embedding and the output of every block, L + 1 tensors (B, T, D)."""
        inputs = padded_inputs(*padded)
        return [inputs[-1].padded(layer) for layer in self.encode_layers(*inputs)]

    def maps(self, *padded: Tensor | None) -> list[Tensor]:
        """The attention of every block, L tensors (B, H, T, S): row t says where t looks."""
        *tokens, rows = padded_inputs(*padded)
        return self.stack.maps(self.embed(*tokens), rows)


def padded_inputs(
    ids_BT: Any, segments_BT: Tensor | None = None, lengths_B: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, RowLayout]:
    """Ids, segments and positions of padded rows end to end; without lengths every place counts."""
    segments_BT = torch.zeros_like(ids_BT) if segments_BT is None else segments_BT
    positions_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device).expand_as(ids_BT)
    rows = padded_rows(ids_BT, lengths_B)
    return ids_BT.flatten(), segments_BT.flatten(), positions_BT.flatten(), rows


def compile_parts(network: Any, *stacks: Stack, **options: Any) -> None:
    """Compile the embedding, the blocks of the stacks and the loss, in place.

    The network as one graph trains no faster and takes minutes to compile instead of seconds.
    Shapes are dynamic, because batches differ in their numbers of tokens.
    """
    allow_variants()
    settings = {"dynamic": True, **options}
    for part in dict.fromkeys((network.embedding, *chain(*stacks))):
        part.compile(**settings)
    network.head_loss = torch.compile(network.head_loss, **settings)


# A block is compiled for training and for validation, and again if it ends with fewer tokens, has
# no first norm, or belongs to a generator. PyTorch counts the variants of all models of a process
# together; beyond its limit of 8 it computes without compiling, several times slower.
_MOST_VARIANTS = 64


def allow_variants() -> None:
    """Let PyTorch compile as many variants of a module as networks have."""
    config = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    setattr(config, name, max(_MOST_VARIANTS, getattr(config, name)))


def uncompile(network: Any, *stacks: Stack) -> None:
    """Discard what `compile_parts` made, so that the network can move to another device."""
    for part in (network.embedding, *chain(*stacks)):
        part._compiled_call_impl = None
    vars(network).pop("head_loss", None)


class CompiledObjective(NetworkObjective):
    def compile(self, **options: Any) -> None:
        """Compile the network part by part, in place."""
        compile_parts(self.network, self.network.stack, **options)
