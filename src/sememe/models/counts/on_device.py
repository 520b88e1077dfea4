"""Mutual information and its SVD in PyTorch, on a GPU or, for tests, on a CPU.

What `decompose` does, with the same random start: the matrices are taken in blocks of rows, whose
counts are transformed on the device. Blocks stay there if there is room; otherwise their counts are
copied again for every product. Sums are taken in a fixed order, so a seed gives the same bits.
V rows and columns, L columns of the random projection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from sememe.models.counts import kernels
from sememe.models.counts.matrix import SparseMatrix
from sememe.models.static import gpu

BLOCK_CELLS = 1 << 22
_PIECE = 256  # cells of a row that are summed one after the other
_KEPT = 0.5  # of the GPU's free memory, for matrices that stay there
_GRAM_ROWS = 1 << 16


class Block(NamedTuple):
    """Some rows of a transformed matrix: sizes of their parts, parts of each row, the cells."""

    first: int
    piece_sizes: torch.Tensor  # int64
    row_pieces: torch.Tensor  # int64
    columns: torch.Tensor  # int32
    values: torch.Tensor  # float32


class DeviceMatrix:
    """A sparse matrix of counts, transformed and multiplied block by block."""

    def __init__(
        self, counts: SparseMatrix, kind: int, terms: tuple[np.ndarray, np.ndarray],
        device: torch.device, *, is_kept: bool,
    ) -> None:  # fmt: skip
        """kind and terms: as in `kernels.transform_rows`."""
        self.counts, self._kind, self.device, self._is_kept = counts, kind, device, is_kept
        self._rows, self._columns = (torch.from_numpy(one).to(device) for one in terms)
        self._blocks: list[Block] = []

    def __len__(self) -> int:
        return len(self.counts)

    def blocks(self) -> Iterator[Block]:
        """All rows, in order; kept ones are transformed once."""
        if self._blocks:
            yield from self._blocks
            return
        found: list[Block] = []
        for first, last in self.counts.blocks(BLOCK_CELLS):
            block = self._transformed(first, last)
            if self._is_kept:
                found.append(block)
            yield block
        self._blocks = found

    def _transformed(self, first: int, last: int) -> Block:
        starts, counts = self.counts.starts, self.counts
        part = slice(int(starts[first]), int(starts[last]))
        sizes = gpu.copied(np.diff(starts[first : last + 1]), self.device)
        columns = gpu.copied(np.ascontiguousarray(counts.columns[part]), self.device)
        values = gpu.copied(np.ascontiguousarray(counts.values[part]), self.device).double()
        rows = torch.repeat_interleave(torch.arange(last - first, device=self.device), sizes)
        if self._kind == kernels.LOG:
            values = torch.log1p(values)
        elif self._kind == kernels.PPMI:
            values = values.log() + self._rows[first + rows] + self._columns[columns.long()]
        is_kept = values > 0
        before = torch.zeros(len(rows) + 1, dtype=torch.int64, device=self.device)
        torch.cumsum(is_kept, 0, out=before[1:])
        ends = sizes.cumsum(0)
        sizes = before[ends] - before[ends - sizes]
        pieces = torch.div(sizes + _PIECE - 1, _PIECE, rounding_mode="floor")
        # All parts of a row are full but the last.
        piece_sizes = torch.full((int(pieces.sum()),), _PIECE, device=self.device)
        filled = pieces > 0
        piece_sizes[pieces.cumsum(0)[filled] - 1] = (sizes - _PIECE * (pieces - 1))[filled]
        return Block(first, piece_sizes, pieces, columns[is_kept], values[is_kept].float())

    def multiply(self, other_VL: torch.Tensor, done: Callable[[int], None]) -> torch.Tensor:
        """This matrix · other; `done` is told the cells of each block."""
        result_VL = torch.zeros_like(other_VL)
        for block in self.blocks():
            products = other_VL[block.columns.long()] * block.values[:, None]
            sums = _summed(_summed(products, block.piece_sizes), block.row_pieces)
            result_VL[block.first : block.first + len(sums)] = sums
            done(len(block.values))
        return result_VL

    def totals(self) -> tuple[int, float]:
        """The number of cells above 0, and the sum of their squares."""
        num_cells, squares = 0, 0.0
        for block in self.blocks():
            num_cells += len(block.values)
            squares += float((block.values.double() ** 2).sum())
        return num_cells, squares

    def gathered(self) -> SparseMatrix:
        """The transformed matrix in memory."""
        sizes, columns, values = [np.zeros(1, np.int64)], [], []
        for block in self.blocks():
            own = _summed(block.piece_sizes[:, None].double(), block.row_pieces)
            sizes.append(own[:, 0].long().cpu().numpy())
            columns.append(block.columns.cpu().numpy())
            values.append(block.values.cpu().numpy())
        return SparseMatrix(
            np.cumsum(np.concatenate(sizes)), np.concatenate(columns), np.concatenate(values)
        )


def _summed(rows: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """The sum of each run of rows, of which sizes has the lengths."""
    if not len(rows):
        return rows.new_zeros(len(sizes), rows.shape[1])
    return torch.segment_reduce(rows, "sum", lengths=sizes, axis=0, initial=0)


class Projection(NamedTuple):
    """What `decompose` needs: Q, and the Gram matrix of AᵀQ; what is known of the matrix A."""

    basis_VL: np.ndarray  # orthonormal columns that span the largest directions
    gram_LL: np.ndarray
    num_cells: int
    squares: float
    kept: SparseMatrix | None  # the matrix, if it is small


def project(
    counts: SparseMatrix, other: SparseMatrix, kind: int, terms: tuple[np.ndarray, np.ndarray],
    start_VL: np.ndarray, num_iterations: int,
    eigen: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], *, is_symmetric: bool,
    noise: float, most_kept: int, workers: int, done: Callable[[int], None],
) -> Projection:  # fmt: skip
    """Project the transformed counts on a GPU; other: the counts transposed.

    eigen: eigenvalues in falling order and their vectors; columns below `noise` become 0.
    """
    device, num_columns = gpu.device_of("cuda"), start_VL.shape[1]
    gpu.settle_cublas()
    # Three matrices of the decomposition; a block with its products, and while it is transformed.
    block = min(BLOCK_CELLS + len(counts), counts.num_cells + 1)
    needed = 12 * len(counts) * num_columns + block * (8 * num_columns + 64)
    gpu.check_memory(device, needed, "The decomposition and a block of the counts")
    free = gpu.free_memory(device)
    cells = counts.num_cells + (0 if is_symmetric else other.num_cells)
    is_kept = free is None or 8 * cells < _KEPT * (free - needed)
    with gpu.explained_memory(), gpu.threads(workers, is_exact=False):
        matrix = transposed = DeviceMatrix(counts, kind, terms, device, is_kept=is_kept)
        if not is_symmetric:
            transposed = DeviceMatrix(other, kind, terms[::-1], device, is_kept=is_kept)
        num_cells, squares = matrix.totals()
        kept = matrix.gathered() if num_cells <= most_kept else None
        basis_VL = matrix.multiply(torch.from_numpy(start_VL).to(device), done)
        for _ in range(num_iterations):
            basis_VL = _orthonormal(basis_VL, eigen, noise)
            basis_VL = _orthonormal(transposed.multiply(basis_VL, done), eigen, noise)
            basis_VL = matrix.multiply(basis_VL, done)
        for _ in range(2):  # a second pass corrects rounding
            basis_VL = _orthonormal(basis_VL, eigen, noise)
        gram_LL = _gram(transposed.multiply(basis_VL, done))
    return Projection(basis_VL.cpu().numpy(), gram_LL, num_cells, squares, kept)


def _orthonormal(own_VL: torch.Tensor, eigen: Callable[..., Any], noise: float) -> torch.Tensor:
    """The columns made orthonormal; linearly dependent ones become 0."""
    values, turn_LL = eigen(_gram(own_VL))
    scale = np.zeros(len(values))
    is_real = values > noise * values[0]
    scale[is_real] = 1.0 / np.sqrt(values[is_real])
    return own_VL @ torch.from_numpy((turn_LL * scale).astype(np.float32)).to(own_VL.device)


def _gram(own_VL: torch.Tensor) -> np.ndarray:
    size = own_VL.shape[1]
    gram_LL = torch.zeros(size, size, dtype=torch.float64, device=own_VL.device)
    for rows in own_VL.split(_GRAM_ROWS):
        exact = rows.double()
        gram_LL += exact.T @ exact
    return gram_LL.cpu().numpy()
