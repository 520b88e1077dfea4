"""What an AWD-LSTM learns, in the terms of the training loop: the next word of running text.

B rows, T positions, M predictions, K of them behind another position, E width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.examples.neighboring_words import asked, neighbors_of
from sememe.examples.word_rows import UNKNOWN_ID, WordRows
from sememe.networks.awd import AWDNetwork
from sememe.training.objective import NetworkObjective


class AWDBatch(NamedTuple):
    """A batch as tensors: rows side by side, what is to be predicted, and from which places."""

    ids_TB: Tensor
    places_M: Tensor
    targets_M: Tensor
    later_K: Tensor  # the places among them that have one before them


class NextWordObjective(NetworkObjective):
    """The loss of the next word, with the penalties of Merity et al. 2017b on what comes out."""

    counted_by: Mapping[str, str] = {"word_loss": "words"}

    def __init__(
        self, network: AWDNetwork, *, activation: float = 2.0, change: float = 1.0
    ) -> None:
        super().__init__(network)
        self.activation, self.change = activation, change

    def counts(self, batch: WordRows) -> dict[str, int]:
        """Words and marks of a batch, and how many are predicted."""
        return {"tokens": int(batch.lengths_B.sum()), "words": int(asked(batch, +1).sum())}

    def prepare(self, batch: WordRows) -> AWDBatch:
        """Lay rows side by side and find what to predict; rare words are the unknown one."""
        ids_BT = batch.ids_BT.astype(np.int64)
        ids_BT = np.where(ids_BT < self.network.config.vocab_size, ids_BT, UNKNOWN_ID)
        places_M, targets_M = neighbors_of(batch, +1, self.network.config.vocab_size)
        return AWDBatch(
            ids_TB=torch.from_numpy(np.ascontiguousarray(ids_BT.T)),
            places_M=torch.from_numpy(places_M),
            targets_M=torch.from_numpy(targets_M),
            later_K=torch.from_numpy(places_M[places_M >= len(ids_BT)]),
        )

    def forward(
        self, batch: AWDBatch, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""
        outputs = self.network(batch.ids_TB)
        hidden_ME = outputs.dropped_TBE.flatten(0, 1).index_select(0, batch.places_M)
        loss = self.network.score(hidden_ME, batch.targets_M).loss
        total = loss
        if self.training and self.activation:
            total = total + self.activation * hidden_ME.square().mean(1).sum()
        if self.training and self.change:
            total = total + self.change * self._changes(outputs.layers[-1], batch)
        return total / counts["words"], {"word_loss": loss.detach()}

    def _changes(self, last_TBE: Tensor, batch: AWDBatch) -> Tensor:
        """How much the outputs change from one position to the next, squared, summed."""
        last_NE, num_rows = last_TBE.flatten(0, 1), last_TBE.shape[1]
        before_KE = last_NE.index_select(0, batch.later_K - num_rows)
        return (last_NE.index_select(0, batch.later_K) - before_KE).square().mean(1).sum()
