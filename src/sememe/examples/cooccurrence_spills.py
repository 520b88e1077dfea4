"""Counts of a text that does not fit the memory: parts on disk, added up row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sememe.errors import ArtifactError
from sememe.examples.cooccurrence_rows import Chunk, RowCounter, RowSums, Workspace, row_blocks
from sememe.progress import Reporter
from sememe.storage.folder import scratch_folder, write_errors


class Part:
    """The rows of one chunk on disk: columns, sums, and where each row starts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, blocks: Iterator[RowSums], num_rows: int) -> Iterator[RowSums]:
        """Write the rows of a chunk as they come; gives them on."""
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
    """Count each chunk into a part on disk, then give the sums of all parts in row order."""
    with scratch_folder(scratch, "pairs") as folder:
        parts: list[Part] = []
        with progress.task("counting pairs", total, "words") as task:
            for chunk in chunks:
                parts.append(Part(folder / f"{len(parts)}"))
                for rows in parts[-1].write(counter.count(chunk), counter.num_words):
                    task.update(task.done + rows.num_words, parts=str(len(parts)))
        yield from _merge(counter, parts, progress)


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
    from sememe.examples.cooccurrence_kernels import merge_rows

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
    num = merge_rows(columns, sums, bounds_PR, *space.arrays, to_columns, to_sums, ends)
    return RowSums(first, ends, to_columns[:num].copy(), to_sums[:num].copy(), 0)


def _merge_long_row(space: Workspace, parts: list[Part], row: int, num_cells: int) -> RowSums:
    """Add up one row that is too long to be read from all parts at once."""
    from sememe.examples.cooccurrence_kernels import add_cells, emit_row

    columns, sums = np.empty(num_cells, np.int32), np.empty(num_cells, np.int64)
    for part in parts:
        start, end = part.starts(row, row + 1).tolist()
        part.read(start, columns[: end - start], sums[: end - start])
        add_cells(columns, sums, 0, end - start, *space.arrays)
    num = emit_row(*space.arrays, columns, sums)
    return RowSums(row, np.array([num]), columns[:num].copy(), sums[:num].copy(), 0)
