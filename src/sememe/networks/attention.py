"""Attention: queries compare themselves with keys and take a weighted mean of values.

B rows, T positions of a row, N tokens of all rows laid end to end, S keys, H heads, K numbers of
a head, D = H × K width. The plain functions `attention_weights` and `attend` say what is
computed; `attend_rows` computes the same for whole batches with the fused kernels of PyTorch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.networks.cpu_attention import attend_on_cpu
from sememe.networks.dropout import leave_out
from sememe.networks.layers import Linear
from sememe.networks.memory import LayerMemory
from sememe.networks.rows import Rows

HALF_PRECISION = (torch.bfloat16, torch.float16)


def attention_weights(
    queries_TK: Tensor,
    keys_SK: Tensor,
    *,
    scale: float | None = None,
    mask_TS: Tensor | None = None,
) -> Tensor:
    """How much each query attends to each key: softmax(q · k × scale), (…, T, S).

    The scale is 1/√K unless given: products of longer vectors spread more, and a softmax of large
    numbers learns nothing (Vaswani et al. 2017, 3.2.1). Keys with a False in the mask get nothing.
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
    """Mean of the values for each query, weighted by attention, and the weights themselves."""
    weights_TS = attention_weights(queries_TK, keys_SK, scale=scale, mask_TS=mask_TS)
    return weights_TS @ values_SK, weights_TS


def causal_mask(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """True where a key is not later than the query; the queries are the last of the keys."""
    mask_TS = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return mask_TS.tril(num_keys - num_queries)


def row_mask(rows: Rows, is_causal: bool, device: torch.device) -> Tensor | None:
    """Which keys of its padded row a query may see, to be broadcast to (B, H, T, S); None: all."""
    if is_causal:  # padding comes after every token, where none looks
        return causal_mask(rows.max_length, rows.max_length, device)
    return None if rows.is_token_BT is None else rows.is_token_BT[:, None, None, :]


def attend_rows(
    projected_N3HK: Tensor, rows: Rows, *, is_causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """Attend within each row: queries, keys and values in, the mixture of values out, (N, H, K)."""
    is_half = projected_N3HK.dtype in HALF_PRECISION
    if rows.starts is not None and projected_N3HK.is_cuda and is_half:
        return _attend_unpadded(projected_N3HK, rows, is_causal, dropout)
    is_cpu = projected_N3HK.device.type == "cpu" and not torch.compiler.is_compiling()
    if rows.starts is not None and is_cpu and torch.is_grad_enabled():
        return attend_on_cpu(projected_N3HK, rows, is_causal=is_causal, dropout=dropout)
    queries_BHTK, keys_BHTK, values_BHTK = rows.padded(projected_N3HK).permute(2, 0, 3, 1, 4)
    if dropout and not projected_N3HK.is_cuda:
        mask = row_mask(rows, is_causal, projected_N3HK.device)
        mixed_BHTK = _attend_leaving_out(queries_BHTK, keys_BHTK, values_BHTK, mask, dropout)
        return rows.flat(mixed_BHTK.transpose(1, 2))
    mask = None if is_causal else row_mask(rows, is_causal, projected_N3HK.device)
    mixed_BHTK = functional.scaled_dot_product_attention(
        queries_BHTK, keys_BHTK, values_BHTK, attn_mask=mask, dropout_p=dropout, is_causal=is_causal
    )
    return rows.flat(mixed_BHTK.transpose(1, 2))


def attend_across(
    queries_NHK: Tensor, projected_M2HK: Tensor, rows: Rows, others: Rows, *, dropout: float = 0.0
) -> Tensor:
    """Attend from each row to another one of its own: the M tokens of `others`, (N, H, K)."""
    is_half = queries_NHK.dtype in HALF_PRECISION
    if rows.starts is not None and others.starts is not None and queries_NHK.is_cuda and is_half:
        keys_MHK, values_MHK = projected_M2HK.unbind(1)
        return _flash(queries_NHK, keys_MHK, values_MHK, rows, others, False, dropout)
    queries_BHTK = rows.padded(queries_NHK).transpose(1, 2)
    keys_BHSK, values_BHSK = others.padded(projected_M2HK).permute(2, 0, 3, 1, 4)
    mask = row_mask(others, False, queries_NHK.device)
    if dropout and not queries_NHK.is_cuda:
        mixed_BHTK = _attend_leaving_out(queries_BHTK, keys_BHSK, values_BHSK, mask, dropout)
    else:
        mixed_BHTK = functional.scaled_dot_product_attention(
            queries_BHTK, keys_BHSK, values_BHSK, attn_mask=mask, dropout_p=dropout
        )
    return rows.flat(mixed_BHTK.transpose(1, 2))


def _attend_leaving_out(
    queries_BHTK: Tensor,
    keys_BHSK: Tensor,
    values_BHSK: Tensor,
    mask: Tensor | None,
    dropout: float,
) -> Tensor:
    # PyTorch's function has no fast way for dropout on a CPU; ours draws faster.
    weights_BHTS = attention_weights(queries_BHTK, keys_BHSK, mask_TS=mask)
    return leave_out(weights_BHTS, dropout) @ values_BHSK


def _attend_unpadded(projected_N3HK: Tensor, rows: Rows, is_causal: bool, dropout: float) -> Tensor:
    queries_NHK, keys_NHK, values_NHK = projected_N3HK.unbind(1)
    return _flash(queries_NHK, keys_NHK, values_NHK, rows, rows, is_causal, dropout)


def _flash(
    queries_NHK: Tensor,
    keys_MHK: Tensor,
    values_MHK: Tensor,
    rows: Rows,
    others: Rows,
    is_causal: bool,
    dropout: float,
) -> Tensor:
    """Attend with the flash kernel for rows of different lengths, which never sees padding."""
    # torch.nn.attention.varlen offers the same kernel without dropout.
    return torch.ops.aten._flash_attention_forward(
        queries_NHK, keys_MHK, values_MHK, rows.starts, others.starts, rows.max_length,
        others.max_length, dropout, is_causal, False,
    )[0]  # fmt: skip


class SelfAttention(nn.Module):
    """Multi-head attention of the tokens of each row to each other (Vaswani et al. 2017, 3.2)."""

    def __init__(self, width: int, num_heads: int, *, dropout: float, is_causal: bool) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.is_causal = is_causal
        self.dropout = dropout
        # One product for queries, keys and values: three narrow ones fill a chip less well.
        self.projection = Linear(width, 3 * width)
        self.output = Linear(width, width)

    def forward(self, hidden_ND: Tensor, rows: Rows, wanted_M: Tensor | None = None) -> Tensor:
        """Mix each token, or each of those that are wanted, with the tokens of its row, (N, D)."""
        projected_N3HK = self.project(hidden_ND)
        dropout = self.dropout if self.training else 0.0
        mixed_NHK = attend_rows(projected_N3HK, rows, is_causal=self.is_causal, dropout=dropout)
        if wanted_M is not None:
            mixed_NHK = mixed_NHK.index_select(0, wanted_M)
        return self.output(mixed_NHK.flatten(1))

    def project(self, hidden_ND: Tensor) -> Tensor:
        """Queries, keys and values of every head, (N, 3, H, K)."""
        return self.projection(hidden_ND).unflatten(-1, (3, self.num_heads, -1))

    def maps(self, hidden_ND: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """What `forward` gives without dropout, and the attention itself, (B, H, T, S)."""
        queries, keys, values = rows.padded(self.project(hidden_ND)).permute(2, 0, 3, 1, 4)
        mask = row_mask(rows, self.is_causal, hidden_ND.device)
        mixed_BHTK, weights_BHTS = attend(queries, keys, values, mask_TS=mask)
        return self.output(rows.flat(mixed_BHTK.transpose(1, 2)).flatten(1)), weights_BHTS

    def extend(self, hidden_ND: Tensor, places_BT: Tensor, memory: LayerMemory) -> Tensor:
        """What `forward` gives for tokens at these places of their rows, the rest from memory."""
        queries, keys, values = self.project(hidden_ND).unflatten(0, places_BT.shape).unbind(2)
        keys_BSHK, values_BSHK = memory.extend(places_BT, keys, values)
        is_past_BTS = (
            torch.arange(keys_BSHK.shape[1], device=places_BT.device) <= places_BT[..., None]
        )
        mixed_BHTK = functional.scaled_dot_product_attention(
            queries.transpose(1, 2), keys_BSHK.transpose(1, 2), values_BSHK.transpose(1, 2),
            attn_mask=is_past_BTS[:, None],
        )  # fmt: skip
        return self.output(mixed_BHTK.transpose(1, 2).flatten(0, 1).flatten(1))
