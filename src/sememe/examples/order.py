"""The endless sequence of examples: epoch after epoch, each in a random order of its own.

An epoch's examples are a function of (seed, epoch), so any part of the sequence can be had without
what comes before it. Memory stays bounded: documents are shuffled first and planned in blocks,
each block a random sample of the text, and the examples of one block are shuffled.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from typing import NamedTuple, Protocol

import numpy as np

from sememe.compiled import kernel
from sememe.examples.permutation import permute
from sememe.examples.randomness import fast_number, stream_key

# What a stream of random numbers is for; the second number of its key.
DOCUMENTS, PAIRS, EXAMPLES, MASKS, BATCHES, ROWS, SOURCES = range(101, 108)
_BLOCKS_KEPT = 3


class Examples(NamedTuple):
    """Some examples: where A and B lie in the store, whether B follows A, the key of its masks."""

    spans_N4: np.ndarray  # int64
    is_next_N: np.ndarray  # int8
    keys_N: np.ndarray  # uint64

    @property
    def sizes(self) -> np.ndarray:
        """Tokens of text in each."""
        spans = self.spans_N4
        return spans[:, 1] - spans[:, 0] + spans[:, 3] - spans[:, 2]

    def chosen(self, indices: np.ndarray | slice) -> Examples:
        """The examples with these indices."""
        return Examples(*(array[indices] for array in self))


class Planner(Protocol):
    """Cuts the documents of an epoch into examples, block by block."""

    num_blocks: int

    def count(self, epoch: int, block: int) -> int:
        """The number of examples in a block."""

    def plan(self, epoch: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        """(spans, is_next) of the examples in a block."""


@kernel
def _shuffled(spans, is_next, first, order_key, mask_key, out_spans, out_is_next, out_keys):
    """Fill the outputs with the examples from place `first` of the random order on."""
    for index in range(len(out_spans)):
        example = permute(first + index, len(spans), order_key)
        out_spans[index, :] = spans[example]
        out_is_next[index] = is_next[example]
        out_keys[index] = fast_number(mask_key, example)


class ExampleSequence:
    """All examples of all epochs in the order in which they are seen; random access."""

    def __init__(self, planner: Planner, seed: int, *, is_fixed: bool) -> None:
        """A fixed sequence is one epoch and ends there; another one goes on for ever."""
        self._planner, self._seed, self._is_fixed = planner, seed, is_fixed
        # For each epoch so far: where its blocks start in the sequence, and where it ends.
        self._starts: list[np.ndarray] = []
        self._ends: list[int] = []
        self._blocks: OrderedDict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = OrderedDict()

    def num_before(self, epoch: int) -> int:
        """Examples in all epochs before this one."""
        if not epoch:
            return 0
        self._block_starts(epoch - 1)
        return self._ends[epoch - 1]

    def take(self, first: int, num: int) -> Examples:
        """The examples `first` … `first + num`, fewer where a fixed sequence ends."""
        parts, epoch, last = [], self._epoch_of(first), first + num
        if self._is_fixed:
            last = min(last, self.num_before(1))
        while first < last:
            starts = self._block_starts(epoch)
            block = int(np.searchsorted(starts, first, "right")) - 1
            if block == len(starts) - 1:
                epoch += 1
                continue
            end = min(last, int(starts[block + 1]))
            parts.append(self._part(epoch, block, first - int(starts[block]), end - first))
            first = end
        return Examples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _epoch_of(self, number: int) -> int:
        while not self._is_fixed and (not self._ends or number >= self._ends[-1]):
            self._block_starts(len(self._ends))
        return bisect.bisect_right(self._ends, number)

    def _block_starts(self, epoch: int) -> np.ndarray:
        while len(self._ends) <= epoch:
            index = len(self._ends)
            counts = [self._planner.count(index, b) for b in range(self._planner.num_blocks)]
            self._starts.append(self.num_before(index) + np.cumsum([0, *counts]))
            self._ends.append(int(self._starts[-1][-1]))
        return self._starts[epoch]

    def _part(self, epoch: int, block: int, first: int, num: int) -> Examples:
        spans, is_next = self._planned(epoch, block)
        out = Examples(
            np.empty((num, 4), np.int64), np.empty(num, np.int8), np.empty(num, np.uint64)
        )
        order_key, mask_key = (
            np.uint64(stream_key(self._seed, purpose, epoch, block))
            for purpose in (EXAMPLES, MASKS)
        )
        _shuffled(spans, is_next, first, order_key, mask_key, *out)
        return out

    def _planned(self, epoch: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        key = (epoch, block)
        if key not in self._blocks:
            while len(self._blocks) >= _BLOCKS_KEPT:
                self._blocks.popitem(last=False)
            self._blocks[key] = self._planner.plan(epoch, block)
        return self._blocks[key]
