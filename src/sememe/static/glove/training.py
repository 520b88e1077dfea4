"""The training run of GloVe: arranged cells in, changed matrices out, by any number of threads.

A step works on one stretch of the arranged cells. The order of the steps is shuffled anew for each
epoch, and so is the way through the cells of a step; both are functions of the seed and the step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.static.glove.cells import CellFile
from sememe.static.glove.config import GloVeConfig
from sememe.static.loop import Run
from sememe.static.model import StaticModel
from sememe.tokens.vocabulary import Vocabulary

UNK = "<unk>"
_NUM_RAREST = 100
_ORDER, _WAY, _START = 1, 2, 3  # purposes of random streams


def row_size(dim: int) -> int:
    """D of the kernels: a vector, its bias and a 1, padded."""
    from sememe.static.rows import padded

    return padded(dim + 2)


def matrix_bytes(num_words: int, dim: int) -> int:
    """What the two matrices take with their sums of squared steps, and the vectors made of them."""
    return 2 * num_words * (2 * row_size(dim) + dim) * 4


def way_through(key: int, num_cells: int) -> tuple[int, int]:
    """(first, stride): visiting every stride-th cell around the end meets each exactly once.

    Cells are sorted by block of columns, then row, then column. The stride lies between three and
    seven tenths of the whole, so that cells in a row are far apart.
    """
    from sememe.examples.randomness import number

    first = number(key, 0) % num_cells
    stride = max(1, num_cells * (300 + number(key, 1) % 401) // 1000)
    while math.gcd(stride, num_cells) != 1:
        stride += 1
    return first, stride % num_cells


class GloVeRun(Run):
    """All that a training run needs, and the work of one step."""

    def __init__(
        self, config: GloVeConfig, cells: CellFile, vocabulary: Vocabulary, num_tokens: int
    ) -> None:
        from sememe.static.rows import matrix

        self.config, self.cells, self.vocabulary = config, cells, vocabulary
        self.width = row_size(config.dim)
        words, contexts = (matrix(len(vocabulary), 2 * self.width) for _ in range(2))
        self.matrices = {"words": words, "contexts": contexts}
        self._flat = (words.reshape(-1), contexts.reshape(-1))
        self._rates, self._limits = step_limits(config)
        self.steps_per_epoch = cells.num_steps
        self.num_steps = cells.num_steps * config.epochs
        self.num_workers, self.tokens_per_epoch = config.num_workers, num_tokens
        self.start_rate = config.learning_rate
        self._order = (-1, np.empty(0, np.int64))  # of the epoch at hand

    def close(self) -> None:
        """Let go of the file of cells."""
        self.cells.close()

    def begin(self) -> None:
        """Fill the matrices with the numbers that training starts from."""
        from sememe.examples.randomness import fill_uniform, stream_key

        dim, reach = self.config.dim, np.float32(0.5 / self.config.dim)
        for index, matrix in enumerate(self.matrices.values()):
            key = np.uint64(stream_key(self.config.seed, _START, index))
            fill_uniform(matrix, dim + 1, -reach, reach, key, 0)
        words, contexts = self.matrices["words"], self.matrices["contexts"]
        words[:, dim + 1] = 1
        contexts[:, dim + 1] = contexts[:, dim]
        contexts[:, dim] = 1

    def greeting(self) -> str:
        """One line that says what is about to be trained."""
        config = self.config
        return (
            f"{len(self.vocabulary):,} words, {self.cells.num_cells:,} counts, "
            f"{config.epochs} epochs: {config.dim} dimensions, {config.num_workers} workers"
        )

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the vectors and biases to the model: copies, since sums lie between the rows."""
        words, contexts = self.matrices["words"], self.matrices["contexts"]
        dim, vocabulary = self.config.dim, self.vocabulary
        tensors = {
            "input": words[:, :dim], "output": contexts[:, :dim],
            "input_biases": words[:, dim], "output_biases": contexts[:, dim + 1],
        }  # fmt: skip
        if self.config.unk:
            tensors = {name: with_mean_of_rarest(rows) for name, rows in tensors.items()}
            vocabulary = with_unknown(vocabulary)
        else:
            tensors = {name: rows.copy() for name, rows in tensors.items()}
        model.adopt(vocabulary, **tensors)

    def words_at(self, step: int) -> int:
        """Words of text that correspond to the cells before `step`."""
        return step * self.tokens_per_epoch // self.steps_per_epoch

    def rate_at(self, step: int) -> float:
        """The learning rate before AdaGrad: it stays."""
        return self.config.learning_rate

    def order(self, epoch: int) -> np.ndarray:
        """The steps of the file in the order in which an epoch takes them."""
        from sememe.examples.randomness import stream_key
        from sememe.static.glove.kernels import random_order

        known, order = self._order
        if known != epoch:
            order = np.empty(self.steps_per_epoch, np.int64)
            random_order(np.uint64(stream_key(self.config.seed, _ORDER, epoch)), order)
            self._order = (epoch, order)
        return order

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on the cells of `step`."""
        from sememe.examples.randomness import stream_key
        from sememe.static.glove.kernels import train_cells

        config = self.config
        epoch, place = divmod(step, self.steps_per_epoch)
        keys, logs, base = self.cells.read(int(self.order(epoch)[place]))
        first, stride = way_through(stream_key(config.seed, _WAY, step), len(keys))
        train_cells(
            keys, logs, base, first, stride, *self._flat, self.width, self._rates, self._limits,
            np.float32(config.alpha), np.float32(math.log(config.x_max)), stats,
        )  # fmt: skip


def step_limits(config: GloVeConfig) -> tuple[np.ndarray, np.ndarray]:
    """(rates, limits) of a step for each number of a word's row, then of a context's."""
    dim = config.dim
    rates, limits = (np.zeros((2, row_size(dim)), np.float32) for _ in range(2))
    rates[:, :dim], limits[:] = config.learning_rate, config.grad_clip
    # As in the original program: a bias moves at a rate of 1, and its gradient has no limit.
    for matrix, bias in ((0, dim), (1, dim + 1)):
        rates[matrix, bias], limits[matrix, bias] = 1, np.inf
    return rates.reshape(-1), limits.reshape(-1)


def with_mean_of_rarest(rows: np.ndarray) -> np.ndarray:
    """The rows and below them the mean of the last hundred, which are the rarest words."""
    mean = rows[-_NUM_RAREST:].mean(axis=0, dtype=np.float64, keepdims=True)
    return np.concatenate([rows, mean.astype(np.float32)])


def check_unknown(vocabulary: Vocabulary) -> None:
    """Refuse a text that has <unk> as a word already, before anything is learned from it."""
    if vocabulary.find(UNK) >= 0:
        raise InputError(
            f"The text has the word {UNK}, so there can be no other vector of that name: "
            "leave out unk."
        )


def with_unknown(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary and <unk> as its last word."""
    counts = np.asarray(vocabulary.counts).tolist()
    return Vocabulary.from_words([*vocabulary, UNK], [*counts, 0])
