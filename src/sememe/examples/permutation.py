"""A random order of any size that takes no memory: a place in, the number that comes there out.

The bits of a place are cut in two halves which scramble each other in turn (a Feistel network), a
one-to-one map of a power of two onto itself; a result beyond the size is mapped again until it
falls inside, which keeps the map one-to-one (Black, Rogaway 2002, cycle walking).
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.randomness import fast_number, number

_ROUNDS = 3
_ROUND_BITS = 40


@kernel
def permute(place, size, key):
    """The number at `place` (int64, below `size`) of the order `key` (uint64) of 0 … size - 1."""
    num_bits = 0
    while np.int64(1) << num_bits < size:
        num_bits += 1
    low_bits = num_bits // 2
    low_mask = np.uint64((np.int64(1) << low_bits) - 1)
    high_mask = np.uint64((np.int64(1) << (num_bits - low_bits)) - 1)
    result = np.uint64(place)
    while True:
        low, high = result & low_mask, result >> np.uint64(low_bits)
        for turn in range(_ROUNDS):
            offset = np.uint64(2 * turn) << np.uint64(_ROUND_BITS)
            high ^= fast_number(key, offset + low) & high_mask
            offset += np.uint64(1) << np.uint64(_ROUND_BITS)
            low ^= fast_number(key, offset + high) & low_mask
        result = high << np.uint64(low_bits) | low
        if result < np.uint64(size):
            return np.int64(result)


def permute_plainly(place: int, size: int, key: int) -> int:
    """Do what `permute` does, without haste."""
    num_bits = (size - 1).bit_length()
    low_bits = num_bits // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << (num_bits - low_bits)) - 1
    while True:
        low, high = place & low_mask, place >> low_bits
        for turn in range(_ROUNDS):
            high ^= number(key, (2 * turn << _ROUND_BITS) + low) & high_mask
            low ^= number(key, (2 * turn + 1 << _ROUND_BITS) + high) & low_mask
        place = high << low_bits | low
        if place < size:
            return place
