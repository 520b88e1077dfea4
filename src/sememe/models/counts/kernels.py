"""The inner loops of the count model: cells of a sparse matrix transformed and multiplied.

A sparse matrix is (starts int64, columns int32, values float32): row r has the cells starts[r] to
starts[r + 1]. Dense matrices are flat float32 panels of WIDTH floats per row.
"""

import numpy as np

from sememe.examples.cooccurrence.kernels import prefetch
from sememe.machine import kernel
from sememe.models.static import simd

WIDTH = 64
_WIDTH = np.int64(WIDTH)
_ZERO = np.float32(0.0)
COUNTS, LOG, PPMI = 0, 1, 2
AHEAD = 8  # cells


@kernel
def transform_rows(starts, columns, values, first, last, kind, row_terms, column_terms,
                   to_columns, to_values, ends):  # fmt: skip
    """Write the transformed cells of some rows that are above 0; return their sum of squares.

    COUNTS keeps a cell, LOG takes log(1 + n), PPMI log(n) + row_terms[row] + column_terms[column].
    """
    num = 0
    squares = 0.0
    for row in range(first, last):
        for n in range(starts[row], starts[row + 1]):
            value = np.float64(values[n])
            if kind == LOG:
                value = np.log1p(value)
            elif kind == PPMI:
                value = np.log(value) + row_terms[row] + column_terms[columns[n]]
            if value > 0.0:
                to_columns[num] = columns[n]
                to_values[num] = value
                squares += value * value
                num += 1
        ends[row - first] = num
    return squares


@kernel
def multiply_rows(starts, columns, values, first, last, source, target):
    """target rows first to last - 1 = those of the sparse matrix · source, panel by panel."""
    end = starts[last] - AHEAD
    for row in range(first, last):
        t0 = t1 = t2 = t3 = simd.spread(_ZERO)
        for n in range(starts[row], starts[row + 1]):
            if n < end:
                soon = columns[n + AHEAD] * _WIDTH
                prefetch(source, soon)
                prefetch(source, soon + 16)
                prefetch(source, soon + 32)
                prefetch(source, soon + 48)
            at = columns[n] * _WIDTH
            factor = simd.spread(values[n])
            t0 = simd.multiply_add(t0, factor, simd.load(source, at))
            t1 = simd.multiply_add(t1, factor, simd.load(source, at + 16))
            t2 = simd.multiply_add(t2, factor, simd.load(source, at + 32))
            t3 = simd.multiply_add(t3, factor, simd.load(source, at + 48))
        to = row * _WIDTH
        simd.store(target, to, t0)
        simd.store(target, to + 16, t1)
        simd.store(target, to + 32, t2)
        simd.store(target, to + 48, t3)
