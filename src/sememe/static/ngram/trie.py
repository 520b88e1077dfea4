"""A language model as a tree of n-grams in flat arrays, which can be memory-mapped and asked.

Nodes of all levels stand one behind the other: first every word by its id, then the n-grams of two
words sorted by their words, then those of three. The children of node i are the nodes starts[i] …
starts[i + 1]. A node keeps the logarithm (base 10, as in ARPA files) of its last word's
probability after the others, and of the weight of what is shorter where a longer one is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """The logarithm to the base 10 as float32; NEVER for nothing."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log10(numbers), NEVER).astype(np.float32)


def laid_out(
    levels: list[Level], cuts: Sequence[int], probs: list[np.ndarray], rests: list[np.ndarray]
) -> Trie:
    """Put the levels one behind the other, without the n-grams that were seen too rarely."""
    from sememe.static.ngram.estimation_kernels import keep

    kept = [
        level.counts > (cut if k else -1)
        for k, (level, cut) in enumerate(zip(levels, cuts, strict=True))
    ]
    ends = np.cumsum([int(own.sum()) for own in kept])
    words, starts = [], []
    for k, level in enumerate(levels):
        if k + 1 == len(levels):
            words.append(np.asarray(level.words[kept[k]]))
            continue
        places = np.zeros(len(kept[k + 1]) + 1, np.int64)
        np.cumsum(kept[k + 1], out=places[1:])
        own_words = np.empty(int(kept[k].sum()), np.uint32)
        own_starts = np.empty(len(own_words) + 1, np.uint32)
        keep(level.words, kept[k], level.starts, places + ends[k], own_words, own_starts)
        words.append(own_words)
        starts.append(own_starts[:-1])
    inner = zip(rests, kept, strict=False)
    return Trie(
        words=np.concatenate(words),
        probs=np.concatenate([log10(p[own]) for p, own in zip(probs, kept, strict=True)]),
        backoffs=np.concatenate([np.empty(0, np.float32), *(log10(r[own]) for r, own in inner)]),
        starts=np.concatenate([*starts, np.array([ends[-1]], np.uint32)]),
        level_ends=ends,
    )
