"""Our own counter-based generator: the n-th number of a stream is a function of (key, n).

A position in training can be returned to exactly, and nothing depends on a library's stream.
The function is SplitMix64 (Steele, Lea, Flood 2014): key + n · golden ratio, then mixed.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
_GOLDEN = np.uint64(GOLDEN)


def mix(value: int) -> int:
    """Scramble 64 bits so that neighboring inputs give unrelated outputs (plain reference)."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def stream_key(*position: int) -> int:
    """The key of the stream for a position such as (seed, purpose, epoch, index)."""
    key = 0
    for number in position:
        key = mix((key + GOLDEN + number) & _MASK)
    return key


def number(key: int, index: int) -> int:
    """The `index`-th 64-bit number of the stream `key` (plain reference)."""
    return mix((key + (index + 1) * GOLDEN) & _MASK)


def numbers(key: int, num: int) -> np.ndarray:
    """The first `num` 64-bit numbers of the stream `key`, uint64."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(1, num + 1, dtype=np.uint64) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def fast_number(key, index):
    """The `index`-th 64-bit number of the stream `key`."""
    z = key + (np.uint64(index) + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def fill_uniform(rows, dim, low, high, key, first):
    """Fill the first `dim` numbers of each float32 row from [low, high); row r is the stream's
    (first + r)-th run of `dim` numbers."""
    scale = (high - low) / np.float32(16777216.0)
    for r in range(rows.shape[0]):
        for d in range(dim):
            bits = fast_number(key, (first + r) * dim + d) >> np.uint64(40)
            rows[r, d] = low + scale * np.float32(bits)
