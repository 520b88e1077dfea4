"""Strata in Triton: each program trains one block of a stratum, cell by cell.

Blocks of a stratum share no row, so programs never meet, and two runs give the same bits. A row
fits one warp's registers: the dot product is a sum over the warp, and four loads are in flight
before it.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from sememe.models.glove.strata.batches import Arranged, Tables

MOST_WIDTH = 2_048
WARP_FLOATS = 256  # of a row, for each warp
# Rows are read at L2: another program, on another core, wrote them in the stratum before.
_FRESH: tl.constexpr = tl.constexpr(".cg")


@triton.jit(do_not_specialize=["stratum", "groups"])
def train_blocks(
    words, contexts, rows, columns, logs, starts, rates, limits, losses,
    stratum, groups, alpha, log_x_max, width, WIDTH: tl.constexpr,
):  # fmt: skip
    """AdaGrad over the cells of block (g, (g + stratum) mod groups) for program g."""
    group = tl.program_id(0)
    block = group.to(tl.int64) * groups + (group + stratum) % groups
    begin, end = tl.load(starts + block), tl.load(starts + block + 1)
    d = tl.arange(0, WIDTH)
    is_own = d < width
    word_rate = tl.load(rates + d, mask=is_own, other=0.0)
    context_rate = tl.load(rates + width + d, mask=is_own, other=0.0)
    word_limit = tl.load(limits + d, mask=is_own, other=0.0)
    context_limit = tl.load(limits + width + d, mask=is_own, other=0.0)
    loss = tl.zeros([1], tl.float64)
    for n in tl.range(begin, end, num_stages=1):
        i = words + tl.load(rows + n).to(tl.int64) * (2 * width) + d
        j = contexts + tl.load(columns + n).to(tl.int64) * (2 * width) + d
        log = tl.load(logs + n)
        word = tl.load(i, mask=is_own, other=0.0, cache_modifier=_FRESH)
        context = tl.load(j, mask=is_own, other=0.0, cache_modifier=_FRESH)
        word_sum = tl.load(i + width, mask=is_own, other=0.0, cache_modifier=_FRESH)
        context_sum = tl.load(j + width, mask=is_own, other=0.0, cache_modifier=_FRESH)
        far = tl.sum(word * context, 0) - log
        pull = tl.exp(tl.minimum(alpha * (log - log_x_max), 0.0)) * far
        loss += (0.5 * pull * far).to(tl.float64)
        word_step = tl.minimum(tl.maximum(pull * context, -word_limit), word_limit) * word_rate
        context_step = pull * word
        context_step = tl.minimum(tl.maximum(context_step, -context_limit), context_limit)
        context_step = context_step * context_rate
        tl.store(i, word - word_step / tl.sqrt(1.0 + word_sum), mask=is_own)
        tl.store(j, context - context_step / tl.sqrt(1.0 + context_sum), mask=is_own)
        tl.store(i + width, word_sum + word_step * word_step, mask=is_own)
        tl.store(j + width, context_sum + context_step * context_step, mask=is_own)
        tl.debug_barrier()  # the next cell may have the same rows
    at = losses + group + tl.arange(0, 1)
    tl.store(at, tl.load(at) + loss)


def fits(width: int) -> bool:
    """Whether a row fits the registers of a program."""
    return width <= MOST_WIDTH


def train_strata(cells: Arranged, strata: np.ndarray, tables: Tables) -> torch.Tensor:
    """What `batches.train_strata` does, at a GPU's full speed."""
    losses = torch.zeros(cells.num_groups, dtype=torch.float64, device=cells.logs.device)
    padded = triton.next_power_of_2(tables.width)
    for stratum in strata.tolist():
        train_blocks[(cells.num_groups,)](
            tables.words, tables.contexts, cells.rows, cells.columns, cells.logs, cells.starts,
            tables.rates, tables.limits, losses, stratum, cells.num_groups, tables.alpha,
            tables.log_x_max, tables.width, WIDTH=padded,
            num_warps=max(1, min(8, padded // WARP_FLOATS)), num_stages=1,
        )  # fmt: skip
    return cells.stats(strata, losses.sum())


def try_out(width: int, device: torch.device) -> None:
    """Compile the kernel for rows of this width and launch it on a block without cells."""
    nothing, row = torch.zeros(0, dtype=torch.int32, device=device), torch.zeros(1, 2 * width)
    edges = torch.zeros(2, dtype=torch.int64)
    cells = Arranged(nothing, nothing, nothing.float(), edges.to(device), edges.numpy())
    own = row.to(device)
    train_strata(cells, np.zeros(1, np.int64), Tables(own, own, own[0], own[0], 1.0, 0.0)).cpu()
