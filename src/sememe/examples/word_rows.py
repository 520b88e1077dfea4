"""Rows of running words for a language model that reads both ways. B rows, T positions.

Sentences follow each other as in their documents, each in its two marks, and documents follow each
other; rows cut that stream where they end. Every word is in one row of an epoch; rows come in
a random order, and each epoch cuts the stream at other places. Validation rows are always the same.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace

import numpy as np

from sememe.errors import InputError
from sememe.examples.batches import Split
from sememe.examples.order import BATCHES, DOCUMENTS, ROWS
from sememe.examples.packing import check_sizes
from sememe.examples.permutation import permute_plainly
from sememe.examples.randomness import number, stream_key
from sememe.tokens.splits import is_held_out
from sememe.tokens.store import TokenStore

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


class WordRowBatches:
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
        check_sizes(length, batch_size)
        self._ids, self._sentence_ends = store.ids, store.sentence_ends
        self._document_ends = np.asarray(store.document_ends)
        self._num_words = len(store.vocabulary)
        sizes = _stream_sizes(self._sentence_ends, self._document_ends)
        is_held = is_held_out(np.arange(len(sizes)), validation_share)
        is_own = is_held if split == "validation" else ~is_held
        self._documents = np.flatnonzero(is_own & (sizes > 0))
        self._stream_ends = np.cumsum(sizes[self._documents])
        if not len(self._documents):
            raise InputError(
                "No document is held out for validation: give more documents or a larger share."
                if split == "validation"
                else "There is no text to learn from besides what is held out for validation."
            )
        self.length, self.batch_size, self._seed = length, batch_size, seed
        self.is_fixed = split == "validation"

    @property
    def num_tokens(self) -> int:
        """Words and marks of the split."""
        return int(self._stream_ends[-1])

    @property
    def rows_per_epoch(self) -> int:
        """Rows that hold the whole stream; the last one may be short."""
        return -(-self.num_tokens // self.length)

    @property
    def batches_per_epoch(self) -> int:
        """Batches of one pass over the text."""
        return -(-self.rows_per_epoch // self.batch_size)

    def num_steps(self, epochs: float) -> int:
        """Steps after which `epochs` passes over the text are done."""
        return -(-round(epochs * self.rows_per_epoch) // self.batch_size)

    def batch(self, step: int) -> WordRows:
        """The batch of a step, counted from 0."""
        if self.is_fixed:
            step %= self.batches_per_epoch
        first, num = step * self.batch_size, self.batch_size
        if self.is_fixed:
            num = min(num, self.rows_per_epoch - first)
        ids_BT = np.full((num, self.length), END_ID, np.int32)
        lengths_B = np.empty(num, np.int32)
        for index in range(num):
            start, lengths_B[index] = self._extent(*divmod(first + index, self.rows_per_epoch))
            self._copy(start, ids_BT[index, : lengths_B[index]])
        return WordRows(ids_BT, lengths_B, stream_key(self._seed, BATCHES, step))

    def _extent(self, epoch: int, place: int) -> tuple[int, int]:
        """Where the row at a place of an epoch's order starts in the stream, and its length."""
        offset = 0
        if not self.is_fixed:
            place = permute_plainly(place, self.rows_per_epoch, stream_key(self._seed, ROWS, epoch))
            offset = number(stream_key(self._seed, DOCUMENTS, epoch), 0) % self.num_tokens
        start = place * self.length
        return offset + start, min(self.length, self.num_tokens - start)

    def _copy(self, start: int, row: np.ndarray) -> None:
        """Fill a row with the stream from `start` on; after its end it begins again."""
        start %= self.num_tokens
        place = int(np.searchsorted(self._stream_ends, start, "right"))
        offset = start - int(self._stream_ends[place - 1]) if place else start
        done = 0
        while done < len(row):
            document = int(self._documents[place])
            done = self._copy_document(document, offset, row, done)
            place, offset = (place + 1) % len(self._documents), 0

    def _copy_document(self, document: int, offset: int, row: np.ndarray, done: int) -> int:
        """Fill a row, `done` already, with a document from a place on; how much is done then."""
        first = int(self._document_ends[document - 1]) if document else 0
        last = int(self._document_ends[document])
        base = self._token(first)

        def begins(sentence: int) -> int:
            return self._token(sentence) - base + 2 * (sentence - first)

        sentence = first + bisect.bisect_right(range(first, last), offset, key=begins) - 1
        index = offset - begins(sentence)
        while sentence < last and done < len(row):
            own = self._sentence(sentence)[index : index + len(row) - done]
            row[done : done + len(own)] = own
            done, index, sentence = done + len(own), 0, sentence + 1
        return done

    def _token(self, sentence: int) -> int:
        return int(self._sentence_ends[sentence - 1]) if sentence else 0

    def _sentence(self, sentence: int) -> np.ndarray:
        """The ids of a sentence in its marks."""
        words = self._ids[self._token(sentence) : self._token(sentence + 1)].astype(np.int64)
        words = np.where(words < self._num_words, NUM_MARKS + words, UNKNOWN_ID)
        return np.concatenate([[BEGIN_ID], words, [END_ID]])


def _stream_sizes(sentence_ends: np.ndarray, document_ends: np.ndarray) -> np.ndarray:
    """Words and marks of every document."""
    ends = np.where(document_ends > 0, sentence_ends[np.maximum(document_ends - 1, 0)], 0)
    return np.diff(ends, prepend=0) + 2 * np.diff(document_ends, prepend=0)
