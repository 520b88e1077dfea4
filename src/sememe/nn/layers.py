"""Layers of every network: linear maps, normalisation, dropout and positions, in any precision.

N tokens, D width, T positions.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

Cast = tuple[Tensor, Tensor | None]  # a weight and its bias, if there is one


def _cast(layer: Linear | LayerNorm, dtype: torch.dtype) -> Cast:
    """The weight and the bias of a layer in a precision."""
    if layer.cast is not None and layer.cast[0].dtype == dtype:
        return layer.cast
    return layer.weight.to(dtype), None if layer.bias is None else layer.bias.to(dtype)


class _Packed(NamedTuple):
    """A weight in the order in which oneDNN reads it, and of which state of which weight it is."""

    source: weakref.ref[Tensor]
    version: int
    address: int
    weight: Tensor


class Linear(nn.Linear):
    """y = x Wᵀ + b in the precision of x."""

    cast: Cast | None = None
    packed: _Packed | None = None
    num_parts = 1  # matrices one below the other in its weight, such as queries, keys and values

    def forward(self, x: Tensor, activation: str = "") -> Tensor:
        """Map the last axis of x; with an activation by its name, apply it to the result."""
        weight, bias = _cast(self, x.dtype)
        if _suits_onednn(x):
            return _linear_by_onednn(x, self._ordered(weight), bias, activation)
        y = functional.linear(x, weight, bias)
        return activate(y, activation) if activation else y

    def _ordered(self, weight: Tensor) -> Tensor:
        """The weight as oneDNN reads it, ordered at its first use and kept until `train()`.

        Otherwise each product orders it again: a third of the time of a text of ten tokens.
        """
        # Fused optimizers do not count as changes of a weight; an inference tensor was cast for
        # this product alone.
        if self.training or weight.is_inference():
            return weight
        kept = self.packed
        if (
            kept is None
            or kept.source() is not weight
            or kept.version != weight._version
            or kept.address != weight.data_ptr()
        ):
            ordered = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
            kept = _Packed(weakref.ref(weight), weight._version, weight.data_ptr(), ordered)
            self.packed = kept
        return kept.weight

    def train(self, mode: bool = True) -> Linear:
        """Switch to training, in which weights change, or to inference."""
        if mode:
            self.packed = None
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles have: an ordered weight cannot be copied."""
        return {**self.__dict__, "packed": None}


_ONEDNN_ROWS = 4  # with fewer rows, the plain product is as fast
_has_onednn = torch.backends.mkldnn.is_available() and all(
    hasattr(torch.ops.mkldnn, name) for name in ("_linear_pointwise", "_reorder_linear_weight")
)


def _suits_onednn(x: Tensor) -> bool:
    """Whether x is mapped in PyTorch's inference mode on a CPU, where oneDNN's product is faster.

    PyTorch multiplies float32 with MKL, which runs at half the speed on CPUs not made by Intel.
    Training, validation included, keeps to it, so that trainings stay the same to the bit.
    """
    return (
        _has_onednn
        # First: the compiler cannot follow the next question, and would cut the graph there.
        and not torch.compiler.is_compiling()
        and torch.is_inference_mode_enabled()
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.bfloat16)
        and x.numel() >= _ONEDNN_ROWS * x.shape[-1]
    )


def _linear_by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    # The operator that PyTorch's own compiler calls; the activation comes without a second pass.
    is_gelu = activation.startswith("gelu")
    how = "tanh" if activation == "gelu_tanh" else "none"
    name, how = ("gelu", how) if is_gelu else (activation.rstrip("2") or "none", "")
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, [], how)
    return y.square_() if activation == "relu2" else y


class LayerNorm(nn.LayerNorm):
    """Layer normalisation in the precision of its input; means are computed in float32."""

    cast: Cast | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis of x."""
        return functional.layer_norm(x, self.normalized_shape, *_cast(self, x.dtype), self.eps)


def padded_table(
    table_VD: Tensor, bias_V: Tensor, vocab_size: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """A token table and its bias in a precision; padding rows get the lowest value as bias.

    Cutting the padding off instead would copy all scores again in the backward pass; with -inf a
    kernel that sees nothing else in its part of a row could subtract infinities.
    """
    is_padding_V = torch.arange(len(table_VD), device=table_VD.device) >= vocab_size
    bias_V = bias_V.to(dtype).masked_fill(is_padding_V, torch.finfo(dtype).min)
    return table_VD.to(dtype), bias_V


def table_logits(hidden_MD: Tensor, table_VD: Tensor, bias_V: Tensor, vocab_size: int) -> Tensor:
    """Score every token of a table, (M, V), without its padding rows."""
    table = padded_table(table_VD, bias_V, vocab_size, hidden_MD.dtype)
    return functional.linear(hidden_MD, *table)[..., :vocab_size]


def tied_table(tokens: nn.Embedding, vocab_size: int) -> tuple[Tensor, Tensor, int]:
    """The table of an embedding, a zero bias and its number of tokens, for `table_logits`."""
    table_VD = tokens.weight
    return table_VD, torch.zeros(len(table_VD), device=table_VD.device), vocab_size


def activate(x: Tensor, name: str) -> Tensor:
    """Apply the non-linearity of a feed-forward part by its name in the config."""
    if name.startswith("relu"):
        found = functional.relu(x)
        return found.square() if name == "relu2" else found
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
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def draw_keys(num_keys: int, device: torch.device) -> Tensor:
    """Draw a key for each dropout, from PyTorch's generator."""
    return torch.randint(-(2**31), 2**31, (num_keys,), dtype=torch.int32, device=device)


def drop(x_ND: Tensor, share: float, key: Tensor | None) -> Tensor:
    """Dropout by a hash of the key; without a key, no dropout."""
    if key is None or share == 0:
        return x_ND
    if torch.compiler.is_compiling():
        return torch.where(kept(x_ND.shape, share, key), x_ND / (1 - share), 0)
    return drop_out(x_ND, share)


def drop_out(x: Tensor, share: float) -> Tensor:
    """Dropout by PyTorch or, on a CPU, by a faster generator, if there is no key."""
    if share == 0:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(x, share)
    return x * drawn(x.shape, share, x.dtype).mul_(1 / (1 - share))


def drawn(shape: Sequence[int], share: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw a dropout mask on the CPU: 1 to keep, 0 to drop; uses 16 bits per value."""
    count = math.prod(shape)
    # NumPy's generator is twice as fast; seeded from PyTorch's, it is reproducible.
    seed = int(torch.randint(2**63 - 1, ()))
    generator = np.random.Generator(np.random.SFC64(seed))
    draws = generator.integers(0, 2**64, -(-count // 4), dtype=np.uint64)
    bits = torch.from_numpy(draws.view(np.int16)[:count]).view(*shape)
    # Written as floats at once: booleans are slow to compute with.
    return torch.ge(bits, round(share * 2**16) - 2**15, out=torch.empty(shape, dtype=dtype))


def kept(shape: torch.Size, share: float, key: Tensor) -> Tensor:
    """A dropout mask of an (N, D) matrix by hash: drops about `share` of the values."""
    num_tokens, width = shape
    index_N1 = torch.arange(num_tokens, dtype=torch.int32, device=key.device)[:, None] * width
    index_ND = index_N1 + torch.arange(width, dtype=torch.int32, device=key.device)
    # The finaliser of MurmurHash3 on wrapping 32-bit numbers; `>>` copies the sign, so it is
    # masked. The key enters twice: entering once, it would only permute one and the same mask.
    hash_ND = index_ND ^ key
    hash_ND = (hash_ND ^ ((hash_ND >> 16) & 0xFFFF)) * -2048144789
    hash_ND = (hash_ND ^ ((hash_ND >> 13) & 0x7FFFF)) * -1028477387 + key
    hash_ND = hash_ND ^ ((hash_ND >> 16) & 0xFFFF)
    return hash_ND >= int(share * 2**32) - 2**31


_LINE = 128  # numbers


class _CastTogether(torch.autograd.Function):
    """Several weights in another precision; their gradients return in that of the weights."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:
        """Cast every weight."""
        ctx.set_materialize_grads(False)  # a weight that was not used gets no gradient
        ctx.dtype = weights[0].dtype if weights else dtype
        return tuple(_cast_together(weights, dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Cast the gradients that there are."""
        found = iter(_cast_together([own for own in gradients if own is not None], ctx.dtype))
        return None, *(None if own is None else next(found) for own in gradients)


def _cast_together(tensors: Sequence[Tensor], dtype: torch.dtype) -> Sequence[Tensor]:
    if not tensors:
        return []
    # Sizes that would shift what comes after them come last: kernels read whole lines of memory.
    order = sorted(range(len(tensors)), key=lambda index: bool(tensors[index].numel() % _LINE))
    ordered = [tensors[index] for index in order]
    sizes = [own.numel() for own in ordered]
    if tensors[0].is_cuda:  # two kernels, however many tensors there are
        memory = torch.cat([own.flatten() for own in ordered]).to(dtype)
    else:
        memory = torch.empty(sum(sizes), dtype=dtype, device=tensors[0].device)
    found: list[Any] = [None] * len(tensors)
    for index, part, own in zip(order, memory.split(sizes), ordered, strict=True):
        found[index] = part.view_as(own)
        if not own.is_cuda:
            found[index].copy_(own)
    return found


def trained_layers(module: nn.Module) -> list[Linear | LayerNorm]:
    """The layers of a module that cast their weights and learn."""
    return [
        part
        for part in module.modules()
        if isinstance(part, Linear | LayerNorm) and part.weight.requires_grad
    ]


@contextmanager
def cast_at_once(layers: Sequence[Linear | LayerNorm], dtype: torch.dtype) -> Iterator[None]:
    """Give the layers weights of that precision, all cast together, during the block."""
    weights = [(layer.weight, layer.bias) for layer in layers]
    found = iter(
        _CastTogether.apply(dtype, *(own for pair in weights for own in pair if own is not None))
    )
    for layer, (_, bias) in zip(layers, weights, strict=True):
        layer.cast = next(found), None if bias is None else next(found)
    try:
        yield
    finally:
        for layer in layers:
            layer.cast = None


def keep_cast(network: nn.Module, dtype: torch.dtype) -> None:
    """Keep the weights of a network in a precision, so that `forward` need not cast them."""
    for layer in network.modules():
        if isinstance(layer, Linear | LayerNorm):
            own = (layer.weight, layer.bias)
            layer.cast = None
            if dtype != torch.float32:
                weight, bias = (None if part is None else part.detach().to(dtype) for part in own)
                assert weight is not None
                layer.cast = weight, bias


def sinusoidal_table(num_positions: int, width: int) -> Tensor:
    """The sine and cosine of each position, interleaved by dimension (Vaswani et al. 2017, 3.5).

    Dimension 2i holds sin(position / 10000^(2i/D)), dimension 2i + 1 the cosine of the same angle.
    """
    positions_T1 = torch.arange(num_positions, dtype=torch.float64)[:, None]
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
    angles = positions_T1 / 10_000.0**exponents
    table_TD = torch.empty(num_positions, width, dtype=torch.float64)
    table_TD[:, 0::2] = angles.sin()
    table_TD[:, 1::2] = angles.cos()[:, : width // 2]
    return table_TD.float()


class Positions(nn.Module):
    """A table of positions, learned or computed."""

    def __init__(self, num_positions: int, width: int, kind: str) -> None:
        super().__init__()
        if kind == "learned":
            self.weight: Tensor = nn.Parameter(torch.empty(num_positions, width))
        else:
            self.register_buffer("weight", sinusoidal_table(num_positions, width))

    def initialise(self, std: float, generator: torch.Generator) -> None:
        """Initialize learned position vectors; sine waves stay as they are."""
        if isinstance(self.weight, nn.Parameter):
            nn.init.normal_(self.weight, std=std, generator=generator)

    def forward(self, positions_N: Tensor) -> Tensor:
        """Look up the vectors of positions, (N, D)."""
        return functional.embedding(positions_N, self.weight)
