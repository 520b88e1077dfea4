"""Batches for a masked model: a store in, rows with hidden tokens out. B rows, T positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.examples.batches import Batch, Split
from sememe.examples.documents import Documents
from sememe.examples.masking import Masker
from sememe.examples.masking_config import MaskingConfig
from sememe.examples.masking_kernels import fill_rows
from sememe.examples.order import BATCHES, Examples, ExampleSequence
from sememe.examples.packing import FullSentences, check_sizes
from sememe.examples.randomness import number, stream_key
from sememe.examples.sentence_pairs import SentencePairs

# Batches among which examples of similar length are brought together.
_WINDOW = 32
_WIDTH_STEP = 8


class MaskedBatches:
    """Batches for a masked model, each a function of (seed, step).

    With next_sentence the rows are pairs, otherwise whole sentences of one document. Examples come
    in a random order that is another in every epoch, as are their masks and the cuts of pairs;
    validation batches are the same at all times. A batch is as wide as its longest row.
    `group_lengths` brings examples of similar length together, for networks that spend work on
    padding; to others it only makes batches unequal.
    """

    def __init__(
        self,
        store: Any,
        tokenizer: Any,
        masking: MaskingConfig | None = None,
        *,
        length: int,
        batch_size: int,
        seed: int = 1,
        next_sentence: bool = True,
        split: Split = "train",
        group_lengths: bool = False,
    ) -> None:
        check_sizes(length, batch_size)
        self.length, self.batch_size, self.next_sentence = length, batch_size, next_sentence
        self.masking = masking or MaskingConfig()
        self._tokenizer, self._seed, self._group_lengths = tokenizer, seed, group_lengths
        self._documents = Documents(store, split)
        self.num_tokens, self.pad_id = self._documents.num_tokens, int(tokenizer.pad_id)
        plan = SentencePairs if next_sentence else FullSentences
        self._planner = plan(self._documents, length, seed)
        self._masker = Masker(self._documents, tokenizer, self.masking)
        self.is_fixed = split == "validation"
        self._sequence = ExampleSequence(self._planner, seed, is_fixed=self.is_fixed)
        self._windows: dict[int, tuple[Examples, np.ndarray]] = {}

    @property
    def rows_per_epoch(self) -> int:
        """Examples of the first epoch; the number of pairs varies a little between epochs."""
        return self._sequence.num_before(1)

    @property
    def batches_per_epoch(self) -> int:
        """Batches of the first pass over the text."""
        return -(-self.rows_per_epoch // self.batch_size)

    @property
    def num_trimmed(self) -> int:
        """Tokens that the pairs of the first epoch leave out; other epochs leave out others."""
        return self._planner.trimmed(0) if isinstance(self._planner, SentencePairs) else 0

    def num_steps(self, epochs: float) -> int:
        """Steps after which `epochs` passes over the text are done."""
        whole = int(epochs)
        before, after = (self._sequence.num_before(epoch) for epoch in (whole, whole + 1))
        return -(-round(before + (epochs - whole) * (after - before)) // self.batch_size)

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0.

        It may hold the end of one epoch and the start of the next, so that all are full.
        """
        if self.is_fixed:
            step %= self.batches_per_epoch
        if not self._group_lengths:
            return self.rows(step * self.batch_size, self.batch_size)
        index, place = divmod(step, _WINDOW)
        if index not in self._windows:
            # Two are kept: threads may ask for steps on either side of a bound in any order.
            self._windows = {**dict(list(self._windows.items())[-1:]), index: self._grouped(index)}
        examples, order = self._windows[index]
        first = int(order[place]) * self.batch_size
        return self._written(examples.chosen(slice(first, first + self.batch_size)))

    def rows(self, first: int, num: int) -> Batch:
        """The rows `first` … `first + num` of the endless sequence of examples."""
        return self._written(self._sequence.take(first, num))

    def _grouped(self, window: int) -> tuple[Examples, np.ndarray]:
        """The examples of a window by length, and the order of its batches."""
        num_rows = _WINDOW * self.batch_size
        examples = self._sequence.take(window * num_rows, num_rows)
        examples = examples.chosen(np.argsort(examples.sizes, kind="stable"))
        num_batches = -(-len(examples.keys_N) // self.batch_size)
        if self.is_fixed:
            return examples, np.arange(num_batches)
        key = stream_key(self._seed, BATCHES, window)
        draws = np.array([number(key, index) for index in range(num_batches)], np.uint64)
        return examples, np.argsort(draws, kind="stable")

    def _written(self, examples: Examples) -> Batch:
        num_rows, tokenizer = len(examples.keys_N), self._tokenizer
        shape = (num_rows, self._width(examples))
        ids_BT, segments_BT = np.empty(shape, np.int32), np.empty(shape, np.int8)
        lengths_B = np.empty(num_rows, np.int32)
        fill_rows(
            self._documents.ids, examples.spans_N4, tokenizer.cls_id, tokenizer.sep_id,
            tokenizer.pad_id, ids_BT, segments_BT, lengths_B,
        )  # fmt: skip
        hidden_N, targets_N = self._masker.hide(examples, ids_BT, lengths_B)
        return Batch(
            ids_BT=ids_BT,
            lengths_B=lengths_B,
            num_tokens=int(lengths_B.sum()),
            segments_BT=segments_BT if self.next_sentence else None,
            hidden_N=hidden_N,
            targets_N=targets_N,
            is_next_B=examples.is_next_N if self.next_sentence else None,
        )

    def _width(self, examples: Examples) -> int:
        longest = int(examples.sizes.max()) + (3 if self.next_sentence else 2)
        return min(-(-longest // _WIDTH_STEP) * _WIDTH_STEP, self.length)
