"""Arithmetic on rows of floats, the inner loops of every static model.

Matrices are flat float32 with rows of D floats, D a multiple of 16 (the padding stays zero).
"""

import numpy as np

from sememe.machine import kernel
from sememe.models.static import simd
from sememe.models.static.tile_kernels import combine_four, combine_one

LANES = simd.LANES
_ZERO = np.float32(0)


@kernel
def sigmoid(score):
    """Logistic function by a rational approximation of tanh, within 2e-7 of the exact value.

    Plain arithmetic without a table or a branch, so that LLVM vectorises loops over it. The
    coefficients are the (13, 6) minimax fit of tanh(x)/x that several math libraries share.
    """
    x = min(max(score * np.float32(0.5), np.float32(-7.9)), np.float32(7.9))
    x2 = x * x
    p = x2 * np.float32(-2.76076847742355e-16) + np.float32(2.00018790482477e-13)
    p = x2 * p + np.float32(-8.60467152213735e-11)
    p = x2 * p + np.float32(5.12229709037114e-08)
    p = x2 * p + np.float32(1.48572235717979e-05)
    p = x2 * p + np.float32(6.37261928875436e-04)
    p = x2 * p + np.float32(4.89352455891786e-03)
    q = x2 * np.float32(1.19825839466702e-06) + np.float32(1.18534705686654e-04)
    q = x2 * q + np.float32(2.26843463243900e-03)
    q = x2 * q + np.float32(4.89352518554385e-03)
    return np.float32(0.5) + np.float32(0.5) * (x * p / q)


@kernel
def softplus(score):
    """log(1 + exp(score)): the loss of one decision whose score should have been low."""
    return max(score, _ZERO) + np.log1p(np.exp(-abs(score)))


@kernel
def copy_row(source, start, target, to, width):
    """target row at `to` = source row at `start`."""
    for d in range(0, width, LANES):
        simd.store(target, to + d, simd.load(source, start + d))


@kernel
def add_row(source, start, target, to, width):
    """target row at `to` += source row at `start`."""
    for d in range(0, width, LANES):
        total = simd.add(simd.load(target, to + d), simd.load(source, start + d))
        simd.store(target, to + d, total)


@kernel
def add_scaled(factor, source, start, target, to, width):
    """target row at `to` += factor · source row at `start`."""
    f = simd.spread(factor)
    for d in range(0, width, LANES):
        row = simd.load(target, to + d)
        simd.store(target, to + d, simd.multiply_add(row, f, simd.load(source, start + d)))


@kernel
def dot(left, i, right, j, width):
    """Dot product of the row of `left` at i and the row of `right` at j."""
    total = simd.spread(_ZERO)
    for d in range(0, width, LANES):
        total = simd.multiply_add(total, simd.load(left, i + d), simd.load(right, j + d))
    return simd.total(total)


@kernel
def exchange(factor, source, target, row, total, width):
    """total = factor · target row; target row += factor · source."""
    f = simd.spread(factor)
    nothing = simd.spread(_ZERO)
    for d in range(0, width, LANES):
        old = simd.load(target, row + d)
        simd.store(total, d, simd.multiply_add(nothing, f, old))
        simd.store(target, row + d, simd.multiply_add(old, f, simd.load(source, d)))


@kernel
def exchange_four(factors, k, source, target, rows, total, width):
    """total += Σ_n factors[n] · target row n; target row n += factors[n] · source; n from k, four.

    The rows at rows[k] to rows[k + 3] must differ, since all are held in registers at once.
    """
    f0, f1 = simd.spread(factors[k]), simd.spread(factors[k + 1])
    f2, f3 = simd.spread(factors[k + 2]), simd.spread(factors[k + 3])
    t0, t1, t2, t3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
    for d in range(0, width, LANES):
        new = simd.load(source, d)
        r0 = simd.load(target, t0 + d)
        r1 = simd.load(target, t1 + d)
        r2 = simd.load(target, t2 + d)
        r3 = simd.load(target, t3 + d)
        low = simd.multiply_add(simd.load(total, d), f0, r0)
        low = simd.multiply_add(low, f1, r1)
        high = simd.multiply_add(simd.spread(_ZERO), f2, r2)
        high = simd.multiply_add(high, f3, r3)
        simd.store(total, d, simd.add(low, high))
        simd.store(target, t0 + d, simd.multiply_add(r0, f0, new))
        simd.store(target, t1 + d, simd.multiply_add(r1, f1, new))
        simd.store(target, t2 + d, simd.multiply_add(r2, f2, new))
        simd.store(target, t3 + d, simd.multiply_add(r3, f3, new))


@kernel
def sum_scaled(factors, source, rows, num, target, width):
    """target = Σ_k factors[k] · source row at rows[k], k below `num`."""
    for d in range(0, width, LANES):
        total = simd.spread(_ZERO)
        for k in range(num):
            total = simd.multiply_add(
                total, simd.spread(factors[k]), simd.load(source, rows[k] + d)
            )
        simd.store(target, d, total)


@kernel
def prefetch_row(array, start, width):
    """Prefetch a row that will soon be read and written."""
    for d in range(0, width, LANES):
        simd.prefetch(array, start + d)


@kernel
def combine_into(factors, at, row_step, step, num, source, i, target, rows, first, last, width):
    """target row rows[a] += Σ_s factors[a, s] · source row s for a from `first` to `last`.

    `rows` holds offsets, and a row may occur twice. `at` is the offset of factors[first, 0], i that
    of the first source row.
    """
    a = first
    while a < last:
        has_four = a + 4 <= last
        if has_four:
            t0, t1, t2, t3 = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
            has_four = t0 != t1 and t0 != t2 and t0 != t3 and t1 != t2 and t1 != t3 and t2 != t3
        if has_four:
            combine_four(factors, at, row_step, step, num, source, i, target, rows, a, width)
        else:
            combine_one(factors, at, row_step, step, num, source, i, target, rows, a, width)
        done = 4 if has_four else 1
        a += done
        at += done * row_step
