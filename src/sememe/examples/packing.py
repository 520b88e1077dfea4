"""Packed text: rows of whole sentences for a masked model, running text for a causal one.

B rows, T positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.examples.batches import Batch, Split
from sememe.examples.documents import Documents
from sememe.examples.order import DOCUMENTS, ROWS
from sememe.examples.randomness import stream_key

_SPECIALS = 2


class FullSentences:
    """Plans rows [CLS] sentences [SEP], each of one document, as full as whole sentences make it.

    These are the rows of RoBERTa without next-sentence prediction (Liu et al. 2019, 4.2) that stay
    within a document. A sentence that is too long for a row is cut; no token is left out.
    """

    def __init__(self, documents: Documents, length: int, seed: int) -> None:
        if length <= _SPECIALS:
            raise OptionError(f"length must be at least {_SPECIALS + 1}, not {length}.")
        self._documents, self._seed, self._room = documents, seed, length - _SPECIALS
        self._bounds = documents.blocks(self._room)
        self.num_blocks = len(self._bounds) - 1

    def count(self, epoch: int, block: int) -> int:
        """The number of rows in a block."""
        return self._run(epoch, block, np.empty((0, 4), np.int64))

    def plan(self, epoch: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        """(spans, is_next) of the rows in a block; nothing follows anything."""
        spans = np.empty((self.count(epoch, block), 4), np.int64)
        self._run(epoch, block, spans)
        return spans, np.zeros(len(spans), np.int8)

    def _run(self, epoch: int, block: int, spans: np.ndarray) -> int:
        from sememe.examples.packing_kernels import plan_full_sentences

        return plan_full_sentences(
            self._documents.sentence_ends, self._documents.document_ends, self._documents.indices,
            self._bounds[block], self._bounds[block + 1],
            np.uint64(stream_key(self._seed, DOCUMENTS, epoch)), self._room, spans,
        )  # fmt: skip


class PackedBatches:
    """Batches of running text for a causal model (Radford et al. 2018, 2019).

    Documents follow each other with an end of text behind each; rows cut that stream where they
    end. Every token is in one row of an epoch; rows come in a random order, and each epoch
    cuts the stream at other places. Validation batches are the same in every epoch.
    """

    num_trimmed = 0

    def __init__(
        self,
        store: Any,
        tokenizer: Any,
        *,
        length: int,
        batch_size: int,
        seed: int = 1,
        split: Split = "train",
    ) -> None:
        check_sizes(length, batch_size)
        documents = Documents(store, split)
        self.num_tokens = documents.num_tokens
        self._ids = documents.ids
        # WordPiece knows no end of text; [SEP] ends a row of BERT's, and text of Chinese GPTs.
        is_bpe = tokenizer.kind == "bpe"
        self._end_id = int(tokenizer.end_id if is_bpe else tokenizer.sep_id)
        self.pad_id: int = tokenizer.pad_id
        self._stream_ends = np.cumsum(documents.sizes + 1)
        self._firsts = documents.firsts
        self.length, self.batch_size, self._seed = length, batch_size, seed
        self.is_fixed = split == "validation"

    @property
    def rows_per_epoch(self) -> int:
        """Rows that hold the whole stream; the last one may be short."""
        return -(-int(self._stream_ends[-1]) // self.length)

    @property
    def batches_per_epoch(self) -> int:
        """Batches of one pass over the text."""
        return -(-self.rows_per_epoch // self.batch_size)

    def num_steps(self, epochs: float) -> int:
        """Steps after which `epochs` passes over the text are done."""
        return -(-round(epochs * self.rows_per_epoch) // self.batch_size)

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""
        if self.is_fixed:
            step %= self.batches_per_epoch
        return self.rows(step * self.batch_size, self.batch_size)

    def rows(self, first: int, num: int) -> Batch:
        """The rows `first` … `first + num` of the endless sequence of rows."""
        from sememe.examples.packing_kernels import fill_stream_rows

        if self.is_fixed:
            num = min(num, self.rows_per_epoch - first)
        ids_BT = np.empty((num, self.length), np.int32)
        lengths_B = np.empty(num, np.int32)
        done = 0
        while done < num:
            epoch, place = divmod(first + done, self.rows_per_epoch)
            last = min(num, done + self.rows_per_epoch - place)
            fill_stream_rows(
                self._ids, self._firsts, self._stream_ends, place, self._keys(epoch), self._end_id,
                self.pad_id, ids_BT[done:last], lengths_B[done:last],
            )  # fmt: skip
            done = last
        return Batch(ids_BT=ids_BT, lengths_B=lengths_B, num_tokens=int(lengths_B.sum()))

    def _keys(self, epoch: int) -> np.ndarray:
        """Keys of the order of rows and of the place where they start; none when all is fixed."""
        purposes = () if self.is_fixed else (ROWS, DOCUMENTS)
        return np.array([stream_key(self._seed, purpose, epoch) for purpose in purposes], np.uint64)


def check_sizes(length: int, batch_size: int) -> None:
    """Refuse rows or batches of no size."""
    if not 2 <= length <= 1 << 20:
        raise OptionError(f"length must lie between 2 and {1 << 20:,}, not {length}.")
    if not 1 <= batch_size <= 1 << 20:
        raise OptionError(f"batch_size must lie between 1 and {1 << 20:,}, not {batch_size}.")
