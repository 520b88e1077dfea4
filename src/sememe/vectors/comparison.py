"""Two sets of word vectors: which words have other neighbors in the one than in the other.

Neighbors are compared among the same words, the most frequent that both sets have, because a word
cannot be a neighbor where it is unknown. N words, K neighbors, D dimensions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.vectors.search import unit_rows

_BLOCK_SIZE = 512


class Change(NamedTuple):
    """A word with its nearest words, nearest first, in each of two sets of vectors."""

    word: str
    overlap: float  # the share of neighbors in common
    before: list[str]
    after: list[str]

    @property
    def lost(self) -> list[str]:
        """The neighbors of the first set alone."""
        return [word for word in self.before if word not in self.after]

    @property
    def gained(self) -> list[str]:
        """The neighbors of the second set alone."""
        return [word for word in self.after if word not in self.before]


class Comparison:
    """The vectors of the words that two sets share, and their neighbors in each."""

    def __init__(self, first: Any, second: Any, num_words: int = 5_000) -> None:
        """Take the `num_words` most frequent words of the first set that both have."""
        self.words: list[str] = []
        for word in first:
            if word in second:
                self.words.append(word)
                if len(self.words) == num_words:
                    break
        if len(self.words) < 3:
            raise OptionError(
                f"The two models share {len(self.words)} words: too few to compare neighbors."
            )
        self.sides = [
            unit_rows(vectors[self.words]).astype(np.float32) for vectors in (first, second)
        ]
        self._overlaps: dict[int, np.ndarray] = {}  # by number of neighbors
        self._places = {word: index for index, word in enumerate(self.words)}

    def _nearest(self, side: int, ids: np.ndarray, num: int) -> np.ndarray:
        """The ids of the nearest words to some of them, (ids, num), nearest first."""
        rows_ND = self.sides[side]
        num = min(num, len(rows_ND) - 1)
        found = np.empty((len(ids), num), np.int64)
        for start in range(0, len(ids), _BLOCK_SIZE):
            own = ids[start : start + _BLOCK_SIZE]
            cosines_BN = rows_ND[own] @ rows_ND.T
            cosines_BN[np.arange(len(own)), own] = -np.inf
            best_BK = np.argpartition(-cosines_BN, num - 1, axis=1)[:, :num]
            order = np.argsort(-np.take_along_axis(cosines_BN, best_BK, 1), axis=1, kind="stable")
            found[start : start + _BLOCK_SIZE] = np.take_along_axis(best_BK, order, 1)
        return found

    def overlaps(self, num_neighbors: int = 10) -> np.ndarray:
        """The share of its nearest words that each word has in common in both sets, (N,)."""
        if (known := self._overlaps.get(num_neighbors)) is not None:
            return known
        ids = np.arange(len(self.words))
        first_NK, second_NK = (self._nearest(side, ids, num_neighbors) for side in (0, 1))
        shared_N = (first_NK[:, :, None] == second_NK[:, None, :]).any(axis=2).sum(axis=1)
        self._overlaps[num_neighbors] = np.asarray(shared_N / first_NK.shape[1])
        return self._overlaps[num_neighbors]

    def most_changed(self, num: int = 20, num_neighbors: int = 10) -> list[Change]:
        """The words that have the fewest neighbors in common, the most frequent of equals first."""
        least = np.argsort(self.overlaps(num_neighbors), kind="stable")[:num]
        return [self.change(self.words[index], num_neighbors) for index in least]

    def change(self, word: str, num_neighbors: int = 10) -> Change:
        """The neighbors of one of the words in each set."""
        if (place := self._places.get(word)) is None:
            raise OptionError(
                f"“{word}” is not among the {len(self.words):,} most frequent words of both models."
            )
        ids = np.array([place])
        before, after = (
            [self.words[index] for index in self._nearest(side, ids, num_neighbors)[0]]
            for side in (0, 1)
        )
        return Change(word, len(set(before) & set(after)) / len(before), before, after)
