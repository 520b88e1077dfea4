"""Small dense products of rows, four by four: the inner loops where many rows meet many.

Matrices are as in `rows`: flat float32 with rows of `width` floats, a multiple of 16.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.static import simd

LANES = simd.LANES
_ZERO = np.float32(0)


@kernel
def score_tile(left, i, right, j, width, out, to, stride):
    """out[a, b] = left row a · right row b for four rows of each, sixteen sums at once.

    i and j are the offsets of the first rows, `to` that of out[0, 0], `stride` out's row length.
    """
    c00 = c01 = c02 = c03 = simd.spread(_ZERO)
    c10 = c11 = c12 = c13 = simd.spread(_ZERO)
    c20 = c21 = c22 = c23 = simd.spread(_ZERO)
    c30 = c31 = c32 = c33 = simd.spread(_ZERO)
    for d in range(0, width, LANES):
        a = i + d
        b = j + d
        l0 = simd.load(left, a)
        l1 = simd.load(left, a + width)
        l2 = simd.load(left, a + 2 * width)
        l3 = simd.load(left, a + 3 * width)
        r = simd.load(right, b)
        c00 = simd.multiply_add(c00, l0, r)
        c10 = simd.multiply_add(c10, l1, r)
        c20 = simd.multiply_add(c20, l2, r)
        c30 = simd.multiply_add(c30, l3, r)
        r = simd.load(right, b + width)
        c01 = simd.multiply_add(c01, l0, r)
        c11 = simd.multiply_add(c11, l1, r)
        c21 = simd.multiply_add(c21, l2, r)
        c31 = simd.multiply_add(c31, l3, r)
        r = simd.load(right, b + 2 * width)
        c02 = simd.multiply_add(c02, l0, r)
        c12 = simd.multiply_add(c12, l1, r)
        c22 = simd.multiply_add(c22, l2, r)
        c32 = simd.multiply_add(c32, l3, r)
        r = simd.load(right, b + 3 * width)
        c03 = simd.multiply_add(c03, l0, r)
        c13 = simd.multiply_add(c13, l1, r)
        c23 = simd.multiply_add(c23, l2, r)
        c33 = simd.multiply_add(c33, l3, r)
    row0 = simd.fold8(simd.fold16(c00, c01), simd.fold16(c02, c03))
    row1 = simd.fold8(simd.fold16(c10, c11), simd.fold16(c12, c13))
    row2 = simd.fold8(simd.fold16(c20, c21), simd.fold16(c22, c23))
    row3 = simd.fold8(simd.fold16(c30, c31), simd.fold16(c32, c33))
    sums = simd.fold2(simd.fold4(row0, row1), simd.fold4(row2, row3))
    simd.store_quarters(out, to, stride, sums)


@kernel
def combine_tile(factors, at, row_step, step, num, source, i, target, t0, t1, t2, t3, width):
    """target row a += Σ_s factors[a, s] · source row s for four target rows, s below `num`.

    `at` is the offset of factors[0, 0]; `row_step` leads to the next a, `step` to the next s.
    t0 to t3 are the offsets of the target rows: four different ones, since all are held at once.
    """
    at1 = at + row_step
    at2 = at1 + row_step
    at3 = at2 + row_step
    d = 0
    while d + 2 * LANES <= width:
        a0 = simd.load(target, t0 + d)
        b0 = simd.load(target, t0 + d + LANES)
        a1 = simd.load(target, t1 + d)
        b1 = simd.load(target, t1 + d + LANES)
        a2 = simd.load(target, t2 + d)
        b2 = simd.load(target, t2 + d + LANES)
        a3 = simd.load(target, t3 + d)
        b3 = simd.load(target, t3 + d + LANES)
        f = 0
        row = i + d
        for _ in range(num):
            a = simd.load(source, row)
            b = simd.load(source, row + LANES)
            g = simd.spread(factors[at + f])
            a0 = simd.multiply_add(a0, g, a)
            b0 = simd.multiply_add(b0, g, b)
            g = simd.spread(factors[at1 + f])
            a1 = simd.multiply_add(a1, g, a)
            b1 = simd.multiply_add(b1, g, b)
            g = simd.spread(factors[at2 + f])
            a2 = simd.multiply_add(a2, g, a)
            b2 = simd.multiply_add(b2, g, b)
            g = simd.spread(factors[at3 + f])
            a3 = simd.multiply_add(a3, g, a)
            b3 = simd.multiply_add(b3, g, b)
            f += step
            row += width
        simd.store(target, t0 + d, a0)
        simd.store(target, t0 + d + LANES, b0)
        simd.store(target, t1 + d, a1)
        simd.store(target, t1 + d + LANES, b1)
        simd.store(target, t2 + d, a2)
        simd.store(target, t2 + d + LANES, b2)
        simd.store(target, t3 + d, a3)
        simd.store(target, t3 + d + LANES, b3)
        d += 2 * LANES
    if d < width:
        a0 = simd.load(target, t0 + d)
        a1 = simd.load(target, t1 + d)
        a2 = simd.load(target, t2 + d)
        a3 = simd.load(target, t3 + d)
        f = 0
        row = i + d
        for _ in range(num):
            a = simd.load(source, row)
            a0 = simd.multiply_add(a0, simd.spread(factors[at + f]), a)
            a1 = simd.multiply_add(a1, simd.spread(factors[at1 + f]), a)
            a2 = simd.multiply_add(a2, simd.spread(factors[at2 + f]), a)
            a3 = simd.multiply_add(a3, simd.spread(factors[at3 + f]), a)
            f += step
            row += width
        simd.store(target, t0 + d, a0)
        simd.store(target, t1 + d, a1)
        simd.store(target, t2 + d, a2)
        simd.store(target, t3 + d, a3)


@kernel
def combine_row(factors, at, step, num, source, i, target, to, width):
    """target row at `to` += Σ_s factors[s] · source row s, s below `num`; see `combine_tile`."""
    d = 0
    while d + 2 * LANES <= width:
        a = simd.load(target, to + d)
        b = simd.load(target, to + d + LANES)
        f = at
        row = i + d
        for _ in range(num):
            g = simd.spread(factors[f])
            a = simd.multiply_add(a, g, simd.load(source, row))
            b = simd.multiply_add(b, g, simd.load(source, row + LANES))
            f += step
            row += width
        simd.store(target, to + d, a)
        simd.store(target, to + d + LANES, b)
        d += 2 * LANES
    if d < width:
        a = simd.load(target, to + d)
        f = at
        row = i + d
        for _ in range(num):
            a = simd.multiply_add(a, simd.spread(factors[f]), simd.load(source, row))
            f += step
            row += width
        simd.store(target, to + d, a)


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
            combine_tile(factors, at, row_step, step, num, source, i, target, t0, t1, t2, t3, width)
            a += 4
            at += 4 * row_step
        else:
            combine_row(factors, at, step, num, source, i, target, rows[a], width)
            a += 1
            at += row_step
