"""Launch the Triton kernels: what `batches.train_words` does, at a GPU's full speed.

The sizes of a launch follow from the settings; what the kernels cannot hold in the registers of a
GPU stays with PyTorch.
"""

from dataclasses import replace

import torch

from sememe.models.word2vec.tiles import kernels
from sememe.models.word2vec.tiles.batches import LOSS_EVERY, Settings, Tables, Words

SMALLEST = 16  # rows or columns of a matrix product
MOST_AROUND = 128  # words in the windows of a tile
MOST_WIDTH = 1_024
LARGEST_SLICE, SLICE = 128, 64  # columns: of a row that stays in registers, of a longer one
# tf32 costs no score, and plain float32 three to four times the time (docs/experiments.md).
PRECISION = "tf32"
_WARP_FLOATS = 2_048  # of the largest matrix, for each warp


def power_of_two(num: int) -> int:
    """The smallest power of two that is at least this, and SMALLEST."""
    return max(SMALLEST, 1 << (num - 1).bit_length())


def fits(own: Settings, width: int) -> bool:
    """Whether the kernels take tiles of this size."""
    return own.tile + 2 * own.window <= MOST_AROUND and width <= MOST_WIDTH


def try_out(own: Settings, width: int, is_composed: bool, device: torch.device) -> None:
    """Compile the kernel of these settings and launch it on a text without words."""
    row, one = torch.zeros((1, width), device=device), torch.ones(1, device=device)
    nothing = torch.zeros(0, dtype=torch.int32, device=device)
    tables = Tables(row, row, one, one)
    if is_composed:
        tables = replace(tables, starts=nothing.long(), rows=nothing)
    train_words(Words(nothing, nothing, nothing), 1, nothing, tables, own, (0.0, 0.0)).cpu()


def num_warps(rows: int, columns: int) -> int:
    """Warps of a program whose largest matrix has this size: 4 or 8."""
    return 4 if rows * columns <= 4 * _WARP_FLOATS else 8


def train_words(
    words: Words, stretches: int, noise: torch.Tensor, tables: Tables, own: Settings,
    rates: tuple[float, float],
) -> torch.Tensor:  # fmt: skip
    """Train on a part of the text; the learning rate falls from the first of `rates` to the second.

    noise: (tiles, K). Returns float64 [loss, pairs in it, all pairs].
    """
    num, width = len(words.tokens), tables.input.shape[1]
    num_tiles = -(-num // own.tile)
    per = -(-num_tiles // stretches)
    around = power_of_two(own.tile + 2 * own.window)
    columns = power_of_two(width) if width <= LARGEST_SLICE else SLICE
    stats_P3 = torch.zeros((stretches, 3), dtype=torch.float64, device=words.tokens.device)
    is_composed = tables.starts is not None
    # Without sub-words these two are not read, but every argument has to be an array.
    starts, rows = (tables.starts, tables.rows) if is_composed else (words.tokens, words.tokens)
    kernel = kernels.skipgram_tiles if own.is_skipgram else kernels.cbow_tiles
    kernel[(stretches,)](
        tables.input, tables.output, tables.damp_input, tables.damp_output, starts, rows,
        words.tokens, words.left, words.right, noise, stats_P3, num, num_tiles, per, own.tile,
        own.window, width, *rates, own.negatives / own.pool,
        CENTRES=power_of_two(own.tile), AROUND=around, POOL=own.pool, SLICE=columns,
        IS_WHOLE=width <= columns, IS_MEAN=own.is_mean, SUBWORDS=is_composed, PRECISION=PRECISION,
        LOSS_EVERY=LOSS_EVERY, num_warps=num_warps(max(around, own.pool), columns), num_stages=1,
    )  # fmt: skip
    return stats_P3.sum(0)
