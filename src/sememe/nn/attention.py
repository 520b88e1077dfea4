"""Attention: queries are compared with keys and take a weighted mean of values.

Within a text (self-attention), or from a decoder to the output of an encoder (cross-attention).

B rows, T positions of a row, N tokens of all rows concatenated, S keys, H heads, K dimensions per
head, D = H × K width, M source tokens that a decoder attends to. The plain functions
`attention_weights` and `attend` define what is computed; `attend_rows` computes the same for
batches, with PyTorch's fused kernels or, for training on a CPU, with `attend_on_cpu`.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.nn.kv_cache import LayerCache, SourceCache
from sememe.nn.layers import Linear, drawn, drop_out
from sememe.nn.rows import RowLayout, unpadded_rows

_NUM_GROUPS = 4
_SPREAD = 1.5  # the longest row of a run by its shortest


class Group(NamedTuple):
    """Rows that are computed together: their positions, and the number of tokens of each."""

    places: slice
    shape: tuple[int, int]  # G rows of one head each, T positions
    lengths_B: list[int]


class HeadLayout(NamedTuple):
    """Where the heads of a batch are, group by group and row by row."""

    groups: list[Group]
    tokens_P: Tensor  # the index among N × 3 × H of the head used as query at each position
    places_NH: Tensor  # where the heads of each token are


@lru_cache(maxsize=2)  # shared by the layers of a network
def layout_of(starts: bytes, num_heads: int) -> HeadLayout:
    """Group rows of similar length; padding repeats the last token of its row.

    starts: int32, where each row starts among the tokens, then their number.
    """
    lengths_B = np.diff(np.frombuffer(starts, np.int32)).astype(np.int64)
    starts_B = np.cumsum(lengths_B) - lengths_B
    step = max(1, -(-int(lengths_B.max(initial=1)) // _NUM_GROUPS))
    kinds_B = -(-lengths_B // step)
    groups, tokens, heads_H = [], [], np.arange(num_heads)
    places_NH = np.empty((int(lengths_B.sum()), num_heads), np.int64)
    first = 0
    for kind in np.unique(kinds_B):
        own = np.flatnonzero(kinds_B == kind)
        lengths, length = lengths_B[own], max(1, int(lengths_B[own].max()))
        positions_T = np.arange(length)
        shown_BT = starts_B[own, None] + np.minimum(positions_T, lengths[:, None] - 1)
        tokens.append((shown_BT[:, None] * 3 * num_heads + heads_H[:, None]).ravel())
        places_BHT = first + np.arange(tokens[-1].size).reshape(len(own), num_heads, length)
        is_token_BT = positions_T < lengths[:, None]
        places_NH[shown_BT[is_token_BT]] = places_BHT.transpose(0, 2, 1)[is_token_BT]
        places = slice(first, first + tokens[-1].size)
        groups.append(Group(places, (len(own) * num_heads, length), lengths.tolist()))
        first = places.stop
    tokens_P = np.concatenate(tokens) if tokens else np.empty(0, np.int64)
    return HeadLayout(groups, torch.from_numpy(tokens_P), torch.from_numpy(places_NH))


def attend_on_cpu(
    projected_N3HK: Tensor, rows: RowLayout, *, is_causal: bool, dropout: float, window: int = 0
) -> Tensor:
    """Queries, keys and values of unpadded rows in, the weighted values out, (N, H, K)."""
    assert rows.starts is not None
    layout = layout_of(rows.starts.numpy().tobytes(), projected_N3HK.shape[2])
    return _Attention.apply(projected_N3HK, layout, is_causal, dropout, window)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projected_N3HK: Tensor,
        layout: HeadLayout,
        is_causal: bool,
        dropout: float,
        window: int,
    ) -> Tensor:
        num_heads, size = projected_N3HK.shape[2:]
        index_3P = layout.tokens_P + num_heads * torch.arange(3)[:, None]
        heads_3PK = projected_N3HK.reshape(-1, size).index_select(0, index_3P.flatten())
        heads_3PK = heads_3PK.view(3, len(layout.tokens_P), size)
        mixed_PK = torch.empty_like(heads_3PK[0])
        weights = []
        for group in layout.groups:
            queries_GTK, keys_GTK, values_GTK = _of_group(heads_3PK, group)
            weights_GTT = _product(queries_GTK, keys_GTK.mT, 1 / math.sqrt(size))
            _hide(weights_GTT.unflatten(0, (-1, num_heads)), group, is_causal, window)
            torch.softmax(weights_GTT, -1, out=weights_GTT)
            kept_GTT = weights_GTT
            if dropout:
                kept_GTT = drawn(weights_GTT.shape, dropout, weights_GTT.dtype).mul_(weights_GTT)
            (mixed_GTK,) = _of_group(mixed_PK[None], group)
            _product(kept_GTT, values_GTK, 1 / (1 - dropout), mixed_GTK)
            weights += [weights_GTT, kept_GTT]
        ctx.save_for_backward(heads_3PK, mixed_PK, *weights)
        ctx.layout, ctx.dropout = layout, dropout
        mixed = mixed_PK.index_select(0, layout.places_NH.flatten())
        return mixed.view(len(projected_N3HK), num_heads, size)

    @staticmethod
    def backward(ctx: Any, gradient_NHK: Tensor) -> tuple[Tensor, None, None, None, None]:
        heads_3PK, mixed_PK, *weights = ctx.saved_tensors
        num_places, size = mixed_PK.shape
        places_NH = ctx.layout.places_NH
        # Padded positions do not contribute to the loss.
        gradient_PK = torch.zeros_like(mixed_PK)
        gradient_PK.index_copy_(0, places_NH.flatten(), gradient_NHK.reshape(-1, size))
        mean_P1 = (gradient_PK * mixed_PK).sum(-1, keepdim=True)
        gradients_3PK = torch.empty_like(heads_3PK)
        scale = 1 / math.sqrt(size), 1 / (1 - ctx.dropout)
        for index, group in enumerate(ctx.layout.groups):
            weights_GTT, kept_GTT = weights[2 * index : 2 * index + 2]
            queries_GTK, keys_GTK, values_GTK = _of_group(heads_3PK, group)
            to_queries_GTK, to_keys_GTK, to_values_GTK = _of_group(gradients_3PK, group)
            (gradient_GTK,) = _of_group(gradient_PK[None], group)
            (mean_GT1,) = _of_group(mean_P1[None], group)
            _product(kept_GTT.mT, gradient_GTK, scale[1], to_values_GTK)
            # The gradient of softmax: each weight's part minus the mean over its row.
            scores_GTT = _product(gradient_GTK, values_GTK.mT, scale[1]).mul_(kept_GTT)
            scores_GTT.addcmul_(weights_GTT, mean_GT1, value=-1)
            _product(scores_GTT, keys_GTK, scale[0], to_queries_GTK)
            _product(scores_GTT.mT, queries_GTK, scale[0], to_keys_GTK)
        index_N3H = places_NH[:, None] + num_places * torch.arange(3)[:, None]
        flat = gradients_3PK.view(-1, size).index_select(0, index_N3H.flatten())
        return flat.view(*index_N3H.shape, size), None, None, None, None


def _of_group(places_CPK: Tensor, group: Group) -> Iterator[Tensor]:
    """The parts of a group, each (G, T, K)."""
    return (places_PK[group.places].view(*group.shape, -1) for places_PK in places_CPK)


def _product(first: Tensor, second: Tensor, scale: float, out: Tensor | None = None) -> Tensor:
    """Batched, scaled matrix products."""
    if out is None:
        out = first.new_empty(*first.shape[:-1], second.shape[-1])
    return torch.baddbmm(out, first, second, beta=0, alpha=scale, out=out)


def _hide(scores_BHTT: Tensor, group: Group, is_causal: bool, window: int = 0) -> None:
    """Give the lowest score to hidden keys: later ones, distant ones, or those of padding."""
    length = group.shape[1]
    if window:
        is_far_TT = ~near_mask(length, window, scores_BHTT.device)
        scores_BHTT.masked_fill_(is_far_TT, -math.inf)
    if is_causal:  # padding comes after every token, where none looks
        scores_BHTT += torch.full((length, length), -math.inf, dtype=scores_BHTT.dtype).triu_(1)
        return
    for scores_HTT, own in zip(scores_BHTT, group.lengths_B, strict=True):
        if own < length:
            scores_HTT[:, :, own:] = -math.inf
            if window:  # a softmax needs one key, also where the result is not used
                scores_HTT[:, own:, 0] = 0.0


HALF_PRECISION = (torch.bfloat16, torch.float16)


def attention_weights(
    queries_TK: Tensor,
    keys_SK: Tensor,
    *,
    scale: float | None = None,
    mask_TS: Tensor | None = None,
) -> Tensor:
    """The attention of each query to each key: softmax(q · k × scale), (…, T, S).

    The scale is 1/√K unless given: products of longer vectors have a larger variance, and a
    saturated softmax has no gradient (Vaswani et al. 2017, 3.2.1). Keys with False in the mask get
    0.
    """
    if scale is None:
        scale = 1 / math.sqrt(queries_TK.shape[-1])
    scores_TS = (queries_TK * scale) @ keys_SK.transpose(-2, -1)
    if mask_TS is not None:
        # Added, not filled in: the gradient of a sum costs nothing.
        hidden_TS = torch.zeros_like(mask_TS, dtype=scores_TS.dtype)
        scores_TS = scores_TS + hidden_TS.masked_fill_(~mask_TS, -math.inf)
    return scores_TS.softmax(-1)


def attend(
    queries_TK: Tensor,
    keys_SK: Tensor,
    values_SK: Tensor,
    *,
    scale: float | None = None,
    mask_TS: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean of the values for each query, weighted by attention, and the weights."""
    weights_TS = attention_weights(queries_TK, keys_SK, scale=scale, mask_TS=mask_TS)
    return weights_TS @ values_SK, weights_TS


def causal_mask(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """True where a key is not later than the query; the queries are the last of the keys."""
    mask_TS = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return mask_TS.tril(num_keys - num_queries)


def near_mask(length: int, window: int, device: torch.device | None = None) -> Tensor:
    """True where a key is at most `window` positions from the query, (T, T)."""
    positions_T = torch.arange(length, device=device)
    return (positions_T[:, None] - positions_T).abs() <= window


def row_mask(
    rows: RowLayout, is_causal: bool, device: torch.device, window: int = 0
) -> Tensor | None:
    """The keys of its padded row that a query may see, broadcastable to (B, H, T, S); None: all."""
    if is_causal:  # padding comes after every token, where none looks
        mask_TT = causal_mask(rows.max_length, rows.max_length, device)
        return mask_TT & near_mask(rows.max_length, window, device) if window else mask_TT
    is_key = None if rows.is_token_BT is None else rows.is_token_BT[:, None, None, :]
    if not window:
        return is_key
    is_near_TT = near_mask(rows.max_length, window, device)
    if is_key is None:
        return is_near_TT
    # A query in the padding sees itself: a row without any key would give NaN.
    return (is_key & is_near_TT) | torch.eye(rows.max_length, dtype=torch.bool, device=device)


def attend_rows(
    projected_N3HK: Tensor,
    rows: RowLayout,
    *,
    is_causal: bool = False,
    dropout: float = 0.0,
    window: int = 0,
) -> Tensor:
    """Attend within each row: queries, keys and values in, weighted values out, (N, H, K).

    With a `window`, a query sees only keys at most this many positions away.
    """
    if window and is_causal and rows.max_length > 2 * window:
        heads_BHTK = rows.padded(projected_N3HK).permute(2, 0, 3, 1, 4)
        banded_BHTK = attend_in_band(*heads_BHTK, window=window, dropout=dropout)
        return rows.flat(banded_BHTK.transpose(1, 2))
    is_half = projected_N3HK.dtype in HALF_PRECISION
    if rows.starts is not None and projected_N3HK.is_cuda and is_half and not window:
        queries_NHK, keys_NHK, values_NHK = projected_N3HK.unbind(1)
        return _flash(queries_NHK, keys_NHK, values_NHK, rows, rows, is_causal, dropout)
    is_cpu = projected_N3HK.device.type == "cpu" and not torch.compiler.is_compiling()
    if rows.starts is not None and is_cpu and torch.is_grad_enabled():
        return attend_on_cpu(
            projected_N3HK, rows, is_causal=is_causal, dropout=dropout, window=window
        )
    if rows.starts is not None and is_cpu and not dropout and len(projected_N3HK):
        parts = [
            _attend_padded(projected_N3HK[own.tokens], own.rows, is_causal, 0.0, window)
            for own in runs_of(rows.starts.numpy().tobytes())
        ]
        return torch.cat(parts) if len(parts) > 1 else parts[0]
    return _attend_padded(projected_N3HK, rows, is_causal, dropout, window)


def _attend_padded(
    projected_N3HK: Tensor, rows: RowLayout, is_causal: bool, dropout: float, window: int
) -> Tensor:
    """Attend within rows that are padded to the length of the longest one, (N, H, K)."""
    queries_BHTK, keys_BHTK, values_BHTK = rows.padded(projected_N3HK).permute(2, 0, 3, 1, 4)
    if dropout and not projected_N3HK.is_cuda:
        mask = row_mask(rows, is_causal, projected_N3HK.device, window)
        mixed_BHTK = _attend_with_dropout(queries_BHTK, keys_BHTK, values_BHTK, mask, dropout)
        return rows.flat(mixed_BHTK.transpose(1, 2))
    is_plain = is_causal and not window  # the kernels know this mask
    mask = None if is_plain else row_mask(rows, is_causal, projected_N3HK.device, window)
    mixed_BHTK = functional.scaled_dot_product_attention(
        queries_BHTK, keys_BHTK, values_BHTK, attn_mask=mask, dropout_p=dropout, is_causal=is_plain
    )
    return rows.flat(mixed_BHTK.transpose(1, 2))


def attend_in_band(
    queries_BHTK: Tensor,
    keys_BHTK: Tensor,
    values_BHTK: Tensor,
    *,
    window: int,
    dropout: float = 0.0,
) -> Tensor:
    """Attend to a token itself and the `window` before it: T × 2 · window scores, not T × T.

    Blocks of `window` queries meet the keys of their own block and of the one before; the result is
    that of `attend` with the causal mask and `near_mask`.
    """
    length, num_rows = queries_BHTK.shape[2], len(queries_BHTK)
    missing = -length % window

    def blocks(heads_BHTK: Tensor) -> Tensor:  # (B, H, blocks, window, K)
        return functional.pad(heads_BHTK, (0, 0, 0, missing)).unflatten(2, (-1, window))

    def with_earlier(heads_BHTK: Tensor) -> Tensor:  # (B, H, blocks, 2 · window, K)
        own = blocks(heads_BHTK)
        return torch.cat([functional.pad(own[:, :, :-1], (0, 0, 0, 0, 1, 0)), own], 3)

    queries, keys, values = (
        part.transpose(1, 2).flatten(0, 1)
        for part in (blocks(queries_BHTK), with_earlier(keys_BHTK), with_earlier(values_BHTK))
    )
    num_blocks = len(queries) // num_rows
    mask = _band_mask(num_blocks, window, queries.device).repeat(num_rows, 1, 1, 1)
    if dropout and not queries.is_cuda:
        mixed = _attend_with_dropout(queries, keys, values, mask, dropout)
    else:
        mixed = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, dropout_p=dropout
        )
    mixed_BHTK = mixed.unflatten(0, (num_rows, num_blocks)).transpose(1, 2).flatten(2, 3)
    return mixed_BHTK[:, :, :length]


def _band_mask(num_blocks: int, window: int, device: torch.device) -> Tensor:
    """True for the keys that a query sees, of its own block and the one before, (…, 1, T, S)."""
    places = torch.arange(2 * window, device=device)
    distance = places[window:, None] - places
    mask = ((distance >= 0) & (distance <= window)).repeat(num_blocks, 1, 1, 1)
    mask[0, :, :, :window] = False  # nothing is before the first block
    return mask


class Run(NamedTuple):
    """Neighboring rows of similar length: their tokens among N, and their layout."""

    tokens: slice
    rows: RowLayout


@lru_cache(maxsize=32)  # shared by the layers of a network, for several threads
def runs_of(starts: bytes) -> list[Run]:
    """Cut rows that are sorted by length, so that almost no position is padding.

    starts: int32, where each row starts among the tokens, then their number.
    """
    starts_B = np.frombuffer(starts, np.int32)
    lengths_B = np.diff(starts_B)
    is_sorted = bool((np.diff(lengths_B) >= 0).all())
    runs, first = [], int((lengths_B == 0).sum()) if is_sorted else 0  # empty rows have no result
    if first == len(lengths_B):
        return []
    for last, length in enumerate([*lengths_B[first + 1 :].tolist(), None], first + 1):
        if length is None or (is_sorted and length > _SPREAD * lengths_B[first]):
            own, most = lengths_B[first:last], int(lengths_B[first:last].max())
            is_full = bool((own == most).all())  # no padding, and no mask
            rows = RowLayout(len(own), most) if is_full else unpadded_rows(own, most)
            runs.append(Run(slice(int(starts_B[first]), int(starts_B[last])), rows))
            first = last
    return runs


def attend_across(
    queries_NHK: Tensor,
    projected_M2HK: Tensor,
    rows: RowLayout,
    others: RowLayout,
    *,
    dropout: float = 0.0,
) -> Tensor:
    """Attend from each row to its source: the M tokens of `others`, (N, H, K)."""
    is_half = queries_NHK.dtype in HALF_PRECISION
    if rows.starts is not None and others.starts is not None and queries_NHK.is_cuda and is_half:
        keys_MHK, values_MHK = projected_M2HK.unbind(1)
        return _flash(queries_NHK, keys_MHK, values_MHK, rows, others, False, dropout)
    queries_BHTK = rows.padded(queries_NHK).transpose(1, 2)
    keys_BHSK, values_BHSK = others.padded(projected_M2HK).permute(2, 0, 3, 1, 4)
    mask = row_mask(others, False, queries_NHK.device)
    if dropout and not queries_NHK.is_cuda:
        mixed_BHTK = _attend_with_dropout(queries_BHTK, keys_BHSK, values_BHSK, mask, dropout)
    else:
        mixed_BHTK = functional.scaled_dot_product_attention(
            queries_BHTK, keys_BHSK, values_BHSK, attn_mask=mask, dropout_p=dropout
        )
    return rows.flat(mixed_BHTK.transpose(1, 2))


def _attend_with_dropout(
    queries_BHTK: Tensor,
    keys_BHSK: Tensor,
    values_BHSK: Tensor,
    mask: Tensor | None,
    dropout: float,
) -> Tensor:
    # PyTorch's function has no fast path for dropout on a CPU; ours draws faster.
    weights_BHTS = attention_weights(queries_BHTK, keys_BHSK, mask_TS=mask)
    return drop_out(weights_BHTS, dropout) @ values_BHSK


def _flash(
    queries_NHK: Tensor,
    keys_MHK: Tensor,
    values_MHK: Tensor,
    rows: RowLayout,
    others: RowLayout,
    is_causal: bool,
    dropout: float,
) -> Tensor:
    """Attend with the flash kernel for rows of different lengths, which needs no padding."""
    # torch.nn.attention.varlen offers the same kernel without dropout.
    return torch.ops.aten._flash_attention_forward(
        queries_NHK, keys_MHK, values_MHK, rows.starts, others.starts, rows.max_length,
        others.max_length, dropout, is_causal, False,
    )[0]  # fmt: skip


class Rotary(nn.Module):
    """Rotates queries and keys by angles that grow with their position (Su et al. 2021, 3.2)."""

    speeds_F: Tensor

    def __init__(self, size: int, theta: float) -> None:
        super().__init__()
        # Dimension i turns together with dimension i + K / 2.
        speeds_F = 1.0 / theta ** (torch.arange(0, size, 2).float() / size)
        self.register_buffer("speeds_F", speeds_F, persistent=False)

    def forward(self, projected_N3HK: Tensor, rows: RowLayout) -> Tensor:
        """Rotate the queries and keys of every token; values stay as they are, (N, 3, H, K)."""
        device = projected_N3HK.device
        angles_TF = torch.arange(rows.max_length, device=device).float()[:, None] * self.speeds_F
        angles_TK = torch.cat([angles_TF, angles_TF], -1)
        if rows.places_N is None:
            angles_NK = angles_TK.repeat(rows.num_rows, 1)
        else:
            angles_NK = angles_TK.index_select(0, rows.positions())
        cosines, sines = angles_NK.cos()[:, None, None], angles_NK.sin()[:, None, None]
        turned = projected_N3HK[:, :2].float()
        first, second = turned.chunk(2, -1)
        turned = turned * cosines + torch.cat([-second, first], -1) * sines
        return torch.cat([turned.to(projected_N3HK.dtype), projected_N3HK[:, 2:]], 1)


class SelfAttention(nn.Module):
    """Multi-head attention of the tokens of each row to each other (Vaswani et al. 2017, 3.2).

    `theta` is the base of rotary positions (0: none), `window` the reach of local attention.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        *,
        dropout: float,
        is_causal: bool,
        has_bias: bool = True,
        theta: float = 0.0,
        window: int = 0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.is_causal = is_causal
        self.dropout, self.window = dropout, window
        # One product for queries, keys and values: three narrow ones fill a chip less well.
        self.projection = Linear(width, 3 * width, bias=has_bias)
        self.projection.num_parts = 3
        self.rotary = Rotary(width // num_heads, theta) if theta else None
        self.output = Linear(width, width, bias=has_bias)

    def forward(self, hidden_ND: Tensor, rows: RowLayout, wanted_M: Tensor | None = None) -> Tensor:
        """Update each token, or only the wanted ones, from the tokens of its row, (N, D)."""
        projected_N3HK = self._placed(hidden_ND, rows)
        dropout = self.dropout if self.training else 0.0
        mixed_NHK = attend_rows(
            projected_N3HK, rows, is_causal=self.is_causal, dropout=dropout, window=self.window
        )
        if wanted_M is not None:
            mixed_NHK = mixed_NHK.index_select(0, wanted_M)
        return self.output(mixed_NHK.flatten(1))

    def project(self, hidden_ND: Tensor) -> Tensor:
        """Queries, keys and values of every head, (N, 3, H, K)."""
        return self.projection(hidden_ND).unflatten(-1, (3, self.num_heads, -1))

    def _placed(self, hidden_ND: Tensor, rows: RowLayout) -> Tensor:
        """`project`, with queries and keys rotated to their positions if these are rotary."""
        projected_N3HK = self.project(hidden_ND)
        return projected_N3HK if self.rotary is None else self.rotary(projected_N3HK, rows)

    def maps(self, hidden_ND: Tensor, rows: RowLayout) -> tuple[Tensor, Tensor]:
        """The output of `forward` without dropout, and the attention weights, (B, H, T, S)."""
        placed_N3HK = self._placed(hidden_ND, rows)
        queries, keys, values = rows.padded(placed_N3HK).permute(2, 0, 3, 1, 4)
        mask = row_mask(rows, self.is_causal, hidden_ND.device, self.window)
        mixed_BHTK, weights_BHTS = attend(queries, keys, values, mask_TS=mask)
        return self.output(rows.flat(mixed_BHTK.transpose(1, 2)).flatten(1)), weights_BHTS

    def extend(self, hidden_ND: Tensor, places_BT: Tensor, cache: LayerCache) -> Tensor:
        """The output of `forward` for tokens at these positions, the rest from the cache."""
        queries, keys, values = self.project(hidden_ND).unflatten(0, places_BT.shape).unbind(2)
        keys_BSHK, values_BSHK = cache.extend(places_BT, keys, values)
        distance_BTS = places_BT[..., None] - torch.arange(
            keys_BSHK.shape[1], device=places_BT.device
        )
        is_past_BTS = distance_BTS >= 0
        if self.window:
            is_past_BTS &= distance_BTS <= self.window
        mixed_BHTK = functional.scaled_dot_product_attention(
            queries.transpose(1, 2), keys_BSHK.transpose(1, 2), values_BSHK.transpose(1, 2),
            attn_mask=is_past_BTS[:, None],
        )  # fmt: skip
        return self.output(mixed_BHTK.transpose(1, 2).flatten(0, 1).flatten(1))


class AttendedSource(NamedTuple):
    """The encoder's output for the sources of a batch, and their layout."""

    hidden_MD: Tensor
    rows: RowLayout


class CrossAttention(nn.Module):
    """Multi-head attention of the tokens of each row to its source (Vaswani et al. 2017, 3.2.3)."""

    def __init__(self, width: int, num_heads: int, *, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.queries = Linear(width, width)
        # One product for keys and values of the source.
        self.projection = Linear(width, 2 * width)
        self.output = Linear(width, width)

    def forward(self, hidden_ND: Tensor, rows: RowLayout, source: AttendedSource) -> Tensor:
        """Update each token from its source, (N, D)."""
        mixed_NHK = attend_across(
            self._queries(hidden_ND), self._project(source.hidden_MD), rows, source.rows,
            dropout=self.dropout if self.training else 0.0,
        )  # fmt: skip
        return self.output(mixed_NHK.flatten(1))

    def maps(
        self, hidden_ND: Tensor, rows: RowLayout, source: AttendedSource
    ) -> tuple[Tensor, Tensor]:
        """The output of `forward` without dropout, and the attention weights, (B, H, T, S)."""
        cache = self.project(source)
        queries_BHTK = rows.padded(self._queries(hidden_ND)).transpose(1, 2)
        mixed_BHTK, weights_BHTS = attend(
            queries_BHTK, cache.keys_BHSK, cache.values_BHSK, mask_TS=cache.mask
        )
        return self.output(rows.flat(mixed_BHTK.transpose(1, 2)).flatten(1)), weights_BHTS

    def project(self, source: AttendedSource) -> SourceCache:
        """The keys and values of sources, for `attend_cached`."""
        keys, values = source.rows.padded(self._project(source.hidden_MD)).permute(2, 0, 3, 1, 4)
        return SourceCache(keys, values, row_mask(source.rows, False, keys.device))

    def attend_cached(self, hidden_ND: Tensor, cache: SourceCache) -> Tensor:
        """The output of `forward` for rows of equal length, with cached sources, (N, D).

        Consecutive rows may share a source: N is a multiple of the number of sources.
        """
        queries_BTHK = self._queries(hidden_ND).unflatten(0, (len(cache.keys_BHSK), -1))
        mixed_BHTK = functional.scaled_dot_product_attention(
            queries_BTHK.transpose(1, 2), cache.keys_BHSK, cache.values_BHSK,
            attn_mask=cache.mask,
        )  # fmt: skip
        return self.output(mixed_BHTK.transpose(1, 2).flatten(0, 1).flatten(1))

    def _queries(self, hidden_ND: Tensor) -> Tensor:
        return self.queries(hidden_ND).unflatten(-1, (self.num_heads, -1))

    def _project(self, source_MD: Tensor) -> Tensor:
        return self.projection(source_MD).unflatten(-1, (2, self.num_heads, -1))
