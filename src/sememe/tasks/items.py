"""Labelled rows as a network sees them, and the batches made of them.

E items of a batch. An item is what gets one output: a sequence of ids, or several (a choice each,
both orders of a pair); a long row may become several items. The batch of a step is a function of
(seed, step), so that a run can be resumed at any step.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sememe.examples.randomness import stream_key
from sememe.examples.sequences import Sequence
from sememe.examples.shuffles import random_order

_ROWS, _BATCHES = 0x511, 0x512  # the purposes of streams of random numbers


@dataclass(frozen=True)
class Item:
    """What a network is shown at once, and what it shall say."""

    sequences: tuple[Sequence, ...]
    row_index: int  # of the row that it was made from, in the list that was encoded
    target: np.ndarray | None = None  # as the task's head takes it; None where it is not known
    weight: float = 1.0
    is_cut: bool = False  # whether some of its row did not fit
    extra: Any = field(default=None, compare=False)  # the task's own, for decoding

    @property
    def num_tokens(self) -> int:
        """Tokens of all its sequences."""
        return sum(len(sequence.ids_T) for sequence in self.sequences)


@dataclass(frozen=True)
class ItemBatch:
    """Items that are shown together."""

    items: Several[Item]

    def part(self, index: int, num_parts: int) -> ItemBatch:
        """Every `num_parts`-th item from `index` on; one that counts nothing where none is left."""
        own = self.items[index::num_parts]
        return ItemBatch(own if own else [replace(self.items[0], weight=0.0)])


class ItemBatches:
    """The batches of a training: each epoch its own random order, sorted by length in places."""

    def __init__(
        self, items: Several[Item], *, batch_size: int, seed: int, sort_batches: int = 1
    ) -> None:
        self.items, self.batch_size, self.seed = items, batch_size, seed
        self.sort_batches = sort_batches
        self._lengths = np.array([max(len(s.ids_T) for s in item.sequences) for item in items])
        self._planned: tuple[int, list[np.ndarray]] = (-1, [])

    @property
    def batches_per_epoch(self) -> int:
        """Batches of one pass; the last one may be small."""
        return -(-len(self.items) // self.batch_size)

    def num_steps(self, epochs: float) -> int:
        """Steps after which `epochs` passes are done."""
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
    """A hash of all that a training sees of its items."""
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        for ids_T, segments_T in item.sequences:
            digest.update(len(ids_T).to_bytes(8, "little"))
            digest.update(ids_T.astype(np.int32).tobytes())
            digest.update(segments_T.astype(np.int8).tobytes())
        digest.update(b"" if item.target is None else item.target.tobytes())
        digest.update(np.float64(item.weight).tobytes())
    return digest.hexdigest()
