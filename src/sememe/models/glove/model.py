"""GloVe: a corpus in, two matrices of vectors with biases out; the model and its training run.

A step processes one range of the arranged cells. The order of the steps is shuffled for each epoch,
and so is the order of cells within a step; both are functions of the seed and the step.
"""

import math
import shutil
from pathlib import Path
from typing import Any, Self

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.cooccurrence.counting import count_pairs
from sememe.models.fitting import Prepared, Request
from sememe.models.glove.cells import BUFFER_BYTES, SCRATCH, CellFile, check_place, check_size
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.kernels import random_order, train_cells
from sememe.models.static.loop import StaticRun, run_steps
from sememe.models.static.model import StaticModel, content_of, matrix, padded
from sememe.models.word2vec.training import take_start
from sememe.randomness import fill_uniform, number, stream_key
from sememe.storage.folder import manifest_in, reads_artifact
from sememe.tokens.caching import temporary_place
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors, load

UNK = "<unk>"
_NUM_RAREST = 100
_ORDER, _WAY, _START = 1, 2, 3  # purposes of random streams


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
        self._order = (-1, np.empty(0, np.int64))  # of the current epoch

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
            random_order(np.uint64(stream_key(self.config.seed, _ORDER, epoch)), order)
            self._order = (epoch, order)
        return order

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on the cells of `step`."""

        config = self.config
        epoch, place = divmod(step, self.steps_per_epoch)
        keys, logs, base = self.cells.read(int(self.order(epoch)[place]))
        first, stride = way_through(stream_key(config.seed, _WAY, step), len(keys))
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


class GloVe(StaticModel):
    """Word vectors from counts of pairs of words (Pennington et al. 2014).

    model = sememe.GloVe(dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    kind = "glove"
    config_class = GloVeConfig
    config: GloVeConfig
    start_s = 0.0  # spent on counting before the first step, not part of the history

    @property
    def unknown(self) -> np.ndarray:
        """A vector for unknown words: the mean of the hundred rarest ones."""
        vectors = self.vectors
        num_words = len(vectors) - (UNK in vectors.vocabulary)
        return with_mean_of_rarest(np.asarray(vectors.vectors[:num_words]))[-1]

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Return the plan of a run on a token store, and the function that trains."""
        size = self.trainable_words(tokens)
        self._check_memory(size)
        vocabulary = tokens.vocabulary.cut(size)
        if self.config.unk and UNK in vocabulary:
            raise InputError(
                f"The text has the word {UNK}, so there can be no other vector of that name: "
                "leave out unk."
            )
        # The arranged counts are next to the output folder, or in a temporary one.
        out = request.out
        place = temporary_place() if out is None else Path(f"{Path(out)}.pairs").absolute()
        check_place(place)

        def make() -> StaticRun:
            cells = self._open_cells(tokens, size, place, request)
            self.start_s = cells.seconds
            return GloVeRun(self.config, cells, vocabulary, tokens.num_tokens)

        def begin(run: GloVeRun) -> None:
            run.begin()
            if request.start is not None:
                self._take_start(run, request)

        def train() -> None:
            keeper, is_kept = request.checkpoints(), False
            try:
                run_steps(self, plan, request, make, begin)
            except BaseException:
                # A resumable run will need the same cells again.
                is_kept = keeper is not None and keeper.folder.exists()
                raise
            finally:
                if not is_kept:
                    shutil.rmtree(place, ignore_errors=True)

        plan = self.plan_of(tokens, size)
        return Prepared(plan, train)

    def _check_memory(self, num_words: int) -> None:
        check_size(num_words)
        # Two matrices with their sums of squared steps, and the resulting vectors.
        needed = 2 * num_words * (2 * row_size(self.config.dim) + self.config.dim) * 4
        if needed > self.config.num_bytes:
            raise OptionError(
                f"memory: {num_words:,} words × {self.config.dim} take {needed >> 20:,}M and "
                f"{self.config.memory} were given; give more, or lower dim or max_words."
            )

    def _open_cells(
        self, tokens: TokenStore, num_words: int, place: Path, request: Request
    ) -> CellFile:
        """The arranged counts: those of a stopped run, or new ones."""

        config = self.config
        content = {
            **content_of(tokens, num_words),
            "window": config.window, "weighting": config.weighting, "direction": config.direction,
        }  # fmt: skip
        found = CellFile.open(place, content)
        if found is not None:
            request.reporter.note(f"The counts in {place} are whole: they are used again.")
            return found
        cells = count_pairs(
            tokens, num_words, config, memory=config.num_bytes - BUFFER_BYTES,
            workers=config.num_workers, scratch=place / SCRATCH, progress=request.reporter,
        )  # fmt: skip
        arranged = CellFile.write(place, cells, num_words, content)
        if not arranged.num_cells:
            arranged.close()
            raise InputError("No two words stand near each other: the text has no pairs to count.")
        return arranged

    def _take_start(self, run: GloVeRun, request: Request) -> None:
        """Begin with given vectors, half of each in either matrix, so that their sum is it."""

        vectors = request.start if isinstance(request.start, WordVectors) else load(request.start)
        half = WordVectors(vectors.vocabulary, np.asarray(vectors.vectors) * np.float32(0.5))
        for rows in run.matrices.values():
            num_known = take_start(rows, run.vocabulary, half, self.config.dim)
        request.reporter.note(
            f"{num_known:,} of {len(run.vocabulary):,} words start from the given vectors."
        )

    def take_over(self, other: Any) -> None:
        """Take over the state of another model of the same kind, except for its options."""
        super().take_over(other)
        self.start_s = other.start_s

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {**super().manifest(), "start_s": self.start_s}

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model; its tensors are memory-mapped unless it is trained further."""
        model = super().load(folder)
        model.start_s = float(manifest_in(Path(folder)).get("start_s", 0.0))
        return model

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        num_words, dim = len(self.vocabulary), self.config.dim
        return {"input": (num_words, dim), "output": (num_words, dim)}
