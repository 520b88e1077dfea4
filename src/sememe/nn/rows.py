"""Layouts of rows of tokens, so that no work is spent on padding.

Long texts are split into overlapping windows, rows are grouped until a batch is full, and a batch
is concatenated as tensors.

B rows, T positions of the longest row, N tokens. All layers except attention treat tokens
independently and work on (N, …); attention pads temporarily, or uses a kernel without padding.

B rows, T positions, N tokens, M tokens to predict. Built on the host with NumPy by the thread that
prepares batches, so that the network itself never needs the lengths.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from sememe.errors import OptionError
from sememe.examples.batches import Batch


class _Selected(torch.autograd.Function):
    """Rows of a matrix at distinct indices, so that the gradient is a copy, not a sum."""

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


class RowLayout(NamedTuple):
    """The layout of a batch: unpadded (with `starts`) or padded, then (B × T, …)."""

    num_rows: int
    max_length: int
    starts: Tensor | None = None  # int32 (B + 1,): where each row starts, then N
    places_N: Tensor | None = None  # int64: the index of each token among B × T padded positions
    is_token_BT: Tensor | None = None  # False for empty padded positions; None: all are filled

    def padded(self, flat_N: Tensor) -> Tensor:
        """Arrange the tokens in rows, (B, T, …); empty positions are zero."""
        if self.places_N is not None:
            num_places = self.num_rows * self.max_length
            empty = flat_N.new_zeros(num_places, *flat_N.shape[1:])
            flat_N = empty.index_copy(0, self.places_N, flat_N)
        return flat_N.unflatten(0, (self.num_rows, self.max_length))

    def flat(self, padded_BT: Tensor) -> Tensor:
        """Concatenate rows, without padding if the batch has none, (N, …)."""
        flat = padded_BT.flatten(0, 1)
        return flat if self.places_N is None else _Selected.apply(flat, self.places_N)

    def positions(self) -> Tensor:
        """The position of each token of an unpadded batch in its row, (N,)."""
        assert self.places_N is not None
        return self.places_N % self.max_length

    def first_tokens(self, device: torch.device | None = None) -> Tensor:
        """The flat index of each row's first token, (B,)."""
        if self.starts is not None:
            return self.starts[:-1].long()
        return torch.arange(self.num_rows, device=device) * self.max_length


def padded_rows(ids_BT: Tensor, lengths_B: Tensor | None = None) -> RowLayout:
    """The layout of B rows of T positions each, of which the first `lengths_B` hold tokens."""
    num_rows, max_length = ids_BT.shape
    if lengths_B is None:
        return RowLayout(num_rows, max_length)
    is_token_BT = torch.arange(max_length, device=lengths_B.device) < lengths_B[:, None]
    return RowLayout(num_rows, max_length, is_token_BT=is_token_BT)


def unpadded_rows(lengths_B: np.ndarray, max_length: int) -> RowLayout:
    """The layout of concatenated rows; built on the host, before the batch is moved."""
    starts = np.concatenate([[0], np.cumsum(lengths_B)])
    is_token_BT = np.arange(max_length) < lengths_B[:, None]
    return RowLayout(
        num_rows=len(lengths_B),
        max_length=max_length,
        starts=torch.from_numpy(starts.astype(np.int32)),
        places_N=torch.from_numpy(np.flatnonzero(is_token_BT)),
        is_token_BT=torch.from_numpy(is_token_BT),
    )


class BERTInputs(NamedTuple):
    """A batch for BERT."""

    ids_N: Tensor
    segments_N: Tensor
    positions_N: Tensor
    rows: RowLayout
    hidden_M: Tensor  # flat indices of the tokens to predict
    targets_M: Tensor
    follows_B: Tensor | None  # 0: B follows A; 1: it does not; NO_LABEL
    # The losses are divided by these. Where a step has several batches or processes, put
    # the mean over them here: the sum of gradients is then that of one large batch.
    num_targets: Tensor
    num_pairs: Tensor


class GPTInputs(NamedTuple):
    """A batch for GPT."""

    ids_N: Tensor
    positions_N: Tensor
    rows: RowLayout
    hidden_M: Tensor  # flat indices of the tokens that have a next one
    targets_M: Tensor
    num_targets: Tensor


NO_LABEL = -100  # which cross_entropy ignores
_FOLLOWS = np.array([1, 0, NO_LABEL])  # is_next -1 is the last one


def num_pairs(batch: Batch) -> int:
    """Rows with a next-sentence label."""
    return 0 if batch.is_next_B is None else int((batch.is_next_B >= 0).sum())


def bert_inputs(batch: Batch) -> BERTInputs:
    """Concatenate a batch of masked examples; targets keep their order."""
    max_length = batch.ids_BT.shape[1]
    rows = unpadded_rows(batch.lengths_B, max_length)
    assert batch.hidden_N is not None and batch.targets_N is not None
    return BERTInputs(
        ids_N=_flat(batch.ids_BT, rows),
        segments_N=_flat(
            np.zeros_like(batch.ids_BT) if batch.segments_BT is None else batch.segments_BT, rows
        ),
        positions_N=rows.positions(),
        rows=rows,
        hidden_M=_unpadded_index(batch.hidden_N, batch.lengths_B, max_length),
        targets_M=torch.from_numpy(batch.targets_N.astype(np.int64)),
        follows_B=None if batch.is_next_B is None else torch.from_numpy(_FOLLOWS[batch.is_next_B]),
        num_targets=torch.tensor(float(max(len(batch.targets_N), 1))),
        num_pairs=torch.tensor(float(max(num_pairs(batch), 1))),
    )


def filled_up(batch: Batch, length: int, num_tokens: int, num_targets: int) -> Batch:
    """The batch with rows of padding and targets without a loss, so that few sizes occur.

    Tokens and targets are then multiples of these numbers, and there are as many more rows whatever
    the batch: a whole step can be compiled once, or recorded as a CUDA graph.
    """
    assert batch.hidden_N is not None and batch.targets_N is not None
    num_rows = -(-num_tokens // length) + 1
    if length < num_rows:
        raise OptionError(f"length ({length}) is too short for steps of fixed size.")
    missing = -batch.num_tokens % num_tokens
    # A row without a token has nothing to attend to.
    missing += num_tokens if missing < num_rows else 0
    lengths_R = np.full(num_rows, missing // num_rows, np.int32)
    lengths_R[: missing % num_rows] += 1
    shape, width = (num_rows, length), batch.ids_BT.shape[1]

    def widened(rows_BT: np.ndarray | None) -> np.ndarray | None:
        if rows_BT is None:
            return None
        wide_BT = np.pad(rows_BT, ((0, 0), (0, length - width)))
        return np.concatenate([wide_BT, np.zeros(shape, rows_BT.dtype)])

    rows_N, places_N = np.divmod(batch.hidden_N, width)
    more = -len(batch.targets_N) % num_targets
    unlabelled = np.full(num_rows, -1, np.int8)
    return Batch(
        ids_BT=np.asarray(widened(batch.ids_BT)),
        lengths_B=np.concatenate([batch.lengths_B, lengths_R]),
        num_tokens=batch.num_tokens + missing,
        segments_BT=widened(batch.segments_BT),
        hidden_N=np.pad(rows_N * length + places_N, (0, more)),
        targets_N=np.pad(batch.targets_N, (0, more), constant_values=NO_LABEL),
        is_next_B=(
            None if batch.is_next_B is None else np.concatenate([batch.is_next_B, unlabelled])
        ),
    )


def gpt_inputs(batch: Batch) -> GPTInputs:
    """Concatenate a batch of running text; every token except a row's last predicts the next."""
    max_length = batch.ids_BT.shape[1]
    rows = unpadded_rows(batch.lengths_B, max_length)
    has_next_BT = np.arange(max_length) < batch.lengths_B[:, None] - 1
    places = np.flatnonzero(has_next_BT)
    targets_M = batch.ids_BT.reshape(-1)[places + 1].astype(np.int64)
    return GPTInputs(
        ids_N=_flat(batch.ids_BT, rows),
        positions_N=rows.positions(),
        rows=rows,
        hidden_M=_unpadded_index(places, batch.lengths_B, max_length),
        targets_M=torch.from_numpy(targets_M),
        num_targets=torch.tensor(float(max(len(targets_M), 1))),
    )


def _flat(array_BT: np.ndarray, rows: RowLayout) -> Tensor:
    assert rows.places_N is not None
    return torch.from_numpy(array_BT.reshape(-1)[rows.places_N.numpy()].astype(np.int64))


def _unpadded_index(places: np.ndarray, lengths_B: np.ndarray, max_length: int) -> Tensor:
    """The index of positions b × T + t of the padded batch when rows are concatenated."""
    row_index, position = np.divmod(places.astype(np.int64), max_length)
    starts_B = np.concatenate([[0], np.cumsum(lengths_B)[:-1]])
    return torch.from_numpy(starts_B[row_index] + position)


class TextWindow(NamedTuple):
    """Tokens `start` to `end` of a text, of which `first` to `last` are used."""

    start: int
    end: int
    first: int
    last: int


def windows(num_tokens: int, size: int, overlap: int) -> list[TextWindow]:
    """Split a text into windows of at most `size` tokens that overlap by `overlap`.

    A token in two windows belongs to the one in which it is further from the edge.
    """
    if not 0 <= overlap < size:
        raise OptionError(f"overlap must be between 0 and {size - 1:,}, not {overlap:,}.")
    if num_tokens <= size:
        return [TextWindow(0, num_tokens, 0, num_tokens)]
    starts = [*range(0, num_tokens - size, size - overlap), num_tokens - size]
    borders = [0]
    for start, following in pairwise(starts):
        borders.append((start + size + following) // 2)
    borders.append(num_tokens)
    return [
        TextWindow(start, start + size, first, last)
        for start, first, last in zip(starts, borders[:-1], borders[1:], strict=True)
    ]


Row = TypeVar("Row")


def grouped(
    rows: Iterable[Row], size_of: Callable[[Row], int], most: int, *, is_padded: bool = False
) -> Iterator[list[Row]]:
    """Runs of rows with at most `most` tokens together, or one longer row alone.

    If rows are padded, they come in rising order of size, and each counts as the longest.
    """
    group: list[Row] = []
    total = 0
    for row in rows:
        size = size_of(row)
        total = (len(group) + 1) * size if is_padded else total + size
        if group and total > most:
            yield group
            group, total = [], size
        group.append(row)
    if group:
        yield group
