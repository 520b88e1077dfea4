"""Counts: a corpus in; the rows of its co-occurrence matrix, or their SVD, as word vectors out.

Counts, their logarithm or PPMI, then a truncated SVD of the sparse matrix by random projection
(Halko, Martinsson & Tropp 2011). V rows and columns, P panels of WIDTH columns, L = P · WIDTH. A
dense (V, L) matrix is stored as (P, V, WIDTH) and multiplied panel by panel, so that its rows,
which are accessed in any order, stay in the processor's cache.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.examples.cooccurrence.counting import count_pairs
from sememe.executor import Executor, Threads, cluster
from sememe.machine import imported
from sememe.models.counts import kernels
from sememe.models.counts.config import CountsConfig
from sememe.models.counts.kernels import WIDTH, multiply_rows
from sememe.models.counts.matrix import MAX_WORDS, CountTable, MatrixWriter, SparseMatrix
from sememe.models.fitting import Prepared, Request
from sememe.models.static.model import OnDevice
from sememe.progress import History, ProgressTask, Reporter
from sememe.randomness import fill_uniform, stream_key
from sememe.storage.folder import scratch_folder, write_errors
from sememe.tokens.caching import temporary_place
from sememe.tokens.store import TokenStore
from sememe.vectors import WordVectors

_KINDS = {"counts": kernels.COUNTS, "log": kernels.LOG, "ppmi": kernels.PPMI}
_OPPOSITE = {"both": "both", "left": "right", "right": "left"}


class Matrices(NamedTuple):
    """A matrix, its transpose, and the sum of its squared cells."""

    matrix: SparseMatrix
    transposed: SparseMatrix
    squares: float


def make_matrices(
    store: TokenStore, num_words: int, config: CountsConfig, folder: Path, reporter: Reporter
) -> Matrices:
    """Count the pairs of the text and transform the counts; the files are in `folder`."""

    counts, other = count_both(store, num_words, config, folder, reporter)

    def transform(
        counts: SparseMatrix, terms: tuple[np.ndarray, np.ndarray], name: str
    ) -> tuple[SparseMatrix, float]:
        return _transform(counts, config, terms, folder / name, reporter)

    terms = mutual_terms(counts.row_sums(), other.row_sums(), config)
    matrix, squares = transform(counts, terms, "matrix")
    transposed = matrix
    if other is not counts or not is_symmetric(config):
        transposed, _ = transform(other, terms[::-1], "transposed")
    for path in folder.glob("counts-*"):
        with suppress(PermissionError):  # Windows keeps a mapped file; it goes with the folder
            path.unlink()
    return Matrices(matrix, transposed, squares)


def count_both(
    store: TokenStore, num_words: int, config: CountsConfig, folder: Path, reporter: Reporter
) -> tuple[SparseMatrix, SparseMatrix]:
    """The counts of the pairs of a text, and their transpose, which may be the same matrix."""

    def count(direction: str) -> SparseMatrix:
        return _count(store, num_words, config, direction, folder, reporter)

    counts = count(config.direction)
    # Words before a row are words after a column: the other direction is the transpose.
    return counts, counts if config.direction == "both" else count(_OPPOSITE[config.direction])


def is_symmetric(config: CountsConfig) -> bool:
    """Whether the transformed matrix of symmetric counts is symmetric."""
    return config.transform != "ppmi" or config.smoothing == 1.0


def mutual_terms(
    row_sums: np.ndarray, column_sums: np.ndarray, config: CountsConfig
) -> tuple[np.ndarray, np.ndarray]:
    """The row and column terms that turn log(n) into the shifted mutual information.

    log(P(w, c) / (P(w) · P(c))) - log(shift), with P(c) proportional to count ** smoothing (Levy et
    al. 2015, equations 2 and 3).
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
    work, squares = partial(_weigh, counts, _KINDS[config.transform], terms), 0.0
    writer, executor = MatrixWriter(path, len(counts)), _executor(config.num_workers)
    with writer, reporter.task("weighing pairs", counts.num_cells, "cells") as task:
        for first, sizes, columns, values, more in executor.map(work, counts.blocks()):
            writer.add(first, sizes, columns, values)
            squares += more
            task.update(int(counts.starts[first + len(sizes)]))
    return writer.matrix(), squares


def _weigh(
    counts: SparseMatrix, kind: int, terms: tuple[np.ndarray, np.ndarray], block: tuple[int, int]
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, float]:
    """Transform some rows: the first one, their sizes, columns, values and sum of squares."""
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


def _executor(workers: int) -> Executor:
    """The cluster of this context, or threads."""
    return cluster() or Threads(workers)


_PURPOSE = 11  # purpose of the random stream
_ROWS = 8_192
_OVERSAMPLING = 10
# Power iterations. Analogies on 10 M words: 22.1 with one, 27.1 with two, 27.9 with four, 27.2 with
# eight.
_POWER_ITERATIONS = 4
_BLOCK_CELLS = 1 << 20  # of one product
# Directions smaller than this fraction of the largest are rounding noise.
_NOISE = 1e-12


class Decomposition(NamedTuple):
    """The left singular vectors of the largest singular values, scaled, and those values."""

    vectors: np.ndarray  # float32 (V, dim)
    singular_values: np.ndarray  # float64 (dim), 0 beyond the rank


def decompose(
    matrices: Matrices, dim: int, weight: float, seed: int, workers: int, reporter: Reporter
) -> Decomposition:
    """Compute U · S ** weight for the `dim` largest singular values of the matrix."""
    matrix, transposed = matrices.matrix, matrices.transposed
    num_panels = -(-(dim + _OVERSAMPLING) // WIDTH)
    panels = _random_panels(num_panels, len(matrix), seed)
    other = np.empty_like(panels)
    num_products = 2 * _POWER_ITERATIONS + 2
    total = (num_products // 2) * (matrix.num_cells + transposed.num_cells) * num_panels
    executor = _executor(workers)
    with reporter.task("decomposing", total, "cells") as task:
        multiply = partial(_multiply, executor=executor, task=task)
        multiply(matrix, panels, other)
        for _ in range(_POWER_ITERATIONS):
            _orthonormalize(other)
            multiply(transposed, other, panels)
            _orthonormalize(panels)
            multiply(matrix, panels, other)
        for _ in range(2):  # a second pass corrects rounding
            _orthonormalize(other)
        multiply(transposed, other, panels)
    return _scaled(other, _gram(panels), dim, weight)


class Reduced(NamedTuple):
    """The vectors of a text, and what is known of the matrix that they come from."""

    found: Decomposition
    num_cells: int
    squares: float
    kept: SparseMatrix | None  # the matrix, if it is small enough to be saved


def reduce_on_gpu(
    counts: SparseMatrix, other: SparseMatrix, config: CountsConfig, reporter: Reporter
) -> Reduced:
    """What transforming and `decompose` do, in PyTorch; other: the counts transposed."""
    project: Any = imported("sememe.models.counts.on_device", "project")
    num_panels = -(-(config.dim + _OVERSAMPLING) // WIDTH)
    panels = _random_panels(num_panels, len(counts), config.seed)
    start_VL = np.ascontiguousarray(panels.transpose(1, 0, 2)).reshape(len(counts), -1)
    total = (_POWER_ITERATIONS + 1) * (counts.num_cells + other.num_cells)
    with reporter.task("decomposing", total, "cells") as task:
        basis_VL, gram_LL, num_cells, squares, kept = project(
            counts, other, _KINDS[config.transform],
            mutual_terms(counts.row_sums(), other.row_sums(), config), start_VL,
            _POWER_ITERATIONS, _eigen, is_symmetric=other is counts and is_symmetric(config),
            noise=_NOISE, most_kept=_KEPT_CELLS, workers=config.num_workers,
            done=lambda num: task.update(task.done + num),
        )  # fmt: skip
    found = _scaled(basis_VL[None], gram_LL, config.dim, config.eigenvalue_weight)
    return Reduced(found, num_cells, squares, kept)


def _scaled(basis_PVW: np.ndarray, gram_LL: np.ndarray, dim: int, weight: float) -> Decomposition:
    """With Q the basis: A ≈ Q (AᵀQ)ᵀ, and the eigenvectors of the Gram matrix turn Q into U."""
    squares, turn_LL = _eigen(gram_LL)
    singular = np.sqrt(np.where(squares > _NOISE * squares[0], squares, 0.0))
    return _scale(basis_PVW, singular, turn_LL, dim, weight)


def _scale(
    basis_PVW: np.ndarray, singular: np.ndarray, turn_LL: np.ndarray, dim: int, weight: float
) -> Decomposition:
    num = min(dim, len(singular))
    kept = singular[:num] > 0
    scale = np.zeros(num)
    scale[kept] = singular[:num][kept] ** weight
    turn = (turn_LL[:, :num] * scale).astype(np.float32)
    vectors = np.zeros((basis_PVW.shape[1], dim), np.float32)
    for rows, block in _row_blocks(basis_PVW):
        vectors[rows, :num] = block @ turn
    # The sign of a singular vector is arbitrary: the larger side is made positive.
    vectors *= np.where(vectors.sum(axis=0, dtype=np.float64) < 0, -1, 1).astype(np.float32)
    return Decomposition(vectors, np.concatenate((singular[:num], np.zeros(dim - num))))


def _random_panels(num_panels: int, num_rows: int, seed: int) -> np.ndarray:
    panels = np.empty((num_panels, num_rows, WIDTH), np.float32)
    low, high = np.float32(-1), np.float32(1)
    for number, panel in enumerate(panels):
        fill_uniform(panel, WIDTH, low, high, np.uint64(stream_key(seed, _PURPOSE, number)), 0)
    return panels


def _multiply(
    matrix: SparseMatrix,
    source_PVW: np.ndarray,
    target_PVW: np.ndarray,
    executor: Executor,
    task: ProgressTask,
) -> None:
    """target = matrix · source, some rows of one panel at a time."""
    cuts = [(p, *rows) for p in range(len(source_PVW)) for rows in matrix.blocks(_BLOCK_CELLS)]
    with _sent(source_PVW, executor) as source:
        products = executor.map(partial(_product, matrix, source), cuts)
        for (panel, first, last), rows in zip(cuts, products, strict=True):
            target_PVW[panel, first:last] = rows
            task.update(task.done + int(matrix.starts[last] - matrix.starts[first]))


@contextmanager
def _sent(panels: np.ndarray, executor: Executor) -> Iterator[np.ndarray | Path]:
    """The panels for tasks of an executor: on a cluster in a file that all nodes read."""
    if executor.memory is None:
        yield panels
        return
    # A name that no node has read before: there is nothing old that it could still hold.
    path = temporary_place().with_suffix(".panels")
    try:
        with write_errors(path), path.open("wb") as file:
            np.save(file, panels)
        yield path
    finally:
        path.unlink(missing_ok=True)


def _product(
    matrix: SparseMatrix, source: np.ndarray | Path, cut: tuple[int, int, int]
) -> np.ndarray:
    """The rows first to last of matrix · a panel of the source."""
    panel, first, last = cut
    panels = np.load(source, mmap_mode="c") if isinstance(source, Path) else source
    rows = np.empty((last - first, WIDTH), np.float32)
    multiply_rows(
        matrix.starts[first : last + 1], matrix.columns, matrix.values, 0, last - first,
        np.asarray(panels[panel]).reshape(-1), rows.reshape(-1),
    )  # fmt: skip
    return rows


def _row_blocks(panels_PVW: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield some rows at a time as one (rows, L) matrix."""
    num_panels, num_rows, width = panels_PVW.shape
    for start in range(0, num_rows, _ROWS):
        rows = slice(start, min(start + _ROWS, num_rows))
        yield rows, panels_PVW[:, rows].transpose(1, 0, 2).reshape(-1, num_panels * width)


def _gram(panels_PVW: np.ndarray) -> np.ndarray:
    size = panels_PVW.shape[0] * panels_PVW.shape[2]
    gram_LL = np.zeros((size, size))
    for _, block in _row_blocks(panels_PVW):
        exact = block.astype(np.float64)
        gram_LL += exact.T @ exact
    return gram_LL


def _eigen(gram_LL: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues in falling order, none below 0, and their vectors as columns."""
    values, vectors_LL = np.linalg.eigh(gram_LL)
    return np.maximum(values[::-1], 0.0), vectors_LL[:, ::-1]


def _orthonormalize(panels_PVW: np.ndarray) -> None:
    """Orthonormalize the columns in place; linearly dependent ones become 0."""
    values, turn_LL = _eigen(_gram(panels_PVW))
    scale = np.zeros(len(values))
    is_real = values > _NOISE * values[0]
    scale[is_real] = 1.0 / np.sqrt(values[is_real])
    turn_LL = (turn_LL * scale).astype(np.float32)
    num_panels, _, width = panels_PVW.shape
    for rows, block in _row_blocks(panels_PVW):
        panels_PVW[:, rows] = (block @ turn_LL).reshape(-1, num_panels, width).transpose(1, 0, 2)


# Rows of the matrix are vectors with one dimension per word: 400 MB at this number of words.
MAX_ROWS = 10_000
# A matrix with at most this many cells is saved with the model, so that it can be shown.
_KEPT_CELLS = 1 << 20


class Counts(OnDevice):
    """Word vectors by counting neighbors (Levy, Goldberg & Dagan 2015).

    model = sememe.Counts(window=10, dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    kind = "counts"
    config_class = CountsConfig
    trains_on_cluster = False  # it counts there, and may decompose on a GPU here

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Count the text and compute the vectors; there are no training steps."""
        if request.start is not None or request.callbacks:
            raise OptionError(
                "Counts are not trained step by step: they take neither start nor callbacks."
            )
        size = self.trainable_words(tokens)
        if not self.config.dim and size > MAX_ROWS:
            raise OptionError(
                f"dim=0 keeps a row of {size:,} numbers for each of {size:,} words, and is meant "
                f"for up to {MAX_ROWS:,}: give a dim, raise min_count or lower max_words."
            )

        def count() -> None:
            # The folder of the token store has room for large files.
            with scratch_folder(tokens.path.parent, ".counts") as folder:
                self._count(tokens, size, folder, request)

        # Counting again gives the same bits, so checkpoints are not needed.
        return Prepared(self.plan_of(tokens, size), count)

    def _count(self, tokens: TokenStore, size: int, folder: Path, request: Request) -> None:
        config, begun, own = self.config, time.monotonic(), {}
        if config.dim:
            found, num_cells, squares, kept = self._reduced(tokens, size, folder, request.reporter)
            vectors, own["singular_values"] = found
            captured = float((found.singular_values**2).sum())
            loss = max(0.0, 1.0 - captured / squares) if squares else 0.0
        else:
            matrix = make_matrices(tokens, size, config, folder, request.reporter).matrix
            vectors, num_cells, loss = matrix.sparse().toarray(), matrix.num_cells, 0.0
            kept = matrix if num_cells <= _KEPT_CELLS else None
        if kept is not None:
            own |= {"starts": kept.starts, "columns": kept.columns, "values": kept.values}
        self.adopt(
            tokens.vocabulary.cut(size), vectors=vectors,
            **{name: np.array(array) for name, array in own.items()},
        )  # fmt: skip
        # The loss is the fraction of the matrix's sum of squares that the vectors do not capture.
        metrics = {"words": tokens.num_tokens, "cells": num_cells, "loss": loss}
        self.history = History([{**metrics, "seconds": time.monotonic() - begun}])

    def _reduced(self, tokens: TokenStore, size: int, folder: Path, reporter: Reporter) -> Reduced:
        """The vectors, computed on the device of the options."""
        config = self.config
        if self.is_on_gpu:
            counted = count_both(tokens, size, config, folder, reporter)
            return reduce_on_gpu(*counted, config, reporter)
        matrices = make_matrices(tokens, size, config, folder, reporter)
        found = decompose(
            matrices, config.dim, config.eigenvalue_weight, config.seed, config.num_workers,
            reporter,
        )  # fmt: skip
        matrix = matrices.matrix
        kept = matrix if matrix.num_cells <= _KEPT_CELLS else None
        return Reduced(found, matrix.num_cells, matrices.squares, kept)

    def make_vectors(self) -> WordVectors:
        """The rows of the matrix, or their reduced vectors."""
        return WordVectors(self.vocabulary, self._tensor("vectors"))

    def table(self, words: Sequence[str] | None = None) -> CountTable:
        """The matrix as a table of words by words; `words` selects and orders them."""
        if "starts" not in self.tensors:
            raise OptionError(
                "The matrix is kept, and can be shown, for small texts only: "
                f"up to {_KEPT_CELLS:,} cells."
            )
        matrix = SparseMatrix(*(self.tensors[name] for name in ("starts", "columns", "values")))
        names = self.vocabulary[:] if words is None else list(words)
        if not 0 < len(names) <= MAX_WORDS:
            raise OptionError(
                f"A table of {len(names):,} × {len(names):,} words cannot be read: name at least "
                f"one word and at most {MAX_WORDS}, or lower max_words."
            )
        ids = [self.vocabulary.id(name) for name in names]
        return CountTable(names, matrix.sparse()[ids][:, ids].toarray())

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {**super().manifest(), "dim": self.vectors.dim}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        num_words = len(self.vocabulary)
        return {"vectors": (num_words, self.config.dim or num_words)}
