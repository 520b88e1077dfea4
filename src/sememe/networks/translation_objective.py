"""What a model that translates learns, in the terms of the training loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sememe.examples.pair_batches import PairBatch
from sememe.networks.casting import cast_at_once, trained_layers
from sememe.networks.translation_inputs import TranslationInputs, translation_inputs
from sememe.training.objective import NetworkObjective


class TranslationObjective(NetworkObjective):
    """The next token of the target, given the source and the true tokens before it."""

    def __init__(self, network: Any, *, smoothing: float) -> None:
        super().__init__(network)
        self.smoothing = smoothing
        # The figures are those without smoothing, so that a perplexity can be told from them.
        self.counted_by = {"token_loss": "predicted", "token_accuracy": "predicted"}
        self._is_compiled = False
        self._layers = trained_layers(network) if network.casts_weights else []

    def compile(self, **options: Any) -> None:
        """Compile the network part by part, in place."""
        self._is_compiled = True
        self.network.compile(**options)

    def counts(self, batch: PairBatch) -> dict[str, int]:
        """Tokens of a batch, and those of them to predict; none of a mere stand-in."""
        if not batch.weight:
            return {"tokens": 0, "predicted": 0}
        return {"tokens": batch.num_tokens, "predicted": batch.num_targets}

    def prepare(self, batch: PairBatch) -> TranslationInputs:
        """Lay the texts of a batch end to end."""
        return translation_inputs(batch)

    def forward(
        self, inputs: TranslationInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""
        if self._is_compiled or self.precision == torch.float32 or not self._layers:
            loss, score = self.network.loss(inputs, self.smoothing)
        else:
            with cast_at_once(self._layers, self.precision):
                loss, score = self.network.loss(inputs, self.smoothing)
        figures = {
            "token_loss": inputs.weight * score.loss.detach(),
            "token_accuracy": inputs.weight * score.num_right,
        }
        return inputs.weight * loss / counts["predicted"], figures
