"""The training run: chunks of a token store in, changed matrices out, by any number of threads.

The text is cut into chunks of CHUNK tokens; step s works on chunk s mod (number of chunks). The
learning rate and all random draws are functions of the step, so a run that stops between two
steps continues exactly. With one worker the steps run in order; with more, threads take the next
step as they come free and update the matrices without locks (Recht et al. 2011), so that the
last digits depend on timing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from sememe.static.word2vec.config import Word2VecConfig
from sememe.tokens.store import TokenStore

CHUNK = 16_384
CBOW_BLOCK = 8
LOSS_EVERY = 16
WINDOWS, NOISE = 1, 2  # purposes of random streams
_TICK_S = 0.1


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


class Run:
    """All that a training run needs beside the matrices, and the work of one step."""

    def __init__(
        self,
        config: Word2VecConfig,
        store: TokenStore,
        id_map: np.ndarray,
        counts: np.ndarray,
        input: np.ndarray,
        output: np.ndarray,
    ) -> None:
        """id_map: int32, from the store's ids to rows; words without a row map to len(counts)."""
        from sememe.examples.noise import alias_table
        from sememe.examples.windows import keep_limits

        self.config, self.store, self.id_map = config, store, id_map
        self.input, self.output = input.reshape(-1), output.reshape(-1)
        self.width = input.shape[1]
        self.limits = keep_limits(counts, config.sample)
        self.pool, self.block = pool_size(config), block_size(config, counts, self.limits)
        self.noise = alias_table(counts, config.noise_exponent)
        self.tree: Any = None
        if config.loss == "hierarchical":
            from sememe.examples.huffman import build_tree

            self.tree = build_tree(counts)
        self.num_chunks = -(-store.num_tokens // CHUNK)
        self.num_steps = self.num_chunks * config.epochs
        self._crew: Crew | None = None
        self._index = sentence_index(store)
        self._file = os.open(store.path / "ids.bin", os.O_RDONLY)
        self._ends_file = os.open(store.path / "sentence_ends.bin", os.O_RDONLY)

    def close(self) -> None:
        """Let go of the store's files."""
        os.close(self._file)
        os.close(self._ends_file)

    @property
    def reached(self) -> int | None:
        """The first step that has not been done; None before the first one was begun."""
        return self._crew.next_step if self._crew is not None else None

    def words_at(self, step: int) -> int:
        """Words of text, rare ones included, that lie before `step`."""
        epoch, chunk = divmod(step, self.num_chunks)
        return epoch * self.store.num_tokens + min(chunk * CHUNK, self.store.num_tokens)

    def step_of(self, words: int) -> int:
        """The first step before which at least `words` words lie."""
        epoch, rest = divmod(words, self.store.num_tokens)
        return min(self.num_steps, epoch * self.num_chunks + -(-rest // CHUNK))

    def rate_at(self, step: int) -> float:
        """The learning rate of a step: linear decay over the whole run."""
        done = self.words_at(step) / (self.store.num_tokens * self.config.epochs)
        start, end = self.config.start_rate, self.config.min_learning_rate
        return max(end, start - (start - end) * done)

    def _read(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows of the chunk's words, ends of its sentences)."""
        item = self.store.ids.dtype.itemsize
        data = os.pread(self._file, CHUNK * item, chunk * CHUNK * item)
        ids = self.id_map[np.frombuffer(data, self.store.ids.dtype)]
        first, last = int(self._index[chunk]), int(self._index[chunk + 1])
        ends_data = os.pread(self._ends_file, 8 * (last - first), 8 * first)
        ends = np.frombuffer(ends_data, np.int64) - chunk * CHUNK
        # A sentence that runs over the edge of the chunk is cut there.
        return ids, np.append(ends, len(ids))

    def step(self, step: int, buffers: list[np.ndarray], stats: np.ndarray) -> None:
        """Train on the chunk of `step`."""
        from sememe.examples.noise import draw_noise
        from sememe.examples.randomness import stream_key
        from sememe.examples.windows import draw_windows
        from sememe.static.word2vec import kernels

        config, width, rate = self.config, self.width, np.float32(self.rate_at(step))
        ids, ends = self._read(step % self.num_chunks)
        key = np.uint64(stream_key(config.seed, WINDOWS, step))
        num = draw_windows(ids, ends, self.limits, config.window, key, *buffers)
        chunk = (*buffers, num)
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

    def advance(self, step: int, end: int, every: int, on_tick: Callable[[Crew], bool]) -> int:
        """Run the steps from `step` up to `end` and return the step reached.

        The crew keeps its figures at every `every`-th step. `on_tick(crew)` is called ten times a
        second and at the end; where it returns False, or an exception such as KeyboardInterrupt
        comes up, the threads finish the steps they are at.
        """
        crew = self._crew = Crew(self, step, end, every)
        threads = ThreadPoolExecutor(self.config.num_workers)
        work: list[Future[None]] = []
        try:
            for _ in range(self.config.num_workers):
                work.append(threads.submit(crew.work))
            while wait(work, _TICK_S).not_done and on_tick(crew):
                pass
        finally:
            crew.stop()
            threads.shutdown(wait=False)
        for future in work:
            future.result()
        on_tick(crew)
        return crew.next_step


class Crew:
    """Threads that share one counter of steps."""

    def __init__(self, run: Run, step: int, end: int, every: int) -> None:
        self._run, self.next_step, self._end, self._every = run, step, end, every
        self.marks: list[tuple[int, np.ndarray]] = []
        self.is_stopping = False
        self._lock = threading.Condition()
        self._num_working = 0
        self._all_stats: list[np.ndarray] = []

    def stats(self) -> np.ndarray:
        """[loss, pairs in it, all pairs] of every thread together."""
        return sum(self._all_stats, np.zeros(3))

    def _take(self) -> int:
        with self._lock:
            if self.is_stopping or self.next_step >= self._end:
                return -1
            if self.next_step % self._every == 0:
                self.marks.append((self.next_step, self.stats()))
            self.next_step += 1
            return self.next_step - 1

    def work(self) -> None:
        """Take steps until there are no more."""
        stats = np.zeros(3)
        buffers = [np.empty(CHUNK, np.int32) for _ in range(3)]
        with self._lock:
            self._all_stats.append(stats)
            self._num_working += 1
        try:
            while (step := self._take()) >= 0:
                self._run.step(step, buffers, stats)
        finally:
            with self._lock:
                self.is_stopping = True
                self._num_working -= 1
                self._lock.notify_all()

    def stop(self) -> None:
        """Let every thread finish its step, a matter of milliseconds, and take no other.

        Ctrl-C may come again meanwhile: the matrices must not be looked at before the end.
        """
        while True:
            try:
                self.is_stopping = True
                with self._lock:
                    self._lock.wait_for(lambda: self._num_working == 0)
                return
            except KeyboardInterrupt:
                continue
