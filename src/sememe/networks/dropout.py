"""Dropout whose choices come from a hash of each number's index, so that a mask costs no memory.

PyTorch's generator spends more time on a normalised sum than the sum itself takes on a GPU, and
keeps its mask for the backward pass; inside a compiled graph the hash is a few integer operations
that both passes repeat. Outside of one, where each operation would be a pass over memory,
PyTorch's own dropout is used. N tokens, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def draw_keys(num_keys: int, device: torch.device) -> Tensor:
    """Draw a key for each place where something is left out, from PyTorch's generator."""
    return torch.randint(-(2**31), 2**31, (num_keys,), dtype=torch.int32, device=device)


def drop(x_ND: Tensor, share: float, key: Tensor | None) -> Tensor:
    """Leave out a share of the numbers and scale up the rest; without a key leave out nothing."""
    if key is None or share == 0:
        return x_ND
    if not torch.compiler.is_compiling():
        return functional.dropout(x_ND, share)
    return torch.where(kept(x_ND.shape, share, key), x_ND / (1 - share), 0)


def kept(shape: torch.Size, share: float, key: Tensor) -> Tensor:
    """Which numbers of an (N, D) matrix stay: all but about `share` of them."""
    num_tokens, width = shape
    index_N1 = torch.arange(num_tokens, dtype=torch.int32, device=key.device)[:, None] * width
    index_ND = index_N1 + torch.arange(width, dtype=torch.int32, device=key.device)
    # The finaliser of MurmurHash3 on wrapping 32-bit numbers; `>>` copies the sign, so it is cut
    # off. The key enters twice: entering once, it would only permute one and the same mask.
    hash_ND = index_ND ^ key
    hash_ND = (hash_ND ^ ((hash_ND >> 16) & 0xFFFF)) * -2048144789
    hash_ND = (hash_ND ^ ((hash_ND >> 13) & 0x7FFFF)) * -1028477387 + key
    hash_ND = hash_ND ^ ((hash_ND >> 16) & 0xFFFF)
    return hash_ND >= int(share * 2**32) - 2**31
