"""The training run: chunks of a token store in, changed matrices out.

Step s works on chunk s mod (number of chunks); the learning rate and all random draws are
functions of the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.static.chunks import CHUNK, ChunkReader
from sememe.static.loop import Run
from sememe.static.model import StaticModel
from sememe.static.word2vec.config import WindowConfig
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors, load

CBOW_BLOCK = 8
LOSS_EVERY = 16
WINDOWS, NOISE, _START = 1, 2, 3  # purposes of random streams


def pool_size(config: WindowConfig) -> int:
    """How many noise words a block of centres shares.

    The original program draws `negatives` for each pair, about negatives × (window + 1) for each
    occurrence of a word. Few different ones cost several points of analogies (docs/experiments.md);
    the windows that a word lies in touch one or two skip-gram blocks and several cbow blocks.
    """
    from sememe.static.rows import padded

    if config.architecture == "skipgram":
        return padded(config.negatives * config.window, 4)
    return padded(config.negatives, 8)


def block_size(config: WindowConfig, counts: np.ndarray, limits: np.ndarray) -> int:
    """How many centres share a pool and, for skip-gram, one step.

    A step adds up what all its pairs want, so a word that fills much of a block would be pushed
    too far: where few words make up the text, blocks are smaller.
    """
    from sememe.static.word2vec.kernels import BLOCK

    if config.architecture == "cbow":
        return CBOW_BLOCK
    kept = counts * (limits[:-1] / 2.0**32)
    largest_share = float(kept.max() / kept.sum())
    return int(min(BLOCK, max(4, 0.5 / largest_share // 4 * 4)))


def start_rows(rows: np.ndarray, dim: int, seed: int, first: int = 0) -> None:
    """Fill rows (N, padded dim) with the uniform noise that training starts from."""
    from sememe.examples.randomness import fill_uniform, stream_key

    reach = np.float32(0.5 / dim)
    key = np.uint64(stream_key(seed, _START))
    fill_uniform(rows, dim, -reach, reach, key, first)


def take_start(rows: np.ndarray, vocabulary: Vocabulary, start: Any, dim: int) -> int:
    """Copy the rows of the words that the pretrained vectors know; return how many."""
    vectors = start if isinstance(start, WordVectors) else load(start)
    if vectors.dim != dim:
        raise OptionError(f"The vectors to start from have {vectors.dim} numbers, not {dim}.")
    num_known = 0
    for word_id, word in enumerate(vocabulary):
        if (other := vectors.vocabulary.find(word)) >= 0:
            rows[word_id, :dim] = vectors.vectors[other]
            num_known += 1
    if not num_known:
        raise OptionError("The vectors to start from know none of the words of the text.")
    return num_known


class WindowRun(Run):
    """A run of a model that predicts words from the words around them."""

    chunk_size = CHUNK

    def __init__(
        self,
        config: WindowConfig,
        store: TokenStore,
        vocabulary: Vocabulary,
        id_map: np.ndarray,
        num_inputs: int = 0,
    ) -> None:
        """id_map: from the store's ids to the vocabulary's, which are the rows of the matrices.

        num_inputs: rows of the input matrix where there are more of them than words.
        """
        from sememe.examples.noise import alias_table
        from sememe.examples.windows import keep_limits
        from sememe.static.rows import matrix

        self.config, self.vocabulary = config, vocabulary
        counts, size = np.asarray(vocabulary.counts), len(vocabulary)
        self.tree: Any = None
        num_outputs = size
        if config.loss == "hierarchical":
            from sememe.examples.huffman import build_tree

            self.tree = build_tree(counts)
            # A tree has one inner node less than leaves; a lone word still needs a row to map.
            num_outputs = max(size - 1, 1)
        input, output = matrix(num_inputs or size, config.dim), matrix(num_outputs, config.dim)
        self.matrices = {"input": input, "output": output}
        self.input, self.output = input.reshape(-1), output.reshape(-1)
        self.width = input.shape[1]
        self.limits = keep_limits(counts, config.sample)
        self.pool, self.block = pool_size(config), block_size(config, counts, self.limits)
        self.noise = alias_table(counts, config.noise_exponent)
        self.text = ChunkReader(store, id_map, self.chunk_size)
        self.num_steps = self.text.num_chunks * config.epochs
        self.num_workers, self.tokens_per_epoch = config.num_workers, store.num_tokens
        self.start_rate = config.start_rate

    def close(self) -> None:
        """Let go of the store's files."""
        self.text.close()

    def greeting(self) -> str:
        """One line that says what is about to be trained."""
        config = self.config
        return (
            f"{len(self.vocabulary):,} words, {self.tokens_per_epoch:,} in the text, "
            f"{config.epochs} epochs: {config.architecture}, {config.loss}, "
            f"{config.dim} dimensions, {config.num_workers} workers"
        )

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model, without padding; a copy while they still change."""
        rows = {name: matrix[:, : self.config.dim] for name, matrix in self.matrices.items()}
        if not is_final:
            rows = {name: matrix.copy() for name, matrix in rows.items()}
        model.adopt(self.vocabulary, **rows)

    def take(self, model: StaticModel) -> None:
        """Copy what a model of fewer words, the first of this vocabulary, has learned."""
        dim = self.config.dim
        for name, rows in self.matrices.items():
            rows[: len(model.tensors[name]), :dim] = model.tensors[name]

    def new_space(self) -> list[np.ndarray]:
        """Make room for a chunk's words and the bounds of their windows."""
        return [np.empty(self.chunk_size, np.int32) for _ in range(3)]

    def words_at(self, step: int) -> int:
        """Words of text, rare ones included, that lie before `step`."""
        return self.text.words_at(step)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step: linear decay over the whole run."""
        done = self.words_at(step) / (self.tokens_per_epoch * self.config.epochs)
        start, end = self.config.start_rate, self.config.min_learning_rate
        return max(end, start - (start - end) * done)

    def step(self, step: int, space: list[np.ndarray], stats: np.ndarray) -> None:
        """Train on the chunk of `step`."""
        num = self.draw(step, space)
        chunk = (space[0], *space, 0, num)
        self.learn(step, chunk, self.draw_noise(step, num), self.input, stats)

    def draw(self, step: int, space: list[np.ndarray]) -> int:
        """Thin out the chunk of `step` and draw windows; return how many words stay."""
        from sememe.examples.randomness import stream_key
        from sememe.examples.windows import draw_windows

        ids, ends = self.text.read(step % self.text.num_chunks)
        key = np.uint64(stream_key(self.config.seed, WINDOWS, step))
        return draw_windows(ids, ends, self.limits, self.config.window, key, *space)

    def learn(
        self, step: int, chunk: tuple[Any, ...], noise: np.ndarray, input: np.ndarray,
        stats: np.ndarray,
    ) -> None:  # fmt: skip
        """Train words, which are rows both of the output matrix and of `input`.

        chunk: (rows of the output, rows of `input`, left, right, first centre, end of the centres).
        """
        from sememe.static.word2vec import kernels, tree_kernels

        config, rate = self.config, np.float32(self.rate_at(step))
        is_mean, is_skipgram = config.combine == "mean", config.architecture == "skipgram"
        matrices = (input, self.output, self.width, config.window)
        if config.loss == "softmax":
            kernels.full_softmax(*chunk, *matrices, rate, is_skipgram, is_mean, LOSS_EVERY, stats)
        elif config.loss == "hierarchical" and is_skipgram:
            tree_kernels.skipgram_hierarchical(
                *chunk, *self._paths(), self.tree.max_length, *matrices, rate,
                config.num_workers, LOSS_EVERY, stats,
            )  # fmt: skip
        elif config.loss == "hierarchical":
            tree_kernels.cbow_hierarchical(
                *chunk, *self._paths(), *matrices, rate, is_mean, LOSS_EVERY, stats
            )
        else:
            shared = (self.pool, self.block, self._weight, rate)
            if is_skipgram:
                kernels.skipgram_negative(*chunk, noise, *matrices, *shared, LOSS_EVERY, stats)
            else:
                kernels.cbow_negative(*chunk, noise, *matrices, *shared, is_mean, LOSS_EVERY, stats)

    @property
    def _weight(self) -> np.float32:
        return np.float32(self.config.negatives / self.pool)

    def _paths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.tree.starts, self.tree.nodes, self.tree.codes

    def draw_noise(self, step: int, num_words: int) -> np.ndarray:
        """The noise words of so many centres, a pool for each block; none but for `negative`."""
        from sememe.examples.noise import draw_noise
        from sememe.examples.randomness import stream_key

        num_blocks = -(-num_words // self.block) if self.config.loss == "negative" else 0
        noise = np.empty(num_blocks * self.pool, np.int32)
        draw_noise(*self.noise, np.uint64(stream_key(self.config.seed, NOISE, step)), noise)
        return noise
