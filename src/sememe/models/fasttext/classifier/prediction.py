"""Predicting labels on all cores: blocks of lines in, the most likely labels of each line out.

Scores on labelled lines: precision, recall and F1, over all labels and for each.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.examples.windows import build_tree
from sememe.machine import in_order
from sememe.metrics import ClassScore, Reliability, averages, calibration_lines, class_table
from sememe.metrics.baselines import ONE_SEED, beside_table, interval_line, reasons
from sememe.metrics.comparison import f1_of_sums, redrawn_interval
from sememe.metrics.decisions import decide
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig
from sememe.models.fasttext.classifier.dictionary import (
    Expanded,
    chosen_types,
    expand,
    rows_of_types,
    scan,
    words_as_block,
)
from sememe.models.fasttext.classifier.kernels import (
    best_labels,
    mean_codes,
    mean_rows,
    tree_children,
)
from sememe.models.fasttext.classifier.line_kernels import (
    NO_LABEL,
    UNKNOWN,
    build_slots,
    find_types,
    has_prefix,
    map_buckets,
)
from sememe.models.fasttext.classifier.weights import ClassifierWeights, dense
from sememe.progress import baseline_remark, few_remark
from sememe.tokens.ngrams import check_options, keep_ngrams
from sememe.tokens.vocabulary import Vocabulary, read_only
from sememe.vectors.subwords import QuantizedMatrix

_LINES = 4_096  # whose hidden vectors are in memory at once
_SMALL = 1 << 26
# A table of all buckets is fast; if a file has more buckets than this, the few that have a row are
# searched instead.
_MOST_PLACES = 1 << 26


class FoundLabels(NamedTuple):
    """Predictions of a block of lines: (B, K) label ids, -1 after the last, probabilities."""

    label_ids: np.ndarray
    chances: np.ndarray
    lines: Expanded
    all_chances_BL: np.ndarray | None = None  # of every label, where they are wanted

    @property
    def is_asked(self) -> np.ndarray:
        """Which lines have words and known labels, and so can be scored."""
        return (np.diff(self.lines.label_ends, prepend=0) > 0) & (
            np.diff(self.lines.ends, prepend=0) > 0
        )

    def truths(self, num_labels: int) -> np.ndarray:
        """Which labels the lines have, (B, L)."""
        sizes = np.diff(self.lines.label_ends, prepend=0)
        is_true_BL = np.zeros((len(sizes), num_labels), np.bool_)
        is_true_BL[np.repeat(np.arange(len(sizes)), sizes), self.lines.labels] = True
        return is_true_BL


class Predictor:
    """A model prepared for prediction: a table of its words, flat matrices, the tree."""

    def __init__(self, weights: ClassifierWeights, config: FastTextClassifierConfig) -> None:

        self.weights, self.config = weights, config
        self._num_words, self._num_labels = len(weights.words), len(weights.labels)
        known = words_as_block(_joined(weights.words, weights.labels))
        self._known = (np.array(known.data), known.starts + known.sizes, known.hashes)
        self._slots = np.full(1 << (2 * len(known.hashes) + 2).bit_length(), -1, np.int32)
        build_slots(known.hashes, self._slots)
        self._prefix = np.frombuffer(config.label_prefix.encode(), np.uint8)
        self._places = np.empty(0, np.int32)
        self._kept: np.ndarray | None = None
        if config.has_buckets:
            check_options(self._num_words, config.minn, config.maxn, config.bucket)
            if weights.buckets is not None and config.bucket > _MOST_PLACES:
                self._kept = weights.kept()
            else:
                self._places = weights.places(config.bucket)
        self._output = read_only(dense(weights.output).reshape(-1))
        self._flat_input = _flat(weights.input) if isinstance(weights.input, np.ndarray) else None
        self._norms = np.empty(0, np.float32)
        if isinstance(weights.input, QuantizedMatrix) and weights.input.norm_codes is not None:
            self._norms = weights.input.norms(np.arange(len(weights.input)))
        self._loss = config.loss_number
        self._children = _children(weights, config)
        steps = np.arange(513, dtype=np.float32) * 16 / 512 - 8
        self._table = (1.0 / (1.0 + np.exp(-steps.astype(np.float64)))).astype(np.float32)

    def read(self, text: bytes) -> Expanded:
        """The rows and labels of a block of lines."""

        block, config, num_words = scan(text), self.config, self._num_words
        places = np.empty(len(block.starts), np.int32)
        arena, ends, hashes = self._known
        types = (block.data, block.starts, block.sizes)
        find_types(*types, block.hashes, arena, ends, hashes, self._slots, places)
        is_label = np.zeros(len(places), np.bool_)
        # Facebook's program stores the kind of each word; the prefix decides only for others.
        has_prefix(*types, self._prefix, is_label)
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
        if self._kept is not None and self.weights.is_pruned:
            ends, items = keep_ngrams(found.ends, found.items, num_words, self._kept)
            found = found._replace(ends=ends, items=items)
        elif self._kept is not None:
            found = found._replace(items=self._searched(found.items, self._kept))
        elif len(self._places):
            num_items = map_buckets(found.items, found.ends, num_words, self._places)
            found = found._replace(items=found.items[:num_items])
        return found

    def _searched(self, items: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Rows instead of buckets; `num_rows` stands for the zeros of an n-gram without a row."""
        order = np.searchsorted(kept[:, 0], items - self._num_words)
        known = np.vstack([kept, (-1, 0)])[np.minimum(order, len(kept))]
        is_kept = known[:, 0] == items - self._num_words
        rows = np.where(is_kept, self._num_words + known[:, 1], self.weights.num_rows)
        return np.where(items < self._num_words, items, rows).astype(np.int32)

    def predict(
        self, text: bytes, k: int, threshold: float, *, has_all: bool = False
    ) -> FoundLabels:
        """The `k` most likely labels of each line among those that reach `threshold`.

        With `has_all` the probabilities of all labels too.
        """
        lines = self.read(text)
        label_ids, chances = self._best(lines, k, threshold)
        found = FoundLabels(label_ids, chances, lines)
        return found._replace(all_chances_BL=self._all(lines)[2]) if has_all else found

    def decided(self, text: bytes, thresholds_L: np.ndarray, *, is_one: bool) -> FoundLabels:
        """The labels of each line that their thresholds decide for, most likely first."""
        lines = self.read(text)
        ids_BL, values_BL, chances_BL = self._all(lines)
        is_said_BL = decide(chances_BL, thresholds_L, is_one=is_one)
        is_said_BL = np.take_along_axis(is_said_BL, np.maximum(ids_BL, 0), 1) & (ids_BL >= 0)
        order_BL = np.argsort(~is_said_BL, axis=1, kind="stable")
        ids_BL = np.take_along_axis(np.where(is_said_BL, ids_BL, -1), order_BL, 1)
        most = max(1, int(is_said_BL.sum(1).max(initial=0)))
        values_BL = np.take_along_axis(values_BL, order_BL, 1)
        return FoundLabels(ids_BL[:, :most], values_BL[:, :most], lines, chances_BL)

    def _all(self, lines: Expanded) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All labels by falling probability, their probabilities, and these by label."""
        ids_BL, values_BL = self._best(lines, self._num_labels, 0.0)
        chances_BL = np.zeros((len(ids_BL), self._num_labels + 1), np.float32)
        np.put_along_axis(chances_BL, ids_BL, values_BL, 1)  # -1, no label: the last column
        return ids_BL, values_BL, chances_BL[:, :-1]

    def scores(self, text: bytes) -> tuple[np.ndarray, np.ndarray]:
        """The scores of the output rows for each line with a label, and which labels are true."""
        found = FoundLabels(np.empty(0), np.empty(0), self.read(text))
        hidden_BD = self._hidden(found.lines, 0, len(found.lines.ends))[found.is_asked]
        scores_BO = hidden_BD @ self._output.reshape(-1, hidden_BD.shape[1]).T
        return scores_BO, found.truths(self._num_labels)[found.is_asked]

    def _best(self, lines: Expanded, k: int, threshold: float) -> tuple[np.ndarray, np.ndarray]:
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
        return label_ids, chances

    def _hidden(self, lines: Expanded, first: int, last: int) -> np.ndarray:
        """The mean of the rows of each line, (B, D)."""

        matrix: Any = self.weights.input
        hidden_BD = np.empty((last - first, matrix.shape[1]), np.float32)
        span = (lines.items, lines.ends, first, last)
        if self._flat_input is None:
            quantizer = matrix.quantizer
            mean_codes(
                *span, read_only(matrix.codes), read_only(quantizer.centroids),
                quantizer.part_size, quantizer.last_part_size, self._norms, hidden_BD,
            )  # fmt: skip
        else:
            rows = np.empty(int(np.diff(lines.ends, prepend=0).max(initial=0)), np.int64)
            mean_rows(*span, *self._flat_input, len(matrix), rows, hidden_BD)
        return hidden_BD

    def predict_all(
        self,
        texts: Iterable[bytes],
        k: int,
        threshold: float,
        *,
        has_all: bool = False,
        decide_by: tuple[np.ndarray, bool] | None = None,
    ) -> Iterator[FoundLabels]:
        """Predict blocks of lines in threads; yield results in order, few at a time.

        `decide_by` has the thresholds of the labels, and whether only one is predicted.
        """
        workers = self.config.num_workers

        def found(text: bytes) -> FoundLabels:
            if decide_by is not None:
                return self.decided(text, decide_by[0], is_one=decide_by[1])
            return self.predict(text, k, threshold, has_all=has_all)

        with ThreadPoolExecutor(workers) as pool:
            yield from in_order(pool, found, texts, 2 * workers)

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


def _children(weights: ClassifierWeights, config: FastTextClassifierConfig) -> np.ndarray:
    if config.loss != "hierarchical":
        return np.empty(0, np.int64)

    children = np.zeros(2 * len(weights.labels) - 2, np.int64)
    tree = build_tree(np.asarray(weights.labels.counts))
    tree_children(tree.starts, tree.nodes, tree.codes, children)
    return children


def _flat(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """(all values concatenated, floats from one row to the next).

    A memory map of Facebook's file may start at any byte; kernels would be compiled again for such
    arrays, which takes longer than copying a small one.
    """
    if not matrix.flags.aligned and matrix.nbytes < _SMALL:
        matrix = matrix.copy()
    width = matrix.strides[0] // 4 if len(matrix) > 1 else matrix.shape[1]
    size = (len(matrix) - 1) * width + matrix.shape[1] if len(matrix) else 0
    flat = np.lib.stride_tricks.as_strided(np.asarray(matrix), (size,), (4,), writeable=False)
    return flat, width


@dataclass(frozen=True)
class LabelsResult:
    """The scores of the first k labels: of each label, and averages over all."""

    num_examples: int
    num_skipped: int  # lines without a known label or without words
    k: int
    threshold: float
    classes: list[ClassScore]
    averages: dict[str, dict[str, float]]  # macro, micro, weighted
    calibration: dict[str, float] = field(default_factory=dict)  # see metrics.Reliability
    interval: list[float] | None = None  # of the F1 over the lines, 95 %
    seeds: str = ONE_SEED
    baselines: list[dict[str, Any]] = field(default_factory=list)  # see metrics.BaselineScore

    @property
    def precision(self) -> float:
        """Fraction of the predicted labels that are right, over all lines."""
        return self.averages["micro"]["precision"]

    @property
    def recall(self) -> float:
        """Fraction of the true labels that were predicted, over all lines."""
        return self.averages["micro"]["recall"]

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return self.averages["micro"]["f1"]

    @property
    def labels(self) -> list[ClassScore]:
        """The scores of each label, under the name that earlier versions gave them."""
        return self.classes

    def to_dict(self) -> dict[str, Any]:
        """The scores for JSON."""
        classes = [one.to_dict() for one in self.classes]
        overall = self.averages["micro"]
        return {**vars(self), **overall, "classes": classes, "labels": classes}

    def tables(self, name: str) -> Iterator[tuple[Sequence[str], list[Sequence[Any]], str]]:
        """Headings and rows to print, one for each label and one for each average; no title."""
        headings, rows = class_table([one.to_dict() for one in self.classes], self.averages)
        yield headings, rows, ""
        if self.baselines:
            yield beside_table(name, "f1", self.f1, self.interval, self.seeds, self.baselines)

    def summary(self, name: str) -> str:
        """The micro-averaged F1, and how good the probabilities are."""
        told = f"{name}: F1 {self.f1:.4f} on {self.num_examples:,} examples"
        certainty = interval_line(name, "f1", self.interval, self.seeds)
        lines = [told, certainty, *calibration_lines(name, self.calibration)]
        return "\n".join([*lines, *reasons(self.baselines)])

    @property
    def remark(self) -> str:
        """A sentence about skipped lines, the majority baseline and scores from few examples."""
        skipped = (
            f"{self.num_examples:,} examples; {self.num_skipped:,} lines without a known label "
            "or word were left out."
        )
        given = [str(one.label) for one in self.classes if one.num_predicted]
        largest = max((one.num_true for one in self.classes), default=0)
        majority = largest / max(1, self.num_examples)
        only = given[0] if len(given) == 1 else ""
        is_one_each = self.k == 1 and not self.threshold and len(self.classes) > 1
        baseline = baseline_remark(self.precision, majority, only) if is_one_each else ""
        parts = (
            skipped if self.num_skipped else "", baseline, few_remark(self.num_examples)
        )  # fmt: skip
        return " ".join(filter(None, parts))

    def __str__(self) -> str:
        return (
            f"{self.num_examples:,} examples: precision{f' at {self.k}' if self.k else ''} "
            f"{self.precision:.4f}, "
            f"recall {self.recall:.4f}, F1 {self.f1:.4f}"
        )


def score(
    blocks: Iterable[FoundLabels],
    names: list[str],
    k: int,
    threshold: float,
    source: str,
    *,
    is_one: bool = True,
) -> LabelsResult:
    """Compare predictions with the labels of the lines; `is_one`: they exclude each other."""
    num_true = np.zeros(len(names), np.int64)
    num_predicted, num_right = np.zeros_like(num_true), np.zeros_like(num_true)
    num_examples, num_lines = 0, 0
    reliability, has_all = Reliability(), False
    counts_of_lines: Counter[tuple[int, ...]] = Counter()  # (right, true, predicted) labels
    for found in blocks:
        lines, is_asked = found.lines, found.is_asked
        num_labels = np.diff(lines.label_ends, prepend=0)
        num_examples += int(is_asked.sum())
        num_lines += len(is_asked)
        line_of_label = np.repeat(np.arange(len(is_asked)), num_labels)
        true_ids = lines.labels[is_asked[line_of_label]]
        true_lines = line_of_label[is_asked[line_of_label]]
        asked = np.where(is_asked[:, None], found.label_ids, -1)
        line_of_guess, place = np.nonzero(asked >= 0)
        guesses = asked[line_of_guess, place]
        num_true += np.bincount(true_ids, minlength=len(names))
        num_predicted += np.bincount(guesses, minlength=len(names))
        is_right = np.isin(line_of_guess * len(names) + guesses, true_lines * len(names) + true_ids)
        num_right += np.bincount(guesses[is_right], minlength=len(names))
        of_line = np.stack(
            [
                np.bincount(lines_of, minlength=len(is_asked))
                for lines_of in (line_of_guess[is_right], true_lines, line_of_guess)
            ],
            axis=1,
        )
        for own, num in zip(*np.unique(of_line[is_asked], axis=0, return_counts=True), strict=True):
            counts_of_lines[tuple(own.tolist())] += int(num)
        if found.all_chances_BL is not None:
            has_all, is_true_BL = True, found.truths(len(names))
            reliability.add(found.all_chances_BL[is_asked], is_true_BL[is_asked], is_one=is_one)
    if not num_examples:
        raise InputError(
            f"{source} has no line with a label that the model knows: nothing to score."
        )
    interval = redrawn_interval(
        np.array([*counts_of_lines]), f1_of_sums, counts=[*counts_of_lines.values()]
    )
    counts = (num_right.tolist(), num_true.tolist(), num_predicted.tolist())
    classes = [*map(ClassScore, names, *counts)]
    return LabelsResult(
        num_examples, num_lines - num_examples, k, threshold, classes, averages(classes),
        reliability.to_dict() if has_all else {},
        [*interval] if math.isfinite(interval.low) else None,
    )  # fmt: skip
