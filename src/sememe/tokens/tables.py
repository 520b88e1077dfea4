"""A table of words and their counts that grows up to a limit, then asks for room."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sememe.tokens import kernels

NO_WEIGHTS = np.empty(0, np.int64)
_FIRST_SLOTS = 1 << 12
_SLOT_SIZE = 24  # two numbers of 8 bytes, and half a word's count and end


class Buffers(NamedTuple):
    """Where a scan puts what it reads; each is emptied by the caller when the scan stops."""

    ids: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray

    @classmethod
    def new(cls, size: int = 1 << 18) -> Buffers:
        """Make room for `size` words."""
        return cls(*(np.empty(size, np.uint32) for _ in range(3)))


def read_only(array: np.ndarray) -> np.ndarray:
    """Give a view that kernels see as bytes from Python, so that they are compiled once."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


class Table:
    """Exact counts of words, at most about `memory` bytes unless nobody makes room."""

    def __init__(self, memory: int) -> None:
        exponent = max((memory * 8 // 10 // _SLOT_SIZE).bit_length() - 1, 4)
        self._max_slots = 1 << exponent
        self._max_arena = max(memory - _SLOT_SIZE * self._max_slots, 256)
        num_slots = min(_FIRST_SLOTS, self._max_slots)
        self.slots = np.zeros(2 * num_slots, np.uint64)
        self.counts = np.zeros(num_slots // 2, np.int64)
        self.ends = np.zeros(num_slots // 2, np.int64)
        self.arena = np.zeros(min(num_slots * 8, self._max_arena), np.uint8)
        self.state = np.zeros(kernels.STATE_SIZE, np.int64)

    @property
    def num_words(self) -> int:
        """Distinct words so far."""
        return int(self.state[kernels.NUM_WORDS])

    @property
    def words(self) -> np.ndarray:
        """The words, each followed by WORD_END."""
        return self.arena[: int(self.state[kernels.ARENA_END])]

    def clear(self) -> None:
        """Forget every word but keep the memory."""
        self.slots.fill(0)
        self.state[kernels.NUM_WORDS] = self.state[kernels.ARENA_END] = 0

    def scan(
        self,
        data: np.ndarray,
        buffers: Buffers,
        flush: Callable[[], None],
        *,
        weights: np.ndarray = NO_WEIGHTS,
        spill: Callable[[], None] | None = None,
    ) -> None:
        """Count all of `data`; `flush` empties the buffers, `spill` saves the words when full."""
        self.state[kernels.NUM_IDS :] = 0
        position = 0
        while True:
            position = kernels.scan(
                data, position, weights, *buffers, self.slots, self.counts, self.ends, self.arena,
                self.state,
            )  # fmt: skip
            filled = self.state[kernels.NUM_IDS : kernels.NUM_DOCUMENTS + 1].tolist()
            flush()
            if position >= len(data):
                return
            if all(num < len(buffer) for num, buffer in zip(filled, buffers, strict=True)):
                self._make_room(spill)

    def _make_room(self, spill: Callable[[], None] | None) -> None:
        is_full = self.num_words == len(self.ends)
        if is_full and (spill is None or len(self.slots) < 2 * self._max_slots):
            slots = np.zeros(2 * len(self.slots), np.uint64)
            kernels.grow(self.slots, slots)
            self.slots = slots
            self.counts = _enlarged(self.counts, 2 * len(self.counts))
            self.ends = _enlarged(self.ends, 2 * len(self.ends))
        elif not is_full and (spill is None or self.num_words == 0):
            # A word longer than the whole arena must still fit.
            self.arena = _enlarged(self.arena, 2 * len(self.arena))
        elif not is_full and len(self.arena) < self._max_arena:
            self.arena = _enlarged(self.arena, min(2 * len(self.arena), self._max_arena))
        elif spill is not None:
            spill()
            self.clear()


def _enlarged(array: np.ndarray, size: int) -> np.ndarray:
    larger = np.zeros(size, array.dtype)
    larger[: len(array)] = array
    return larger
