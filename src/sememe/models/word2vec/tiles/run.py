"""A run of word2vec in tiles, on a GPU or, for tests, on a CPU.

The loop, the history and the checkpoints are those of every static model. A step is a chunk of the
text, larger than on the CPU. While the GPU trains on one chunk, a thread reads the next, copies it
to the GPU and draws its windows and noise words there. The matrices stay on the device; `collect`
copies them back where they are saved or given to the model.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from sememe.models.static import gpu
from sememe.models.static.model import StaticModel
from sememe.models.word2vec.config import DeviceConfig
from sememe.models.word2vec.tiles import batches
from sememe.models.word2vec.tiles.batches import draw_noise, draw_windows
from sememe.models.word2vec.tiles.plan import InputRows, chunk_size, make_plan
from sememe.models.word2vec.tiles.softmax import MOST_SCORES, padded_paths
from sememe.models.word2vec.training import NOISE, WINDOWS, WindowRun
from sememe.randomness import stream_key
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary

# Of a word of text in flight: ids, windows, noise words and what PyTorch takes to draw them, twice.
WORD_BYTES = 400
_KEPT = 0.25  # of the GPU's free memory, for a text that stays there over all epochs


class Drawn(NamedTuple):
    """What a step trains on: words with their windows, and the noise words of each tile."""

    words: batches.Words
    noise: torch.Tensor


class Pending(NamedTuple):
    """A step that the GPU may still compute; its words stay in memory until then."""

    stats: torch.Tensor
    clock: gpu.Clock
    num_words: int
    drawn: Drawn


class TileRun(WindowRun):
    """A run of word2vec in tiles."""

    def __init__(
        self,
        config: DeviceConfig,
        store: TokenStore,
        vocabulary: Vocabulary,
        id_map: np.ndarray,
    ) -> None:
        """id_map: from the store's ids to the vocabulary's, which are the rows of the matrices."""
        super().__init__(config, store, vocabulary, id_map)
        self.device = gpu.device_of(config.device)
        self.num_workers = 1  # threads that call `step`
        self.plan = make_plan(
            config, np.asarray(vocabulary.counts), self.limits, len(store.sentence_ends),
            store.num_tokens, self.input_rows(), self.tree,
        )  # fmt: skip
        self._settings = batches.Settings(
            config.architecture == "skipgram", config.combine == "mean", config.window,
            self.plan.tile, self.plan.pool, config.negatives, config.loss,
        )  # fmt: skip
        self._tables: batches.Tables | None = None
        self._reader = ThreadPoolExecutor(1)
        self._next: tuple[int, Future[Drawn]] | None = None
        self._chunks: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._keeps_text = False
        self._pending: Pending | None = None
        self._kernel_s, self._kernel_words = 0.0, 0
        self._is_deterministic = config.deterministic
        if config.deterministic:
            gpu.settle_cublas()
        needed = sum(rows.nbytes for rows in self.matrices.values())
        if (composed := self.input_rows()) is not None:
            needed += composed.starts.nbytes + composed.rows.nbytes
        needed += WORD_BYTES * self.chunk_size + 8 * len(vocabulary)
        if config.loss == "softmax":
            needed += self.matrices["output"].nbytes + 12 * MOST_SCORES
        if self.tree is not None:
            needed += 8 * len(vocabulary) * max(1, self.tree.max_length)
        gpu.check_memory(self.device, needed, "The matrices and the text in flight")
        self._train_words, self.path = self._choose_path()

    def step_size(self, store: TokenStore) -> int:
        """The number of words of text per step."""
        return chunk_size(store.num_tokens)

    def input_rows(self) -> InputRows | None:
        """Which rows make up the input vector of a word, unless it is a row of its own."""
        return None

    def _choose_path(self) -> tuple[Any, str]:
        """The function that does the updates, and what it uses, for the message."""
        if self._is_deterministic:
            return batches.train_words, "PyTorch, deterministic"
        if not gpu.runs_triton(self.device) or self._settings.loss != "negative":
            return batches.train_words, "PyTorch"
        from sememe.models.word2vec.tiles import launching

        if not launching.fits(self._settings, self.width):
            return batches.train_words, "PyTorch; the window or dim is too large for Triton"
        try:
            is_composed = self.input_rows() is not None
            launching.try_out(self._settings, self.width, is_composed, self.device)
        except Exception as error:  # no C compiler, or a GPU that this version does not know
            reason = str(error).strip().partition("\n")[0]
            return batches.train_words, f"PyTorch; Triton failed: {reason}"
        return launching.train_words, "Triton"

    def close(self) -> None:
        """Close the store's files, and free the device's memory."""
        self._reader.shutdown(cancel_futures=True)
        super().close()
        self._tables = self._next = self._pending = None
        self._chunks.clear()

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        config, plan = self.config, self.plan
        return (
            f"{len(self.vocabulary):,} words, {self.tokens_per_epoch:,} in the text, "
            f"{config.epochs} epochs: {config.architecture}, {config.loss}, "
            f"{config.dim} dimensions, {plan.in_flight:,} centres in flight on "
            f"{gpu.name_of(self.device)} ({self.path})"
        )

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model, without padding; a copy while they still change."""
        self.collect()
        super().hand_over(model, is_final=is_final)

    def collect(self) -> None:
        """Copy the matrices from the device, if they are there."""
        gpu.copy_back(self._tables, self.matrices, self.device)

    def new_space(self) -> Any:
        """Copy the matrices and tables to the device, unless they are there."""
        if self._tables is None:
            with gpu.explained_memory():
                self._move()

    def _move(self) -> None:
        def move(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(array).to(self.device)

        rows, plan, composed = self.matrices, self.plan, self.input_rows()
        self._tables = batches.Tables(
            move(rows["input"]), move(rows["output"]), move(plan.damp_input),
            move(plan.damp_output), *map(move, composed[:2] if composed else ()),
        )  # fmt: skip
        if self.tree is not None:
            nodes_VL, labels_VL = map(move, padded_paths(self.tree))
            self._tables = replace(self._tables, nodes=nodes_VL, labels=labels_VL)
        self._limits = move(self.limits.astype(np.int64))
        self._noise = move(self.noise[0].astype(np.int64)), move(self.noise[1])
        self._id_map = move(self.text.id_map)
        if (free := gpu.free_memory(self.device)) is not None:
            self._keeps_text = 4 * self.tokens_per_epoch < _KEPT * free
        if self.device.type == "cuda":
            self._stream = torch.cuda.Stream(self.device)

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on the chunk of `step`."""
        is_exact = self._is_deterministic or self.device.type == "cpu"
        with gpu.explained_memory(), gpu.threads(self.config.num_workers, is_exact=is_exact):
            stats += self._train(step)

    def finish(self, stats: np.ndarray) -> None:
        """Wait for the last step, and add what it counted."""
        with gpu.explained_memory():
            stats += self._settled()

    def metrics(self) -> dict[str, float]:
        """The words of text per second of the updates alone; reading and drawing take none."""
        if not self._kernel_s:
            return {}
        return {"kernel_words_per_s": self._kernel_words / self._kernel_s}

    def _settled(self) -> np.ndarray:
        """What the step that is still computed counts, when it is done."""
        if self._pending is None:
            return np.zeros(3)
        work, self._pending = self._pending, None
        self._kernel_s += work.clock.seconds()  # from here on the copy of its stats is complete
        self._kernel_words += work.num_words
        found: np.ndarray = work.stats.numpy()
        return found

    def _train(self, step: int) -> np.ndarray:
        if self._next is not None and self._next[0] == step:
            drawn = self._next[1].result()
        else:
            drawn = self._draw(step)
        words, noise = drawn
        self._next = None
        if step + 1 < self.num_steps:
            self._next = step + 1, self._reader.submit(self._draw, step + 1)
        if not len(words.tokens):
            return self._settled()
        assert self._tables is not None
        clock = gpu.Clock(self.device)
        stats: torch.Tensor = self._train_words(
            words, self.plan.stretches_of(len(words.tokens)), noise, self._tables, self._settings,
            (self.rate_at(step), self.rate_at(step + 1)),
        )  # fmt: skip
        # Copied directly after the updates: a later copy would also wait for the step after them.
        stats = stats.to("cpu", non_blocking=True)
        clock.stop()
        # The GPU has this step's work before the program waits for that of the step before.
        before = self._settled()
        self._pending = Pending(stats, clock, self.words_at(step + 1) - self.words_at(step), drawn)
        return before

    def _draw(self, step: int) -> Drawn:
        """The words, windows and noise words of a step, complete on the device."""
        is_cuda = self.device.type == "cuda"
        with torch.cuda.stream(self._stream) if is_cuda else nullcontext():
            config, plan = self.config, self.plan
            ids, ends = self._take(step % self.text.num_chunks)
            key = stream_key(config.seed, WINDOWS, step)
            words = draw_windows(ids, ends, self._limits, config.window, key)
            num_tiles = -(-len(words.tokens) // plan.tile)
            key = stream_key(config.seed, NOISE, step)
            noise = draw_noise(*self._noise, key, num_tiles * plan.pool)
            drawn = Drawn(words, noise.view(num_tiles, plan.pool))
        if is_cuda:
            self._stream.synchronize()
        return drawn

    def _take(self, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the words of a chunk, and the ends of its sentences."""
        if chunk in self._chunks:
            return self._chunks[chunk]
        raw, ends = self.text.read_ids(chunk)
        # PyTorch computes little with unsigned numbers.
        copied = gpu.copied(raw.view(f"i{raw.itemsize}"), self.device)
        ids = copied.long() & (1 << 8 * raw.itemsize) - 1
        own = self._id_map[ids], gpu.copied(ends, self.device)
        if self._keeps_text:
            self._chunks[chunk] = own
        return own
