"""Attention within rows for training on a CPU: what `attend_rows` says, in as few passes as can be.

A CPU spends as long on moving numbers between the products of attention as on the products. So the
heads are gathered into place by one copy, rows of similar length are computed together, scales are
left to the products, and what is needed no more is written over.

B rows, T positions of a row, N tokens of all rows laid end to end, H heads, K numbers of a head,
P places of all heads: rows × heads × positions, padding included. In a group of rows G = rows × H.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.networks.dropout import drawn
from sememe.networks.rows import Rows

_NUM_GROUPS = 4


class Group(NamedTuple):
    """Rows that are computed together: their places, and how many tokens each has."""

    places: slice
    shape: tuple[int, int]  # G rows of one head each, T positions
    lengths_B: list[int]


class Layout(NamedTuple):
    """Where the heads of a batch lie, group by group and row by row."""

    groups: list[Group]
    tokens_P: Tensor  # the head among N × 3 × H that each place shows as query
    places_NH: Tensor  # where the heads of each token lie


@lru_cache(maxsize=2)  # the layers of a network ask for the same one
def layout_of(starts: bytes, num_heads: int) -> Layout:
    """Put rows of similar length together; padding repeats the last token of its row.

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
    return Layout(groups, torch.from_numpy(tokens_P), torch.from_numpy(places_NH))


def attend_on_cpu(projected_N3HK: Tensor, rows: Rows, *, is_causal: bool, dropout: float) -> Tensor:
    """Queries, keys and values of unpadded rows in, the mixture of values out, (N, H, K)."""
    assert rows.starts is not None
    layout = layout_of(rows.starts.numpy().tobytes(), projected_N3HK.shape[2])
    return _Attention.apply(projected_N3HK, layout, is_causal, dropout)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, projected_N3HK: Tensor, layout: Layout, is_causal: bool, dropout: float
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
            _hide(weights_GTT.unflatten(0, (-1, num_heads)), group, is_causal)
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
    def backward(ctx: Any, gradient_NHK: Tensor) -> tuple[Tensor, None, None, None]:
        heads_3PK, mixed_PK, *weights = ctx.saved_tensors
        num_places, size = mixed_PK.shape
        places_NH = ctx.layout.places_NH
        # Places of padding have no part in the loss.
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
            # A weight's share of the gradient, less that of the mean over its row: softmax.
            scores_GTT = _product(gradient_GTK, values_GTK.mT, scale[1]).mul_(kept_GTT)
            scores_GTT.addcmul_(weights_GTT, mean_GT1, value=-1)
            _product(scores_GTT, keys_GTK, scale[0], to_queries_GTK)
            _product(scores_GTT.mT, queries_GTK, scale[0], to_keys_GTK)
        index_N3H = places_NH[:, None] + num_places * torch.arange(3)[:, None]
        flat = gradients_3PK.view(-1, size).index_select(0, index_N3H.flatten())
        return flat.view(*index_N3H.shape, size), None, None, None


def _of_group(places_CPK: Tensor, group: Group) -> Iterator[Tensor]:
    """The parts of a group, each (G, T, K)."""
    return (places_PK[group.places].view(*group.shape, -1) for places_PK in places_CPK)


def _product(first: Tensor, second: Tensor, scale: float, out: Tensor | None = None) -> Tensor:
    """Matrix products of a batch, scaled on the way."""
    if out is None:
        out = first.new_empty(*first.shape[:-1], second.shape[-1])
    return torch.baddbmm(out, first, second, beta=0, alpha=scale, out=out)


def _hide(scores_BHTT: Tensor, group: Group, is_causal: bool) -> None:
    """Give keys that must not be seen the lowest score: later ones, or those of padding."""
    length = group.shape[1]
    if is_causal:  # padding comes after every token, where none looks
        scores_BHTT += torch.full((length, length), -math.inf, dtype=scores_BHTT.dtype).triu_(1)
        return
    for scores_HTT, own in zip(scores_BHTT, group.lengths_B, strict=True):
        if own < length:
            scores_HTT[:, :, own:] = -math.inf
