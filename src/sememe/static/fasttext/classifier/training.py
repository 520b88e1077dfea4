"""The training run of the classifier: encoded lines in, changed matrices out.

The lines, mixed when they were encoded, are cut into steps, which come in a new order each epoch,
a function of the seed. With one worker the steps change the matrices directly; with more, see
`kernels`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.static.fasttext.classifier.config import FastTextClassifierConfig
from sememe.static.fasttext.classifier.dictionary import Lines, in_parts
from sememe.static.loop import Run

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.model import FastTextClassifier

START, DRAWS, ORDER = 12, 13, 14  # purposes of random streams; 11 mixes the lines
NOISE_EXPONENT = 0.5  # as Facebook's program draws noise labels
_HOT = 64  # words of which each worker has a copy of its own
_MOST_OUTPUTS = 256  # with more labels they are shared: lines seldom change the same
_STEP_TOKENS = 16_384
_MERGE_LINES = 64


def loss_number(loss: str) -> int:
    """How the kernels call a loss."""
    return ("softmax", "hierarchical", "ova", "negative").index(loss)


class ClassifierRun(Run):
    """All that training needs, and the work of one step."""

    def __init__(self, config: FastTextClassifierConfig, lines: Lines) -> None:
        from sememe.static.rows import matrix

        self.config, self.lines = config, lines
        self.num_workers, self.start_rate = config.num_workers, config.learning_rate
        self.tokens_per_epoch = lines.num_tokens
        self.num_outputs = len(lines.labels)
        has_own = self.num_workers > 1 and self.num_outputs <= _MOST_OUTPUTS
        self.num_hot = min(_HOT, len(lines.words)) if has_own else 0
        self.merge_every = max(1, _MERGE_LINES // self.num_workers) if has_own else 0
        num_own = self.num_workers if has_own else 0
        self._input = matrix(lines.num_rows + num_own * self.num_hot, config.dim)
        self._output = matrix(self.num_outputs * (1 + num_own), config.dim)
        self.matrices = {
            "input": self._input[: lines.num_rows],
            "output": self._output[: self.num_outputs],
        }
        num_lines = len(lines)
        tokens_per_line = max(1, lines.num_tokens // max(1, num_lines))
        # A small text still has enough steps for every thread.
        most = max(1, num_lines // (4 * self.num_workers))
        self.step_lines = min(max(1, _STEP_TOKENS // tokens_per_line), most)
        self.steps_per_epoch = -(-num_lines // self.step_lines)
        self.num_steps = self.steps_per_epoch * config.epochs
        self._tree, self._noise = self._prepare_loss()
        self._orders: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()
        self._num_spaces = 0

    def _prepare_loss(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        tree = (np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.uint8))
        noise = (np.zeros(1, np.uint64), np.zeros(1, np.int32))
        counts = np.asarray(self.lines.labels.counts)
        if self.config.loss == "hierarchical":
            from sememe.examples.huffman import build_tree

            built = build_tree(counts)
            tree = (built.starts, built.nodes, built.codes)
        elif self.config.loss == "negative":
            from sememe.examples.noise import alias_table

            noise = alias_table(counts, NOISE_EXPONENT)
        return tree, noise

    def begin(self, start: np.ndarray | None = None) -> None:
        """Fill the input matrix with noise; `start` (words, dim) has NaN rows for those without."""
        from sememe.examples.randomness import stream_key
        from sememe.static.fasttext.classifier.kernels import start_rows

        lines, dim = self.lines, self.config.dim
        # The row of a bucket starts from the same numbers whichever other ones occur.
        num_words = len(lines.words)
        ids = np.concatenate([np.arange(num_words), num_words + lines.buckets.astype(np.int64)])
        key = np.uint64(stream_key(self.config.seed, START))
        reach = np.float32(1.0 / dim)
        in_parts(
            self.num_workers,
            lambda first, last: start_rows(
                self._input[first:last], ids[first:last], dim, reach, key
            ),
            len(ids),
        )
        if start is not None:
            is_given = ~np.isnan(start[:, 0])
            self._input[: len(start), :dim][is_given] = start[is_given]

    def new_space(self) -> tuple[int, np.ndarray, np.ndarray]:
        """A worker's number, its floats and its places for the rows of two lines."""
        with self._lock:
            worker, self._num_spaces = self._num_spaces, self._num_spaces + 1
        width = self._input.shape[1]
        num_floats = width * (2 + self.num_hot + self.num_outputs) + self.num_outputs + 16
        rows = np.empty(2 * max(1, self.lines.longest), np.int64)
        return worker % self.num_workers, np.zeros(num_floats, np.float32), rows

    def span(self, step: int) -> tuple[int, int, int]:
        """(epoch, first line, end of the lines) of a step."""
        from sememe.examples.randomness import stream_key
        from sememe.static.fasttext.classifier.kernels import shuffle

        epoch, part = divmod(step, self.steps_per_epoch)
        with self._lock:
            if epoch not in self._orders:
                order = np.arange(self.steps_per_epoch)
                shuffle(order, np.uint64(stream_key(self.config.seed, ORDER, epoch)))
                self._orders[epoch] = order
                self._orders.pop(epoch - 2, None)
            first = int(self._orders[epoch][part]) * self.step_lines
        return epoch, first, min(first + self.step_lines, len(self.lines))

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on the lines of `step`."""
        from sememe.examples.randomness import stream_key
        from sememe.static.fasttext.classifier.kernels import train_lines

        worker, floats, rows = space
        epoch, first, last = self.span(step)
        lines, config = self.lines, self.config
        train_lines(
            loss_number(config.loss), first, last, lines.ends, lines.items,
            lines.type_ends, lines.type_rows, len(lines.words), lines.label_ends, lines.label_ids,
            self._input.reshape(-1), self._output.reshape(-1), self._input.shape[1],
            self.num_outputs, *self._tree, *self._noise, config.negatives,
            np.uint64(stream_key(config.seed, DRAWS, epoch)),
            np.float32(self.rate_at(step)), np.float32(self.rate_at(step + 1)),
            worker, lines.num_rows, self.num_hot, self.merge_every, floats, rows, stats,
        )  # fmt: skip

    def _lines_at(self, step: int) -> int:
        epoch, part = divmod(step, self.steps_per_epoch)
        num_lines = len(self.lines)
        return epoch * num_lines + min(part * self.step_lines, num_lines)

    def words_at(self, step: int) -> int:
        """Tokens that lie before `step`, as many in each line as in the mean."""
        return self._lines_at(step) * self.lines.num_tokens // len(self.lines)

    def rate_at(self, step: int) -> float:
        """The learning rate at the start of a step: it falls to 0 in a straight line."""
        total = len(self.lines) * self.config.epochs
        return self.config.learning_rate * (1.0 - self._lines_at(step) / total)

    def hand_over(self, model: Any, *, is_final: bool) -> None:
        """Give the matrices to the model, without padding; copies while they still change."""
        adopting: FastTextClassifier = model
        dim = self.config.dim
        input, output = (rows[:, :dim] for rows in self.matrices.values())
        if not is_final:
            input, output = input.copy(), output.copy()
        adopting.adopt_lines(self.lines, input, output)

    def greeting(self) -> str:
        """One line that says what is about to be trained."""
        lines, config = self.lines, self.config
        return (
            f"{len(lines):,} lines, {len(lines.labels):,} labels, {len(lines.words):,} words"
            f"{f', {len(lines.buckets):,} n-gram rows' if config.has_buckets else ''}, "
            f"{config.epochs} epochs: {config.loss}, {config.dim} dimensions, "
            f"{config.num_workers} workers"
        )
