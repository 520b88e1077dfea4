"""From the workers' tables to one vocabulary, and from their numbers to its word ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from sememe.cores import available_cores
from sememe.storage.folder import write_errors
from sememe.text.records import Records
from sememe.tokens import kernels
from sememe.tokens.counting import NUM_PARTS, Generation, Tally, tally
from sememe.tokens.sorting import sort_words
from sememe.tokens.store import DEFAULT_MEMORY
from sememe.tokens.tables import Buffers, Table, read_only
from sememe.tokens.vocabulary import Vocabulary

_DROPPED = np.uint32(0xFFFFFFFF)
# What one word takes while parts are added up: slots at their emptiest, counts, ends, numbers.
_WORD_MEMORY = 112
_MIN_RANGE_MEMORY = 1 << 20  # below this, opening files would take all the time


class Merged(NamedTuple):
    """The vocabulary of a whole text, and how each generation's numbers become its ids."""

    vocabulary: Vocabulary
    num_distinct: int
    highest_count: int
    # (worker, generation) -> the id of each local number; len(vocabulary) where the word is rare
    mapping: Callable[[int, int], np.ndarray]


class _Kept(NamedTuple):
    """Words that stay, each followed by WORD_END, with figures of all that were seen."""

    words: np.ndarray
    counts: np.ndarray
    num_distinct: int
    highest_count: int


def merge(found: Tally, *, min_count: int, workers: int, memory: int) -> Merged:
    """Add up what the workers counted and keep words with at least `min_count` occurrences."""
    # Joined tables may hold as many words as both; half the limit leaves room to grow into.
    num_words = sum(worker.table.num_words for worker in found.workers)
    if found.has_spilled or _WORD_MEMORY * num_words > memory // 2:
        return _merge_on_disk(found, min_count, workers, memory)
    return _merge_in_memory(found, min_count)


def _kept_of(table: Table, min_count: int) -> tuple[_Kept, np.ndarray]:
    """The words of `table` that stay, and the new number of every word."""
    counts = table.counts[: table.num_words]
    ids = np.flatnonzero(counts >= min_count).astype(np.uint32)
    numbers = np.full(len(counts), _DROPPED, np.uint32)
    numbers[ids] = np.arange(len(ids), dtype=np.uint32)
    words = np.empty(len(table.words), np.uint8)
    size = kernels.gather(table.arena, table.ends, ids, words)
    highest = int(counts.max()) if len(counts) else 0
    return _Kept(words[:size].copy(), counts[ids], len(counts), highest), numbers


def _add(table: Table, words: np.ndarray, counts: np.ndarray, buffers: Buffers) -> np.ndarray:
    """Add counted words to `table` and give the number that each has there."""
    numbers: list[np.ndarray] = []

    def flush() -> None:
        numbers.append(buffers.ids[: table.state[kernels.NUM_IDS]].copy())

    table.scan(read_only(words), buffers, flush, weights=counts)
    return np.concatenate(numbers)


def _merge_in_memory(found: Tally, min_count: int) -> Merged:
    tables = [worker.table for worker in found.workers]
    total = max(tables, key=lambda table: table.num_words)
    buffers = Buffers.new()
    numbers = []
    for table in tables:
        if table is total:
            numbers.append(np.arange(total.num_words, dtype=np.uint32))
        else:
            numbers.append(_add(total, table.words, table.counts[: table.num_words], buffers))
    kept, places = _kept_of(total, min_count)
    vocabulary, ranks = rank_words(kept.words, kept.counts)
    ids = ids_of(places, ranks)
    local = [ids[own] for own in numbers]
    return Merged(
        vocabulary, kept.num_distinct, kept.highest_count, lambda worker, _: local[worker]
    )


def ids_of(places: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The final id of every place in the list of kept words; dropped ones become len(ranks)."""
    return np.append(ranks, np.uint32(len(ranks)))[np.minimum(places, len(ranks))]


def rank_words(words: np.ndarray, counts: np.ndarray) -> tuple[Vocabulary, np.ndarray]:
    """Order words by falling count, ties by bytes; give the id of each as well."""
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


def _merge_on_disk(found: Tally, min_count: int, workers: int, memory: int) -> Merged:
    for worker in found.workers:
        worker.finish_spilling()
    generations = [part for worker in found.workers for part in worker.generations]
    for generation in generations:
        with write_errors(generation.path):
            generation.mapping_path.touch()
    ranges = _ranges(generations, max(memory // workers, _MIN_RANGE_MEMORY))
    with ThreadPoolExecutor(workers) as pool:
        kept = list(pool.map(lambda own: _merge_parts(generations, own, min_count), ranges))
    starts = np.cumsum([0] + [len(own.counts) for own in kept])
    num_distinct = sum(own.num_distinct for own in kept)
    highest = max(own.highest_count for own in kept)
    words = np.concatenate([own.words for own in kept])
    counts = np.concatenate([own.counts for own in kept])
    del kept
    vocabulary, ranks = rank_words(words, counts)

    def mapping(worker: int, generation: int) -> np.ndarray:
        return _mapping_of(found.workers[worker].generations[generation], ranges, starts, ranks)

    return Merged(vocabulary, num_distinct, highest, mapping)


def _ranges(generations: list[Generation], memory: int) -> list[slice]:
    """Neighbouring parts that can be added up together within `memory`."""
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


def _merge_parts(generations: list[Generation], parts: slice, min_count: int) -> _Kept:
    """Add up the same parts of every generation; write down where each word went."""
    table, buffers = Table(0), Buffers.new(1 << 14)
    numbers = []
    for generation in generations:
        words, counts = generation.read_words(parts), generation.read_counts(parts)
        numbers.append(_add(table, words, counts, buffers))
    kept, places = _kept_of(table, min_count)
    for generation, own in zip(generations, numbers, strict=True):
        with write_errors(generation.path), generation.mapping_path.open("r+b") as file:
            file.seek(4 * int(generation.bounds[parts.start]))
            file.write(places[own].data)
    return kept


def _mapping_of(
    generation: Generation, ranges: list[slice], starts: np.ndarray, ranks: np.ndarray
) -> np.ndarray:
    """The final id of every local number of one generation on disk."""
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
    """Count the words of `records` exactly; those below `min_count` are left out."""
    workers = workers or available_cores()
    with TemporaryDirectory(dir=scratch) as folder:
        found = tally(records, Path(folder), workers=workers, memory=memory, keep_ids=False)
        return merge(found, min_count=min_count, workers=workers, memory=memory).vocabulary
