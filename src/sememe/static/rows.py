"""Arithmetic on rows of floats, the inner loops of every static model.

Matrices are flat float32 with rows of D floats, D a multiple of 16 (the padding stays zero).
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.static import simd

LANES = simd.LANES
_ZERO = np.float32(0)


def padded(size: int, multiple: int = LANES) -> int:
    """The smallest multiple that is not below `size`."""
    return -(-size // multiple) * multiple


def matrix(num_rows: int, dim: int) -> np.ndarray:
    """A zero matrix (rows, padded dim) that starts on a cache line, as every row then does."""
    width = padded(dim)
    space = np.zeros(num_rows * width * 4 + 64, np.uint8)
    start = -space.ctypes.data % 64
    return space[start : start + num_rows * width * 4].view(np.float32).reshape(num_rows, width)


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
def dot_eight(left, i, right, rows, k, width, out):
    """out[k + n] = row of `left` at i · row of `right` at rows[k + n], n from 0 to 7.

    Eight more places of `out` are overwritten with zeros.
    """
    j0, j1, j2, j3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
    j4, j5, j6, j7 = rows[k + 4], rows[k + 5], rows[k + 6], rows[k + 7]
    t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = simd.spread(_ZERO)
    for d in range(0, width, LANES):
        row = simd.load(left, i + d)
        t0 = simd.multiply_add(t0, row, simd.load(right, j0 + d))
        t1 = simd.multiply_add(t1, row, simd.load(right, j1 + d))
        t2 = simd.multiply_add(t2, row, simd.load(right, j2 + d))
        t3 = simd.multiply_add(t3, row, simd.load(right, j3 + d))
        t4 = simd.multiply_add(t4, row, simd.load(right, j4 + d))
        t5 = simd.multiply_add(t5, row, simd.load(right, j5 + d))
        t6 = simd.multiply_add(t6, row, simd.load(right, j6 + d))
        t7 = simd.multiply_add(t7, row, simd.load(right, j7 + d))
    low = simd.fold8(simd.fold16(t0, t1), simd.fold16(t2, t3))
    high = simd.fold8(simd.fold16(t4, t5), simd.fold16(t6, t7))
    simd.store(out, k, simd.fold2(simd.fold4(low, high), simd.spread(_ZERO)))


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

    The rows at rows[k] to rows[k + 3] must be different ones, since all are held at once.
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
def sum_rows(scale, source, rows, num, target, width):
    """target = scale · Σ_k source row at rows[k], k below `num`."""
    nothing = simd.spread(_ZERO)
    f = simd.spread(scale)
    d = 0
    while d + 2 * LANES <= width:
        a = b = nothing
        for k in range(num):
            at = rows[k] + d
            a = simd.add(a, simd.load(source, at))
            b = simd.add(b, simd.load(source, at + LANES))
        simd.store(target, d, simd.multiply_add(nothing, a, f))
        simd.store(target, d + LANES, simd.multiply_add(nothing, b, f))
        d += 2 * LANES
    if d < width:
        a = nothing
        for k in range(num):
            a = simd.add(a, simd.load(source, rows[k] + d))
        simd.store(target, d, simd.multiply_add(nothing, a, f))


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
    """Ask for a row that will soon be read and written."""
    for d in range(0, width, LANES):
        simd.prefetch(array, start + d)
