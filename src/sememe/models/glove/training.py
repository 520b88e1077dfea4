"""GloVe's training run: arranged cells in, two matrices of vectors with biases out.

A step processes one range of the arranged cells. The order of the steps is shuffled for each epoch,
and so is the order of cells within a step; both are functions of the seed and the step.
"""

import math
from typing import Any

import numpy as np

from sememe.models.glove.cells import CellFile
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.kernels import random_order, train_cells
from sememe.models.static.loop import StaticRun
from sememe.models.static.model import StaticModel, matrix, padded
from sememe.randomness import fill_uniform, number, stream_key
from sememe.tokens.vocabulary import Vocabulary

UNK = "<unk>"
_NUM_RAREST = 100
ORDER, _WAY, _START = 1, 2, 3  # purposes of random streams


def row_size(dim: int) -> int:
    """D of the kernels: a vector, its bias and a 1, padded."""

    return padded(dim + 2)


def way_through(key: int, num_cells: int) -> tuple[int, int]:
    """(first, stride): visiting every stride-th cell, wrapping around, visits each exactly once.

    Cells are sorted by block of columns, then row, then column. The stride is between 0.3 and 0.7
    of the number of cells, so that consecutive cells are far apart.
    """

    first = number(key, 0) % num_cells
    stride = max(1, num_cells * (300 + number(key, 1) % 401) // 1000)
    while math.gcd(stride, num_cells) != 1:
        stride += 1
    return first, stride % num_cells


class GloVeRun(StaticRun):
    """The state of a training run, and the work of one step."""

    def __init__(
        self, config: GloVeConfig, cells: CellFile, vocabulary: Vocabulary, num_tokens: int
    ) -> None:

        self.vocabulary, self.tokens_per_epoch = vocabulary, num_tokens
        words, contexts = (matrix(len(vocabulary), 2 * row_size(config.dim)) for _ in range(2))
        self._set_up(config, cells, words, contexts)
        self.steps_per_epoch = cells.num_steps
        self.num_steps = cells.num_steps * config.epochs
        self._order = (-1, np.empty(0, np.int64))  # of the current epoch

    def _set_up(
        self, config: GloVeConfig, cells: CellFile, words: np.ndarray, contexts: np.ndarray
    ) -> None:
        self.config, self.cells, self.num_steps = config, cells, cells.num_steps
        self.width = row_size(config.dim)
        self.matrices = {"words": words, "contexts": contexts}
        self._flat = (words.reshape(-1), contexts.reshape(-1))
        self._rates, self._limits = step_limits(config)
        self.num_workers, self.start_rate = config.num_workers, config.learning_rate

    def close(self) -> None:
        """Close the file of cells."""
        self.cells.close()

    def begin(self) -> None:
        """Initialize the matrices."""

        dim, reach = self.config.dim, np.float32(0.5 / self.config.dim)
        for index, rows in enumerate(self.matrices.values()):
            key = np.uint64(stream_key(self.config.seed, _START, index))
            fill_uniform(rows, dim + 1, -reach, reach, key, 0)
        words, contexts = self.matrices["words"], self.matrices["contexts"]
        words[:, dim + 1] = 1
        contexts[:, dim + 1] = contexts[:, dim]
        contexts[:, dim] = 1

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        config = self.config
        return (
            f"{len(self.vocabulary):,} words, {self.cells.num_cells:,} counts, "
            f"{config.epochs} epochs: {config.dim} dimensions, {config.num_workers} workers"
        )

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the vectors and biases to the model: copies, because the rows also hold sums."""
        words, contexts = self.matrices["words"], self.matrices["contexts"]
        dim, vocabulary = self.config.dim, self.vocabulary
        tensors = {
            "input": words[:, :dim], "output": contexts[:, :dim],
            "input_biases": words[:, dim], "output_biases": contexts[:, dim + 1],
        }  # fmt: skip
        if self.config.unk:
            tensors = {name: with_mean_of_rarest(rows) for name, rows in tensors.items()}
            counts = np.asarray(vocabulary.counts).tolist()
            vocabulary = Vocabulary.from_words([*vocabulary, UNK], [*counts, 0])
        else:
            tensors = {name: rows.copy() for name, rows in tensors.items()}
        model.adopt(vocabulary, **tensors)

    def words_at(self, step: int) -> int:
        """Words of text that correspond to the cells before `step`."""
        return step * self.tokens_per_epoch // self.steps_per_epoch

    def rate_at(self, step: int) -> float:
        """The learning rate before AdaGrad, which is constant."""
        return self.config.learning_rate

    def order(self, epoch: int) -> np.ndarray:
        """The steps of the file in the order of an epoch."""

        known, order = self._order
        if known != epoch:
            order = np.empty(self.steps_per_epoch, np.int64)
            random_order(np.uint64(stream_key(self.config.seed, ORDER, epoch)), order)
            self._order = (epoch, order)
        return order

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on the cells of `step`."""

        epoch, place = divmod(step, self.steps_per_epoch)
        self.learn(int(self.order(epoch)[place]), step, stats)

    def learn(self, part: int, draw: int, stats: np.ndarray) -> None:
        """Train on a part of the cells in the order of the number `draw`."""

        config = self.config
        keys, logs, base = self.cells.read(part)
        first, stride = way_through(stream_key(config.seed, _WAY, draw), len(keys))
        train_cells(
            keys, logs, base, first, stride, *self._flat, self.width, self._rates, self._limits,
            np.float32(config.alpha), np.float32(math.log(config.x_max)), stats,
        )  # fmt: skip


def step_limits(config: GloVeConfig) -> tuple[np.ndarray, np.ndarray]:
    """(rates, limits) of a step for each value of a word's row, then of a context's."""
    dim = config.dim
    rates, limits = (np.zeros((2, row_size(dim)), np.float32) for _ in range(2))
    rates[:, :dim], limits[:] = config.learning_rate, config.grad_clip
    # As in the original program: biases have a learning rate of 1 and no gradient clipping.
    for half, bias in ((0, dim), (1, dim + 1)):
        rates[half, bias], limits[half, bias] = 1, np.inf
    return rates.reshape(-1), limits.reshape(-1)


def with_mean_of_rarest(rows: np.ndarray) -> np.ndarray:
    """The rows, followed by the mean of the last hundred, which are the rarest words."""
    mean = rows[-_NUM_RAREST:].mean(axis=0, dtype=np.float64, keepdims=True)
    return np.concatenate([rows, mean.astype(np.float32)])
