"""What a network is given at one step, and the shape of whatever gives it.

B rows, T positions, N hidden tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

Split = Literal["train", "validation"]


@dataclass(frozen=True)
class Batch:
    """Some rows of ids, each `lengths_B` long and filled up with padding.

    A masked batch has the tokens to predict: their places in the flattened rows and their true ids.
    A batch of running text has none, for each token there predicts the next one of its row.
    """

    ids_BT: np.ndarray  # int32
    lengths_B: np.ndarray  # int32
    num_tokens: int  # of all rows, without padding
    segments_BT: np.ndarray | None = None  # int8; 0 for [CLS] A [SEP], 1 for B [SEP]
    hidden_N: np.ndarray | None = None  # int64, ascending
    targets_N: np.ndarray | None = None  # int32
    is_next_B: np.ndarray | None = None  # int8; 1 where B follows A in the text

    def part(self, index: int, num_parts: int) -> Batch:
        """Every `num_parts`-th row from row `index` on: the share of one of several processes."""
        own = slice(index, None, num_parts)
        hidden_N = targets_N = None
        if self.hidden_N is not None and self.targets_N is not None:
            width = self.ids_BT.shape[1]
            rows_N, places_N = np.divmod(self.hidden_N, width)
            is_own_N = rows_N % num_parts == index
            hidden_N = (rows_N // num_parts * width + places_N)[is_own_N]
            targets_N = self.targets_N[is_own_N]
        return Batch(
            ids_BT=self.ids_BT[own],
            lengths_B=self.lengths_B[own],
            num_tokens=int(self.lengths_B[own].sum()),
            segments_BT=None if self.segments_BT is None else self.segments_BT[own],
            hidden_N=hidden_N,
            targets_N=targets_N,
            is_next_B=None if self.is_next_B is None else self.is_next_B[own],
        )


class BatchSource(Protocol):
    """Gives every batch of a training by its step alone, so that resume needs nothing else."""

    @property
    def batches_per_epoch(self) -> int:
        """Batches of one pass over the text."""

    def num_steps(self, epochs: float) -> int:
        """Steps after which `epochs` passes over the text are done."""

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""


def join_batches(parts: Sequence[Batch], pad_id: int) -> Batch:
    """Put the rows of several batches below each other, filling up the narrower ones."""
    width = max(part.ids_BT.shape[1] for part in parts)
    first_rows = np.cumsum([0, *(len(part.ids_BT) for part in parts)])

    def moved(part: Batch, first_row: int) -> np.ndarray:
        rows_N, places_N = np.divmod(np.asarray(part.hidden_N), part.ids_BT.shape[1])
        return (rows_N + first_row) * width + places_N

    is_masked = parts[0].hidden_N is not None
    return Batch(
        ids_BT=np.concatenate([_widened(part.ids_BT, width, pad_id) for part in parts]),
        lengths_B=np.concatenate([part.lengths_B for part in parts]),
        num_tokens=sum(part.num_tokens for part in parts),
        segments_BT=_joined([_widened(part.segments_BT, width, 0) for part in parts]),
        hidden_N=_joined(list(map(moved, parts, first_rows)) if is_masked else [None]),
        targets_N=_joined([part.targets_N for part in parts]),
        is_next_B=_joined([part.is_next_B for part in parts]),
    )


def _widened(rows_BT: np.ndarray | None, width: int, filling: int) -> Any:
    if rows_BT is None:
        return None
    missing = width - rows_BT.shape[1]
    return np.pad(rows_BT, ((0, 0), (0, missing)), constant_values=filling) if missing else rows_BT


def _joined(arrays: list[Any]) -> np.ndarray | None:
    return None if arrays[0] is None else np.concatenate(arrays)
