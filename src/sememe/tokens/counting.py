"""Exact word counts in bounded memory: records in, a vocabulary and numbered words out.

Each worker numbers the words it meets in a table of its own. A table that reaches its share of
the memory is written to disk, grouped by hash, and starts again: one *generation* is done. At the
end the same part of every generation is added up, one part at a time, and only words with at
least `min_count` occurrences stay. The memory is then bounded by the limit plus the vocabulary
itself, which with min_count=1 is every distinct word.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from sememe.storage.folder import write_errors
from sememe.text.records import Records
from sememe.tokens import kernels
from sememe.tokens.tables import Buffers, Table

NUM_PARTS = 256
_PART_SHIFT = 64 - 8  # a word's part is the top eight bits of its hash
_SLAB = 1 << 16
# One thread counts 40 M words/s, more than two can cut: beyond half the cores they would only
# take turns, and many small tables spill often.
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

    def __init__(self, path: Path, table: Table) -> None:
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
        """Where the merge writes what became of each word."""
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
        self.table = Table(memory)
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
        """Count the batches of `line` until it gives None; after an error, only empty it."""
        while (item := line.get()) is not None:
            if self.error is None:
                try:
                    self.count(*item)
                except BaseException as error:
                    self.error = error

    def count(self, batch: int, data: bytes) -> None:
        """Count the words of one batch and write down their numbers."""
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
        """Write what is left in the table, and give its memory back."""
        if self.table.num_words:
            self.spill()
        self.table = Table(0)

    def close(self) -> None:
        """Finish the files."""
        with write_errors(self._folder):
            for file in self._files:
                file.close()


class Tally:
    """What the first pass over a text found."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self.has_spilled = any(worker.generations for worker in workers)
        contents = {batch: part for worker in workers for batch, part in worker.contents.items()}
        self.content = Content()
        for batch in sorted(contents):
            self.content = self.content.then(*contents[batch])


def tally(
    records: Iterable[Records], folder: Path, *, workers: int, memory: int, keep_ids: bool
) -> Tally:
    """Count the words of `records` with `workers` threads, scratch files going to `folder`."""
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
    return Tally(crew)
