"""What BERT and GPT learn, in the terms of the training loop: batches in, shares of a loss out.

B rows, N tokens, M of them to predict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sememe.examples.batches import Batch
from sememe.networks.bert import BERTNetwork
from sememe.networks.compilation import compile_parts
from sememe.networks.gpt import GPTNetwork
from sememe.networks.inputs import BERTInputs, GPTInputs, bert_inputs, gpt_inputs
from sememe.training.objective import NetworkObjective


class _CompiledObjective(NetworkObjective):
    def compile(self, **options: Any) -> None:
        """Compile the network part by part, in place."""
        compile_parts(self.network, **options)


class MaskedObjective(_CompiledObjective):
    """BERT's two lessons: the hidden tokens and, with pairs, whether B follows A."""

    def __init__(self, network: BERTNetwork, *, has_pairs: bool) -> None:
        super().__init__(network)
        self.counted_by = {"masked_loss": "masked", "masked_accuracy": "masked"}
        if has_pairs:
            self.counted_by |= {"next_loss": "pairs", "next_accuracy": "pairs"}
        else:  # what no loss reaches must not be waited for by other processes
            for part in (network.pooler, network.next_head):
                part.requires_grad_(False)
            network.untrained = network.untrained | {"pooler", "next head"}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Tokens, hidden tokens and pairs of a batch."""
        assert batch.targets_N is not None
        return {
            "tokens": batch.num_tokens,
            "masked": len(batch.targets_N),
            "pairs": len(batch.lengths_B),
        }

    def prepare(self, batch: Batch) -> BERTInputs:
        """Lay the rows of a batch end to end."""
        return bert_inputs(batch)

    def forward(
        self, inputs: BERTInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""
        inputs = inputs._replace(
            num_targets=counts["masked"], num_pairs=counts.get("pairs", inputs.num_pairs)
        )
        loss, sums = self.network.loss(inputs)
        figures = {"masked_loss": sums["masked_loss"], "masked_accuracy": sums["masked_right"]}
        if "next_loss" in self.counted_by:
            figures |= {"next_loss": sums["next_loss"], "next_accuracy": sums["next_right"]}
        return loss, figures


class CausalObjective(_CompiledObjective):
    """GPT's lesson: the next token."""

    def __init__(self, network: GPTNetwork) -> None:
        super().__init__(network)
        self.counted_by = {"token_loss": "predicted", "token_accuracy": "predicted"}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Tokens of a batch, and those of them that have a next one."""
        num_rows = int((batch.lengths_B > 0).sum())
        return {"tokens": batch.num_tokens, "predicted": batch.num_tokens - num_rows}

    def prepare(self, batch: Batch) -> GPTInputs:
        """Lay the rows of a batch end to end."""
        return gpt_inputs(batch)

    def forward(
        self, inputs: GPTInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""
        loss, sums = self.network.loss(inputs._replace(num_targets=counts["predicted"]))
        return loss, {"token_loss": sums["token_loss"], "token_accuracy": sums["token_right"]}
