"""The training run: chunks of a token store in, changed matrices out, by any number of threads.

The text is cut into chunks of CHUNK tokens; step s works on chunk s mod (number of chunks). The
learning rate and all random draws are functions of the step.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.static.loop import Run
from sememe.static.model import StaticModel
from sememe.static.word2vec.config import Word2VecConfig
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors, load

CHUNK = 16_384
CBOW_BLOCK = 8
LOSS_EVERY = 16
WINDOWS, NOISE, _START = 1, 2, 3  # purposes of random streams


def pool_size(config: Word2VecConfig) -> int:
    """How many noise words a block of centres shares.

    The original program draws `negatives` for each pair, about negatives × (window + 1) for each
    occurrence of a word. Few different ones cost several points of analogies (docs/experiments.md);
    the windows that a word lies in touch one or two skip-gram blocks and several cbow blocks.
    """
    from sememe.static.rows import padded

    is_skipgram = config.architecture == "skipgram"
    return padded(config.negatives * (config.window if is_skipgram else 1), 4)


def block_size(config: Word2VecConfig, counts: np.ndarray, limits: np.ndarray) -> int:
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


def sentence_index(store: TokenStore) -> np.ndarray:
    """For each chunk edge, the number of sentences that end at or before it."""
    edges = np.arange(0, store.num_tokens + CHUNK, CHUNK)
    index = np.zeros(len(edges), np.int64)
    size = 1 << 18
    for start in range(0, len(store.sentence_ends), size):
        # Read, not mapped: pages of a map would count as this process's memory.
        ends = np.fromfile(store.path / "sentence_ends.bin", np.int64, size, offset=8 * start)
        index += np.searchsorted(ends, edges, "right")
    return index


class ChunkReader:
    """Reads a token store chunk by chunk, its words as rows of a model."""

    def __init__(self, store: TokenStore, id_map: np.ndarray) -> None:
        """id_map: int32, from the store's ids to rows; the last row + 1 for words without one."""
        self.num_tokens, self._id_map, self._dtype = store.num_tokens, id_map, store.ids.dtype
        self.num_chunks = -(-store.num_tokens // CHUNK)
        self._index = sentence_index(store)
        self._file = os.open(store.path / "ids.bin", os.O_RDONLY)
        self._ends_file = os.open(store.path / "sentence_ends.bin", os.O_RDONLY)

    def close(self) -> None:
        """Let go of the store's files."""
        os.close(self._file)
        os.close(self._ends_file)

    def words_at(self, step: int) -> int:
        """Words of text, rare ones included, that lie before `step`."""
        epoch, chunk = divmod(step, self.num_chunks)
        return epoch * self.num_tokens + min(chunk * CHUNK, self.num_tokens)

    def read(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows of the chunk's words, ends of its sentences)."""
        item = self._dtype.itemsize
        data = os.pread(self._file, CHUNK * item, chunk * CHUNK * item)
        ids = self._id_map[np.frombuffer(data, self._dtype)]
        first, last = int(self._index[chunk]), int(self._index[chunk + 1])
        ends_data = os.pread(self._ends_file, 8 * (last - first), 8 * first)
        ends = np.frombuffer(ends_data, np.int64) - chunk * CHUNK
        # A sentence that runs over the edge of the chunk is cut there.
        return ids, np.append(ends, len(ids))


def first_words(store: TokenStore, num_words: int) -> np.ndarray:
    """The id_map that gives the first words of a store rows in the same order."""
    id_map = np.full(len(store.vocabulary) + 1, num_words, np.int32)
    id_map[:num_words] = np.arange(num_words, dtype=np.int32)
    return id_map


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


class Word2VecRun(Run):
    """All that a training run needs, and the work of one step."""

    def __init__(
        self,
        config: Word2VecConfig,
        store: TokenStore,
        vocabulary: Vocabulary,
        id_map: np.ndarray,
    ) -> None:
        """id_map: from the store's ids to the vocabulary's, which are the rows of the matrices."""
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
        input, output = matrix(size, config.dim), matrix(num_outputs, config.dim)
        self.matrices = {"input": input, "output": output}
        self.input, self.output = input.reshape(-1), output.reshape(-1)
        self.width = input.shape[1]
        self.limits = keep_limits(counts, config.sample)
        self.pool, self.block = pool_size(config), block_size(config, counts, self.limits)
        self.noise = alias_table(counts, config.noise_exponent)
        self.text = ChunkReader(store, id_map)
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

    def new_space(self) -> list[np.ndarray]:
        """Make room for a chunk's words and the bounds of their windows."""
        return [np.empty(CHUNK, np.int32) for _ in range(3)]

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
        from sememe.examples.noise import draw_noise
        from sememe.examples.randomness import stream_key
        from sememe.examples.windows import draw_windows
        from sememe.static.word2vec import kernels

        config, width, rate = self.config, self.width, np.float32(self.rate_at(step))
        ids, ends = self.text.read(step % self.text.num_chunks)
        key = np.uint64(stream_key(config.seed, WINDOWS, step))
        num = draw_windows(ids, ends, self.limits, config.window, key, *space)
        chunk = (*space, num)
        is_mean, is_skipgram = config.combine == "mean", config.architecture == "skipgram"
        matrices = (self.input, self.output, width)
        if config.loss == "softmax":
            kernels.full_softmax(*chunk, *matrices, rate, is_skipgram, is_mean, LOSS_EVERY, stats)
            return
        if config.loss == "hierarchical":
            path = (self.tree.starts, self.tree.nodes, self.tree.codes)
            if is_skipgram:
                kernels.skipgram_hierarchical(
                    *chunk, *path, self.tree.max_length, *matrices, config.window, rate,
                    LOSS_EVERY, stats,
                )  # fmt: skip
            else:
                kernels.cbow_hierarchical(
                    *chunk, *path, *matrices, rate, is_mean, LOSS_EVERY, stats
                )
            return
        noise = np.empty(-(-num // self.block) * self.pool, np.int32)
        draw_noise(*self.noise, np.uint64(stream_key(config.seed, NOISE, step)), noise)
        weight = np.float32(config.negatives / self.pool)
        if is_skipgram:
            kernels.skipgram_negative(
                *chunk, noise, *matrices, config.window, self.pool, self.block, weight, rate,
                LOSS_EVERY, stats,
            )  # fmt: skip
        else:
            kernels.cbow_negative(
                *chunk, noise, *matrices, config.window, self.pool, self.block, weight, rate,
                is_mean, LOSS_EVERY, stats,
            )  # fmt: skip
