"""Rows, windows and streams of running words for language models, and their targets.

B rows or streams, T positions, C words of a window, M predictions. Sentences are concatenated as in
their documents, each between two special tokens; rows split that stream.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.examples.batches import RowBatches, Split
from sememe.examples.packing.rows import BATCHES, DOCUMENTS, ROWS, document_sizes
from sememe.randomness import number, permute_reference, stream_key
from sememe.tokens.store import TokenStore, is_held_out

# The marks of a sentence and of words without an id; words have the ids that follow.
BEGIN_ID, END_ID, UNKNOWN_ID = range(3)
NUM_MARKS = 3


@dataclass(frozen=True)
class WordRows:
    """Some rows of ids: the marks of a sentence, then the store's words."""

    ids_BT: np.ndarray  # int32
    lengths_B: np.ndarray  # int32; only the last row of an epoch may be short
    key: int  # of what is drawn for this batch

    def part(self, index: int, num_parts: int) -> WordRows:
        """Every `num_parts`-th row from row `index` on."""
        own = slice(index, None, num_parts)
        return replace(self, ids_BT=self.ids_BT[own], lengths_B=self.lengths_B[own])


class WordRowBatches(RowBatches):
    """The batches of a split of a text; a batch is a function of (seed, step)."""

    def __init__(
        self,
        store: TokenStore,
        *,
        length: int,
        batch_size: int,
        seed: int = 1,
        split: Split = "train",
        validation_share: float = 0.0,
    ) -> None:
        super().__init__(length, batch_size, seed, is_fixed=split == "validation")
        self._store, ends = store, np.asarray(store.document_ends)
        sizes = document_sizes(store.sentence_ends, ends) + 2 * np.diff(ends, prepend=0)
        is_held = is_held_out(np.arange(len(sizes)), validation_share)
        is_own = is_held if split == "validation" else ~is_held
        self._documents = np.flatnonzero(is_own & (sizes > 0))
        self._stream_ends = np.cumsum(sizes[self._documents])
        if not len(self._documents):
            raise InputError(
                "No document is held out for validation: give more documents or a larger share."
                if split == "validation"
                else "There is no training text besides what is held out for validation."
            )
        self.num_tokens = int(self._stream_ends[-1])  # words and marks

    @property
    def rows_per_epoch(self) -> int:
        """Rows that hold the entire stream; the last one may be short."""
        return -(-self.num_tokens // self.length)

    def rows(self, first: int, num: int) -> WordRows:
        """The rows `first` … `first + num` of the sequence, fewer where fixed ones end."""
        key = stream_key(self._seed, BATCHES, first // self.batch_size)
        if self.is_fixed:
            num = min(num, self.rows_per_epoch - first)
        ids_BT = np.full((num, self.length), END_ID, np.int32)
        lengths_B = np.empty(num, np.int32)
        for index in range(num):
            start, lengths_B[index] = self._extent(*divmod(first + index, self.rows_per_epoch))
            self._copy(start, ids_BT[index, : lengths_B[index]])
        return WordRows(ids_BT, lengths_B, key)

    def _extent(self, epoch: int, place: int) -> tuple[int, int]:
        """Where the row at a place of an epoch's order starts in the stream, and its length."""
        offset = 0
        if not self.is_fixed:
            place = permute_reference(
                place, self.rows_per_epoch, stream_key(self._seed, ROWS, epoch)
            )
            offset = number(stream_key(self._seed, DOCUMENTS, epoch), 0) % self.num_tokens
        start = place * self.length
        return offset + start, min(self.length, self.num_tokens - start)

    def _copy(self, start: int, row: np.ndarray) -> None:
        """Fill a row with the stream from `start` on; after its end it begins again."""
        start %= self.num_tokens
        place = int(np.searchsorted(self._stream_ends, start, "right"))
        offset, done = start - _start_of(self._stream_ends, place), 0
        while done < len(row):
            done = self._copy_document(int(self._documents[place]), offset, row, done)
            place, offset = (place + 1) % len(self._documents), 0

    def _copy_document(self, document: int, offset: int, row: np.ndarray, done: int) -> int:
        """Fill a row, `done` already, with a document from a place on; how much is done then."""
        sentence_ends, document_ends = self._store.sentence_ends, self._store.document_ends
        first, last = _start_of(document_ends, document), int(document_ends[document])
        base = _start_of(sentence_ends, first)

        def begins(sentence: int) -> int:
            return _start_of(sentence_ends, sentence) - base + 2 * (sentence - first)

        sentence = first + bisect.bisect_right(range(first, last), offset, key=begins) - 1
        index = offset - begins(sentence)
        while sentence < last and done < len(row):
            own = sentence_ids(self._store, sentence)[index : index + len(row) - done]
            row[done : done + len(own)] = own
            done, index, sentence = done + len(own), 0, sentence + 1
        return done


def _start_of(ends: np.ndarray, index: int) -> int:
    """Where the sentence or document `index` starts."""
    return int(ends[index - 1]) if index else 0


def sentence_ids(store: TokenStore, sentence: int) -> np.ndarray:
    """The ids of a sentence in its marks; words without an id of their own are unknown."""
    ends = store.sentence_ends
    words = np.asarray(store.ids[_start_of(ends, sentence) : int(ends[sentence])], np.int64)
    words = np.where(words < len(store.vocabulary), NUM_MARKS + words, UNKNOWN_ID)
    return np.concatenate([[BEGIN_ID], words, [END_ID]])


class NeighborTargets(NamedTuple):
    """From which places which words are to be told; places count row by row of a (T, B) array."""

    places_M: np.ndarray
    targets_M: np.ndarray  # int64


def neighbors_of(batch: WordRows, step: int, vocab_size: int) -> NeighborTargets:
    """What to predict of the next words (step 1) or of those before (-1); rare ones are unknown."""
    is_asked_TB = has_target(batch, step).T
    targets_TB = np.roll(batch.ids_BT, -step, 1).T.astype(np.int64)
    targets_TB = np.where(targets_TB < vocab_size, targets_TB, UNKNOWN_ID)
    return NeighborTargets(np.flatnonzero(is_asked_TB), targets_TB[is_asked_TB])


def has_target(batch: WordRows, step: int) -> np.ndarray:
    """Which places of the rows have a next word (step 1) or one before (-1) to predict, (B, T)."""
    positions_T = np.arange(batch.ids_BT.shape[1])
    lengths_B1 = batch.lengths_B[:, None]
    is_there_BT = (positions_T + step < lengths_B1) & (positions_T + step >= 0)
    is_there_BT &= positions_T < lengths_B1
    return is_there_BT & (np.roll(batch.ids_BT, -step, 1) != (BEGIN_ID if step > 0 else END_ID))


def windows_before(ids_BT: np.ndarray, size: int, begin_id: int) -> tuple[np.ndarray, np.ndarray]:
    """The `size` words before each place, (B, T, C), the nearest last; and where all are known.

    They are not where a sentence began before its row did.
    """
    num_rows, length = ids_BT.shape
    places_T = np.arange(length)
    begins_BT = np.maximum.accumulate(np.where(ids_BT == begin_id, places_T, -1), axis=1)
    sources_TC = places_T[:, None] + np.arange(-size, 0)
    windows_BTC = ids_BT[:, np.maximum(sources_TC, 0)]
    windows_BTC[sources_TC[None] < begins_BT[:, :, None]] = begin_id
    is_whole_BT = (begins_BT >= 0) | (places_T >= size)
    return windows_BTC, np.broadcast_to(is_whole_BT, (num_rows, length))


def windows_after(ids_BT: np.ndarray, size: int, end_id: int) -> tuple[np.ndarray, np.ndarray]:
    """The `size` words after each place, (B, T, C), the nearest first; and where all are known."""
    windows_BTC, is_whole_BT = windows_before(ids_BT[:, ::-1], size, end_id)
    return windows_BTC[:, ::-1, ::-1], is_whole_BT[:, ::-1]


NOTHING = -1  # where a stream has ended


def word_streams(store: TokenStore, num_streams: int, length: int) -> Iterator[np.ndarray]:
    """Give ids (T + 1, B), int64, piece by piece; the last of a piece is the first of the next.

    The text is cut into streams of about as many words each; sentences are never cut.
    """
    ends = np.asarray(store.sentence_ends, np.int64)
    sizes = ends + 2 * np.arange(1, len(ends) + 1)
    shares = (int(sizes[-1]) if len(sizes) else 0) * np.arange(1, num_streams) // num_streams
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
        """Whether anything is left to be predicted."""
        return self._sentence < self._last or len(self._ready) > 1

    def next(self, length: int) -> np.ndarray:
        """The next ids, with the first of those that follow, or with nothing after the end."""
        parts = [self._ready]
        num = len(self._ready)
        while num <= length and self._sentence < self._last:
            parts.append(sentence_ids(self._store, self._sentence))
            num += len(parts[-1])
            self._sentence += 1
        ready = np.concatenate(parts)
        found = np.full(length + 1, NOTHING, np.int64)
        found[: min(num, length + 1)] = ready[: length + 1]
        self._ready = ready[length:]
        return found
