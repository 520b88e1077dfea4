"""Counting n-grams in bounded memory: a token store in, a tree of counts out.

The store is read as sentences between <s> and </s>. The ids of a model with V words: 0 … V - 1
the words, V <unk>, V + 1 </s>, V + 2 <s>. A block's starts are sorted by the words that follow
them; equal ones are together and are counted. All blocks, on disk where they are many, are
merged into one tree: level k holds the distinct beginnings of k + 1 words, each node's children
side by side in the next level.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.executor import Executor, cluster
from sememe.machine import in_order
from sememe.models.ngram.kernels import (
    collect,
    grow,
    is_before,
    merge,
    num_up_to,
    sort_starts,
    weave,
)
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import write_errors
from sememe.tokens.store import TokenStore, is_held_out


class TextBlock(NamedTuple):
    """A part of the text whose first `num_starts` ids are followed by enough ids for an n-gram."""

    stream: np.ndarray  # uint32
    num_starts: int
    num_tokens: int  # of the store, own or not, read up to here


def read_blocks(
    store: TokenStore,
    id_map: np.ndarray,
    num_words: int,
    *,
    size: int,
    reach: int = 0,
    share: float = 0.0,
    is_held: bool = False,
    own: range | None = None,
) -> Iterator[TextBlock]:
    """Yield the training documents, or the held-out ones, in blocks of about `size` words.

    id_map maps ids of the store to ids of the model. The last `reach` ids of a sentence that a
    block splits are repeated at the start of the next one. `own` are the sentences to read.
    """

    rest = np.empty(0, np.uint32)
    is_inside, num_sentences, num_tokens = False, own.start if own else 0, 0
    for ids, ends in store.blocks(size, own):
        sentences = np.arange(num_sentences, num_sentences + len(ends) + 1)
        is_own = _is_own(store, sentences, share, is_held)
        out = np.empty(len(rest) + len(ids) + 2 * len(ends) + 2, np.uint32)
        out[: len(rest)] = rest
        num, start = weave(ids, ends, is_own, id_map, num_words, is_inside, out[len(rest) :])
        stream = out[: len(rest) + num]
        # A sentence still open at the very end of the text is open in no other block.
        is_inside = start >= 0
        first = len(stream)
        if is_inside:
            first = max(first - reach, 0 if start == 0 and len(rest) else len(rest) + start)
        num_sentences, num_tokens = num_sentences + len(ends), num_tokens + len(ids)
        rest = stream[first:].copy()
        if len(stream):
            yield TextBlock(stream, first, num_tokens)


def _is_own(store: TokenStore, sentences: np.ndarray, share: float, is_held: bool) -> np.ndarray:
    """Whether each sentence belongs to a document of the wanted kind."""
    if not share:
        return np.full(len(sentences), not is_held)
    return is_held_out(np.searchsorted(store.document_ends, sentences, "right"), share) == is_held


_MIN_BLOCK = 1 << 12
_MAX_NODES = (1 << 32) - 2  # positions are stored in 32 bits


@dataclass
class Level:
    """The n-grams of one length, sorted: last words, counts, and where their children start."""

    words: np.ndarray  # uint32
    counts: np.ndarray  # int64
    starts: np.ndarray  # int64, one more than words; of the last level all zero


class CountedPart:
    """The sorted n-grams of one block, in memory or on disk."""

    def __init__(self, rows: np.ndarray, path: Path | None) -> None:
        self.num_rows, self.width, self.path = len(rows), rows.shape[1], path
        self._rows: np.ndarray | None = rows
        if path is not None:
            with write_errors(path), path.open("wb") as file:
                file.write(rows.data)
            self._rows = None

    def read(self, start: int, num: int) -> np.ndarray:
        """Some rows from `start` on; fewer at the end."""
        if self._rows is not None:
            return self._rows[start : start + num]
        assert self.path is not None
        size = min(num, self.num_rows - start) * self.width
        flat = np.fromfile(self.path, np.uint32, size, offset=4 * self.width * start)
        return flat.reshape(-1, self.width)


# A shard of text: large enough that most of its frequent n-grams are found more than once.
SHARD_TOKENS = 1 << 24


@dataclass(frozen=True)
class CountTask:
    """How the n-grams of each shard of a store are counted, into files in `scratch`."""

    store: Path
    id_map: np.ndarray
    num_words: int
    order: int
    share: float
    memory: int
    cores: int
    scratch: Path

    def __call__(self, own: range) -> list[CountedPart]:
        """Count the n-grams of some sentences."""
        counter = Counter(
            TokenStore.open(self.store), self.id_map, self.num_words, self.order, share=self.share,
            memory=self.memory, workers=self.cores, scratch=self.scratch, reporter=SILENT,
        )  # fmt: skip
        # A task that is repeated must not meet what another one left, or still writes.
        folder = Path(mkdtemp(prefix="shard", dir=self.scratch))
        return [
            CountedPart(rows, folder / f"{number}.rows")
            for number, (rows, _) in enumerate(counter.counted(own))
            if len(rows)
        ]


class Counter:
    """Counts the n-grams of a store's training documents."""

    def __init__(
        self, store: TokenStore, id_map: np.ndarray, num_words: int, order: int, *, share: float,
        memory: int, workers: int, scratch: Path, reporter: Reporter,
    ) -> None:  # fmt: skip
        self.store, self.id_map, self.num_words, self.order = store, id_map, num_words, order
        self.share, self.workers, self.scratch, self.reporter = share, workers, scratch, reporter
        self.memory = memory
        # A position takes its word, two entries in the order, and a row of the result.
        per_word = 4 * (order + 1) + 12
        most = memory // (2 * per_word * workers)
        even = -(-store.num_tokens // workers)
        self.block_size = max(_MIN_BLOCK, min(most, even))
        self.is_spilling = even > self.block_size
        self.window = max(_MIN_BLOCK, memory // (8 * per_word))

    def count(self) -> list[Level]:
        """Count everything; level 0 has a node for every id of the model."""
        parts = self._parts()
        if not parts:
            raise InputError("There is no text to count: every document is held out.")
        with (
            write_errors(self.scratch),
            self.reporter.task("merging n-grams", unit="n-grams") as task,
        ):
            tree = Tree(self.order, self.num_words, self.scratch if self.is_spilling else None)
            for rows in self._merged(parts):
                tree.add(rows)
                task.update(tree.num_nodes)
            return tree.finish()

    def _parts(self) -> list[CountedPart]:
        parts: list[CountedPart] = []
        total = self.store.num_tokens
        with self.reporter.task("counting n-grams", total, "words") as task:
            if (executor := cluster()) is not None:
                shards = self.store.sentence_shards(SHARD_TOKENS)
                num_read = 0
                for own, found in zip(
                    shards, executor.map(self._task(executor), shards), strict=True
                ):
                    parts += found
                    num_read += len(self.store.tokens_of(own))
                    task.update(num_read)
                self.is_spilling = True
                return parts
            for rows, done in self.counted(None):
                if len(rows):
                    path = self.scratch / f"{len(parts)}.rows" if self.is_spilling else None
                    parts.append(CountedPart(rows, path))
                task.update(done)
        return parts

    def _task(self, executor: Executor) -> CountTask:
        each = executor.memory or self.memory // executor.num_tasks
        return CountTask(
            self.store.path, self.id_map, self.num_words, self.order, self.share, each,
            executor.cores, self.scratch,
        )  # fmt: skip

    def counted(self, own: range | None) -> Iterator[tuple[np.ndarray, int]]:
        """The distinct n-grams of each block, and how many words were read up to it."""
        blocks = read_blocks(
            self.store, self.id_map, self.num_words, size=self.block_size,
            reach=self.order - 1, share=self.share, own=own,
        )  # fmt: skip
        with ThreadPoolExecutor(self.workers) as pool:
            yield from in_order(pool, self._sorted, blocks, self.workers - 1)

    def _sorted(self, block: TextBlock) -> tuple[np.ndarray, int]:
        """The distinct n-grams of a block with their counts."""

        places, spare = np.empty((2, block.num_starts), np.uint32)
        cursors = np.empty(self.num_words + 4, np.int64)
        sort_starts(
            block.stream, block.num_starts, self.order, self.num_words + 3, places, spare, cursors
        )
        rows = np.empty((block.num_starts, self.order + 1), np.uint32)
        num = collect(block.stream, places, self.order, np.uint32(self.num_words + 1), rows)
        return rows[:num], block.num_tokens

    def _merged(self, parts: list[CountedPart]) -> Iterator[np.ndarray]:
        """The rows of all parts in order, equal ones added up, some at a time."""

        num_each = max(_MIN_BLOCK // 8, self.window // len(parts))
        places = [0] * len(parts)
        while True:
            windows = [part.read(at, num_each) for part, at in zip(parts, places, strict=True)]
            # No later row comes before the end of a window that has more rows after it.
            open_ends = np.array(
                [
                    window[-1]
                    for part, at, window in zip(parts, places, windows, strict=True)
                    if at + len(window) < part.num_rows
                ]
            )
            if len(open_ends):
                least = 0
                for index in range(1, len(open_ends)):
                    if is_before(open_ends, index, open_ends, least, self.order):
                        least = index
                windows = [
                    window[: num_up_to(window, open_ends, least, self.order)] for window in windows
                ]
            sizes = [len(window) for window in windows]
            if not any(sizes):
                return
            places = [at + size for at, size in zip(places, sizes, strict=True)]
            if len(parts) == 1:
                yield windows[0]
                continue
            joined = np.concatenate(windows)
            out = np.empty_like(joined)
            yield out[: merge(joined, np.cumsum([0, *sizes]), self.order, out)]


class Growing:
    """An array that grows part by part, in memory or in a file that is memory-mapped at the end."""

    def __init__(self, dtype: type, path: Path | None) -> None:
        self.dtype, self.path = dtype, path
        self.parts: list[np.ndarray] = []
        self.file = path.open("wb") if path is not None else None

    def add(self, part: np.ndarray) -> None:
        """Add to the end; the last part stays in memory, where it can be changed."""
        if not len(part):
            return
        if self.file is not None and self.parts:
            self.file.write(self.parts.pop().data)
        self.parts.append(part.astype(self.dtype))

    def finish(self) -> np.ndarray:
        """The complete array, which is writable."""
        if self.file is None or self.path is None:
            return np.concatenate([np.empty(0, self.dtype), *self.parts])
        for part in self.parts:
            self.file.write(part.data)
        self.file.close()
        if not self.path.stat().st_size:
            return np.empty(0, self.dtype)
        return np.memmap(self.path, self.dtype, "r+")


class Tree:
    """The levels while they grow from sorted n-grams."""

    def __init__(self, order: int, num_words: int, scratch: Path | None) -> None:
        self.order, self.num_words, self.scratch = order, num_words, scratch
        self.sizes = np.zeros(order, np.int64)
        self.last = np.full(order, 0xFFFFFFFF, np.uint32)
        self.words = [self._array(f"words-{k}", np.uint32) for k in range(order)]
        self.starts = [self._array(f"starts-{k}", np.int64) for k in range(order)]
        self.counts = [self._array(f"counts-{k}", np.int64) for k in range(order)]

    def _array(self, name: str, dtype: type) -> Growing:
        return Growing(dtype, None if self.scratch is None else self.scratch / name)

    @property
    def num_nodes(self) -> int:
        """How many n-grams of all lengths there are."""
        return int(self.sizes.sum())

    def add(self, rows: np.ndarray) -> None:
        """Add sorted distinct n-grams that come after all before."""

        shape = (self.order, len(rows))
        words, starts = np.empty(shape, np.uint32), np.empty(shape, np.int64)
        counts = np.empty((self.order, len(rows) + 1), np.int64)
        nums = np.empty(self.order, np.int64)
        grow(rows, self.order, self.last, self.sizes, words, starts, counts, nums)
        for level, num in enumerate(nums.tolist()):
            if self.counts[level].parts:
                self.counts[level].parts[-1][-1] += counts[level, 0]
            self.words[level].add(words[level, :num])
            self.counts[level].add(counts[level, 1 : num + 1])
            if level + 1 < self.order:
                self.starts[level].add(starts[level, :num])
        self.sizes += nums
        if self.num_nodes > _MAX_NODES:
            raise InputError(
                f"The text has more than {_MAX_NODES:,} distinct n-grams, which a model cannot "
                "hold: give a lower order, or a higher min_count."
            )

    def finish(self) -> list[Level]:
        """The complete levels; level 0 gets a node for every id, seen or not."""
        levels = []
        for k in range(self.order):
            words, counts, starts = (
                array.finish() for array in (self.words[k], self.counts[k], self.starts[k])
            )
            if k + 1 < self.order:
                starts = np.append(starts, self.sizes[k + 1])
            else:
                starts = np.zeros(len(words) + 1, np.int64)
            levels.append(Level(words, counts, starts))
        return [_filled(levels[0], self.num_words + 3), *levels[1:]]


def _filled(level: Level, num_ids: int) -> Level:
    """The words alone as a level with every id in its place."""
    counts = np.zeros(num_ids, np.int64)
    counts[level.words] = level.counts
    # A word that was not seen has an empty range of children.
    places = np.searchsorted(level.words, np.arange(num_ids + 1))
    return Level(np.arange(num_ids, dtype=np.uint32), counts, level.starts[places])
