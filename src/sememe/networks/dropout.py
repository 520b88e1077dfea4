"""Dropout that costs less than what it is applied to: by hash in compiled graphs, by short numbers
on a CPU.

PyTorch's generator spends more time on a normalised sum than the sum itself takes on a GPU, and
keeps its mask for the backward pass; inside a compiled graph a hash of each number's index is a few
integer operations that both passes repeat. On a CPU the same generator takes as long for a number
as a matrix product takes for thousands of operations; there one draw of NumPy's decides on four.
N tokens, D width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
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
    if torch.compiler.is_compiling():
        return torch.where(kept(x_ND.shape, share, key), x_ND / (1 - share), 0)
    return leave_out(x_ND, share)


def leave_out(x: Tensor, share: float) -> Tensor:
    """Leave out a share of the numbers and scale up the rest, where no key is at hand."""
    if share == 0:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(x, share)
    return x * drawn(x.shape, share, x.dtype).mul_(1 / (1 - share))


def drawn(shape: Sequence[int], share: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw which numbers stay, on the CPU: 1 for those that do, 0 for others; 16 bits decide."""
    count = math.prod(shape)
    # NumPy's generator is twice as fast; seeded from PyTorch's, what it draws can be repeated.
    seed = int(torch.randint(2**63 - 1, ()))
    generator = np.random.Generator(np.random.SFC64(seed))
    draws = generator.integers(0, 2**64, -(-count // 4), dtype=np.uint64)
    bits = torch.from_numpy(draws.view(np.int16)[:count]).view(*shape)
    # Written as numbers at once, not as truths: those are slow to compute with.
    return torch.ge(bits, round(share * 2**16) - 2**15, out=torch.empty(shape, dtype=dtype))


def kept(shape: torch.Size, share: float, key: Tensor) -> Tensor:
    """Which numbers of an (N, D) matrix stay by hash: all but about `share` of them."""
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
