"""GloVe's compiled steps: arranged cells in, updated rows out.

A cell takes eight bytes: a key with its row within the block (upper 9 bits) and its column (lower
23), and the logarithm of its count. A matrix has 2 D floats per word: its D values, then D sums of
squared steps. The last of the D values are padding, which holds a bias and a 1: for a word in this
order, for a context in the opposite one, so that one dot product includes both biases.
"""

import numpy as np

from sememe.machine import kernel
from sememe.models.static import simd
from sememe.models.static.row_kernels import prefetch_row
from sememe.randomness import fast_number

LANES = simd.LANES
COLUMN_BITS = 23
_COLUMNS = (1 << COLUMN_BITS) - 1
# A cell's rows are prefetched this many cells in advance.
_AHEAD = 4
_ZERO, _ONE = np.float32(0), np.float32(1)


@kernel
def random_order(key, order):
    """Fill `order` with 0, 1, 2 … shuffled by the stream `key`."""
    for index in range(len(order)):
        other = np.intp(fast_number(key, index) % np.uint64(index + 1))
        order[index] = order[other]
        order[other] = index


@kernel
def arrange(rows, columns, logs, base, block, places, keys, to_logs):
    """Sort cells by blocks of `block` columns, stably; pack their keys.

    places has a zero for each block of columns and one more.
    """
    for k in range(len(columns)):
        places[columns[k] // block + 1] += 1
    for b in range(1, len(places)):
        places[b] += places[b - 1]
    for k in range(len(columns)):
        b = columns[k] // block
        keys[places[b]] = np.uint32(rows[k] - base) << np.uint32(COLUMN_BITS) | np.uint32(
            columns[k]
        )
        to_logs[places[b]] = logs[k]
        places[b] += 1


@kernel
def _clipped(lanes, limit):
    return simd.smaller(simd.larger(lanes, simd.subtract(simd.spread(_ZERO), limit)), limit)


@kernel
def _cell(words, i, contexts, j, width, log_count, log_weight, rates, limits):
    """Do one AdaGrad step for the word at i and the context at j; return the loss.

    The arithmetic is that of reference.train_cells, sixteen floats at a time.
    """
    product = simd.spread(_ZERO)
    for d in range(0, width, LANES):
        product = simd.multiply_add(product, simd.load(words, i + d), simd.load(contexts, j + d))
    far = simd.total(product) - log_count
    pull = np.exp(min(_ZERO, log_weight)) * far
    loss = np.float64(0.5) * pull * far
    if not np.isfinite(loss):
        return np.nan  # the training loop stops at that; the rows are not changed
    pulls, one = simd.spread(pull), simd.spread(_ONE)
    for d in range(0, width, LANES):
        w, c = simd.load(words, i + d), simd.load(contexts, j + d)
        w_sum = simd.load(words, i + width + d)
        c_sum = simd.load(contexts, j + width + d)
        w_step = _clipped(simd.multiply(pulls, c), simd.load(limits, d))
        c_step = _clipped(simd.multiply(pulls, w), simd.load(limits, width + d))
        w_step = simd.multiply(w_step, simd.load(rates, d))
        c_step = simd.multiply(c_step, simd.load(rates, width + d))
        w_root = simd.square_root(simd.add(one, w_sum))
        c_root = simd.square_root(simd.add(one, c_sum))
        simd.store(words, i + d, simd.subtract(w, simd.divide(w_step, w_root)))
        simd.store(contexts, j + d, simd.subtract(c, simd.divide(c_step, c_root)))
        simd.store(words, i + width + d, simd.multiply_add(w_sum, w_step, w_step))
        simd.store(contexts, j + width + d, simd.multiply_add(c_sum, c_step, c_step))
    return loss


@kernel
def train_cells(
    keys, logs, base, first, stride, words, contexts, width, rates, limits, alpha, log_x_max, stats
):
    """Visit every cell once: `first`, then every `stride` further, wrapping around.

    `stride` is coprime with the number of cells. `rates` and `limits` of a step have D values for
    words, then D for contexts. Adds the loss and twice the number of cells to stats.
    """
    num, run = len(keys), 2 * width
    at, ahead = first, (first + _AHEAD * stride) % num
    loss = 0.0
    for _ in range(num):
        key = np.intp(keys[ahead])
        prefetch_row(words, (base + (key >> COLUMN_BITS)) * run, run)
        prefetch_row(contexts, (key & _COLUMNS) * run, run)
        ahead += stride
        if ahead >= num:
            ahead -= num
        key = np.intp(keys[at])
        i, j = (base + (key >> COLUMN_BITS)) * run, (key & _COLUMNS) * run
        log_weight = alpha * (logs[at] - log_x_max)
        loss += _cell(words, i, contexts, j, width, logs[at], log_weight, rates, limits)
        at += stride
        if at >= num:
            at -= num
    stats[0] += loss
    stats[1] += num
    stats[2] += num
