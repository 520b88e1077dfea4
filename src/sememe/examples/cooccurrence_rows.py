"""Rows of a co-occurrence matrix, counted from a stretch of text by a pool of threads."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from sememe.cores import in_order
from sememe.examples.cooccurrence import PairSettings, Plan
from sememe.tokens.store import TokenStore

Task = TypeVar("Task")

_LEAST_WORK = 1 << 14  # places of the text; less is not worth a task


class RowSums(NamedTuple):
    """The cells of some rows as exact sums; `ends` has where each row ends among them."""

    first: int
    ends: np.ndarray  # int64
    columns: np.ndarray  # int32
    sums: np.ndarray  # int64
    num_words: int  # how many places of the text they stand for
    goes_on: bool = False  # more cells of the same single row come next


class Chunk(NamedTuple):
    """A stretch of text; the words of entries[first:last] have rows, the others are context."""

    entries: np.ndarray  # uint32, see cooccurrence_kernels
    first: int
    last: int


def read_chunks(store: TokenStore, num_words: int, window: int, plan: Plan) -> Iterator[Chunk]:
    """Pack the text into chunks; two of them share the words that both need as context."""
    from sememe.examples.cooccurrence_kernels import END, pack

    entries = np.empty(plan.num_entries, np.uint32)
    entries[0], first, num = END, 1, 1
    for ids, ends in store.blocks(plan.num_read):
        if num + len(ids) + len(ends) + 2 > len(entries):
            last = num - window
            yield Chunk(entries, first, last)
            start = max(1, last - window)
            kept = entries[start:num].copy()
            first, num = 1 + last - start, 1 + len(kept)
            entries[1:num] = kept
        num = pack(ids, ends, num_words, entries, num)
    entries[num] = END
    yield Chunk(entries, first, num)


class Workspace:
    """One thread's row under way."""

    def __init__(self, num_words: int) -> None:
        num_marks = num_words // 64 + 1
        self.tally = np.zeros(num_words, np.int64)
        self.marks = np.zeros(num_marks, np.uint64)
        self.top = np.zeros(num_marks // 64 + 1, np.uint64)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The row's sums, and the two levels of bits that say where it has any."""
        return self.tally, self.marks, self.top


class RowCounter:
    """Counts chunks row by row on a pool of threads."""

    def __init__(
        self, num_words: int, settings: PairSettings, plan: Plan, pool: ThreadPoolExecutor
    ) -> None:
        self.num_words, self.plan, self._pool = num_words, plan, pool
        self._left, self._right = settings.weights()
        self._spaces: queue.SimpleQueue[Workspace] = queue.SimpleQueue()
        for _ in range(plan.workers):
            self._spaces.put(Workspace(num_words))
        self._positions = np.empty(plan.num_entries, np.uint32)

    def run(
        self, work: Callable[[Workspace, Task], RowSums], tasks: Iterable[Task]
    ) -> Iterator[RowSums]:
        """Give work(workspace, task) of every task in order, some of them made ahead."""

        def with_space(task: Task) -> RowSums:
            space = self._spaces.get()
            try:
                return work(space, task)
            finally:
                self._spaces.put(space)

        return in_order(self._pool, with_space, tasks, self.plan.workers)

    def _index(self, chunk: Chunk) -> np.ndarray:
        """Sort the chunk's positions by word; where the positions of each word start."""
        from sememe.examples.cooccurrence_kernels import place_words, tally_words

        entries, workers = chunk.entries, self.plan.workers
        bounds = np.linspace(chunk.first, chunk.last, workers + 1).astype(np.int64).tolist()
        places_WV = np.zeros((workers, self.num_words), np.int64)
        slices = list(zip(bounds[:-1], bounds[1:], places_WV, strict=True))
        list(self._pool.map(lambda cut: tally_words(entries, *cut), slices))
        starts = np.zeros(self.num_words + 1, np.int64)
        for places in places_WV:
            starts[1:] += places
        np.cumsum(starts, out=starts)
        next_places = starts[:-1].copy()
        for places in places_WV:
            num_here = places.copy()
            places[:] = next_places
            next_places += num_here
        list(self._pool.map(lambda cut: place_words(entries, *cut, self._positions), slices))
        return starts

    def count(self, chunk: Chunk) -> Iterator[RowSums]:
        """Count the rows of a chunk, in order."""
        from sememe.examples.cooccurrence_kernels import count_rows

        starts = self._index(chunk)
        reach = len(self._left) + len(self._right)

        def count_block(space: Workspace, block: Block) -> RowSums:
            own = np.clip(starts[block.first : block.last + 1], block.start, block.end)
            size = int(np.minimum(np.diff(own) * reach, self.num_words).sum())
            columns, sums = np.empty(size, np.int32), np.empty(size, np.int64)
            ends = np.empty(block.last - block.first, np.int64)
            num = count_rows(
                chunk.entries, self._positions, own, self._left, self._right,
                self.num_words // 4, *space.arrays, columns, sums, ends,
            )  # fmt: skip
            # Copies, because the limit may be far above what was found.
            found = columns[:num].copy(), sums[:num].copy()
            goes_on = block.end < int(starts[block.last])
            return RowSums(block.first, ends, *found, block.end - block.start, goes_on)

        sizes = np.minimum(np.diff(starts) * reach, self.num_words)
        blocks = _blocks(starts, sizes, self.plan.num_cells, self.plan.workers)
        yield from self._joined(self.run(count_block, blocks))

    def _joined(self, parts: Iterator[RowSums]) -> Iterator[RowSums]:
        """Add up the parts of rows that were counted in parts."""
        from sememe.examples.cooccurrence_kernels import add_cells, emit_row

        space, num_words = Workspace(self.num_words), 0
        for part in parts:
            if not part.goes_on and not num_words:
                yield part
                continue
            add_cells(part.columns, part.sums, 0, len(part.columns), *space.arrays)
            num_words += part.num_words
            if not part.goes_on:
                columns, sums = np.empty(self.num_words, np.int32), np.empty(self.num_words, int)
                num = emit_row(*space.arrays, columns, sums)
                ends = np.array([num])
                yield RowSums(part.first, ends, columns[:num], sums[:num], num_words)
                num_words = 0


class Block(NamedTuple):
    """The rows first to last - 1; of a single row maybe a part of its positions."""

    first: int
    last: int
    start: int
    end: int


def _blocks(starts: np.ndarray, sizes: np.ndarray, num_cells: int, workers: int) -> Iterator[Block]:
    """Cut rows into blocks of bounded cells and of work that threads can share evenly."""
    # Results come in order: a block of too much work would keep all that follow waiting.
    most = max(int(starts[-1]) // (8 * workers), _LEAST_WORK)
    for first, last in row_blocks(sizes, num_cells, np.diff(starts), most):
        start, end = int(starts[first]), int(starts[last])
        num_parts = max(1, (end - start) // most) if last - first == 1 else 1
        edges = np.linspace(start, end, num_parts + 1).astype(np.int64).tolist()
        for cut in pairwise(edges):
            yield Block(first, last, *cut)


def row_blocks(
    sizes: np.ndarray, num_cells: int, work: np.ndarray | None = None, most: int = 0
) -> Iterator[tuple[int, int]]:
    """Cut rows of at most `sizes` cells into blocks of at most `num_cells`, or of one row.

    With `work` a block has no more than `most` of that either, or one row.
    """
    limits = [(np.cumsum(sizes), num_cells)]
    if work is not None:
        limits.append((np.cumsum(work), most))
    first = 0
    while first < len(sizes):
        last = len(sizes)
        for ends, limit in limits:
            before = int(ends[first - 1]) if first else 0
            last = min(last, int(np.searchsorted(ends, before + limit, "right")))
        last = max(first + 1, last)
        yield first, last
        first = last
