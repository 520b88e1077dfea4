"""Several texts in one training: each row comes from a text drawn by its size to a power."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sememe.compiled import kernel
from sememe.errors import OptionError
from sememe.examples.batches import Batch, join_batches
from sememe.examples.order import SOURCES
from sememe.examples.randomness import fast_number, stream_key
from sememe.tokens.smoothing import smoothed_shares

_HALF = np.uint64(32)


class RowSource(Protocol):
    """What can be mixed: MaskedBatches, PackedBatches."""

    batch_size: int
    pad_id: int
    num_tokens: int
    rows_per_epoch: int
    batches_per_epoch: int
    num_trimmed: int
    is_fixed: bool

    def rows(self, first: int, num: int) -> Batch:
        """Rows of the endless sequence."""

    def batch(self, step: int) -> Batch:
        """The batch of a step."""


@kernel
def _count_draws(key, first, last, limits, counts):
    """Add to `counts` how often each source is drawn for the rows `first` … `last`."""
    for row in range(first, last):
        draw = fast_number(key, row) >> _HALF
        source = 0
        while draw >= limits[source]:
            source += 1
        counts[source] += 1


class MixedBatches:
    """Batches whose rows come from several texts; a function of (seed, step) as all batches are.

    An epoch has as many rows as all texts together: a small text is seen more than once in it.
    Validation batches come from one text after the other.
    """

    def __init__(
        self, sources: Sequence[RowSource], *, seed: int = 1, exponent: float = 0.7
    ) -> None:
        sizes = {source.batch_size for source in sources}
        if len(sizes) != 1:
            raise OptionError("Texts are mixed when there are some, all with the same batch_size.")
        self.sources, self.batch_size = list(sources), sizes.pop()
        self.shares = smoothed_shares([source.num_tokens for source in sources], exponent)
        self.pad_id, self.is_fixed = sources[0].pad_id, sources[0].is_fixed
        self.num_tokens = sum(source.num_tokens for source in sources)
        self._limits = np.round(np.cumsum(self.shares) * 2**32).astype(np.uint64)
        self._limits[-1] = 2**32
        self._key = np.uint64(stream_key(seed, SOURCES))
        self._known = (0, np.zeros(len(sources), np.int64))  # rows drawn so far, by source

    @property
    def rows_per_epoch(self) -> int:
        """Rows of all texts together."""
        return sum(source.rows_per_epoch for source in self.sources)

    @property
    def batches_per_epoch(self) -> int:
        """Batches with as many rows as all texts have."""
        if self.is_fixed:
            return sum(source.batches_per_epoch for source in self.sources)
        return -(-self.rows_per_epoch // self.batch_size)

    @property
    def num_trimmed(self) -> int:
        """Tokens that the first pass over every text leaves out."""
        return sum(source.num_trimmed for source in self.sources)

    def num_steps(self, epochs: float) -> int:
        """Steps that see `epochs` times as many rows as all texts have."""
        return -(-round(epochs * self.rows_per_epoch) // self.batch_size)

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""
        if self.is_fixed:
            return self._fixed(step % self.batches_per_epoch)
        first = step * self.batch_size
        before, after = self._num_drawn(first), self._num_drawn(first + self.batch_size)
        parts = [
            source.rows(int(start), int(end - start))
            for source, start, end in zip(self.sources, before, after, strict=True)
            if end > start
        ]
        return join_batches(parts, self.pad_id)

    def _fixed(self, step: int) -> Batch:
        for source in self.sources:
            if step < source.batches_per_epoch:
                break
            step -= source.batches_per_epoch
        return source.batch(step)

    def _num_drawn(self, last: int) -> np.ndarray:
        """How many of the first `last` rows each text gives; a draw takes some nanoseconds."""
        first, counts = self._known if self._known[0] <= last else (0, 0 * self._known[1])
        counts = counts.copy()
        _count_draws(self._key, first, last, self._limits, counts)
        self._known = (last, counts)
        return counts
