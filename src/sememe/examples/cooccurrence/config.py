"""Which word pairs are counted: the options that all co-occurrence models share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sememe.options import Config, option

if TYPE_CHECKING:
    import numpy as np

# Weights are multiples of this part of 1, so that sums are exact and their order does not matter:
# 1/d is off by less than a float32 can tell, and two thousand million pairs fit a cell.
_UNIT = 1 << 32


@dataclass(frozen=True, kw_only=True)
class PairSettings(Config):
    """Which word pairs are counted, and with which weight."""

    window: int = option(10, "Maximum distance to a context word, on each side.", 1, 1_000)
    weighting: Literal["flat", "harmonic"] = option(
        "harmonic", "Weight of a pair d words apart: 1/d (harmonic) or 1 (flat)."
    )
    direction: Literal["both", "left", "right"] = option(
        "both", "Context side: both, preceding words (left) or following words (right)."
    )

    @property
    def unit(self) -> int:
        """The integer weight of a pair of adjacent words."""
        return _UNIT if self.weighting == "harmonic" else 1

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights of words before and after by distance, in parts of `unit`."""
        import numpy as np

        if self.weighting == "flat":
            weights = np.ones(self.window, np.int64)
        else:
            weights = np.rint(_UNIT / np.arange(1, self.window + 1)).astype(np.int64)
        none = weights[:0]
        is_left, is_right = self.direction != "right", self.direction != "left"
        return weights if is_left else none, weights if is_right else none
