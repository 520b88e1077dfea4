"""Heads: vectors of tokens or of sequences in; classes, scores, choices, tags or spans out.

E items, B sequences of them (one each, or one per choice or order), N tokens of all sequences, C
classes, D width. A head has its own loss, so that the loop does not depend on the task.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence as Several
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.examples.tagging import IGNORE_ID
from sememe.nn.encoders import Inputs
from sememe.nn.layers import Linear, drop_out


class Labelled(NamedTuple):
    """A batch of items: their concatenated sequences, and their targets."""

    inputs: Inputs
    items_B: Tensor  # int64: the item that each sequence belongs to, ascending
    num_items: int
    targets: Tensor | None  # in the form of the head's `collate`; None if unknown
    weights_E: Tensor  # the weight of each item in the loss


class Head(nn.Module, ABC):
    """The base of the heads."""

    takes: ClassVar[Literal["sequences", "tokens"]] = "sequences"
    # Whether other programs' heads compute the same: none of them adds both orders of a pair.
    is_plain = True

    def __init__(
        self, width: int, num_outputs: int, *, dropout: float = 0.0, has_bias: bool = True
    ) -> None:
        super().__init__()
        self.num_outputs, self.dropout = num_outputs, dropout
        self.linear = Linear(width, num_outputs, bias=has_bias)

    def initialise(self, std: float, generator: torch.Generator) -> None:
        """Initialize the weights."""
        nn.init.normal_(self.linear.weight, std=std, generator=generator)
        if self.linear.bias is not None:
            nn.init.zeros_(self.linear.bias)

    def mapped(self, vectors_D: Tensor) -> Tensor:
        """Map vectors to outputs in float32, with dropout in training."""
        kept_D = drop_out(vectors_D, self.dropout if self.training else 0.0)
        return self.linear(kept_D).float()

    def collate(self, targets: Several[np.ndarray]) -> Tensor:
        """Put the targets of items together."""
        return torch.from_numpy(np.stack(targets))

    def count(self, batch: Labelled) -> float:
        """The number of predictions of a batch, by which the sum of losses is divided.

        Not the sum of their weights: a batch with only common classes would count as much as one
        with a rare class.
        """
        return float((batch.weights_E > 0).sum())

    @abstractmethod
    def forward(self, vectors_D: Tensor, batch: Labelled) -> Tensor:
        """The outputs of a batch from the vectors of its tokens or sequences."""

    @abstractmethod
    def loss(self, outputs: Tensor, batch: Labelled) -> Tensor:
        """The weighted sum of the losses of a batch."""

    def split(self, outputs: Tensor, batch: Labelled) -> list[np.ndarray]:
        """The outputs of each item: scores before any softmax."""
        return list(outputs.cpu().numpy())


class ClassHead(Head):
    """One of C classes for an item, (E, C); the vectors of its sequences are added first."""

    def forward(self, vectors_BD: Tensor, batch: Labelled) -> Tensor:
        """The scores of the classes, (E, C)."""
        if len(vectors_BD) != batch.num_items:  # both orders of a pair (Radford et al. 2018, 3.3)
            self.is_plain = False
            empty_ED = vectors_BD.new_zeros(batch.num_items, vectors_BD.shape[1])
            vectors_BD = empty_ED.index_add(0, batch.items_B, vectors_BD)
        return self.mapped(vectors_BD)

    def loss(self, outputs_EC: Tensor, batch: Labelled) -> Tensor:
        """The cross-entropy (nats)."""
        losses_E = functional.cross_entropy(outputs_EC, _targets(batch), reduction="none")
        return (losses_E * batch.weights_E).sum()


class LabelSetHead(ClassHead):
    """Any number of C labels for an item, (E, C); a target has their ids and weights."""

    def collate(self, targets: Several[np.ndarray]) -> Tensor:
        """The truth and the weight of every label, (E, 2, C)."""
        found = np.zeros((len(targets), 2, self.num_outputs), np.float32)
        found[:, 1] = 1
        for own, target in zip(found, targets, strict=True):
            ids = target[:, 0].astype(np.int64)
            own[0, ids], own[1, ids] = 1, target[:, 1]
        return torch.from_numpy(found)

    def loss(self, outputs_EC: Tensor, batch: Labelled) -> Tensor:
        """The binary cross-entropy (nats), the mean over the labels."""
        truths_EC, weights_EC = _targets(batch).unbind(1)
        losses_EC = functional.binary_cross_entropy_with_logits(
            outputs_EC, truths_EC, weights_EC, reduction="none"
        )
        return (losses_EC.mean(1) * batch.weights_E).sum()


class ScoreHead(ClassHead):
    """One score per item, (E, 1); the loss is the squared error."""

    def loss(self, outputs_E1: Tensor, batch: Labelled) -> Tensor:
        """The squared error."""
        errors_E = outputs_E1.squeeze(1) - _targets(batch)
        return (errors_E.square() * batch.weights_E).sum()


class ChoiceHead(Head):
    """One score per sequence of an item, (B,): the right choice should have the highest."""

    def forward(self, vectors_BD: Tensor, batch: Labelled) -> Tensor:
        """The scores of all choices, (B,)."""
        return self.mapped(vectors_BD).squeeze(1)

    def loss(self, outputs_B: Tensor, batch: Labelled) -> Tensor:
        """The cross-entropy (nats) over the choices of each item, whose number may vary."""
        items_B = batch.items_B
        empty_E = outputs_B.new_full((batch.num_items,), float("-inf"))
        highest_E = empty_E.scatter_reduce(0, items_B, outputs_B.detach(), "amax")
        shares_B = (outputs_B - highest_E.index_select(0, items_B)).exp()
        sums_E = torch.zeros_like(highest_E).index_add(0, items_B, shares_B)
        right_E = outputs_B.index_select(0, self._first_of(batch) + _targets(batch))
        return ((sums_E.log() + highest_E - right_E) * batch.weights_E).sum()

    def _first_of(self, batch: Labelled) -> Tensor:
        numbers_E = torch.arange(batch.num_items, device=batch.items_B.device)
        return torch.searchsorted(batch.items_B, numbers_E)

    def split(self, outputs_B: Tensor, batch: Labelled) -> list[np.ndarray]:
        """The scores of the choices of each item."""
        firsts = self._first_of(batch).cpu().numpy()
        return np.split(outputs_B.cpu().numpy(), firsts[1:])


class EachTokenHead(Head):
    """C scores per token, (N, C); an item is one sequence."""

    takes = "tokens"

    def forward(self, vectors_ND: Tensor, batch: Labelled) -> Tensor:
        """The scores of each token, (N, C)."""
        return self.mapped(vectors_ND)

    def split(self, outputs_NC: Tensor, batch: Labelled) -> list[np.ndarray]:
        """The scores of the tokens of each item, (T, C)."""
        ends = np.cumsum(batch.inputs.lengths)
        return np.split(outputs_NC.cpu().numpy(), ends[:-1])


class TokenHead(EachTokenHead):
    """One of C classes for each token, (N, C); tokens of class IGNORE_ID are ignored."""

    def collate(self, targets: Several[np.ndarray]) -> Tensor:
        """Concatenate the classes of tokens."""
        return torch.from_numpy(np.concatenate(targets).astype(np.int64))

    def count(self, batch: Labelled) -> float:
        """How many tokens have a target."""
        return float((self._weights(batch) > 0).sum())

    def loss(self, outputs_NC: Tensor, batch: Labelled) -> Tensor:
        """The cross-entropy (nats) of the tokens with a target."""
        losses_N = functional.cross_entropy(
            outputs_NC, _targets(batch), ignore_index=IGNORE_ID, reduction="none"
        )
        return (losses_N * self._weights(batch)).sum()

    def _weights(self, batch: Labelled) -> Tensor:
        targets_N, starts = _targets(batch), batch.inputs.rows.starts
        assert starts is not None
        weights_N = torch.repeat_interleave(
            batch.weights_E, (starts[1:] - starts[:-1]).long(), output_size=len(targets_N)
        )
        return weights_N * (targets_N != IGNORE_ID)


class SpanHead(EachTokenHead):
    """Two scores per token, (N, 2): an answer starts here, an answer ends here.

    The target of an item is the index of the first and of the last token.
    """

    def loss(self, outputs_N2: Tensor, batch: Labelled) -> Tensor:
        """The mean of two cross-entropies (nats) over the positions of each sequence."""
        rows, targets_B2 = batch.inputs.rows, _targets(batch)
        places_BT2 = rows.padded(outputs_N2)
        if rows.is_token_BT is not None:
            places_BT2 = places_BT2.masked_fill(~rows.is_token_BT[..., None], float("-inf"))
        losses_B2 = functional.cross_entropy(places_BT2, targets_B2, reduction="none")
        return (losses_B2.mean(1) * batch.weights_E).sum()


def _targets(batch: Labelled) -> Tensor:
    assert batch.targets is not None
    return batch.targets
