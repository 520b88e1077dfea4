"""Batches of labelled rows, and the loss and outputs of an encoder with a head, on any device.

An item gets one output. It has one sequence of ids, or several (one per choice, or both orders of a
pair); a long row may become several items. The batch of a step is a function of (seed, step), so
that a run can be resumed at any step.

E items, B sequences, N tokens, M of them with a next token in their sequence, D width.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence as Several
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sememe.contract import Truncation
from sememe.examples.batches import TokenSequence
from sememe.examples.labelled.rows import TextRow
from sememe.nn.encoders import Coder, Framed, inputs_of
from sememe.nn.heads import Head, Labelled
from sememe.nn.layers import cast_at_once, trained_layers
from sememe.nn.rows import grouped
from sememe.randomness import random_order, stream_key
from sememe.tasks.config import FinetuneConfig
from sememe.training.device import (
    TYPES,
    BatchPart,
    choose_device,
    choose_precision,
    fed,
    reproducible,
    to_device,
)
from sememe.training.objective import precision_of

_TOKENS_AT_ONCE = {"cuda": 65_536, "cpu": 4_096, "mps": 16_384}
_ROWS, _BATCHES = 0x511, 0x512  # purposes of random streams


# ---- items and their batches ----------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """One input of the network, and its target."""

    sequences: tuple[TokenSequence, ...]
    row_index: int  # of its row, in the list that was encoded
    target: np.ndarray | None = None  # in the form of the task's head; None if unknown
    weight: float = 1.0
    cut: Truncation | None = None  # of the longest sequence of its row that was truncated
    extra: Any = field(default=None, compare=False)  # for decoding, specific to the task

    @property
    def num_tokens(self) -> int:
        """Tokens of all its sequences."""
        return sum(len(sequence.ids_T) for sequence in self.sequences)


class Encoded(NamedTuple):
    """Rows with their items."""

    rows: Several[Any]
    items: Several[Item]


@dataclass(frozen=True)
class ItemBatch:
    """Items that are processed together."""

    items: Several[Item]

    def part(self, index: int, num_parts: int) -> ItemBatch:
        """Every `num_parts`-th item from `index` on; an item of weight 0 if none is left."""
        own = self.items[index::num_parts]
        return ItemBatch(own if own else [replace(self.items[0], weight=0.0)])


class ItemBatches:
    """Training batches: each epoch in its own random order, sorted by length within groups."""

    def __init__(
        self, items: Several[Item], *, batch_size: int, seed: int, sort_batches: int = 1
    ) -> None:
        self.items, self.batch_size, self.seed = items, batch_size, seed
        self.sort_batches = sort_batches
        self._lengths = np.array([max(len(s.ids_T) for s in item.sequences) for item in items])
        self._planned: tuple[int, list[np.ndarray]] = (-1, [])

    @property
    def batches_per_epoch(self) -> int:
        """Batches per epoch; the last one may be small."""
        return -(-len(self.items) // self.batch_size)

    def num_steps(self, epochs: float) -> int:
        """Steps of `epochs` epochs."""
        return math.ceil(epochs * self.batches_per_epoch)

    def batch(self, step: int) -> ItemBatch:
        """The batch of a step."""
        return ItemBatch([self.items[index] for index in self.order(step)])

    def order(self, step: int) -> np.ndarray:
        """The indices of the items of a step."""
        epoch, number = divmod(step, self.batches_per_epoch)
        if self._planned[0] != epoch:
            self._planned = epoch, self._plan(epoch)
        return self._planned[1][number]

    def _plan(self, epoch: int) -> list[np.ndarray]:
        order = random_order(len(self.items), stream_key(self.seed, _ROWS, epoch))
        if self.sort_batches == 1:
            return np.split(order, range(self.batch_size, len(order), self.batch_size))
        batches: list[np.ndarray] = []
        size = self.sort_batches * self.batch_size
        for first in range(0, len(order), size):
            block = order[first : first + size]
            block = block[np.argsort(self._lengths[block], kind="stable")]
            batches += np.split(block, range(self.batch_size, len(block), self.batch_size))
        shuffled = random_order(len(batches), stream_key(self.seed, _BATCHES, epoch))
        return [batches[index] for index in shuffled]


def fingerprint(items: Several[Item]) -> str:
    """A hash of all items of a training."""
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        for ids_T, segments_T in item.sequences:
            digest.update(len(ids_T).to_bytes(8, "little"))
            digest.update(ids_T.astype(np.int32).tobytes())
            digest.update(segments_T.astype(np.int8).tobytes())
        digest.update(b"" if item.target is None else item.target.tobytes())
        digest.update(np.float64(item.weight).tobytes())
    return digest.hexdigest()


def longest_cut(framed: Several[Framed]) -> Truncation | None:
    """What was truncated from the longest of several sequences."""
    return max((one.cut for one in framed if one.cut), default=None)


def row_cuts(num_rows: int, items: Iterable[Item]) -> list[Truncation | None]:
    """What was truncated from each row, by its items."""
    found: list[Truncation | None] = [None] * num_rows
    for item in items:
        found[item.row_index] = item.cut or found[item.row_index]
    return found


Target = Callable[[TextRow], np.ndarray | None]


def encode_texts(
    coder: Coder, rows: Several[TextRow], target: Target, *, both_orders: bool = False
) -> list[Item]:
    """One item per row: its text, or its two texts as one sequence or in both orders."""
    firsts = coder.encode([row.text for row in rows])
    seconds = iter(coder.encode([row.second for row in rows if row.second is not None]))
    items = []
    for index, (row, first) in enumerate(zip(rows, firsts, strict=True)):
        if row.second is None:
            framed = [coder.frame(first.ids)]
        else:
            second = next(seconds)
            framed = [coder.frame(first.ids, second.ids)]
            if both_orders:
                framed.append(coder.frame(second.ids, first.ids))
        items.append(
            Item(
                tuple(one.sequence for one in framed), index, target(row),
                cut=longest_cut(framed),
            )
        )  # fmt: skip
    return items


# ---- learning and evaluating --------------------------------------------------------------------


class PreparedItems(NamedTuple):
    """A batch as tensors."""

    labelled: Labelled
    next_M: Tensor | None  # flat indices of the tokens that have a next token
    following_M: Tensor | None  # the ids of those next tokens


class TaskObjective(nn.Module):
    """The loss of an encoder with a head, plus an optional language-model loss."""

    precision = precision_of("encoder")

    def __init__(self, encoder: Any, head: Head, *, lm_weight: float = 0.0) -> None:
        super().__init__()
        self.encoder, self.head, self.lm_weight = encoder, head, lm_weight
        self.counted_by = {"task_loss": "predicted"}
        if lm_weight:
            # The loss adds up the losses; the cross-entropy compares with that of pre-training.
            self.counted_by["weighted_language_loss"] = "following"
            self.counted_by["language_cross_entropy"] = "following"
        if head.takes == "tokens":
            encoder.leave_pooler()
        self._needs_tokens = bool(lm_weight) or head.takes == "tokens"
        self._is_compiled = False
        self._layers = trained_layers(self)

    def compile(self, **options: Any) -> None:
        """Compile the encoder, in place."""
        self._is_compiled = True
        self.encoder.compile(**options)

    def counts(self, batch: ItemBatch) -> dict[str, Any]:
        """Counts of a batch: tokens, predictions and, for a language model, next tokens."""
        labelled = self._labelled(batch)
        lengths = labelled.inputs.lengths
        return {
            "tokens": sum(lengths),
            "predicted": self.head.count(labelled),
            "following": sum(lengths) - len(lengths),
        }

    def _labelled(self, batch: ItemBatch) -> Labelled:
        """The tensors of a batch, cached with it because they are needed twice."""
        kept = vars(batch)
        if "labelled" not in kept:
            kept["labelled"] = labelled_of(batch.items, self.head)
        return kept["labelled"]

    def prepare(self, batch: ItemBatch) -> PreparedItems:
        """Concatenate the sequences of the items."""
        labelled = self._labelled(batch)
        if not self.lm_weight:
            return PreparedItems(labelled, None, None)
        ends = np.cumsum(labelled.inputs.lengths)
        next_M = np.delete(np.arange(ends[-1]), ends - 1)
        ids_N = labelled.inputs.ids_N
        return PreparedItems(
            labelled, torch.from_numpy(next_M), ids_N[torch.from_numpy(next_M + 1)]
        )

    def forward(
        self, prepared: PreparedItems, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, divided by the counts of the step, and the sums of its metrics."""
        if self._is_compiled or self.precision == torch.float32:
            return self._shares(prepared, counts)
        with cast_at_once(self._layers, self.precision):
            return self._shares(prepared, counts)

    def _shares(
        self, prepared: PreparedItems, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        labelled = prepared.labelled
        if self._needs_tokens:
            tokens_ND = self.encoder.tokens(labelled.inputs)
            outputs = self._said(tokens_ND, labelled)
        else:
            outputs = self.head(self.encoder.sequences_alone(labelled.inputs), labelled)
        sum_of_losses = self.head.loss(outputs, labelled)
        loss, metrics = sum_of_losses / counts["predicted"], {"task_loss": sum_of_losses.detach()}
        if prepared.next_M is not None:
            assert prepared.following_M is not None
            logits_MV = self.encoder.network.next_logits(tokens_ND.index_select(0, prepared.next_M))
            language = nn.functional.cross_entropy(
                logits_MV.float(), prepared.following_M, reduction="sum"
            )
            weighted = self.lm_weight * language
            loss = loss + weighted / counts["following"]
            metrics["weighted_language_loss"] = weighted.detach()
            metrics["language_cross_entropy"] = language.detach()
        return loss, metrics

    def outputs(self, labelled: Labelled) -> Tensor:
        """The head's outputs for a batch."""
        # Computed for all tokens: products of few rows differ in their last bits with the number of
        # threads, and a task loaded elsewhere should predict what it predicted before.
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
    """The head's output for each item, and the mean loss, NaN if a target is unknown."""

    outputs: list[np.ndarray]
    loss: float


@torch.no_grad()
def say(objective: TaskObjective, items: Several[Item], device: torch.device) -> Said:
    """Run the head on each item without dropout; items of similar length share a batch."""

    def size_of(index: int) -> int:
        return items[index].num_tokens

    order = sorted(range(len(items)), key=size_of)
    groups = list(grouped(order, size_of, _TOKENS_AT_ONCE[device.type]))
    found: list[Any] = [None] * len(items)
    loss, count, was_training = torch.zeros((), device=device), 0.0, objective.training
    objective.eval()

    def make(number: int) -> list[BatchPart]:
        return [BatchPart(labelled_of([items[i] for i in groups[number]], objective.head), {})]

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


def run_items(
    objective: TaskObjective, items: Several[Item], config: FinetuneConfig
) -> list[np.ndarray]:
    """The head's output for each item; the network stays on the device for the next call."""
    device = choose_device(config.device)
    precision = choose_precision(config.precision, device)
    objective.to(device)
    objective.precision = TYPES[precision]
    with reproducible(device, precision, config.num_workers), torch.inference_mode():
        return say(objective, items, device).outputs
