"""Pairs of texts as ids, and training batches: about as many tokens in each, of similar length.

The batch of a step is a function of (seed, step), so that a run can be resumed at any step.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sememe.errors import InputError
from sememe.examples.parallel import Pair
from sememe.randomness import random_order, stream_key

_ROWS, _BATCHES, _HELD_OUT = 0x611, 0x612, 0x613  # purposes of random streams
_PAIRS_AT_ONCE = 8_192
_BATCHES_SORTED = 64  # this many batches' worth of pairs are sorted by length together

Encode = Callable[[Sequence[str]], list[np.ndarray]]


class Side:
    """Texts as ids, concatenated."""

    def __init__(self, texts: Iterable[np.ndarray]) -> None:
        parts = [np.asarray(ids, np.int32) for ids in texts]
        self._take(np.array([len(ids) for ids in parts], np.int64), parts)

    def _take(self, lengths: np.ndarray, parts: list[np.ndarray]) -> None:
        self.lengths = lengths
        self._starts = np.cumsum(lengths) - lengths
        self._ids = np.concatenate(parts) if parts else np.empty(0, np.int32)

    @classmethod
    def joined(cls, sides: Sequence[Side]) -> Side:
        """The texts of several sides concatenated."""
        whole = cls([])
        if sides:
            lengths = np.concatenate([side.lengths for side in sides])
            whole._take(lengths, [side._ids for side in sides])
        return whole

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> np.ndarray:
        start = self._starts[index]
        return self._ids[start : start + self.lengths[index]]

    @property
    def num_tokens(self) -> int:
        """Tokens of all texts."""
        return len(self._ids)

    def digest(self) -> bytes:
        """A hash of all texts."""
        return hashlib.blake2b(self.lengths.tobytes() + self._ids.tobytes()).digest()


@dataclass(frozen=True)
class PairIds:
    """Pairs as ids, with start and end of each text if the model needs them."""

    sources: Side
    targets: Side
    num_long: int = 0  # pairs that were dropped because a side was too long

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def num_tokens(self) -> int:
        """Tokens of both sides."""
        return self.sources.num_tokens + self.targets.num_tokens

    @property
    def fingerprint(self) -> str:
        """What identifies these pairs."""
        content = self.sources.digest() + self.targets.digest()
        return hashlib.blake2b(content, digest_size=16).hexdigest()


def encode_pairs(
    pairs: Iterable[Pair], encode_source: Encode, encode_target: Encode, most_tokens: int
) -> PairIds:
    """Turn pairs into ids, some thousand at a time; those with a longer side are dropped."""
    found: list[tuple[Side, Side]] = []
    num_long = 0
    for part in _parts(pairs):
        sources = encode_source([pair.source for pair in part])
        targets = encode_target([pair.target for pair in part])
        kept = [
            pair
            for pair in zip(sources, targets, strict=True)
            if max(map(len, pair)) <= most_tokens
        ]
        num_long += len(part) - len(kept)
        found.append((Side(own for own, _ in kept), Side(own for _, own in kept)))
    whole = PairIds(
        Side.joined([own for own, _ in found]), Side.joined([own for _, own in found]), num_long
    )
    if not len(whole):
        raise InputError(
            f"No pair is left: all {num_long:,} have more than {most_tokens:,} tokens (length)."
        )
    return whole


def _parts(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    rest = iter(pairs)
    while part := list(islice(rest, _PAIRS_AT_ONCE)):
        yield part


def is_held_out(source: str, share: float) -> bool:
    """Whether a pair is held out from training; its source decides.

    So all translations of one text are in the same split.
    """
    digest = hashlib.blake2b(source.strip().encode(), digest_size=8).digest()
    return stream_key(int.from_bytes(digest, "little"), _HELD_OUT) < share * 2**64


@dataclass(frozen=True)
class PairBatch:
    """Pairs that are processed together."""

    sources: list[np.ndarray]
    targets: list[np.ndarray]
    weight: float = 1.0

    @property
    def num_tokens(self) -> int:
        """Tokens that are read, of both sides."""
        return sum(map(len, self.sources)) + self.num_targets

    @property
    def num_targets(self) -> int:
        """Tokens to predict: all of the targets except their starts."""
        return sum(len(row) - 1 for row in self.targets)

    def part(self, index: int, num_parts: int) -> PairBatch:
        """Every `num_parts`-th pair from `index` on; a pair of weight 0 if none is left."""
        own = slice(index, None, num_parts)
        if index >= len(self.sources):
            return PairBatch(self.sources[:1], self.targets[:1], weight=0.0)
        return PairBatch(self.sources[own], self.targets[own])


class PairBatches:
    """Training batches: each epoch in its own order, with pairs of similar length together.

    The pairs of an epoch are shuffled and sorted by length within groups, split into batches of at
    most `batch_tokens`, counting the longer side of a pair, and shuffled again.
    """

    def __init__(
        self, pairs: PairIds, *, batch_tokens: int, seed: int, is_fixed: bool = False
    ) -> None:
        """Fixed batches are always those of one epoch."""
        self.pairs, self.batch_tokens, self.seed, self.is_fixed = (
            pairs, batch_tokens, seed, is_fixed,
        )  # fmt: skip
        self._sizes = np.maximum(pairs.sources.lengths, pairs.targets.lengths)
        self._ends: list[int] = []  # for each epoch so far, the steps until it is done
        self._planned: tuple[int, list[np.ndarray]] = (-1, [])

    @property
    def batches_per_epoch(self) -> int:
        """Batches of the first epoch; others have about as many."""
        return self._steps_until(0)

    def num_steps(self, epochs: float) -> int:
        """Steps of `epochs` epochs."""
        whole = int(epochs)
        before = self._steps_until(whole - 1) if whole else 0
        if epochs == whole:
            return before
        return before + math.ceil((epochs - whole) * (self._steps_until(whole) - before))

    def batch(self, step: int) -> PairBatch:
        """The batch of a step."""
        order = self.order(step)
        pairs = self.pairs
        return PairBatch([pairs.sources[i] for i in order], [pairs.targets[i] for i in order])

    def order(self, step: int) -> np.ndarray:
        """The indices of the pairs of a step."""
        if self.is_fixed:
            return self._plan(0)[step % self._steps_until(0)]
        while not self._ends or step >= self._ends[-1]:
            self._steps_until(len(self._ends))
        epoch = bisect.bisect_right(self._ends, step)
        return self._plan(epoch)[step - (self._ends[epoch - 1] if epoch else 0)]

    def _steps_until(self, epoch: int) -> int:
        while len(self._ends) <= epoch:
            before = self._ends[-1] if self._ends else 0
            self._ends.append(before + len(self._plan(len(self._ends))))
        return self._ends[epoch]

    def _plan(self, epoch: int) -> list[np.ndarray]:
        if self._planned[0] != epoch:
            self._planned = epoch, self._cut(epoch)
        return self._planned[1]

    def _cut(self, epoch: int) -> list[np.ndarray]:
        order = random_order(len(self.pairs), stream_key(self.seed, _ROWS, epoch))
        mean = max(1.0, float(self._sizes.mean()))
        size = max(1, round(_BATCHES_SORTED * self.batch_tokens / mean))
        batches: list[np.ndarray] = []
        for first in range(0, len(order), size):
            block = order[first : first + size]
            lengths = self.pairs.targets.lengths[block], self.pairs.sources.lengths[block]
            block = block[np.lexsort(lengths)]
            batches += self._batches(block)
        shuffled = random_order(len(batches), stream_key(self.seed, _BATCHES, epoch))
        return [batches[index] for index in shuffled]

    def _batches(self, block: np.ndarray) -> Iterator[np.ndarray]:
        """Cut sorted pairs into runs that hold enough tokens; a long pair may be alone."""
        sums, start = np.cumsum(self._sizes[block]), 0
        while start < len(block):
            before = sums[start - 1] if start else 0
            end = int(np.searchsorted(sums, before + self.batch_tokens, "right"))
            end = max(end, start + 1)
            yield block[start:end]
            start = end
