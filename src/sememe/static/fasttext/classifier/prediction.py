"""Predicting labels: blocks of lines in, the most likely labels of each line out, on every core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from sememe.cores import in_order
from sememe.static.fasttext.classifier.config import FastTextClassifierConfig
from sememe.static.fasttext.classifier.dictionary import (
    Expanded,
    chosen_types,
    expand,
    rows_of_types,
)
from sememe.static.fasttext.classifier.scanning import scan, words_as_block
from sememe.static.fasttext.classifier.training import loss_number
from sememe.static.fasttext.classifier.weights import Weights, dense
from sememe.tokens.ngrams import check_options, keep_ngrams
from sememe.tokens.tables import read_only
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.fasttext import QuantizedMatrix

_LINES = 4_096  # of which the hidden vectors are held at once
_SMALL = 1 << 26
# A table of all buckets is quick; where a file states more of them than these, the few that a
# pruned model has are searched instead.
_MOST_PLACES = 1 << 26


class Found(NamedTuple):
    """Predictions of a block of lines: (B, K) label ids, -1 behind the last, probabilities."""

    label_ids: np.ndarray
    chances: np.ndarray
    lines: Expanded


class Predictor:
    """A model made ready to predict: a table of its words, flat matrices, the tree."""

    def __init__(self, weights: Weights, config: FastTextClassifierConfig) -> None:
        from sememe.static.fasttext.classifier.scanning_kernels import build_slots, has_prefix

        self.weights, self.config = weights, config
        self._num_words, self._num_labels = len(weights.words), len(weights.labels)
        known = words_as_block(_joined(weights.words, weights.labels))
        self._known = (np.array(known.data), known.starts + known.sizes, known.hashes)
        self._slots = np.full(1 << (2 * len(known.hashes) + 2).bit_length(), -1, np.int32)
        build_slots(known.hashes, self._slots)
        # Facebook's program stores what a word is; `has_prefix` decides for others alone.
        self._has_prefix = has_prefix
        self._prefix = np.frombuffer(config.label_prefix.encode(), np.uint8)
        self._places, self._kept = np.empty(0, np.int32), np.empty((0, 2), np.int32)
        self._is_searched = weights.is_pruned and config.bucket > _MOST_PLACES
        if config.has_buckets:
            check_options(self._num_words, config.minn, config.maxn, config.bucket)
            if self._is_searched:
                self._kept = weights.kept()
            else:
                self._places = weights.places(config.bucket)
        self._output = read_only(dense(weights.output).reshape(-1))
        self._flat_input = _flat(weights.input) if isinstance(weights.input, np.ndarray) else None
        self._norms = np.empty(0, np.float32)
        if isinstance(weights.input, QuantizedMatrix) and weights.input.norm_codes is not None:
            self._norms = weights.input.norms(np.arange(len(weights.input)))
        self._loss = loss_number(config.loss)
        self._children = _children(weights, config)
        steps = np.arange(513, dtype=np.float32) * 16 / 512 - 8
        self._table = (1.0 / (1.0 + np.exp(-steps.astype(np.float64)))).astype(np.float32)

    def read(self, text: bytes) -> Expanded:
        """The rows and labels of a block of lines."""
        from sememe.static.fasttext.classifier.line_kernels import NO_LABEL, UNKNOWN, map_buckets
        from sememe.static.fasttext.classifier.scanning_kernels import find_types

        block, config, num_words = scan(text), self.config, self._num_words
        places = np.empty(len(block.starts), np.int32)
        arena, ends, hashes = self._known
        types = (block.data, block.starts, block.sizes)
        find_types(*types, block.hashes, arena, ends, hashes, self._slots, places)
        is_label = np.zeros(len(places), np.bool_)
        self._has_prefix(*types, self._prefix, is_label)
        kinds = np.where(places >= num_words, num_words - 2 - places, places)
        kinds[places < 0] = np.where(is_label, NO_LABEL, UNKNOWN)[places < 0]
        kinds = kinds.astype(np.int32)
        subwords = None
        if config.maxn:
            all_types = chosen_types(*types, block.counts, np.arange(len(kinds)))
            subwords = rows_of_types(all_types, kinds, config, num_words)
        found = expand(
            block.tokens, block.line_ends, kinds, block.hashes, subwords, 0, config, num_words
        )
        if self._is_searched and config.has_buckets:
            ends, items = keep_ngrams(found.ends, found.items, num_words, self._kept)
            found = found._replace(ends=ends, items=items)
        elif len(self._places):
            num_items = map_buckets(found.items, found.ends, num_words, self._places)
            found = found._replace(items=found.items[:num_items])
        return found

    def predict(self, text: bytes, k: int, threshold: float) -> Found:
        """Find the `k` most likely labels of each line among those that reach `threshold`."""
        from sememe.static.fasttext.classifier.prediction_kernels import best_labels

        lines = self.read(text)
        num_lines = len(lines.ends)
        sizes = np.diff(lines.ends, prepend=0)
        k = min(k, self._num_labels)
        label_ids = np.empty((num_lines, k), np.int32)
        chances = np.zeros((num_lines, k), np.float32)
        for first in range(0, num_lines, _LINES):
            last = min(first + _LINES, num_lines)
            best_labels(
                self._loss, self._hidden(lines, first, last), sizes[first:last], self._output,
                self._num_labels, self._children, self._table, np.float32(threshold),
                label_ids[first:last], chances[first:last],
            )  # fmt: skip
        return Found(label_ids, chances, lines)

    def _hidden(self, lines: Expanded, first: int, last: int) -> np.ndarray:
        """The mean of the rows of each line, (B, D)."""
        from sememe.static.fasttext.classifier.prediction_kernels import mean_codes, mean_rows

        matrix = self.weights.input
        hidden_BD = np.empty((last - first, matrix.shape[1]), np.float32)
        span = (lines.items, lines.ends, first, last)
        if isinstance(matrix, QuantizedMatrix) or self._flat_input is None:
            assert isinstance(matrix, QuantizedMatrix)
            quantizer = matrix.quantizer
            mean_codes(
                *span, read_only(matrix.codes), read_only(quantizer.centroids),
                quantizer.part_size, quantizer.last_part_size, self._norms, hidden_BD,
            )  # fmt: skip
        else:
            rows = np.empty(int(np.diff(lines.ends, prepend=0).max(initial=0)), np.int64)
            mean_rows(*span, *self._flat_input, len(matrix), rows, hidden_BD)
        return hidden_BD

    def predict_all(self, texts: Iterable[bytes], k: int, threshold: float) -> Iterator[Found]:
        """Predict blocks of lines in threads; give them back in order, few at a time."""
        workers = self.config.num_workers
        with ThreadPoolExecutor(workers) as pool:
            yield from in_order(
                pool, lambda text: self.predict(text, k, threshold), texts, 2 * workers
            )

    def embed(self, text: bytes) -> np.ndarray:
        """The hidden vector of each line, (B, D)."""
        lines = self.read(text)
        return self._hidden(lines, 0, len(lines.ends))


def _joined(words: Vocabulary, labels: Vocabulary) -> Vocabulary:
    (data, ends), (more, more_ends) = words.to_arrays(), labels.to_arrays()
    return Vocabulary(
        np.concatenate([data, more]),
        np.concatenate([ends, more_ends + len(data)]),
        np.concatenate([words.counts, labels.counts]),
    )


def _children(weights: Weights, config: FastTextClassifierConfig) -> np.ndarray:
    if config.loss != "hierarchical":
        return np.empty(0, np.int64)
    from sememe.examples.huffman import build_tree
    from sememe.static.fasttext.classifier.prediction_kernels import tree_children

    children = np.zeros(2 * len(weights.labels) - 2, np.int64)
    tree = build_tree(np.asarray(weights.labels.counts))
    tree_children(tree.starts, tree.nodes, tree.codes, children)
    return children


def _flat(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """(all numbers one after the other, numbers from one row to the next).

    A map of Facebook's file may start at any byte; kernels are compiled once more for such arrays,
    which takes longer than the copy of a small one.
    """
    if not matrix.flags.aligned and matrix.nbytes < _SMALL:
        matrix = matrix.copy()
    width = matrix.strides[0] // 4 if len(matrix) > 1 else matrix.shape[1]
    size = (len(matrix) - 1) * width + matrix.shape[1] if len(matrix) else 0
    flat = np.lib.stride_tricks.as_strided(np.asarray(matrix), (size,), (4,), writeable=False)
    return flat, width
