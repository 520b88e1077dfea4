"""Exact word counts in bounded memory: records in, a vocabulary and numbered words out.

Each worker numbers the words it sees in its own table. A table that reaches its memory limit is
written to disk, grouped by hash. At the end the tables are merged into one vocabulary, and the
workers' numbers are mapped to its word ids.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

import numpy as np

from sememe.executor import Executor, Threads
from sememe.machine import available_cores
from sememe.storage.folder import write_errors
from sememe.text.words import Records
from sememe.tokens import kernels
from sememe.tokens.vocabulary import Vocabulary, read_only, sort_words

DEFAULT_MEMORY = 512 << 20
NO_WEIGHTS = np.empty(0, np.int64)
_FIRST_SLOTS = 1 << 12
_SLOT_SIZE = 24  # two numbers of 8 bytes, and half a word's count and end


class Buffers(NamedTuple):
    """The output buffers of a scan; the caller empties them when the scan stops."""

    ids: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray

    @classmethod
    def new(cls, size: int = 1 << 18) -> Buffers:
        """Make room for `size` words."""
        return cls(*(np.empty(size, np.uint32) for _ in range(3)))


class WordTable:
    """Exact counts of words, in about `memory` bytes."""

    def __init__(self, memory: int) -> None:
        exponent = max((memory * 8 // 10 // _SLOT_SIZE).bit_length() - 1, 4)
        self._max_slots = 1 << exponent
        self._max_arena = max(memory - _SLOT_SIZE * self._max_slots, 256)
        num_slots = min(_FIRST_SLOTS, self._max_slots)
        self.slots = np.zeros(2 * num_slots, np.uint64)
        self.counts = np.zeros(num_slots // 2, np.int64)
        self.ends = np.zeros(num_slots // 2, np.int64)
        self.arena = np.zeros(min(num_slots * 8, self._max_arena), np.uint8)
        self.state = np.zeros(kernels.STATE_SIZE, np.int64)

    @property
    def num_words(self) -> int:
        """Distinct words so far."""
        return int(self.state[kernels.NUM_WORDS])

    @property
    def words(self) -> np.ndarray:
        """The words, each followed by WORD_END."""
        return self.arena[: int(self.state[kernels.ARENA_END])]

    def clear(self) -> None:
        """Remove every word but keep the memory."""
        self.slots.fill(0)
        self.state[kernels.NUM_WORDS] = self.state[kernels.ARENA_END] = 0

    def scan(
        self,
        data: np.ndarray,
        buffers: Buffers,
        flush: Callable[[], None],
        *,
        weights: np.ndarray = NO_WEIGHTS,
        spill: Callable[[], None] | None = None,
    ) -> None:
        """Count all of `data`; `flush` empties the buffers, `spill` saves the words when full."""
        self.state[kernels.NUM_IDS :] = 0
        position = 0
        while True:
            position = kernels.scan(
                data, position, weights, *buffers, self.slots, self.counts, self.ends, self.arena,
                self.state,
            )  # fmt: skip
            filled = self.state[kernels.NUM_IDS : kernels.NUM_DOCUMENTS + 1].tolist()
            flush()
            if position >= len(data):
                return
            if all(num < len(buffer) for num, buffer in zip(filled, buffers, strict=True)):
                self._make_room(spill)

    def _make_room(self, spill: Callable[[], None] | None) -> None:
        is_full = self.num_words == len(self.ends)
        if is_full and (spill is None or len(self.slots) < 2 * self._max_slots):
            slots = np.zeros(2 * len(self.slots), np.uint64)
            kernels.grow(self.slots, slots)
            self.slots = slots
            self.counts = np.pad(self.counts, (0, len(self.counts)))
            self.ends = np.pad(self.ends, (0, len(self.ends)))
        elif not is_full and (spill is None or self.num_words == 0):
            # A word longer than the whole arena must still fit.
            self.arena = np.pad(self.arena, (0, len(self.arena)))
        elif not is_full and len(self.arena) < self._max_arena:
            more = min(len(self.arena), self._max_arena - len(self.arena))
            self.arena = np.pad(self.arena, (0, more))
        elif spill is not None:
            spill()
            self.clear()


NUM_PARTS = 256
_PART_SHIFT = 64 - 8  # a word's part is the top eight bits of its hash
_SLAB = 1 << 16
# One thread counts 40 M words/s, more than two can segment: beyond half the cores they would only
# wait for each other, and many small tables spill often.
_MAX_WORKERS = 8
_MASK = (1 << 64) - 1


class Piece(NamedTuple):
    """A run of words of one batch, numbered by one generation of one worker."""

    batch: int
    generation: int
    num_ids: int
    num_sentences: int
    num_documents: int


class Content(NamedTuple):
    """The rolling hash of a run of text; runs can be joined in order."""

    rolled: int = 0
    size: int = 0

    def then(self, rolled: int, size: int) -> Content:
        """This run followed by another one."""
        factor = pow(int(kernels.GOLDEN), size, 1 << 64)
        return Content((self.rolled * factor + rolled) & _MASK, self.size + size)


class Generation:
    """The words of one full table on disk: for each part its words, counts and local ids."""

    def __init__(self, path: Path, table: WordTable) -> None:
        self.path = path
        self.bounds = np.zeros(NUM_PARTS + 1, np.int64)
        order = np.empty(table.num_words, np.uint32)
        kernels.group(table.slots, _PART_SHIFT, self.bounds, order)
        sizes = np.diff(table.ends[: table.num_words], prepend=0)
        ends = np.concatenate(([0], np.cumsum(sizes[order])))
        self.byte_bounds = ends[self.bounds]
        with write_errors(path):
            with path.open("wb") as file:
                for start in range(0, len(order), _SLAB):
                    ids = order[start : start + _SLAB]
                    words = np.empty(ends[start + len(ids)] - ends[start], np.uint8)
                    kernels.gather(table.arena, table.ends, ids, words)
                    file.write(words.data)
            for ending, array in ((".counts", table.counts[order]), (".ids", order)):
                with path.with_suffix(ending).open("wb") as file:
                    file.write(array.data)

    @property
    def mapping_path(self) -> Path:
        """The path of the merged id of each word."""
        return self.path.with_suffix(".mapping")

    def read_ids(self) -> np.ndarray:
        """The local number of every word, in the order of the parts."""
        return np.fromfile(self.path.with_suffix(".ids"), np.uint32)

    def read_words(self, parts: slice) -> np.ndarray:
        """The words of some parts, each followed by WORD_END."""
        return _read(self.path, self.byte_bounds, parts, np.uint8)

    def read_counts(self, parts: slice) -> np.ndarray:
        """The counts of the words of some parts."""
        return _read(self.path.with_suffix(".counts"), self.bounds, parts, np.int64)


def _read(path: Path, bounds: np.ndarray, parts: slice, dtype: type) -> np.ndarray:
    start, end = int(bounds[parts.start]), int(bounds[parts.stop])
    size = np.dtype(dtype).itemsize
    return np.fromfile(path, dtype, end - start, offset=start * size)


class Worker:
    """One thread's table, the generations it has filled, and the numbered words on disk."""

    def __init__(self, folder: Path, name: str, memory: int, keep_ids: bool) -> None:
        self._folder, self._name = folder, name
        self.table = WordTable(memory)
        self._buffers = Buffers.new()
        self.generations: list[Generation] = []
        self.pieces: list[Piece] = []
        self.contents: dict[int, Content] = {}
        self.error: BaseException | None = None
        self.paths = [folder / f"{name}-{kind}" for kind in ("ids", "sentences", "documents")]
        self._files: list[BinaryIO] = []
        if keep_ids:
            with write_errors(folder):
                self._files = [path.open("wb") for path in self.paths]

    def run(self, line: queue.Queue[tuple[int, bytes] | None]) -> None:
        """Count the batches of `line` until it gives None; after an error, only drain it."""
        while (item := line.get()) is not None:
            if self.error is None:
                try:
                    self.count(*item)
                except BaseException as error:
                    self.error = error

    def count(self, batch: int, data: bytes) -> None:
        """Count the words of one batch and record their numbers."""
        state = self.table.state

        def flush() -> None:
            filled = state[kernels.NUM_IDS : kernels.NUM_DOCUMENTS + 1].tolist()
            self.pieces.append(Piece(batch, len(self.generations), *filled))
            with write_errors(self._folder):
                for file, buffer, num in zip(self._files, self._buffers, filled, strict=False):
                    file.write(buffer[:num].data)

        self.table.scan(np.frombuffer(data, np.uint8), self._buffers, flush, spill=self.spill)
        if state[kernels.SENTENCE_SIZE] or state[kernels.DOCUMENT_SIZE]:
            raise ValueError("records must hold whole documents, each closed by its end")
        rolled, size = state[kernels.CONTENT_HASH : kernels.CONTENT_SIZE + 1].tolist()
        self.contents[batch] = Content(rolled & _MASK, size)

    def spill(self) -> None:
        """Write the table's words to disk as one more generation."""
        path = self._folder / f"{self._name}-{len(self.generations)}.words"
        self.generations.append(Generation(path, self.table))

    def finish_spilling(self) -> None:
        """Write the rest of the table, and free its memory."""
        if self.table.num_words:
            self.spill()
        self.table = WordTable(0)

    def close(self) -> None:
        """Finish the files."""
        with write_errors(self._folder):
            for file in self._files:
                file.close()
        self._files = []

    def detach(self) -> None:
        """Leave everything on disk, so that another process can read it."""
        self.finish_spilling()
        self._buffers = Buffers.new(0)

    def follow(self, num_batches: int) -> None:
        """Number the batches as those after `num_batches` others."""
        self.pieces = [own._replace(batch=own.batch + num_batches) for own in self.pieces]
        self.contents = {batch + num_batches: own for batch, own in self.contents.items()}


def content_of(workers: list[Worker]) -> Content:
    """The rolling hash of the full text that `workers` counted."""
    contents = {batch: part for worker in workers for batch, part in worker.contents.items()}
    whole = Content()
    for batch in sorted(contents):
        whole = whole.then(*contents[batch])
    return whole


def tally(
    records: Iterable[Records], folder: Path, *, workers: int, memory: int, keep_ids: bool
) -> list[Worker]:
    """Count the words of `records` with `workers` threads; scratch files go to `folder`."""
    workers = min((workers + 1) // 2, _MAX_WORKERS)
    crew = [Worker(folder, f"w{n}", memory // workers, keep_ids) for n in range(workers)]
    # A short line keeps the workers busy and the number of batches in memory bounded.
    line: queue.Queue[tuple[int, bytes] | None] = queue.Queue(2 * workers)
    with ThreadPoolExecutor(workers) as pool:
        for worker in crew:
            pool.submit(worker.run, line)
        try:
            for batch, record in enumerate(records):
                if any(worker.error for worker in crew):
                    break
                line.put((batch, record.data))
        finally:
            for _ in crew:
                line.put(None)
    for worker in crew:
        worker.close()
        if worker.error:
            raise worker.error
    return crew


# ---- merging ------------------------------------------------------------------------------

_DROPPED = np.uint32(0xFFFFFFFF)
# What one word takes while parts are added up: slots at their emptiest, counts, ends, numbers.
_WORD_MEMORY = 112
_MIN_RANGE_MEMORY = 1 << 20  # below this, opening files would take all the time


class Merged(NamedTuple):
    """The vocabulary of a text, and the map from each generation's numbers to its ids."""

    vocabulary: Vocabulary
    num_distinct: int
    highest_count: int
    # (worker, generation) -> what gives the id of each local number when it is called, maybe in
    # another process; len(vocabulary) where the word is rare
    mapping: Callable[[int, int], Callable[[], np.ndarray]]


class _Kept(NamedTuple):
    """The kept words, each followed by WORD_END, with all counts."""

    words: np.ndarray
    counts: np.ndarray
    num_distinct: int
    highest_count: int


def merge(
    found: list[Worker], *, min_count: int, memory: int, executor: Executor | None = None
) -> Merged:
    """Add up the workers' counts and keep words with at least `min_count` occurrences."""
    # Joined tables may hold as many words as both; half the limit leaves room to grow into.
    num_words = sum(worker.table.num_words for worker in found)
    if any(worker.generations for worker in found) or _WORD_MEMORY * num_words > memory // 2:
        return _merge_on_disk(found, min_count, memory, executor or Threads())
    return _merge_in_memory(found, min_count)


def _kept_of(table: WordTable, min_count: int) -> tuple[_Kept, np.ndarray]:
    """The words of `table` that are kept, and the new number of every word."""
    counts = table.counts[: table.num_words]
    ids = np.flatnonzero(counts >= min_count).astype(np.uint32)
    numbers = np.full(len(counts), _DROPPED, np.uint32)
    numbers[ids] = np.arange(len(ids), dtype=np.uint32)
    words = np.empty(len(table.words), np.uint8)
    size = kernels.gather(table.arena, table.ends, ids, words)
    highest = int(counts.max()) if len(counts) else 0
    return _Kept(words[:size].copy(), counts[ids], len(counts), highest), numbers


def _add(table: WordTable, words: np.ndarray, counts: np.ndarray, buffers: Buffers) -> np.ndarray:
    """Add counted words to `table` and give the number that each has there."""
    numbers: list[np.ndarray] = []

    def flush() -> None:
        numbers.append(buffers.ids[: table.state[kernels.NUM_IDS]].copy())

    table.scan(read_only(words), buffers, flush, weights=counts)
    return np.concatenate(numbers)


def _merge_in_memory(found: list[Worker], min_count: int) -> Merged:
    tables = [worker.table for worker in found]
    total = max(tables, key=lambda table: table.num_words)
    own_ids = np.arange(total.num_words, dtype=np.uint32)
    buffers = Buffers.new()
    numbers = [
        own_ids
        if table is total
        else _add(total, table.words, table.counts[: table.num_words], buffers)
        for table in tables
    ]
    kept, places = _kept_of(total, min_count)
    vocabulary, ranks = rank_words(kept.words, kept.counts)
    ids = ids_of(places, ranks)
    local = [ids[own] for own in numbers]
    return Merged(
        vocabulary,
        kept.num_distinct,
        kept.highest_count,
        lambda worker, _: partial(np.asarray, local[worker]),
    )


def ids_of(places: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The final id of every place in the list of kept words; dropped ones become len(ranks)."""
    return np.append(ranks, np.uint32(len(ranks)))[np.minimum(places, len(ranks))]


def rank_words(words: np.ndarray, counts: np.ndarray) -> tuple[Vocabulary, np.ndarray]:
    """Sort words by falling count, ties by bytes; also return the id of each."""
    ends = np.flatnonzero(words == 0x1F)
    ends -= np.arange(len(ends))  # now where each word ends once the separators are gone
    word_bytes = words[words != 0x1F]
    by_bytes = sort_words(word_bytes, ends)
    by_id = by_bytes[np.argsort(-counts[by_bytes], kind="stable")]
    ranks = np.empty(len(ends), np.uint32)
    ranks[by_id] = np.arange(len(ends), dtype=np.uint32)
    ordered = np.empty(len(word_bytes), np.uint8)
    kernels.gather(word_bytes, ends, by_id, ordered)
    sizes = np.diff(ends, prepend=0)[by_id]
    vocabulary = Vocabulary(ordered, np.cumsum(sizes), counts[by_id], ranks[by_bytes])
    return vocabulary, ranks


def _merge_on_disk(found: list[Worker], min_count: int, memory: int, executor: Executor) -> Merged:
    for worker in found:
        worker.finish_spilling()
    generations = [part for worker in found for part in worker.generations]
    for generation in generations:
        with write_errors(generation.path):
            generation.mapping_path.touch()
    each = memory // executor.num_tasks if executor.memory is None else executor.memory
    ranges = _ranges(generations, max(each, _MIN_RANGE_MEMORY))
    merge_range = partial(_merge_parts, generations, min_count)
    kept = list(executor.map(merge_range, ranges))
    starts = np.cumsum([0] + [len(own.counts) for own in kept])
    num_distinct = sum(own.num_distinct for own in kept)
    highest = max((own.highest_count for own in kept), default=0)
    words = np.concatenate([own.words for own in kept])
    counts = np.concatenate([own.counts for own in kept])
    del kept
    vocabulary, ranks = rank_words(words, counts)
    ranks_path = generations[0].path.with_suffix(".ranks")
    with write_errors(ranks_path):
        ranks_path.write_bytes(ranks.data)

    def mapping(worker: int, generation: int) -> Callable[[], np.ndarray]:
        own = found[worker].generations[generation]
        return partial(_mapping_of, own, ranges, starts, ranks_path)

    return Merged(vocabulary, num_distinct, highest, mapping)


def _ranges(generations: list[Generation], memory: int) -> list[slice]:
    """Consecutive parts that can be added up together within `memory`."""
    needs = sum(
        _WORD_MEMORY * np.diff(generation.bounds) + 2 * np.diff(generation.byte_bounds)
        for generation in generations
    )
    ranges, start, total = [], 0, 0
    for part, need in enumerate(np.asarray(needs).tolist()):
        if total + need > memory and part > start:
            ranges.append(slice(start, part))
            start, total = part, 0
        total += need
    return [*ranges, slice(start, NUM_PARTS)]


def _merge_parts(generations: list[Generation], min_count: int, parts: slice) -> _Kept:
    """Add up the same parts of every generation; record where each word went."""
    table, buffers = WordTable(0), Buffers.new(1 << 14)
    numbers = [
        _add(table, generation.read_words(parts), generation.read_counts(parts), buffers)
        for generation in generations
    ]
    kept, places = _kept_of(table, min_count)
    for generation, own in zip(generations, numbers, strict=True):
        with write_errors(generation.path), generation.mapping_path.open("r+b") as file:
            file.seek(4 * int(generation.bounds[parts.start]))
            file.write(places[own].data)
    return kept


def _mapping_of(
    generation: Generation, ranges: list[slice], starts: np.ndarray, ranks_path: Path
) -> np.ndarray:
    """The final id of every local number of one generation on disk."""
    ranks = np.fromfile(ranks_path, np.uint32)
    places = np.fromfile(generation.mapping_path, np.uint32)
    for parts, start in zip(ranges, starts, strict=False):
        own = places[generation.bounds[parts.start] : generation.bounds[parts.stop]]
        own[own != _DROPPED] += np.uint32(start)
    ids = np.empty(len(places), np.uint32)
    ids[generation.read_ids()] = ids_of(places, ranks)
    return ids


def count_words(
    records: Iterable[Records],
    *,
    min_count: int = 1,
    workers: int = 0,
    memory: int = DEFAULT_MEMORY,
    scratch: Path | None = None,
) -> Vocabulary:
    """Count the words of `records` exactly; those below `min_count` are dropped."""
    workers = workers or available_cores()
    with TemporaryDirectory(dir=scratch) as folder:
        found = tally(records, Path(folder), workers=workers, memory=memory, keep_ids=False)
        executor = Threads(workers)
        return merge(found, min_count=min_count, memory=memory, executor=executor).vocabulary
