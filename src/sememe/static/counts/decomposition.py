"""Truncated SVD of a sparse matrix by random projection (Halko, Martinsson & Tropp 2011).

V rows and columns, P panels of WIDTH columns, L = P · WIDTH. A dense (V, L) matrix is held as
(P, V, WIDTH): one panel at a time meets the sparse matrix, so that its rows, which are fetched in
any order, stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from sememe.cores import in_order
from sememe.examples.randomness import fill_uniform, stream_key
from sememe.progress import Reporter, Task
from sememe.static.counts.kernels import WIDTH, multiply_rows
from sememe.static.counts.matrix import SparseMatrix
from sememe.static.counts.transform import Matrices

_PURPOSE = 11  # of the random numbers, apart from those of other models
_ROWS = 8_192
_OVERSAMPLING = 10
# Analogies on 10 M words: 22.1 with one, 27.1 with two, 27.9 with four, 27.2 with eight.
_POWER_ITERATIONS = 4
# Directions whose share of the largest is below this are rounding noise.
_NOISE = 1e-12


class Decomposition(NamedTuple):
    """The left singular vectors of largest singular value, scaled, and those values."""

    vectors: np.ndarray  # float32 (V, dim)
    singular_values: np.ndarray  # float64 (dim), 0 beyond the rank


def decompose(
    matrices: Matrices, dim: int, weight: float, seed: int, workers: int, reporter: Reporter
) -> Decomposition:
    """Give U · S ** weight for the `dim` largest singular values of the matrix."""
    matrix, transposed = matrices.matrix, matrices.transposed
    num_panels = -(-(dim + _OVERSAMPLING) // WIDTH)
    panels = _random_panels(num_panels, len(matrix), seed)
    other = np.empty_like(panels)
    num_products = 2 * _POWER_ITERATIONS + 2
    total = (num_products // 2) * (matrix.num_cells + transposed.num_cells) * num_panels
    with (
        ThreadPoolExecutor(workers) as pool,
        reporter.task("decomposing", total, "cells") as task,
    ):
        _multiply(matrix, panels, other, pool, workers, task)
        for _ in range(_POWER_ITERATIONS):
            _orthonormalize(other)
            _multiply(transposed, other, panels, pool, workers, task)
            _orthonormalize(panels)
            _multiply(matrix, panels, other, pool, workers, task)
        for _ in range(2):  # once more mends what the first time rounded
            _orthonormalize(other)
        _multiply(transposed, other, panels, pool, workers, task)
    # With Q = other: A ≈ Q (AᵀQ)ᵀ, and the eigenvectors of (AᵀQ)ᵀ(AᵀQ) turn Q into U.
    squares, turn_LL = _eigen(_gram(panels))
    singular = np.sqrt(np.where(squares > _NOISE * squares[0], squares, 0.0))
    return _scale(other, singular, turn_LL, dim, weight)


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
    # A singular vector has no sign of its own: let the larger side be the positive one.
    sides = np.where(vectors.sum(axis=0, dtype=np.float64) < 0, -1, 1).astype(np.float32)
    vectors *= sides
    return Decomposition(vectors, np.concatenate((singular[:num], np.zeros(dim - num))))


def _random_panels(num_panels: int, num_rows: int, seed: int) -> np.ndarray:
    panels = np.empty((num_panels, num_rows, WIDTH), np.float32)
    low, high = np.float32(-1), np.float32(1)
    for number, panel in enumerate(panels):
        key = np.uint64(stream_key(seed, _PURPOSE, number))
        fill_uniform(panel, WIDTH, low, high, key, 0)
    return panels


def _multiply(
    matrix: SparseMatrix,
    source_PVW: np.ndarray,
    target_PVW: np.ndarray,
    pool: ThreadPoolExecutor,
    workers: int,
    task: Task,
) -> None:
    """target = matrix · source."""
    blocks = list(matrix.blocks())

    def multiply(cut: tuple[np.ndarray, np.ndarray, int, int]) -> int:
        source, target, first, last = cut
        cells = matrix.starts, matrix.columns, matrix.values
        multiply_rows(*cells, first, last, source, target)
        return int(matrix.starts[last] - matrix.starts[first])

    cuts = (
        (source.reshape(-1), target.reshape(-1), first, last)
        for source, target in zip(source_PVW, target_PVW, strict=True)
        for first, last in blocks
    )
    for num_cells in in_order(pool, multiply, cuts, 2 * workers):
        task.update(task.done + num_cells)


def _row_blocks(panels_PVW: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Some rows at a time as one (rows, L) matrix."""
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
    """Eigenvalues from the largest down, none below 0, and their vectors as columns."""
    values, vectors_LL = np.linalg.eigh(gram_LL)
    return np.maximum(values[::-1], 0.0), vectors_LL[:, ::-1]


def _orthonormalize(panels_PVW: np.ndarray) -> None:
    """Make the columns orthonormal, in place; those that others span already become 0."""
    values, turn_LL = _eigen(_gram(panels_PVW))
    scale = np.zeros(len(values))
    is_real = values > _NOISE * values[0]
    scale[is_real] = 1.0 / np.sqrt(values[is_real])
    turn_LL = (turn_LL * scale).astype(np.float32)
    num_panels, _, width = panels_PVW.shape
    for rows, block in _row_blocks(panels_PVW):
        turned = (block @ turn_LL).reshape(-1, num_panels, width)
        panels_PVW[:, rows] = turned.transpose(1, 0, 2)
