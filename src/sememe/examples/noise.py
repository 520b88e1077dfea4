"""Noise words: drawn by count to a power, in constant time (Walker's alias method)."""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.randomness import fast_number

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def _fill_alias(scaled, limits, alias):
    """Pair every column below the mean with one above it (Vose 1991)."""
    size = scaled.shape[0]
    stack = np.empty(size, np.int64)
    num_small = 0
    num_large = 0  # the large ones grow down from the stack's end
    for i in range(size):
        alias[i] = i
        if scaled[i] < 1.0:
            stack[num_small] = i
            num_small += 1
        else:
            num_large += 1
            stack[size - num_large] = i
    while num_small > 0 and num_large > 0:
        num_small -= 1
        small = stack[num_small]
        large = stack[size - num_large]
        limits[small] = np.uint64(scaled[small] * 4294967296.0)
        alias[small] = large
        scaled[large] -= 1.0 - scaled[small]
        if scaled[large] < 1.0:
            num_large -= 1
            stack[num_small] = large
            num_small += 1


def alias_table(counts: np.ndarray, exponent: float) -> tuple[np.ndarray, np.ndarray]:
    """(limits, alias): column i stays i when a 32-bit number is below limits[i], else alias[i]."""
    weights = np.power(np.maximum(counts, 1).astype(np.float64), exponent)
    limits = np.full(len(counts), 2**32, np.uint64)
    alias = np.empty(len(counts), np.int32)
    _fill_alias(weights * (len(weights) / weights.sum()), limits, alias)
    return limits, alias


@kernel
def draw_noise(limits, alias, key, out):
    """Fill the int32 array `out` with word ids from the noise distribution."""
    size = np.uint64(limits.shape[0])
    for i in range(out.shape[0]):
        z = fast_number(key, i)
        column = np.int64(((z >> _HALF) * size) >> _HALF)
        out[i] = column if (z & _LOW) < limits[column] else alias[column]
