"""What a network is given at one step, and the shape of whatever gives it.

B rows, T positions, N hidden tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

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


class BatchSource(Protocol):
    """Gives every batch of a training by its step alone, so that resume needs nothing else."""

    @property
    def batches_per_epoch(self) -> int:
        """Batches of one pass over the text."""

    def num_steps(self, epochs: float) -> int:
        """Steps after which `epochs` passes over the text are done."""

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""
