"""Which documents are held out: chosen by a hash of their index, so the same in every run."""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.errors import OptionError

_MASK = (1 << 64) - 1


def is_held_out(documents: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Whether each of the documents with these indices belongs to the share kept from training."""
    if not 0 <= share < 1:
        raise OptionError(f"validation_share must lie in [0, 1), not {share}.")
    key = _mixed(np.array(seed & _MASK, np.uint64))
    mixed = _mixed(np.asarray(documents, np.uint64) ^ key)
    return (mixed >> np.uint64(11)) * 2.0**-53 < share


def _mixed(keys: Any) -> Any:
    """Scatter 64 bits, one to one (a step of splitmix64)."""
    with np.errstate(over="ignore"):
        keys = keys + np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return keys ^ (keys >> np.uint64(31))
