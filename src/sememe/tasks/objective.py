"""An encoder with a head in the terms of the training loop, and its outputs for items.

E items, B sequences, N tokens, M of them with a next one in their sequence, D width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence as Several
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sememe.networks.casting import cast_at_once, trained_layers
from sememe.networks.encoders import inputs_of
from sememe.networks.grouping import grouped
from sememe.networks.heads import Head, Labelled
from sememe.tasks.items import Item, ItemBatch
from sememe.training.feeding import Part, fed, to_device
from sememe.training.objective import precision_of

_TOKENS_AT_ONCE = {"cuda": 65_536, "cpu": 4_096, "mps": 16_384}


class Prepared(NamedTuple):
    """A batch as tensors."""

    labelled: Labelled
    next_M: Tensor | None  # flat indices of the tokens that have a next one
    following_M: Tensor | None  # the ids of those next ones


class TaskObjective(nn.Module):
    """What an encoder and a head learn together, and perhaps the language model's lesson too."""

    precision = precision_of("encoder")

    def __init__(self, encoder: Any, head: Head, *, lm_weight: float = 0.0) -> None:
        super().__init__()
        self.encoder, self.head, self.lm_weight = encoder, head, lm_weight
        self.counted_by = {"task_loss": "predicted"}
        if lm_weight:
            self.counted_by["language_loss"] = "following"
        if head.takes == "tokens" and hasattr(encoder, "leave_pooler"):
            encoder.leave_pooler()
        has_short_way = head.takes == "sequences" and hasattr(encoder, "sequences_alone")
        self._needs_tokens = bool(lm_weight) or not has_short_way
        self._is_compiled = False
        self._layers = trained_layers(self)

    def compile(self, **options: Any) -> None:
        """Compile the encoder, in place."""
        self._is_compiled = True
        self.encoder.compile(**options)

    def counts(self, batch: ItemBatch) -> dict[str, Any]:
        """Tokens of a batch, what it predicts and, for a language model, tokens with a next one."""
        labelled = self._labelled(batch)
        lengths = labelled.inputs.lengths
        return {
            "tokens": sum(lengths),
            "predicted": self.head.count(labelled),
            "following": sum(lengths) - len(lengths),
        }

    def _labelled(self, batch: ItemBatch) -> Labelled:
        """The tensors of a batch; they are kept with it, for they are asked for twice."""
        kept = vars(batch)
        if "labelled" not in kept:
            kept["labelled"] = labelled_of(batch.items, self.head)
        return kept["labelled"]

    def prepare(self, batch: ItemBatch) -> Prepared:
        """Lay the sequences of the items end to end."""
        labelled = self._labelled(batch)
        if not self.lm_weight:
            return Prepared(labelled, None, None)
        ends = np.cumsum(labelled.inputs.lengths)
        next_M = np.delete(np.arange(ends[-1]), ends - 1)
        ids_N = labelled.inputs.ids_N
        return Prepared(labelled, torch.from_numpy(next_M), ids_N[torch.from_numpy(next_M + 1)])

    def forward(
        self, prepared: Prepared, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""
        if self._is_compiled or self.precision == torch.float32:
            return self._shares(prepared, counts)
        with cast_at_once(self._layers, self.precision):
            return self._shares(prepared, counts)

    def _shares(
        self, prepared: Prepared, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        labelled = prepared.labelled
        if self._needs_tokens:
            tokens_ND = self.encoder.tokens(labelled.inputs)
            outputs = self._said(tokens_ND, labelled)
        else:
            outputs = self.head(self.encoder.sequences_alone(labelled.inputs), labelled)
        sum_of_losses = self.head.loss(outputs, labelled)
        loss, figures = sum_of_losses / counts["predicted"], {"task_loss": sum_of_losses.detach()}
        if prepared.next_M is not None:
            assert prepared.following_M is not None
            logits_MV = self.encoder.network.next_logits(tokens_ND.index_select(0, prepared.next_M))
            language = self.lm_weight * nn.functional.cross_entropy(
                logits_MV.float(), prepared.following_M, reduction="sum"
            )
            loss = loss + language / counts["following"]
            figures["language_loss"] = language.detach()
        return loss, figures

    def outputs(self, labelled: Labelled) -> Tensor:
        """What the head says of a batch."""
        # Not for some tokens alone: products of few rows differ in their last bits with the number
        # of threads, and a task that was loaded elsewhere should say what it said before.
        return self._said(self.encoder.tokens(labelled.inputs), labelled)

    def _said(self, tokens_ND: Tensor, labelled: Labelled) -> Tensor:
        if self.head.takes == "tokens":
            return self.head(tokens_ND, labelled)
        return self.head(self.encoder.sequences(tokens_ND, labelled.inputs), labelled)


def labelled_of(items: Several[Item], head: Head) -> Labelled:
    """Items as one batch of tensors, on the host."""
    sequences = [sequence for item in items for sequence in item.sequences]
    counts_E = [len(item.sequences) for item in items]
    targets = [item.target for item in items if item.target is not None]
    return Labelled(
        inputs=inputs_of(sequences),
        items_B=torch.from_numpy(np.repeat(np.arange(len(items)), counts_E)),
        num_items=len(items),
        targets=head.collate(targets) if len(targets) == len(items) else None,
        weights_E=torch.tensor([item.weight for item in items], dtype=torch.float32),
    )


class Said(NamedTuple):
    """What the head says of each item, and the mean loss, NaN where a target is not known."""

    outputs: list[np.ndarray]
    loss: float


@torch.no_grad()
def say(objective: TaskObjective, items: Several[Item], device: torch.device) -> Said:
    """Ask the head about each item, dropout off; items of like length go together."""

    def size_of(index: int) -> int:
        return items[index].num_tokens

    order = sorted(range(len(items)), key=size_of)
    groups = list(grouped(order, size_of, _TOKENS_AT_ONCE[device.type]))
    found: list[Any] = [None] * len(items)
    loss, count, was_training = torch.zeros((), device=device), 0.0, objective.training
    objective.eval()

    def make(number: int) -> list[Part]:
        return [Part(labelled_of([items[i] for i in groups[number]], objective.head), {})]

    try:
        with fed(make, range(len(groups)), device) as batches:
            for group, (part,) in zip(groups, batches, strict=True):
                labelled = to_device(part.prepared, device)
                outputs = objective.outputs(labelled)
                if labelled.targets is not None:
                    loss += objective.head.loss(outputs, labelled)
                    count += objective.head.count(part.prepared)
                own = objective.head.split(outputs, labelled)
                for index, output in zip(group, own, strict=True):
                    found[index] = output
    finally:
        objective.train(was_training)
    return Said(found, float(loss) / count if count else math.nan)
