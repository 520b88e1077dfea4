"""A language model as a tree of n-grams in flat arrays, which can be memory-mapped and asked.

Nodes of all levels stand one behind the other: first every word by its id, then the n-grams of two
words sorted by their words, then those of three. The children of node i are the nodes starts[i] …
starts[i + 1]. A node keeps the logarithm (base 10, as in ARPA files) of its last word's
probability after the others, and of the weight of what is shorter where a longer one is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sememe.errors import ArtifactError
from sememe.static.ngram.counting import Level

NAMES = ("words", "probs", "backoffs", "starts", "level_ends")
# What ARPA files write for the logarithm of nothing.
NEVER = -99.0


@dataclass(frozen=True)
class Trie:
    """The arrays; N nodes, of which M are not of the highest order."""

    words: np.ndarray  # uint32 (N): the last word
    probs: np.ndarray  # float32 (N)
    backoffs: np.ndarray  # float32 (M)
    starts: np.ndarray  # uint32 (M + 1)
    level_ends: np.ndarray  # int64 (order)

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.level_ends)

    @property
    def num_ids(self) -> int:
        """Words, <unk>, </s> and <s>."""
        return int(self.level_ends[0])

    @property
    def sizes(self) -> list[int]:
        """How many n-grams there are of each length."""
        return np.diff(self.level_ends, prepend=0).tolist()

    def to_tensors(self) -> dict[str, np.ndarray]:
        """The arrays by name, as they are saved."""
        return {name: getattr(self, name) for name in NAMES}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray]) -> Trie:
        """The tree in saved arrays, checked for fit."""
        if missing := [name for name in NAMES if name not in tensors]:
            raise ArtifactError(f"The model lacks its tensors {', '.join(missing)}.")
        trie = cls(**{name: tensors[name] for name in NAMES})
        ends = trie.level_ends
        num_inner = int(ends[-2]) if len(ends) > 1 else 0
        if (
            np.any(np.diff(ends, prepend=0) < 0)
            or not len(trie.words) == len(trie.probs) == int(ends[-1])
            or not len(trie.starts) - 1 == len(trie.backoffs) == num_inner
            or (num_inner and int(trie.starts[-1]) != len(trie.words))
            or np.any(trie.starts[1:] < trie.starts[:-1])
        ):
            raise ArtifactError("The tensors of the model do not fit each other.")
        return trie

    # ---- asking ---------------------------------------------------------------------------------

    def state(self, ids: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        """Where a reader stands after <s> and these ids: the nodes of the last 1, 2, … words."""
        nodes = np.full(self.order + 1, -1, np.int64)
        if self.order > 1:
            nodes[1] = self.num_ids - 1
        self.advance(nodes, np.asarray(ids, np.uint32))
        return nodes

    def advance(self, nodes: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Read on from a state, which is changed; gives the log10 probability of each id."""
        from sememe.static.ngram.query_kernels import read

        out = np.empty(len(ids), np.float32)
        read(self.words, self.probs, self.backoffs, self.starts, nodes, ids, out)
        return out

    def distribution(self, nodes: np.ndarray) -> np.ndarray:
        """The probability of every id to come next, float64; that of <s> is nothing."""
        logs = self.probs[: self.num_ids].astype(np.float64)
        for node in nodes[1 : self.order]:
            if node < 0:
                continue
            logs += self.backoffs[node]
            first, last = int(self.starts[node]), int(self.starts[node + 1])
            logs[self.words[first:last]] = self.probs[first:last]
        logs[-1] = -np.inf
        return 10.0**logs

    def ngrams(self, length: int, first: int, last: int) -> np.ndarray:
        """The ids of the n-grams at the nodes first … last, all of one length, a row each."""
        nodes, columns = np.arange(first, last), []
        for _ in range(length - 1):
            columns.append(self.words[nodes])
            nodes = np.searchsorted(self.starts, nodes.astype(np.uint32), "right") - 1
        columns.append(self.words[nodes])
        return np.stack(columns[::-1], axis=1)


def log10(numbers: np.ndarray) -> np.ndarray:
    """The logarithm to the base 10 as float32, NEVER for nothing; the numbers are used up."""
    with np.errstate(divide="ignore"):
        np.log10(numbers, out=numbers)
    return np.maximum(numbers, NEVER, out=numbers).astype(np.float32)


def laid_out(
    levels: list[Level],
    kept: list[np.ndarray | None],
    probs: list[np.ndarray],
    backoffs: list[np.ndarray],
) -> Trie:
    """Put the levels one behind the other, without the n-grams that are not kept (None: all are).

    probs and backoffs are logarithms; the longest n-grams have no back-off.
    """
    from sememe.static.ngram.estimation_kernels import keep

    def of_kept(arrays: list[np.ndarray]) -> Iterator[np.ndarray]:
        for own, is_kept in zip(arrays, kept, strict=False):
            yield own if is_kept is None else own[is_kept]

    sizes = [
        len(level.words) if own is None else int(own.sum())
        for level, own in zip(levels, kept, strict=True)
    ]
    ends = np.cumsum(sizes)
    words, starts = np.empty(ends[-1], np.uint32), np.empty(ends[-1] - sizes[-1] + 1, np.uint32)
    for k, level in enumerate(levels):
        span = slice(ends[k] - sizes[k], ends[k])
        if k + 1 == len(levels):
            words[span] = level.words if kept[k] is None else level.words[kept[k]]
            continue
        places = _places(kept[k + 1], len(levels[k + 1].words)) + ends[k]
        is_kept = np.ones(len(level.words), np.bool_) if kept[k] is None else kept[k]
        keep(level.words, is_kept, level.starts, places, words[span], starts[span])
    starts[-1] = ends[-1]
    return Trie(
        words=words,
        probs=np.concatenate([*of_kept(probs)]),
        backoffs=np.concatenate([np.empty(0, np.float32), *of_kept(backoffs)]),
        starts=starts,
        level_ends=ends,
    )


def _places(is_kept: np.ndarray | None, size: int) -> np.ndarray:
    """Where each node of a level goes among those that are kept, and how many those are."""
    if is_kept is None:
        return np.arange(size + 1)
    return np.concatenate([[0], np.cumsum(is_kept)])
