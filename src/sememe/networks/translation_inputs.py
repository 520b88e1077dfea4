"""Pairs of texts as tensors: rows laid end to end, without their padding.

B rows, T positions, N tokens. Made on the host by the thread that prepares batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.examples.pair_batches import PairBatch
from sememe.networks.rows import Rows, unpadded_rows
from sememe.training.feeding import mapped


class Text(NamedTuple):
    """Texts laid end to end."""

    ids_N: Tensor
    positions_N: Tensor
    rows: Rows
    lengths: tuple[int, ...]  # of the rows, on the host

    def to(self, device: torch.device) -> Text:
        """The same texts on a device."""
        return mapped(self, lambda tensor: tensor.to(device))


class TranslationInputs(NamedTuple):
    """A batch of pairs: the decoder reads the target behind a start and predicts up to its end."""

    source: Text
    target: Text
    targets_N: Tensor
    weight: float  # 0 where the batch is a mere stand-in


def text_of(rows: Sequence[np.ndarray]) -> Text:
    """Lay rows of ids end to end."""
    lengths_B = np.array([len(row) for row in rows], np.int64)
    layout = unpadded_rows(lengths_B, int(lengths_B.max()))
    assert layout.places_N is not None
    ids_N = torch.from_numpy(np.concatenate(rows).astype(np.int64))
    positions_N = layout.places_N % layout.max_length
    return Text(ids_N, positions_N, layout, tuple(lengths_B.tolist()))


def translation_inputs(batch: PairBatch) -> TranslationInputs:
    """Lay the sources and targets of a batch end to end."""
    return TranslationInputs(
        source=text_of(batch.sources),
        # All but the last token are read; each of them predicts the next.
        target=text_of([row[:-1] for row in batch.targets]),
        targets_N=torch.from_numpy(
            np.concatenate([row[1:] for row in batch.targets]).astype(np.int64)
        ),
        weight=batch.weight,
    )
