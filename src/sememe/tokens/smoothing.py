"""How much of a mix each language is: its size to a power, as multilingual BERT has it.

A power below 1 gives small languages more than their share and large ones less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from sememe.errors import OptionError


def smoothed_shares(sizes: Sequence[int], exponent: float) -> np.ndarray:
    """The share of each text: its size to the power `exponent`, all together 1."""
    if not 0 <= exponent <= 1:
        raise OptionError(f"The exponent of mixing must lie between 0 and 1, not {exponent}.")
    weights = np.asarray(sizes, np.float64) ** exponent
    return weights / weights.sum()


def smoothed_counts(counts: Sequence[Counter[str]], exponent: float) -> Counter[str]:
    """The words of several texts in their smoothed shares, as many in all as before."""
    sizes = [own.total() for own in counts]
    mixed: Counter[str] = Counter()
    for own, size, share in zip(counts, sizes, smoothed_shares(sizes, exponent), strict=True):
        factor = share * sum(sizes) / size
        for word, count in own.items():
            mixed[word] += max(1, round(factor * count))
    return mixed
