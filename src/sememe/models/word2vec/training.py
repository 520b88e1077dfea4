"""Models that predict words from the words around them: a corpus in, two matrices out.

The store is read in chunks of equal size. Step s processes chunk s mod (number of chunks); the
learning rate and all random draws are functions of the step.
"""

import os
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from sememe.errors import OptionError
from sememe.examples.kernels import draw_noise, draw_windows
from sememe.examples.windows import alias_table, build_tree, keep_limits
from sememe.executor import cluster
from sememe.machine import imported
from sememe.models.fitting import Prepared, Request
from sememe.models.static.loop import Driver, StaticRun, run_steps
from sememe.models.static.model import OnDevice, StaticModel, matrix, padded
from sememe.models.word2vec import kernels, replicas
from sememe.models.word2vec.config import WindowConfig
from sememe.models.word2vec.kernels import BLOCK
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.randomness import fill_uniform, stream_key
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors, load

CHUNK = 16_384
_READ = 1 << 18


def sentence_index(store: TokenStore, size: int) -> np.ndarray:
    """For each chunk edge, the number of sentences that end at or before it."""
    edges = np.arange(0, store.num_tokens + size, size)
    index = np.zeros(len(edges), np.int64)
    for start in range(0, len(store.sentence_ends), _READ):
        # Read, not memory-mapped: mapped pages would count as this process's memory.
        ends = np.fromfile(store.path / "sentence_ends.bin", np.int64, _READ, offset=8 * start)
        index += np.searchsorted(ends, edges, "right")
    return index


class ChunkReader:
    """Reads a token store chunk by chunk, its words as rows of a model."""

    def __init__(self, store: TokenStore, id_map: np.ndarray, size: int = CHUNK) -> None:
        """id_map: int32, from the store's ids to rows; the last row + 1 for words without one."""
        self.num_tokens, self.id_map, self._dtype = store.num_tokens, id_map, store.ids.dtype
        self.size, self.num_chunks = size, -(-store.num_tokens // size)
        self._index = sentence_index(store, size)
        self._file = os.open(store.path / "ids.bin", os.O_RDONLY)
        self._ends_file = os.open(store.path / "sentence_ends.bin", os.O_RDONLY)

    def close(self) -> None:
        """Close the store's files."""
        os.close(self._file)
        os.close(self._ends_file)

    def words_at(self, step: int) -> int:
        """Words of text before `step`, including rare ones."""
        epoch, chunk = divmod(step, self.num_chunks)
        return epoch * self.num_tokens + min(chunk * self.size, self.num_tokens)

    def read(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows of the chunk's words, ends of its sentences)."""
        ids, ends = self.read_ids(chunk)
        return self.id_map[ids], ends

    def read_ids(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """(ids of the chunk's words in the store, ends of its sentences)."""
        item = self._dtype.itemsize
        data = bytearray(self.size * item)
        num_bytes = os.preadv(self._file, [data], chunk * self.size * item)
        ids = np.frombuffer(data, self._dtype)[: num_bytes // item]
        first, last = int(self._index[chunk]), int(self._index[chunk + 1])
        ends_data = os.pread(self._ends_file, 8 * (last - first), 8 * first)
        ends = np.frombuffer(ends_data, np.int64) - chunk * self.size
        # A sentence that crosses the edge of the chunk is split there.
        return ids, np.append(ends, len(ids))


def first_words(store: TokenStore, num_words: int) -> np.ndarray:
    """The id_map that maps the first words of a store to rows in the same order."""
    id_map = np.full(len(store.vocabulary) + 1, num_words, np.int32)
    id_map[:num_words] = np.arange(num_words, dtype=np.int32)
    return id_map


CBOW_BLOCK = 8
LOSS_EVERY = 16
WINDOWS, NOISE, _START = 1, 2, 3  # purposes of random streams


def pool_size(config: WindowConfig) -> int:
    """The number of noise words shared by a block of centres.

    The original program draws `negatives` for each pair, about negatives × (window + 1) for each
    occurrence of a word. Too few distinct ones cost several points of analogies
    (docs/experiments.md); the windows that a word is in touch one or two skip-gram blocks and
    several cbow blocks.
    """

    if config.architecture == "skipgram":
        return padded(config.negatives * config.window, 4)
    return padded(config.negatives, 8)


def block_size(config: WindowConfig, counts: np.ndarray, limits: np.ndarray) -> int:
    """The number of centres that share a pool and, for skip-gram, one step.

    A step adds the gradients of all its pairs, so a word that fills much of a block would
    overshoot: with a small vocabulary, blocks are smaller.
    """

    if config.architecture == "cbow":
        return CBOW_BLOCK
    kept = counts * (limits[:-1] / 2.0**32)
    return int(min(BLOCK, max(4, 0.5 / float(kept.max() / kept.sum()) // 4 * 4)))


def start_rows(rows: np.ndarray, dim: int, seed: int, first: int = 0) -> None:
    """Fill rows (N, padded dim) with the uniform noise that training starts from."""

    reach = np.float32(0.5 / dim)
    fill_uniform(rows, dim, -reach, reach, np.uint64(stream_key(seed, _START)), first)


def take_start(rows: np.ndarray, vocabulary: Vocabulary, start: Any, dim: int) -> int:
    """Copy the pretrained vectors of known words; return their number."""
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


class WindowRun(StaticRun):
    """A run of a model that predicts words from the words around them."""

    def __init__(
        self,
        config: WindowConfig,
        store: TokenStore,
        vocabulary: Vocabulary,
        id_map: np.ndarray,
        num_inputs: int = 0,
        chunk: int = CHUNK,
    ) -> None:
        """id_map: from the store's ids to the vocabulary's, which are the rows of the matrices.

        num_inputs: rows of the input matrix if there are more than words; chunk: words of a step.
        """

        self.config, self.vocabulary = config, vocabulary
        counts, size = np.asarray(vocabulary.counts), len(vocabulary)
        self.tree: Any = None
        num_outputs = size
        if config.loss == "hierarchical":
            self.tree = build_tree(counts)
            self.paths = (self.tree.starts, self.tree.nodes, self.tree.codes)
            # A tree has one inner node fewer than leaves; a lone word still needs a row to map.
            num_outputs = max(size - 1, 1)
        sizes = {"input": num_inputs or size, "output": num_outputs}
        self.matrices = {name: matrix(num, config.dim) for name, num in sizes.items()}
        self.input, self.output = (rows.reshape(-1) for rows in self.matrices.values())
        self.width = self.matrices["input"].shape[1]
        self.limits = keep_limits(counts, config.sample)
        self.pool, self.block = pool_size(config), block_size(config, counts, self.limits)
        self.noise = alias_table(counts, config.noise_exponent)
        self.most_words = chunk
        self.chunk_size = self.step_size(store)
        self.text = ChunkReader(store, id_map, self.chunk_size)
        self.num_steps = self.text.num_chunks * config.epochs
        self.num_workers, self.tokens_per_epoch = config.num_workers, store.num_tokens
        self.start_rate = config.start_rate

    def step_size(self, store: TokenStore) -> int:
        """The number of words of text per step."""
        return self.most_words

    def close(self) -> None:
        """Close the store's files."""
        self.text.close()

    def start_message(self) -> str:
        """One line that describes the training about to start."""
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
        """Copy the vectors of a smaller model, whose words are the first of this vocabulary."""
        dim = self.config.dim
        for name, rows in self.matrices.items():
            rows[: len(model.tensors[name]), :dim] = model.tensors[name]

    def uses(self) -> dict[str, np.ndarray]:
        """How many pairs each row of a matrix is expected to be in per word of text.

        Noise pairs do not count: their gradients are small.
        """
        config, counts = self.config, np.asarray(self.vocabulary.counts, np.float64)
        kept = counts * (self.limits[:-1] / 2.0**32) / counts.sum()
        pairs = kept * (config.window + 1)  # the mean number of words in a window
        output = pairs if config.architecture == "skipgram" else kept
        if config.loss == "softmax":
            output = np.full(len(counts), output.sum())
        elif config.loss == "hierarchical":
            of_nodes = np.repeat(output, np.diff(self.tree.starts))
            output = np.bincount(self.tree.nodes, of_nodes, len(self.matrices["output"]))
        return {"input": self.input_uses(pairs), "output": output}

    def input_uses(self, of_words: np.ndarray) -> np.ndarray:
        """The uses of the input rows, from those of the words."""
        return of_words

    def new_space(self) -> list[np.ndarray]:
        """Allocate buffers for a chunk's words and the bounds of their windows."""
        return [np.empty(self.chunk_size, np.int32) for _ in range(3)]

    def words_at(self, step: int) -> int:
        """Words of text before `step`, including rare ones."""
        return self.text.words_at(step)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step: linear decay over the entire run."""
        done = self.words_at(step) / (self.tokens_per_epoch * self.config.epochs)
        start, end = self.config.start_rate, self.config.min_learning_rate
        return max(end, start - (start - end) * done)

    def step(self, step: int, space: list[np.ndarray], stats: np.ndarray) -> None:
        """Train on the chunk of `step`."""
        num = self.draw(step, space)
        self.learn(step, (space[0], *space, 0, num), self.draw_noise(step, num), self.input, stats)

    def draw(self, step: int, space: list[np.ndarray]) -> int:
        """Subsample the chunk of `step` and draw windows; return the number of words kept."""

        ids, ends = self.text.read(step % self.text.num_chunks)
        key = np.uint64(stream_key(self.config.seed, WINDOWS, step))
        return draw_windows(ids, ends, self.limits, self.config.window, key, *space)

    def learn(
        self, step: int, chunk: tuple[Any, ...], noise: np.ndarray, input: np.ndarray,
        stats: np.ndarray,
    ) -> None:  # fmt: skip
        """Train on words, which are rows both of the output matrix and of `input`.

        chunk: (rows of the output, rows of `input`, left, right, first centre, end of the centres).
        """

        config, rate = self.config, np.float32(self.rate_at(step))
        is_mean, is_skipgram = config.combine == "mean", config.architecture == "skipgram"
        matrices = (input, self.output, self.width, config.window)
        if config.loss == "softmax":
            kernels.full_softmax(*chunk, *matrices, rate, is_skipgram, is_mean, LOSS_EVERY, stats)
        elif config.loss == "hierarchical" and is_skipgram:
            kernels.skipgram_hierarchical(
                *chunk, *self.paths, self.tree.max_length, *matrices, rate, config.num_workers,
                LOSS_EVERY, stats,
            )  # fmt: skip
        elif config.loss == "hierarchical":
            kernels.cbow_hierarchical(
                *chunk, *self.paths, *matrices, rate, is_mean, LOSS_EVERY, stats
            )
        else:
            shared = (self.pool, self.block, np.float32(config.negatives / self.pool), rate)
            if is_skipgram:
                kernels.skipgram_negative(*chunk, noise, *matrices, *shared, LOSS_EVERY, stats)
            else:
                kernels.cbow_negative(*chunk, noise, *matrices, *shared, is_mean, LOSS_EVERY, stats)

    def draw_noise(self, step: int, num_words: int) -> np.ndarray:
        """The noise words for this many centres, one pool per block; only for `negative`."""

        num_blocks = -(-num_words // self.block) if self.config.loss == "negative" else 0
        noise = np.empty(num_blocks * self.pool, np.int32)
        draw_noise(*self.noise, np.uint64(stream_key(self.config.seed, NOISE, step)), noise)
        return noise


class WindowModel(StaticModel):
    """A model that predicts words from the words around them."""

    run_class: ClassVar[type[WindowRun]] = WindowRun

    def __repr__(self) -> str:
        shape = f"{len(self.vocabulary):,} words × {self.config.dim}"
        return f"{type(self).__name__}({self.config.architecture}, {self.config.loss}: {shape})"

    def new_run(self, config: Any, *corpus: Any) -> Any:
        """A run of this model's class; corpus: as in WindowRun."""
        return self.run_class(config, *corpus)

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Return the plan of a run on a token store, and the function that trains."""
        config, size = self.config, self.trainable_words(tokens)
        vocabulary, plan = tokens.vocabulary.cut(size), self.plan_of(tokens, size)

        def make() -> StaticRun:
            return self.new_run(config, tokens, vocabulary, first_words(tokens, size))

        def begin(run: StaticRun) -> None:
            rows = run.matrices["input"]
            start_rows(rows, config.dim, config.seed)
            if request.start is not None:
                num_known = take_start(rows, vocabulary, request.start, config.dim)
                request.reporter.note(
                    f"{num_known:,} of {size:,} words start from the given vectors."
                )

        return Prepared(plan, lambda: run_steps(self, plan, request, make, begin))

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model, including the resulting learning rate."""
        return {**super().manifest(), "training": {"learning_rate": self.config.start_rate}}

    def continue_fit(
        self,
        corpus: Any,
        *,
        epochs: int | None = None,
        text: TextSettings | None = None,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Continue with new text. New words that reach min_count in it are added to the vocabulary.

        With hierarchical softmax the tree is fixed, so new words are ignored.
        """
        if not len(self.vocabulary):
            raise OptionError("This model has not been fitted yet: call fit first.")
        reporter = as_reporter(progress)
        if text is not None or text_options:
            self.text = changed(text or TextSettings(), "continue_fit", text_options)
        # Known words count even if the new text has them only once.
        tokens = self.open_text(corpus, 0, None, reporter, min_count=1)
        config = replace(self.config, epochs=epochs or self.config.epochs)
        vocabulary, id_map = self._grown(tokens)
        run = self.new_run(config, tokens, vocabulary, id_map)
        start_rows(run.matrices["input"], config.dim, config.seed)
        run.take(self)
        try:
            Driver(self, run, reporter).drive()
        finally:
            run.close()
        return self

    def _grown(self, tokens: TokenStore) -> tuple[Vocabulary, np.ndarray]:
        """The vocabulary with the new words of the text, and the map of its ids to rows."""
        known, counts = self.vocabulary, np.array(self.vocabulary.counts)
        size = self.trainable_words(tokens)
        can_grow = self.config.loss != "hierarchical"  # its tree was built from the old counts
        id_map = np.full(len(tokens.vocabulary) + 1, -1, np.int32)
        new_words: list[str] = []
        new_counts: list[int] = []
        for word_id, word in enumerate(tokens.vocabulary[:]):
            row = known.find(word)
            if row < 0 and word_id < size and can_grow:
                row = len(known) + len(new_words)
                new_words.append(word)
                new_counts.append(int(tokens.vocabulary.counts[word_id]))
            elif row >= 0 and can_grow:
                counts[row] += tokens.vocabulary.counts[word_id]
            id_map[word_id] = row
        id_map[id_map < 0] = len(known) + len(new_words)
        return Vocabulary.from_words([*known, *new_words], [*counts.tolist(), *new_counts]), id_map


class DeviceModel(OnDevice, WindowModel):
    """A model that predicts words from the words around it, on a GPU in tiles."""

    # The run on a GPU: its module needs PyTorch.
    tile_run: ClassVar[tuple[str, str]] = ("sememe.models.word2vec.tiles.run", "TileRun")

    def new_run(self, config: Any, *corpus: Any) -> Any:
        """A run on the device of the options, or on the cluster of this context."""
        if self.is_on_gpu:
            tile_run: type[WindowRun] = imported(*self.tile_run)
            return tile_run(config, *corpus)
        if config.deterministic:
            config = replace(config, workers=1)
        if (executor := cluster()) is not None:
            return replicas.new_run(self.run_class, executor, config, *corpus)
        return super().new_run(config, *corpus)
