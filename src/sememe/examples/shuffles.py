"""Random orders that are kept as arrays: a size and a key in, the order out."""

from __future__ import annotations

import numpy as np

from sememe.examples.randomness import GOLDEN


def random_order(size: int, key: int) -> np.ndarray:
    """The numbers below `size` in an order that the key decides: sorted by SplitMix64."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(1, size + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return np.argsort(z, kind="stable")
