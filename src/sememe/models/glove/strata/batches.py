"""GloVe in strata: the sizes, the order, and the updates in PyTorch, on any device.

Words are dealt to G groups, and a cell of the co-occurrence matrix belongs to the block of its
word's and its context's group. A stratum has G blocks that share no row and no column: block
(g, (g + s) mod G) for every group g. The blocks of a stratum are trained at the same time, each one
cell by cell, so no two updates of a row ever meet: the steps are AdaGrad's of `glove/reference.py`
in another order, and nothing has to be damped (Gemulla et al. 2011). G strata have all cells.

The n-th cells of all blocks of a stratum are one batch: they share no row, so the batch is the same
as its cells one after the other, and gives the same bits each time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from sememe.models.glove.kernels import COLUMN_BITS, random_order
from sememe.models.word2vec.tiles.batches import numbers
from sememe.randomness import stream_key

# As many blocks as keep a GPU busy, one warp each, and few launches for a block of that many cells.
MOST_GROUPS = 1_024
CELLS_PER_BLOCK = 32
LARGEST_PART = 1 << 26  # cells; twelve bytes each on the GPU, and as much again to sort them
PIECES = 8  # steps of a part
_STRATA, _PARTS = 4, 5  # purposes of random streams


class StrataPlan(NamedTuple):
    """How many groups of words, parts of the cells, and steps (runs of strata) of a part."""

    num_groups: int
    num_parts: int
    num_pieces: int

    @property
    def steps_per_epoch(self) -> int:
        """Runs of strata in an epoch."""
        return self.num_parts * self.num_pieces

    def strata(self, piece: int) -> range:
        """The places of a step's strata in their order."""
        edges = [self.num_groups * edge // self.num_pieces for edge in (piece, piece + 1)]
        return range(*edges)


def make_plan(num_cells: int, num_words: int) -> StrataPlan:
    """The plan for a matrix with this number of words and of cells above 0."""
    num_parts = max(1, -(-num_cells // LARGEST_PART))
    wanted = math.isqrt(num_cells // num_parts // CELLS_PER_BLOCK)
    num_groups = max(1, min(MOST_GROUPS, wanted, num_words))
    return StrataPlan(num_groups, num_parts, min(PIECES, num_groups))


def groups_of(num_words: int, num_groups: int) -> np.ndarray:
    """The group of every word (int32), dealt back and forth by frequency, so that all are alike."""
    place = np.arange(num_words) % (2 * num_groups)
    return np.where(place < num_groups, place, 2 * num_groups - 1 - place).astype(np.int32)


def strata_order(num_groups: int, seed: int, turn: int) -> np.ndarray:
    """The strata in the order of a turn (epoch × parts + part)."""
    return _shuffled(num_groups, stream_key(seed, _STRATA, turn))


def parts_of(num_steps: int, num_parts: int, seed: int) -> list[np.ndarray]:
    """The steps of the file of cells that each part has, drawn at random."""
    return np.array_split(_shuffled(num_steps, stream_key(seed, _PARTS)), num_parts)


def _shuffled(num: int, key: int) -> np.ndarray:
    order = np.empty(num, np.int64)
    random_order(np.uint64(key), order)
    return order


class Arranged(NamedTuple):
    """Cells by block (word's group × G + context's group), in random order within a block."""

    rows: torch.Tensor  # int32, words
    columns: torch.Tensor  # int32, contexts
    logs: torch.Tensor  # float32, logarithms of the counts
    starts: torch.Tensor  # int64 (G² + 1), the first cell of each block
    edges: np.ndarray  # the same, on the CPU

    @property
    def num_groups(self) -> int:
        """G."""
        return math.isqrt(len(self.edges) - 1)

    def sizes(self, stratum: int) -> np.ndarray:
        """The number of cells of each block of a stratum."""
        blocks = blocks_of(stratum, self.num_groups)
        return np.asarray(self.edges[blocks + 1] - self.edges[blocks])

    def stats(self, strata: np.ndarray, loss: torch.Tensor) -> torch.Tensor:
        """float64 [loss, cells, cells] of some strata."""
        num = float(sum(int(self.sizes(stratum).sum()) for stratum in strata.tolist()))
        return torch.cat([loss.reshape(1), loss.new_full((2,), num)])


class Tables(NamedTuple):
    """Both matrices on the device, rows of values and then of their sums, and the options."""

    words: torch.Tensor  # float32 (V, 2 × width)
    contexts: torch.Tensor
    rates: torch.Tensor  # float32 (2 × width), of words, then of contexts
    limits: torch.Tensor
    alpha: float
    log_x_max: float

    @property
    def width(self) -> int:
        """Values of a row."""
        return self.words.shape[1] // 2


def arrange(
    keys: torch.Tensor, bases: torch.Tensor, logs: torch.Tensor, groups: torch.Tensor,
    num_groups: int, key: int,
) -> Arranged:  # fmt: skip
    """Arrange cells of the file (keys int32, bases: the row that each key counts from)."""
    columns = keys & (1 << COLUMN_BITS) - 1
    rows = bases + (keys >> COLUMN_BITS & (1 << 32 - COLUMN_BITS) - 1)
    block = groups[rows.long()].long() * num_groups + groups[columns.long()]
    chance = numbers(key, torch.arange(len(keys), device=keys.device)) >> 33 & (1 << 31) - 1
    in_order, order = torch.sort(block << 31 | chance, stable=True)
    del block, chance
    edges = torch.arange(num_groups**2 + 1, device=keys.device) << 31
    starts = torch.searchsorted(in_order, edges)
    return Arranged(rows[order], columns[order], logs[order], starts, starts.cpu().numpy())


def blocks_of(stratum: int, num_groups: int) -> np.ndarray:
    """The blocks of a stratum, by group of the words."""
    group = np.arange(num_groups)
    return group * num_groups + (group + stratum) % num_groups


def train_strata(cells: Arranged, strata: np.ndarray, tables: Tables) -> torch.Tensor:
    """Train on all cells of some strata, one after the other; float64 [loss, cells, cells]."""
    loss = torch.zeros(1, dtype=torch.float64, device=cells.logs.device)
    for stratum in strata.tolist():
        sizes = cells.sizes(stratum)
        order = np.argsort(-sizes, kind="stable")
        first = cells.edges[blocks_of(stratum, cells.num_groups)[order]]
        at = torch.from_numpy(first).to(loss.device)
        # Blocks that have a k-th cell come first.
        ends = np.searchsorted(-sizes[order], -np.arange(sizes.max()), "left")
        for k, end in enumerate(ends.tolist()):
            loss += train_cells(at[:end] + k, cells, tables)
    return cells.stats(strata, loss)


def train_cells(at: torch.Tensor, cells: Arranged, tables: Tables) -> torch.Tensor:
    """One AdaGrad step of each of some cells without a common row; the sum of their losses."""
    words, contexts, rates, limits, alpha, log_x_max = tables
    width = tables.width
    row, column, log = cells.rows[at].long(), cells.columns[at].long(), cells.logs[at]
    word, context = words[row], contexts[column]
    far = (word[:, :width] * context[:, :width]).sum(1) - log
    pull = torch.exp((alpha * (log - log_x_max)).clamp(max=0)) * far
    for rows, places, own, other, part in (
        (words, row, word, context, slice(0, width)),
        (contexts, column, context, word, slice(width, None)),
    ):
        step = (pull[:, None] * other[:, :width]).clamp(-limits[part], limits[part]) * rates[part]
        value = own[:, :width] - step / torch.sqrt(1 + own[:, width:])
        rows[places] = torch.cat([value, own[:, width:] + step * step], 1)
    return (0.5 * pull * far).sum(dtype=torch.float64)
