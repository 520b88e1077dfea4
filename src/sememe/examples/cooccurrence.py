"""Co-occurrence counts: a token store in, the cells of a sparse matrix in row order out.

The text is taken in chunks that fit the memory. A chunk is indexed by word, so that each row is
counted by itself, by any thread, in one array as long as the vocabulary. A text of one chunk
streams its rows straight out; of several chunks each is written to scratch, and the same rows of
all of them are added up. V words.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sememe.cores import available_cores
from sememe.errors import OptionError
from sememe.examples.pair_settings import PairSettings
from sememe.progress import SILENT, Reporter
from sememe.tokens.store import TokenStore

if TYPE_CHECKING:
    from sememe.examples.cooccurrence_rows import Chunk, RowCounter, RowSums

_READ_AT_ONCE = 1 << 20
_MAX_BLOCK_CELLS = 1 << 20
# Columns 4, sums 8, rows 4, values 4 and their making 8; as much again to merge.
_CELL_BYTES = 40
_ENTRY_BYTES = 8
_TOKEN_BYTES = 24


class Cells(NamedTuple):
    """Some whole rows of the matrix, sorted by (row, column); no cell is 0."""

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
    """Count the pairs of words with ids below `num_words` and stream the cells in row order.

    Rarer words are taken out before distances are measured, and a window ends with its sentence,
    as in Stanford's program, whose asymmetric matrix is that of direction "right" here. Memory
    stays within `memory` bytes; what passes it goes to files in the folder `scratch`. The result
    depends neither on that nor on `workers`.
    """
    from sememe.examples.cooccurrence_rows import RowCounter, read_chunks
    from sememe.examples.cooccurrence_spills import count_in_parts

    num_words = min(num_words, len(store.vocabulary))
    plan = make_plan(store, num_words, settings, memory, workers)
    with ThreadPoolExecutor(plan.workers) as pool:
        counter = RowCounter(num_words, settings, plan, pool)
        chunks = read_chunks(store, num_words, settings.window, plan)
        total = int(store.vocabulary.counts[:num_words].sum())
        if not plan.is_whole:
            found = count_in_parts(counter, chunks, scratch, total, progress)
        else:
            found = _count_at_once(counter, chunks, total, progress)
        for rows in found:
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
class Plan:
    """How the memory is shared out."""

    workers: int
    num_entries: int  # words and sentence ends of a chunk
    num_read: int  # words read at a time
    num_cells: int  # most cells of a block of rows, unless one row alone has more
    is_whole: bool  # the text is one chunk


def make_plan(
    store: TokenStore, num_words: int, settings: PairSettings, memory: int, workers: int
) -> Plan:
    """Share out `memory` bytes among threads, blocks of cells in flight and the chunk of text."""
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
    needed = store.num_tokens + len(store.sentence_ends) + 3
    is_whole = needed <= num_entries < 2**32
    return Plan(
        workers, needed if is_whole else min(num_entries, 2**32 - 1), num_read, num_cells, is_whole
    )
