"""Documents of a store as rows in random order: sentences, running text, next-sentence pairs.

B rows, T positions. Documents are split into training and held-out ones and planned in blocks of
bounded size; pairs are built as in BERT's released program (Devlin et al. 2019, A.2), but exactly
half of those with a label are true. An epoch's examples are a function of (seed, epoch), so any
part of the endless sequence of epochs can be computed without what comes before it. Several corpora
are sampled by their size to a power.
"""

import bisect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.batches import Batch, RowBatches, Split, join_batches
from sememe.examples.packing.kernels import (
    balance_labels,
    count_draws,
    fill_stream_rows,
    plan_full_sentences,
    plan_pairs,
    shuffle_examples,
)
from sememe.randomness import stream_key
from sememe.tokens.subwords.training import smoothed_shares
from sememe.tokens.vocabulary import read_only

# What a stream of random numbers is for; the second number of its key.
DOCUMENTS, PAIRS, EXAMPLES, MASKS, BATCHES, ROWS, SOURCES, LABELS = range(101, 109)
# Examples planned at a time, at about 33 bytes each, and how many such blocks are kept.
_BLOCK_EXAMPLES = 1 << 20
_BLOCKS_KEPT = 3


class Documents:
    """The documents of one split that have any text.

    Uses a store's ids, word_starts, sentence_ends, document_ends and is_validation.
    """

    def __init__(self, store: Any, split: Split) -> None:
        self.split = split
        self.ids = read_only(store.ids)
        self.word_starts = read_only(store.word_starts, np.uint8)
        self.sentence_ends = read_only(store.sentence_ends, np.int64)
        self.document_ends = read_only(store.document_ends, np.int64)
        sizes = document_sizes(self.sentence_ends, self.document_ends)
        is_held = store.is_validation(np.arange(len(sizes)))
        is_own = is_held if split == "validation" else ~is_held
        self.indices = np.flatnonzero(is_own & (sizes > 0))
        self.sizes = sizes[self.indices]
        self.firsts = (np.cumsum(sizes) - sizes)[self.indices]  # first tokens
        self.num_tokens = int(self.sizes.sum())
        if not len(self.indices):
            raise InputError(
                "No document is held out for validation: give more documents or a larger share."
                if split == "validation"
                else "There is no training text: the store has no document with tokens "
                "besides those held out for validation."
            )

    def __len__(self) -> int:
        return len(self.indices)

    def blocks(self, room: int) -> np.ndarray:
        """Bounds of blocks of documents with a limited number of rows of `room` tokens."""
        num_blocks = min(len(self), -(-(len(self) + self.num_tokens // room) // _BLOCK_EXAMPLES))
        return np.linspace(0, len(self), num_blocks + 1).astype(np.int64)


def document_sizes(sentence_ends: np.ndarray, document_ends: np.ndarray) -> np.ndarray:
    """Tokens of every document."""
    ends, has_text = np.zeros(len(document_ends), np.int64), document_ends > 0
    ends[has_text] = sentence_ends[document_ends[has_text] - 1]
    return np.diff(ends, prepend=0)


class Plan(NamedTuple):
    """The examples of a block: how many there are, and the first of them as arrays."""

    num: int
    num_trimmed: int  # tokens dropped, because sentences rarely fill rows exactly
    num_labelled: int  # pairs with a next-sentence label
    spans: np.ndarray  # int64, (n, 4)
    is_next: np.ndarray  # int8; -1: no label


class Planner:
    """Splits the documents of an epoch into examples of at most `room` tokens, block by block."""

    def __init__(self, documents: Documents, seed: int, room: int) -> None:
        self._documents, self._seed, self._room = documents, seed, room
        self._bounds = documents.blocks(room)
        self.num_blocks = len(self._bounds) - 1

    def count(self, epoch: int, block: int) -> int:
        """The number of examples in a block."""
        return self._run(epoch, block, 0).num

    def plan(self, epoch: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        """(spans, is_next) of the examples in a block."""
        found = self._run(epoch, block, self.count(epoch, block))
        return found.spans, found.is_next

    def trimmed(self, epoch: int) -> int:
        """Tokens of the text that an epoch drops, because sentences rarely fill rows exactly.

        Splits are random, so that another epoch sees them.
        """
        return sum(self._run(epoch, block, 0).num_trimmed for block in range(self.num_blocks))

    def labelled(self, epoch: int) -> int:
        """Examples of an epoch that have a next-sentence label."""
        return sum(self._run(epoch, block, 0).num_labelled for block in range(self.num_blocks))

    def _run(self, epoch: int, block: int, num: int) -> Plan:
        """Plan a block, with arrays of its first `num` examples: of none, or of all."""
        raise NotImplementedError

    def _place(self, epoch: int, block: int) -> tuple[Any, ...]:
        """What a kernel needs to know about a block's documents, and the key of their order."""
        documents = self._documents
        return (
            documents.sentence_ends, documents.document_ends, documents.indices,
            self._bounds[block], self._bounds[block + 1],
            np.uint64(stream_key(self._seed, DOCUMENTS, epoch)),
        )  # fmt: skip


class FullSentences(Planner):
    """Plans rows [CLS] sentences [SEP], each of one document, filled with complete sentences.

    These are RoBERTa's rows without next-sentence prediction (Liu et al. 2019, 4.2), within a
    document. A sentence too long for a row is split; no token is dropped.
    """

    num_specials = 2

    def __init__(self, documents: Documents, length: int, seed: int) -> None:
        if length <= self.num_specials:
            raise OptionError(f"length must be at least {self.num_specials + 1}, not {length}.")
        super().__init__(documents, seed, length - self.num_specials)

    def _run(self, epoch: int, block: int, num: int) -> Plan:
        spans = np.empty((num, 4), np.int64)
        num_found = plan_full_sentences(*self._place(epoch, block), self._room, spans)
        return Plan(num_found, 0, 0, spans, np.zeros(num, np.int8))


SHORT_SHARE = 0.1
_MIN_LENGTH = 8


class SentencePairs(Planner):
    """Plans the next-sentence pairs of each epoch; exactly half of those with a label are true.

    Without a label are rows whose A nothing follows, and the surplus of the more frequent answer.
    """

    num_specials = 3

    def __init__(self, documents: Documents, length: int, seed: int) -> None:
        if length < _MIN_LENGTH:
            raise OptionError(f"length must be at least {_MIN_LENGTH} for pairs, not {length}.")
        if len(documents) < 2:
            lack = "is there. Give more documents"
            if documents.split == "validation":
                lack = "is held out for validation. Give a larger validation_share"
            raise InputError(
                "Next-sentence pairs need a second document to take false continuations from, and "
                f"only one {lack} or switch next_sentence off."
            )
        super().__init__(documents, seed, length - self.num_specials)

    def _run(self, epoch: int, block: int, num: int) -> Plan:
        spans, is_next = np.empty((num, 4), np.int64), np.empty(num, np.int8)
        num_found, num_trimmed, num_true, num_false = plan_pairs(
            *self._place(epoch, block), np.uint64(stream_key(self._seed, PAIRS, epoch)),
            self._room, self._room // 2, np.uint64(SHORT_SHARE * 2**32), spans, is_next,
        )  # fmt: skip
        balance_labels(is_next, np.uint64(stream_key(self._seed, LABELS, epoch, block)))
        return Plan(num_found, num_trimmed, 2 * min(num_true, num_false), spans, is_next)


class Examples(NamedTuple):
    """Some examples: the spans of A and B in the store, whether B follows A, the mask keys."""

    spans_N4: np.ndarray  # int64
    is_next_N: np.ndarray  # int8; -1: no label
    keys_N: np.ndarray  # uint64

    @property
    def sizes(self) -> np.ndarray:
        """Tokens of text in each."""
        spans = self.spans_N4
        return spans[:, 1] - spans[:, 0] + spans[:, 3] - spans[:, 2]


class ExampleSequence:
    """All examples of all epochs in the order in which they are seen; random access."""

    def __init__(self, planner: Planner, seed: int, *, is_fixed: bool) -> None:
        """A fixed sequence is one epoch and ends there; otherwise it is endless."""
        self._planner, self._seed, self._is_fixed = planner, seed, is_fixed
        # For each epoch so far: where its blocks start in the sequence, and where it ends.
        self._starts: list[np.ndarray] = []
        self._ends: list[int] = []
        self._planned = lru_cache(_BLOCKS_KEPT)(planner.plan)

    def num_before(self, epoch: int) -> int:
        """Examples in all epochs before this one."""
        if not epoch:
            return 0
        self._block_starts(epoch - 1)
        return self._ends[epoch - 1]

    def take(self, first: int, num: int) -> Examples:
        """The examples `first` … `first + num`, fewer if a fixed sequence ends."""
        parts, epoch, last = [], self._epoch_of(first), first + num
        if self._is_fixed:
            last = min(last, self.num_before(1))
        while first < last:
            starts = self._block_starts(epoch)
            block = int(np.searchsorted(starts, first, "right")) - 1
            if block == len(starts) - 1:
                epoch += 1
                continue
            end = min(last, int(starts[block + 1]))
            parts.append(self._part(epoch, block, first - int(starts[block]), end - first))
            first = end
        return Examples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _epoch_of(self, number: int) -> int:
        while not self._is_fixed and (not self._ends or number >= self._ends[-1]):
            self._block_starts(len(self._ends))
        return bisect.bisect_right(self._ends, number)

    def _block_starts(self, epoch: int) -> np.ndarray:
        while len(self._ends) <= epoch:
            index = len(self._ends)
            counts = [self._planner.count(index, b) for b in range(self._planner.num_blocks)]
            self._starts.append(self.num_before(index) + np.cumsum([0, *counts]))
            self._ends.append(int(self._starts[-1][-1]))
        return self._starts[epoch]

    def _part(self, epoch: int, block: int, first: int, num: int) -> Examples:
        spans, is_next = self._planned(epoch, block)
        out = Examples(
            np.empty((num, 4), np.int64), np.empty(num, np.int8), np.empty(num, np.uint64)
        )
        order_key, mask_key = (
            np.uint64(stream_key(self._seed, purpose, epoch, block))
            for purpose in (EXAMPLES, MASKS)
        )
        shuffle_examples(spans, is_next, first, order_key, mask_key, *out)
        return out


class PackedBatches(RowBatches):
    """Batches of running text for a causal model (Radford et al. 2018, 2019).

    Documents are concatenated with an end of text after each, and split into rows. Every token is
    in one row of an epoch; rows come in a random order, and each epoch splits the stream at
    different positions. Validation batches are the same in every epoch.
    """

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
        super().__init__(length, batch_size, seed, is_fixed=split == "validation")
        documents = Documents(store, split)
        self.num_tokens = documents.num_tokens
        self._ids = documents.ids
        self._end_id = int(tokenizer.end_id)
        self.pad_id: int = tokenizer.pad_id
        self._stream_ends = np.cumsum(documents.sizes + 1)
        self._firsts = documents.firsts

    @property
    def rows_per_epoch(self) -> int:
        """Rows that hold the entire stream; the last one may be short."""
        return -(-int(self._stream_ends[-1]) // self.length)

    def rows(self, first: int, num: int) -> Batch:
        """The rows `first` … `first + num` of the endless sequence of rows."""
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
        """Keys of the order of rows and of their start; none if all is fixed."""
        purposes = () if self.is_fixed else (ROWS, DOCUMENTS)
        return np.array([stream_key(self._seed, purpose, epoch) for purpose in purposes], np.uint64)


class MixedBatches(RowBatches):
    """Batches with rows from several texts; a function of (seed, step) like all batches.

    An epoch has as many rows as all texts together: a small text is seen more than once in it.
    Validation batches come from one text after the other.
    """

    def __init__(
        self,
        sources: Sequence[RowBatches],
        *,
        seed: int = 1,
        exponent: float = 0.7,
        shares: Sequence[float] = (),
    ) -> None:
        sizes = {source.batch_size for source in sources}
        if len(sizes) != 1:
            raise OptionError("Texts are mixed when there are some, all with the same batch_size.")
        super().__init__(sources[0].length, sizes.pop(), seed, is_fixed=sources[0].is_fixed)
        self.sources, self.pad_id = list(sources), sources[0].pad_id
        self.shares = np.array(shares, np.float64)
        if not len(shares):
            self.shares = smoothed_shares([source.num_tokens for source in sources], exponent)
        self.num_tokens = sum(source.num_tokens for source in sources)
        self._limits = np.round(np.cumsum(self.shares) * 2**32).astype(np.uint64)
        self._limits[-1] = 2**32
        self._key = np.uint64(stream_key(seed, SOURCES))
        self._known = (0, np.zeros(len(sources), np.int64))  # rows drawn so far, by source

    @property
    def rate(self) -> float:
        """The fraction of tokens to predict, of masked texts."""
        return float(self.sources[0].rate)  # type: ignore[attr-defined]

    @rate.setter
    def rate(self, value: float) -> None:
        for source in self.sources:
            source.rate = value  # type: ignore[attr-defined]

    @property
    def rows_per_epoch(self) -> int:
        """Rows of all texts together."""
        return sum(source.rows_per_epoch for source in self.sources)

    @property
    def batches_per_epoch(self) -> int:
        """Batches with as many rows as all texts have."""
        if self.is_fixed:
            return sum(source.batches_per_epoch for source in self.sources)
        return super().batches_per_epoch

    @property
    def num_trimmed(self) -> int:
        """Tokens that the first epoch over every text drops."""
        return sum(source.num_trimmed for source in self.sources)

    @property
    def num_labelled(self) -> int:
        """Rows with a next-sentence label in the first epoch over every text."""
        return sum(source.num_labelled for source in self.sources)

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
        count_draws(self._key, first, last, self._limits, counts)
        self._known = (last, counts)
        return counts
