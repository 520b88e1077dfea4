"""Which pairs of words are counted: the options that all models of co-occurrences have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sememe.options import check_choices, check_ranges, option

if TYPE_CHECKING:
    import numpy as np

# Weights are multiples of this part of 1, so that sums are exact and their order does not matter:
# 1/d is off by less than a float32 can tell, and two thousand million pairs fit a cell.
_UNIT = 1 << 32


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """Which pairs of words are counted, and for how much."""

    window: int = option(10, "Furthest context word on each side.")
    weighting: Literal["flat", "harmonic"] = option(
        "harmonic", "Two words d places apart count 1/d (harmonic) or 1 (flat)."
    )
    direction: Literal["both", "left", "right"] = option(
        "both", "Count the words on both sides, those before (left) or those behind (right)."
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be counted."""
        check_choices(self, weighting=("flat", "harmonic"), direction=("both", "left", "right"))
        check_ranges(self, window=(1, 1_000))

    @property
    def unit(self) -> int:
        """What a pair of neighbors counts in whole numbers."""
        return _UNIT if self.weighting == "harmonic" else 1

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """What a word before and a word behind counts by distance, in parts of `unit`."""
        import numpy as np

        if self.weighting == "flat":
            weights = np.ones(self.window, np.int64)
        else:
            weights = np.rint(_UNIT / np.arange(1, self.window + 1)).astype(np.int64)
        none = weights[:0]
        is_left, is_right = self.direction != "right", self.direction != "left"
        return weights if is_left else none, weights if is_right else none
