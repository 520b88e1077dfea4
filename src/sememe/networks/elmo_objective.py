"""What ELMo learns, in the terms of the training loop: the next word, and the word before.

M predictions of a direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.examples.neighboring_words import asked, neighbors_of
from sememe.examples.word_rows import WordRows
from sememe.networks.elmo import ELMoInputs, ELMoNetwork, rows_of_words
from sememe.networks.sampled_softmax import Sampler, Samples
from sememe.networks.word_forms import Forms
from sememe.training.objective import NetworkObjective


class Lesson(NamedTuple):
    """What one direction is to predict: from which places, and which words."""

    places_M: Tensor
    targets_M: Tensor


class ELMoBatch(NamedTuple):
    """A batch as tensors."""

    inputs: ELMoInputs
    forward: Lesson
    backward: Lesson
    samples: Samples | None


class BidirectionalObjective(NetworkObjective):
    """Both directions' losses, added (Peters et al. 2018, 3.1)."""

    counted_by: Mapping[str, str] = {
        "forward_loss": "forward", "backward_loss": "backward",
    }  # fmt: skip

    def __init__(self, network: ELMoNetwork, forms: Forms, sampler: Sampler | None = None) -> None:
        """With a sampler the softmax of training is taken over samples."""
        super().__init__(network)
        self.forms, self.sampler = forms, sampler

    def counts(self, batch: WordRows) -> dict[str, int]:
        """Words and marks of a batch, and what each direction predicts."""
        return {
            "tokens": int(batch.lengths_B.sum()),
            "forward": int(asked(batch, +1).sum()),
            "backward": int(asked(batch, -1).sum()),
        }

    def prepare(self, batch: WordRows) -> ELMoBatch:
        """Find the distinct words of a batch and what is to be predicted."""
        distinct_U, index = np.unique(batch.ids_BT, return_inverse=True)
        inputs = rows_of_words(
            index.reshape(batch.ids_BT.shape), batch.lengths_B, self.forms.of_ids(distinct_U)
        )
        samples = None if self.sampler is None else self.sampler.draw(batch.key)
        return ELMoBatch(inputs, self._lesson(batch, +1), self._lesson(batch, -1), samples)

    def _lesson(self, batch: WordRows, step: int) -> Lesson:
        """What the direction that goes by `step` predicts."""
        found = neighbors_of(batch, step, self.network.config.vocab_size)
        return Lesson(*map(torch.from_numpy, found))

    def forward(
        self, batch: ELMoBatch, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""
        read = self.network.read(batch.inputs)
        samples = batch.samples if self.training else None
        forward = self.network.loss(read.forward[-1], *batch.forward, samples)
        backward = self.network.loss(read.backward[-1], *batch.backward, samples)
        loss = forward / counts["forward"] + backward / counts["backward"]
        return loss, {"forward_loss": forward.detach(), "backward_loss": backward.detach()}
