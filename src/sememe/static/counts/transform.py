"""From a token store to the matrix that is decomposed: counts, their logarithm, or PPMI."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sememe.cores import in_order
from sememe.examples.cooccurrence import count_pairs
from sememe.progress import Reporter
from sememe.static.counts import kernels
from sememe.static.counts.config import CountsConfig
from sememe.static.counts.matrix import MatrixWriter, SparseMatrix
from sememe.tokens.store import TokenStore

_KINDS = {"counts": kernels.COUNTS, "log": kernels.LOG, "ppmi": kernels.PPMI}
_OPPOSITE = {"both": "both", "left": "right", "right": "left"}


class Matrices(NamedTuple):
    """A matrix, its transpose, and the sum of the squares of its cells."""

    matrix: SparseMatrix
    transposed: SparseMatrix
    squares: float


def make_matrices(
    store: TokenStore, num_words: int, config: CountsConfig, folder: Path, reporter: Reporter
) -> Matrices:
    """Count the pairs of the text and transform the counts; the files lie in `folder`."""

    def count(direction: str) -> SparseMatrix:
        return _count(store, num_words, config, direction, folder, reporter)

    def transform(
        counts: SparseMatrix, terms: tuple[np.ndarray, np.ndarray], name: str
    ) -> tuple[SparseMatrix, float]:
        return _transform(counts, config, terms, folder / name, reporter)

    counts = count(config.direction)
    # Words before a row are words behind a column: the other direction is the transpose.
    other = counts if config.direction == "both" else count(_OPPOSITE[config.direction])
    terms = mutual_terms(counts.row_sums(), other.row_sums(), config)
    matrix, squares = transform(counts, terms, "matrix")
    is_symmetric = config.transform != "ppmi" or config.smoothing == 1.0
    transposed = matrix
    if other is not counts or not is_symmetric:
        transposed, _ = transform(other, terms[::-1], "transposed")
    for path in folder.glob("counts-*"):
        with suppress(PermissionError):  # Windows keeps a mapped file; it goes with the folder
            path.unlink()
    return Matrices(matrix, transposed, squares)


def mutual_terms(
    row_sums: np.ndarray, column_sums: np.ndarray, config: CountsConfig
) -> tuple[np.ndarray, np.ndarray]:
    """What is added to log(n) by row and by column to give the shifted mutual information.

    log(P(w, c) / (P(w) · P(c))) - log(shift), P(c) being count ** smoothing over its sum
    (Levy et al. 2015, equations 2 and 3).
    """
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # a word without a neighbor has no cell either
        rows = -np.log(row_sums)
        smoothed = column_sums**config.smoothing
        columns = np.log(smoothed.sum()) - np.log(smoothed) - np.log(config.shift)
    return rows, columns


def _count(
    store: TokenStore,
    num_words: int,
    config: CountsConfig,
    direction: str,
    folder: Path,
    reporter: Reporter,
) -> SparseMatrix:
    settings = replace(config, direction=direction)  # type: ignore[arg-type]
    writer = MatrixWriter(folder / f"counts-{direction}", num_words)
    with writer:
        for cells in count_pairs(
            store, num_words, settings, memory=config.num_bytes, workers=config.num_workers,
            scratch=folder, progress=reporter,
        ):  # fmt: skip
            if len(cells.rows):
                first = int(cells.rows[0])
                writer.add(first, np.bincount(cells.rows - first), cells.columns, cells.values)
    return writer.matrix()


def _transform(
    counts: SparseMatrix,
    config: CountsConfig,
    terms: tuple[np.ndarray, np.ndarray],
    path: Path,
    reporter: Reporter,
) -> tuple[SparseMatrix, float]:
    kind, squares = _KINDS[config.transform], 0.0

    def transform(block: tuple[int, int]) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, float]:
        first, last = block
        size = int(counts.starts[last] - counts.starts[first])
        columns, values = np.empty(size, np.int32), np.empty(size, np.float32)
        ends = np.empty(last - first, np.int64)
        squares = kernels.transform_rows(
            counts.starts, counts.columns, counts.values, first, last, kind, *terms,
            columns, values, ends,
        )  # fmt: skip
        num = int(ends[-1])
        return first, np.diff(ends, prepend=0), columns[:num], values[:num], squares

    writer = MatrixWriter(path, len(counts))
    workers = config.num_workers
    with (
        writer,
        ThreadPoolExecutor(workers) as pool,
        reporter.task("weighing pairs", counts.num_cells, "cells") as task,
    ):
        for first, sizes, columns, values, more in in_order(
            pool, transform, counts.blocks(), workers
        ):
            writer.add(first, sizes, columns, values)
            squares += more
            task.update(int(counts.starts[first + len(sizes)]))
    return writer.matrix(), squares
