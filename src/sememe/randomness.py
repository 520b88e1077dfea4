"""A counter-based generator (SplitMix64), and random orders that are functions of a key.

The n-th number of a stream is a function of (key, n), so training can return to any position
exactly. An order is a Feistel network, which takes no memory, or a sorted array. Compiled code
gives the same numbers and orders, bit for bit: `fast_number` equals `number`, `permute` equals
`permute_reference`.
"""

from typing import Any

import numpy as np

from sememe.machine import kernel

GOLDEN, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = 2**64 - 1
# The Feistel network's rounds, and the most bits that half an index may have.
ROUNDS = 3
ROUND_BITS = 40


def mix(value: Any) -> Any:
    """Scramble 64 bits so that neighboring inputs give unrelated outputs: int, or uint64 array."""
    value = ((value ^ (value >> 30)) * MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * MIX_2) & _MASK
    return value ^ (value >> 31)


def stream_key(*position: int) -> int:
    """The key of the stream for a position such as (seed, purpose, epoch, index)."""
    key = 0
    for part in position:
        key = mix((key + GOLDEN + part) & _MASK)
    return key


def number(key: int, index: int) -> int:
    """The `index`-th 64-bit number of the stream `key`."""
    value: int = mix((key + (index + 1) * GOLDEN) & _MASK)
    return value


def numbers(key: int, num: int) -> np.ndarray:
    """The first `num` 64-bit numbers of the stream `key`, uint64."""
    result: np.ndarray = mix(np.arange(1, num + 1, dtype=np.uint64) * GOLDEN + np.uint64(key))
    return result


def random_order(size: int, key: int) -> np.ndarray:
    """The numbers 0 … size - 1 in an order determined by the key: sorted by the stream."""
    return np.argsort(numbers(key, size), kind="stable")


def permute_reference(place: int, size: int, key: int) -> int:
    """The number at `place` in the order `key` of 0 … size - 1: the reference for `permute`."""
    num_bits = (size - 1).bit_length()
    low_bits = num_bits // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << (num_bits - low_bits)) - 1
    while True:
        low, high = place & low_mask, place >> low_bits
        for turn in range(ROUNDS):
            high ^= number(key, (2 * turn << ROUND_BITS) + low) & high_mask
            low ^= number(key, (2 * turn + 1 << ROUND_BITS) + high) & low_mask
        place = high << low_bits | low
        if place < size:
            return place


@kernel
def fast_mix(value: np.uint64) -> np.uint64:
    """Scramble 64 bits, one to one."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(MIX_1)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(MIX_2)
    return value ^ (value >> np.uint64(31))


@kernel
def fast_number(key: np.uint64, index: int) -> np.uint64:
    """The `index`-th 64-bit number of the stream `key`."""
    mixed: np.uint64 = fast_mix(key + (np.uint64(index) + np.uint64(1)) * np.uint64(GOLDEN))
    return mixed


@kernel
def fill_uniform(
    rows: np.ndarray, dim: int, low: np.float32, high: np.float32, key: np.uint64, first: int
) -> None:
    """Fill the first `dim` numbers of each float32 row from [low, high); row r is the stream's
    (first + r)-th run of `dim` numbers."""
    scale = (high - low) / np.float32(16777216.0)
    for r in range(rows.shape[0]):
        for d in range(dim):
            bits = fast_number(key, (first + r) * dim + d) >> np.uint64(40)
            rows[r, d] = low + scale * np.float32(bits)


@kernel
def permute(place: int, size: int, key: np.uint64) -> np.int64:
    """The number at `place` (int64, below `size`) in the order `key` (uint64) of 0 … size - 1."""
    num_bits = 0
    while np.int64(1) << num_bits < size:
        num_bits += 1
    low_bits = num_bits // 2
    low_mask = np.uint64((np.int64(1) << low_bits) - 1)
    high_mask = np.uint64((np.int64(1) << (num_bits - low_bits)) - 1)
    result = np.uint64(place)
    while True:
        low, high = result & low_mask, result >> np.uint64(low_bits)
        for turn in range(ROUNDS):
            offset = np.uint64(2 * turn) << np.uint64(ROUND_BITS)
            high ^= fast_number(key, offset + low) & high_mask
            offset += np.uint64(1) << np.uint64(ROUND_BITS)
            low ^= fast_number(key, offset + high) & low_mask
        result = high << np.uint64(low_bits) | low
        if result < np.uint64(size):
            return np.int64(result)
