"""Linear maps, normalisation and tables whose weights follow the precision of their input.

The weights stay in float32, where small steps add up; what flows through them may be bfloat16.
A weight is cast where it is used, so that its gradient arrives in float32 again, or beforehand
together with those of other layers (casting.py).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

Cast = tuple[Tensor, Tensor | None]  # a weight and its bias, if there is one


def _cast(layer: Linear | LayerNorm, dtype: torch.dtype) -> Cast:
    """The weight and the bias of a layer in a precision."""
    if layer.cast is not None and layer.cast[0].dtype == dtype:
        return layer.cast
    return layer.weight.to(dtype), None if layer.bias is None else layer.bias.to(dtype)


class Linear(nn.Linear):
    """y = x Wᵀ + b in the precision of x."""

    cast: Cast | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis of x."""
        return functional.linear(x, *_cast(self, x.dtype))


class LayerNorm(nn.LayerNorm):
    """Layer normalisation in the precision of its input; means are taken in float32 inside."""

    cast: Cast | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis of x."""
        return functional.layer_norm(x, self.normalized_shape, *_cast(self, x.dtype), self.eps)


def padded_table(
    table_VD: Tensor, bias_V: Tensor, vocab_size: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """A table of tokens and its bias in a precision; rows of padding get the lowest number as bias.

    To cut the padding off instead would copy all scores once more in the backward pass; with -inf
    a kernel that sees nothing else in its part of a row could subtract infinities.
    """
    is_padding_V = torch.arange(len(table_VD), device=table_VD.device) >= vocab_size
    bias_V = bias_V.to(dtype).masked_fill(is_padding_V, torch.finfo(dtype).min)
    return table_VD.to(dtype), bias_V


def table_logits(hidden_MD: Tensor, table_VD: Tensor, bias_V: Tensor, vocab_size: int) -> Tensor:
    """Score every row of a table of tokens, (M, rows); rows of padding get the lowest number."""
    return functional.linear(
        hidden_MD, *padded_table(table_VD, bias_V, vocab_size, hidden_MD.dtype)
    )


def activate(x: Tensor, name: str) -> Tensor:
    """Apply the non-linearity of a feed-forward part by its name in the config."""
    if name == "relu":
        return functional.relu(x)
    return functional.gelu(x, approximate="tanh" if name == "gelu_tanh" else "none")


def initialise(module: nn.Module, std: float, generator: torch.Generator) -> None:
    """Draw weights from a normal distribution of spread `std`, zero the biases (BERT, GPT)."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
            nn.init.zeros_(part.bias)
