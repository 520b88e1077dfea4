"""Co-occurrence counts: a token store in, the cells of a sparse matrix in row order out.

The corpus is taken in chunks that fit the memory. Each chunk is indexed by word, so that rows are
counted separately by a pool of threads. Chunks that do not fit together are summed from disk.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple, TypeVar

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.examples.cooccurrence.config import PairSettings
from sememe.examples.cooccurrence.kernels import (
    END,
    add_cells,
    count_rows,
    emit_marked,
    merge_rows,
    pack,
    place_words,
    tally_words,
)
from sememe.executor import Executor, cluster
from sememe.machine import available_cores, in_order
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import scratch_folder, write_errors
from sememe.tokens.store import TokenStore

_READ_AT_ONCE = 1 << 20
_MAX_BLOCK_CELLS = 1 << 20
# Columns 4, sums 8, rows 4, values 4 and their making 8; as much again to merge.
_CELL_BYTES = 40
_ENTRY_BYTES = 8
_TOKEN_BYTES = 24


class Cells(NamedTuple):
    """Some complete rows of the matrix, sorted by (row, column); no cell is 0."""

    rows: np.ndarray  # int32
    columns: np.ndarray  # int32
    values: np.ndarray  # float32


def count_pairs(
    store: TokenStore,
    num_words: int,
    settings: PairSettings,
    *,
    memory: int,
    workers: int = 0,
    scratch: Path,
    progress: Reporter = SILENT,
) -> Iterator[Cells]:
    """Count the pairs of words with ids below `num_words` and yield the cells in row order.

    Rarer words are removed before distances are measured, and a window ends with its sentence, as
    in Stanford's program, whose asymmetric matrix is that of direction "right" here. Memory stays
    within `memory` bytes; the rest goes to files in the folder `scratch`. The result depends
    neither on that nor on `workers`.
    """

    num_words = min(num_words, len(store.vocabulary))
    if (executor := cluster()) is not None:
        yield from _count_on(executor, store, num_words, settings, memory, scratch, progress)
        return
    plan = make_plan(store, num_words, settings, memory, workers)
    with ThreadPoolExecutor(plan.workers) as pool:
        counter = RowCounter(num_words, settings, plan, pool)
        chunks = read_chunks(store, num_words, settings.window, plan)
        total = int(store.vocabulary.counts[:num_words].sum())
        if not plan.is_whole:
            found = count_in_parts(counter, chunks, scratch, total, progress)
        else:
            found = _count_at_once(counter, chunks, total, progress)
        yield from (_cells(rows, settings.unit) for rows in found)


# A shard of text: large enough that most cells of its frequent words are found more than once.
SHARD_TOKENS = 1 << 25


@dataclass(frozen=True)
class CountTask:
    """How the pairs of each shard of a store are counted into parts in new folders of `scratch`."""

    store: Path
    num_words: int
    settings: PairSettings
    scratch: Path
    memory: int
    cores: int

    def __call__(self, sentences: range) -> tuple[list[Part], int]:
        """Count the pairs of some sentences; also the number of their words."""
        store = TokenStore.open(self.store)
        plan = make_plan(
            store, self.num_words, self.settings, self.memory, self.cores, sentences=sentences
        )
        # A task that is repeated must not meet what another one left, or still writes.
        folder = Path(mkdtemp(prefix="shard", dir=self.scratch))
        parts: list[Part] = []
        num_words = 0
        with ThreadPoolExecutor(plan.workers) as pool:
            counter = RowCounter(self.num_words, self.settings, plan, pool)
            chunks = read_chunks(store, self.num_words, self.settings.window, plan, sentences)
            for rows in write_parts(counter, chunks, folder, parts):
                num_words += rows.num_words
        return parts, num_words


def _count_on(
    executor: Executor,
    store: TokenStore,
    num_words: int,
    settings: PairSettings,
    memory: int,
    scratch: Path,
    progress: Reporter,
) -> Iterator[Cells]:
    """Count each shard of the store in a task of its own, and add up the parts here."""
    each = executor.memory or memory // executor.num_tasks
    total = int(store.vocabulary.counts[:num_words].sum())
    with scratch_folder(scratch, "pairs") as folder:
        task = CountTask(store.path, num_words, settings, folder, each, executor.cores)
        parts: list[Part] = []
        with progress.task("counting pairs", total, "words") as shown:
            for found, num in executor.map(task, store.sentence_shards(SHARD_TOKENS)):
                parts += found
                shown.update(shown.done + num, parts=str(len(parts)))
        plan = make_plan(store, num_words, settings, memory, 0)
        with ThreadPoolExecutor(plan.workers) as pool:
            counter = RowCounter(num_words, settings, plan, pool)
            for rows in _merge(counter, parts, progress):
                yield _cells(rows, settings.unit)


def _count_at_once(
    counter: RowCounter, chunks: Iterator[Chunk], total: int, progress: Reporter
) -> Iterator[RowSums]:
    with progress.task("counting pairs", total, "words") as task:
        for chunk in chunks:
            for rows in counter.count(chunk):
                task.update(task.done + rows.num_words)
                yield rows


def _cells(rows: RowSums, unit: int) -> Cells:
    ids = np.arange(rows.first, rows.first + len(rows.ends), dtype=np.int32)
    values = np.multiply(rows.sums, 1.0 / unit).astype(np.float32)
    return Cells(np.repeat(ids, np.diff(rows.ends, prepend=0)), rows.columns, values)


@dataclass(frozen=True)
class MemoryPlan:
    """How the memory is divided."""

    workers: int
    num_entries: int  # words and sentence ends of a chunk
    num_read: int  # words read at a time
    num_cells: int  # most cells of a block of rows, unless one row alone has more
    is_whole: bool  # the text is one chunk


def make_plan(
    store: TokenStore,
    num_words: int,
    settings: PairSettings,
    memory: int,
    workers: int,
    *,
    sentences: range | None = None,
) -> MemoryPlan:
    """Divide `memory` bytes among threads, blocks of cells in flight and the chunk of text."""
    sentences = range(len(store.sentence_ends)) if sentences is None else sentences
    workers = workers or available_cores()
    smallest = 8 * settings.window + 256  # entries of a chunk

    def left_over(threads: int, num_cells: int) -> int:
        return memory - 17 * num_words * (threads + 1) - _CELL_BYTES * num_cells * (threads + 2)

    def least(threads: int) -> int:
        return memory - left_over(threads, num_words) + smallest * (_ENTRY_BYTES + _TOKEN_BYTES)

    while workers > 1 and least(workers) > memory // 2:
        workers -= 1
    if least(1) > memory:
        raise OptionError(
            f"memory: {memory:,} bytes are too few for {num_words:,} words; "
            f"give at least {least(1):,} or keep fewer words."
        )
    share = memory // (4 * _CELL_BYTES * (workers + 2))
    num_cells = max(num_words, min(share, _MAX_BLOCK_CELLS))
    rest = left_over(workers, num_cells)
    num_read = int(np.clip(rest // (8 * _TOKEN_BYTES), 32, _READ_AT_ONCE))
    num_entries = max((rest - num_read * _TOKEN_BYTES) // _ENTRY_BYTES, smallest)
    needed = len(store.tokens_of(sentences)) + len(sentences) + 3
    is_whole = needed <= num_entries < 2**32
    return MemoryPlan(
        workers, needed if is_whole else min(num_entries, 2**32 - 1), num_read, num_cells, is_whole
    )


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
    """A range of text; the words of entries[first:last] have rows, the others are context."""

    entries: np.ndarray  # uint32, see cooccurrence_kernels
    first: int
    last: int


def read_chunks(
    store: TokenStore,
    num_words: int,
    window: int,
    plan: MemoryPlan,
    sentences: range | None = None,
) -> Iterator[Chunk]:
    """Pack the text into chunks; adjacent ones share the words that both need as context."""

    entries = np.empty(plan.num_entries, np.uint32)
    entries[0], first, num = END, 1, 1
    for ids, ends in store.blocks(plan.num_read, sentences):
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


Workspace = tuple[np.ndarray, np.ndarray, np.ndarray]


def workspace(num_words: int) -> Workspace:
    """One thread's row: its sums, and the two levels of bits that say where it has any."""
    num_marks = num_words // 64 + 1
    top = np.zeros(num_marks // 64 + 1, np.uint64)
    return np.zeros(num_words, np.int64), np.zeros(num_marks, np.uint64), top


class RowCounter:
    """Counts chunks row by row on a pool of threads."""

    def __init__(
        self, num_words: int, settings: PairSettings, plan: MemoryPlan, pool: ThreadPoolExecutor
    ) -> None:
        self.num_words, self.plan, self._pool = num_words, plan, pool
        self._left, self._right = settings.weights()
        self._spaces: queue.SimpleQueue[Workspace] = queue.SimpleQueue()
        for _ in range(plan.workers):
            self._spaces.put(workspace(num_words))
        self._positions = np.empty(plan.num_entries, np.uint32)

    def run(
        self, work: Callable[[Workspace, Task], RowSums], tasks: Iterable[Task]
    ) -> Iterator[RowSums]:
        """Yield work(workspace, task) of every task in order, some computed in advance."""

        def with_space(task: Task) -> RowSums:
            space = self._spaces.get()
            try:
                return work(space, task)
            finally:
                self._spaces.put(space)

        return in_order(self._pool, with_space, tasks, self.plan.workers)

    def _index(self, chunk: Chunk) -> np.ndarray:
        """Sort the chunk's positions by word; where the positions of each word start."""

        entries, workers = chunk.entries, self.plan.workers
        bounds = np.linspace(chunk.first, chunk.last, workers + 1).astype(np.int64).tolist()
        places_WV = np.zeros((workers, self.num_words), np.int64)
        slices = list(zip(bounds[:-1], bounds[1:], places_WV, strict=True))
        list(self._pool.map(lambda cut: tally_words(entries, *cut), slices))
        starts = np.zeros(self.num_words + 1, np.int64)
        np.cumsum(places_WV.sum(axis=0), out=starts[1:])
        next_places = starts[:-1].copy()
        for places in places_WV:
            num_here = places.copy()
            places[:] = next_places
            next_places += num_here
        list(self._pool.map(lambda cut: place_words(entries, *cut, self._positions), slices))
        return starts

    def count(self, chunk: Chunk) -> Iterator[RowSums]:
        """Count the rows of a chunk, in order."""

        starts = self._index(chunk)
        reach = len(self._left) + len(self._right)

        def count_block(space: Workspace, block: RowBlock) -> RowSums:
            own = np.clip(starts[block.first : block.last + 1], block.start, block.end)
            size = int(np.minimum(np.diff(own) * reach, self.num_words).sum())
            columns, sums = np.empty(size, np.int32), np.empty(size, np.int64)
            ends = np.empty(block.last - block.first, np.int64)
            num = count_rows(
                chunk.entries, self._positions, own, self._left, self._right,
                self.num_words // 4, *space, columns, sums, ends,
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

        space, num_words = workspace(self.num_words), 0
        for part in parts:
            if not part.goes_on and not num_words:
                yield part
                continue
            add_cells(part.columns, part.sums, 0, len(part.columns), *space)
            num_words += part.num_words
            if not part.goes_on:
                columns, sums = np.empty(self.num_words, np.int32), np.empty(self.num_words, int)
                num = emit_marked(*space, columns, sums, 0)
                yield RowSums(part.first, np.array([num]), columns[:num], sums[:num], num_words)
                num_words = 0


class RowBlock(NamedTuple):
    """The rows first to last - 1; of a single row maybe a part of its positions."""

    first: int
    last: int
    start: int
    end: int


def _blocks(
    starts: np.ndarray, sizes: np.ndarray, num_cells: int, workers: int
) -> Iterator[RowBlock]:
    """Split rows into blocks with a bounded number of cells and balanced work."""
    # Results come in order: a block of too much work would delay all that follow.
    most = max(int(starts[-1]) // (8 * workers), _LEAST_WORK)
    for first, last in row_blocks(sizes, num_cells, np.diff(starts), most):
        start, end = int(starts[first]), int(starts[last])
        num_parts = max(1, (end - start) // most) if last - first == 1 else 1
        edges = np.linspace(start, end, num_parts + 1).astype(np.int64).tolist()
        yield from (RowBlock(first, last, *cut) for cut in pairwise(edges))


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


class Part:
    """The rows of one chunk on disk: columns, sums, and where each row starts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, blocks: Iterator[RowSums], num_rows: int) -> Iterator[RowSums]:
        """Write the rows of a chunk as they come, and yield them."""
        starts = np.zeros(num_rows + 1, np.int64)
        with (
            write_errors(self.path.parent),
            self.path.with_suffix(".columns").open("wb") as columns,
            self.path.with_suffix(".sums").open("wb") as sums,
        ):
            for rows in blocks:
                span = slice(rows.first + 1, rows.first + 1 + len(rows.ends))
                starts[span] = rows.ends + starts[rows.first]
                columns.write(rows.columns.data)
                sums.write(rows.sums.data)
                yield rows
            self.path.with_suffix(".starts").write_bytes(starts.data)

    def starts(self, first: int, last: int) -> np.ndarray:
        """Where the rows first to last start among the cells."""
        starts = np.empty(last - first + 1, np.int64)
        self._read(".starts", first, starts)
        return starts

    def read(self, start: int, columns: np.ndarray, sums: np.ndarray) -> None:
        """Fill the arrays with the cells from `start` on."""
        self._read(".columns", start, columns)
        self._read(".sums", start, sums)

    def _read(self, ending: str, start: int, array: np.ndarray) -> None:
        with self.path.with_suffix(ending).open("rb") as file:
            file.seek(start * array.itemsize)
            if file.readinto(array.view(np.uint8).data) != array.nbytes:
                raise ArtifactError(f"The scratch file {file.name} was cut off while in use.")


def count_in_parts(
    counter: RowCounter, chunks: Iterator[Chunk], scratch: Path, total: int, progress: Reporter
) -> Iterator[RowSums]:
    """Count each chunk into a part on disk, then yield the sums of all parts in row order."""
    with scratch_folder(scratch, "pairs") as folder:
        parts: list[Part] = []
        with progress.task("counting pairs", total, "words") as task:
            for rows in write_parts(counter, chunks, folder, parts):
                task.update(task.done + rows.num_words, parts=str(len(parts)))
        yield from _merge(counter, parts, progress)


def write_parts(
    counter: RowCounter, chunks: Iterator[Chunk], folder: Path, parts: list[Part]
) -> Iterator[RowSums]:
    """Write each chunk as one more part, and yield its rows as they come."""
    for chunk in chunks:
        parts.append(Part(folder / f"{len(parts)}"))
        yield from parts[-1].write(counter.count(chunk), counter.num_words)


def _merge(counter: RowCounter, parts: list[Part], progress: Reporter) -> Iterator[RowSums]:
    sizes = np.zeros(counter.num_words, np.int64)
    for part in parts:
        sizes += np.diff(part.starts(0, counter.num_words))

    def merge(space: Workspace, block: tuple[int, int]) -> RowSums:
        first, last = block
        num_cells = int(sizes[first:last].sum())
        if num_cells > counter.plan.num_cells:
            return _merge_long_row(space, parts, first, counter.plan.num_cells)
        return _merge_block(space, parts, first, last, num_cells)

    with progress.task("merging pairs", int(sizes.sum()), "cells") as task:
        for rows in counter.run(merge, row_blocks(sizes, counter.plan.num_cells)):
            last = rows.first + len(rows.ends)
            task.update(task.done + int(sizes[rows.first : last].sum()))
            yield rows


def _merge_block(
    space: Workspace, parts: list[Part], first: int, last: int, num_cells: int
) -> RowSums:
    """Add up whole rows of all parts, which are read together."""

    columns, sums = np.empty(num_cells, np.int32), np.empty(num_cells, np.int64)
    bounds_PR = np.empty((len(parts), last - first + 1), np.int64)
    num = 0
    for part, bounds in zip(parts, bounds_PR, strict=True):
        starts = part.starts(first, last)
        span = slice(num, num + int(starts[-1] - starts[0]))
        part.read(int(starts[0]), columns[span], sums[span])
        bounds[:] = starts - starts[0] + num
        num = span.stop
    to_columns, to_sums = np.empty(num, np.int32), np.empty(num, np.int64)
    ends = np.empty(last - first, np.int64)
    num = merge_rows(columns, sums, bounds_PR, *space, to_columns, to_sums, ends)
    return RowSums(first, ends, to_columns[:num].copy(), to_sums[:num].copy(), 0)


def _merge_long_row(space: Workspace, parts: list[Part], row: int, num_cells: int) -> RowSums:
    """Add up one row that is too long to be read from all parts at once."""

    columns, sums = np.empty(num_cells, np.int32), np.empty(num_cells, np.int64)
    for part in parts:
        start, end = part.starts(row, row + 1).tolist()
        part.read(start, columns[: end - start], sums[: end - start])
        add_cells(columns, sums, 0, end - start, *space)
    num = emit_marked(*space, columns, sums, 0)
    return RowSums(row, np.array([num]), columns[:num].copy(), sums[:num].copy(), 0)
