"""Running words in streams side by side, for a language model that goes on where it stood.

Sentences follow each other as in their documents, each in its two marks, as in the rows that such
a model learns from. T positions, B streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sememe.examples.word_rows import BEGIN_ID, END_ID, NUM_MARKS
from sememe.tokens.store import TokenStore

NOTHING = -1  # where a stream has ended


def word_streams(store: TokenStore, num_streams: int, length: int) -> Iterator[np.ndarray]:
    """Give ids (T + 1, B), int64, piece by piece; the last of a piece is the first of the next.

    The text is cut into streams of about as many words each; sentences are never cut.
    """
    ends = np.asarray(store.sentence_ends, np.int64)
    sizes = ends + 2 * np.arange(1, len(ends) + 1)
    total = int(sizes[-1]) if len(sizes) else 0
    shares = total * np.arange(1, num_streams) // num_streams
    borders = [0, *np.searchsorted(sizes, shares, "right").tolist(), len(ends)]
    streams = [_Stream(store, first, last) for first, last in pairwise(borders)]
    while any(stream.has_more for stream in streams):
        yield np.stack([stream.next(length) for stream in streams], 1)


class _Stream:
    """Some sentences of a store as one row of ids, a piece at a time."""

    def __init__(self, store: TokenStore, first: int, last: int) -> None:
        self._store, self._sentence, self._last = store, first, last
        self._ready = np.empty(0, np.int64)

    @property
    def has_more(self) -> bool:
        """Whether anything is left to be foretold."""
        return self._sentence < self._last or len(self._ready) > 1

    def next(self, length: int) -> np.ndarray:
        """The next ids, with the first of those that follow, or with nothing behind the end."""
        parts = [self._ready]
        num = len(self._ready)
        while num <= length and self._sentence < self._last:
            parts.append(self._sentence_ids(self._sentence))
            num += len(parts[-1])
            self._sentence += 1
        ready = np.concatenate(parts)
        found = np.full(length + 1, NOTHING, np.int64)
        found[: min(num, length + 1)] = ready[: length + 1]
        self._ready = ready[length:]
        return found

    def _sentence_ids(self, sentence: int) -> np.ndarray:
        ends = self._store.sentence_ends
        first = int(ends[sentence - 1]) if sentence else 0
        ids = np.asarray(self._store.ids[first : int(ends[sentence])], np.int64)
        return np.concatenate([[BEGIN_ID], ids + NUM_MARKS, [END_ID]])
