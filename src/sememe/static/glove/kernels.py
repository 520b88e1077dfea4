"""GloVe's compiled steps: arranged cells in, changed rows out.

A cell takes eight bytes: a key of its row within the block (upper 9 bits) and its column (lower
23), and the logarithm of its count. A matrix has one run of 2 D floats a word: its D numbers, then
D sums of squared steps. Of the D numbers the last ones are padding, in which a word keeps
its bias and a 1, a context a 1 and its bias, so that one product has both biases in it.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.randomness import fast_number
from sememe.static import simd

LANES = simd.LANES
COLUMN_BITS = 23
_COLUMNS = (1 << COLUMN_BITS) - 1
# So many cells before its turn, a cell's rows are asked for.
_AHEAD = 4
_ZERO, _ONE = np.float32(0), np.float32(1)


@kernel
def random_order(key, order):
    """Fill `order` with 0, 1, 2 … in the order that the stream `key` shuffles them into."""
    for index in range(len(order)):
        other = np.intp(fast_number(key, index) % np.uint64(index + 1))
        order[index] = order[other]
        order[other] = index


@kernel
def arrange(rows, columns, logs, base, block, places, keys, to_logs):
    """Sort cells by blocks of `block` columns, keeping the order inside one; pack their keys.

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
def _prefetch(matrix, start, run):
    for d in range(0, run, LANES):
        simd.prefetch(matrix, start + d)


@kernel
def _clipped(lanes, limit):
    return simd.smaller(simd.larger(lanes, simd.subtract(simd.spread(_ZERO), limit)), limit)


@kernel
def _cell(words, i, contexts, j, width, log_count, log_weight, rates, limits):
    """Take one step of AdaGrad for the word at i and the context at j; returns the loss.

    The arithmetic is that of reference.train_cells, sixteen numbers at a time.
    """
    product = simd.spread(_ZERO)
    for d in range(0, width, LANES):
        product = simd.multiply_add(product, simd.load(words, i + d), simd.load(contexts, j + d))
    far = simd.total(product) - log_count
    pull = np.exp(min(_ZERO, log_weight)) * far
    loss = np.float64(0.5) * pull * far
    if not np.isfinite(loss):
        return np.nan  # the training loop stops at that; the rows stay as they were
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
    """Visit every cell once: `first`, then each `stride` further on, around the end.

    `stride` has no divisor in common with the number of cells. `rates` and `limits` of a step
    have D numbers for words, then D for contexts. Adds to stats the loss and twice the number.
    """
    num, run = len(keys), 2 * width
    at, ahead = first, (first + _AHEAD * stride) % num
    loss = 0.0
    for _ in range(num):
        key = np.intp(keys[ahead])
        _prefetch(words, (base + (key >> COLUMN_BITS)) * run, run)
        _prefetch(contexts, (key & _COLUMNS) * run, run)
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
