"""Where the rows of a batch lie among its flat tokens, so that no work is spent on padding.

B rows, T positions of the longest row, N tokens. Everything but attention treats each token for
itself and works on (N, …); attention pads for a moment, or uses a kernel that needs no padding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor


class _Selected(torch.autograd.Function):
    """Rows of a matrix at places that all differ, so that the gradient is a copy and no sum."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, places_N: Tensor) -> Tensor:
        """Take the rows at the places."""
        ctx.save_for_backward(places_N)
        ctx.num_places = flat.shape[0]
        return flat.index_select(0, places_N)

    @staticmethod
    def backward(ctx: Any, gradient_N: Tensor) -> tuple[Tensor, None]:
        """Put the gradients back to their places."""
        (places_N,) = ctx.saved_tensors
        empty = gradient_N.new_zeros(ctx.num_places, *gradient_N.shape[1:])
        return empty.index_copy_(0, places_N, gradient_N), None


class Rows(NamedTuple):
    """The layout of a batch: unpadded (`starts` given) or padded, (B × T, …) then."""

    num_rows: int
    max_length: int
    starts: Tensor | None = None  # int32 (B + 1,): where each row starts, then N
    places_N: Tensor | None = None  # int64: where each token lies among B × T padded places
    is_token_BT: Tensor | None = None  # False where a padded place is empty; None: all are full

    def padded(self, flat_N: Tensor) -> Tensor:
        """Lay the tokens out in rows, (B, T, …); empty places are zero."""
        if self.places_N is not None:
            num_places = self.num_rows * self.max_length
            empty = flat_N.new_zeros(num_places, *flat_N.shape[1:])
            flat_N = empty.index_copy(0, self.places_N, flat_N)
        return flat_N.unflatten(0, (self.num_rows, self.max_length))

    def flat(self, padded_BT: Tensor) -> Tensor:
        """Lay rows end to end, without their padding where the batch has none, (N, …)."""
        flat = padded_BT.flatten(0, 1)
        return flat if self.places_N is None else _Selected.apply(flat, self.places_N)

    def first_tokens(self, device: torch.device | None = None) -> Tensor:
        """The flat index of each row's first token, (B,)."""
        if self.starts is not None:
            return self.starts[:-1].long()
        return torch.arange(self.num_rows, device=device) * self.max_length


def padded_rows(ids_BT: Tensor, lengths_B: Tensor | None = None) -> Rows:
    """The layout of B rows of T places each, of which the first `lengths_B` hold tokens."""
    num_rows, max_length = ids_BT.shape
    if lengths_B is None:
        return Rows(num_rows, max_length)
    is_token_BT = torch.arange(max_length, device=lengths_B.device) < lengths_B[:, None]
    return Rows(num_rows, max_length, is_token_BT=is_token_BT)


def unpadded_rows(lengths_B: np.ndarray, max_length: int) -> Rows:
    """The layout of rows laid end to end; made on the host, before the batch travels."""
    starts = np.concatenate([[0], np.cumsum(lengths_B)])
    is_token_BT = np.arange(max_length) < lengths_B[:, None]
    return Rows(
        num_rows=len(lengths_B),
        max_length=max_length,
        starts=torch.from_numpy(starts.astype(np.int32)),
        places_N=torch.from_numpy(np.flatnonzero(is_token_BT)),
        is_token_BT=torch.from_numpy(is_token_BT),
    )
