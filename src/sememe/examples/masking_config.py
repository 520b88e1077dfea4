"""How tokens are hidden: the options alone, which a command line reads without NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import check_choices, check_ranges, option

Unit = Literal["token", "word", "phrase"]
UNITS = ("token", "word", "phrase")


@dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """How tokens are hidden (Devlin et al. 2019, 3.1; phrases: Sun et al. 2019, ERNIE)."""

    rate: float = option(0.15, "Share of the tokens to predict.")
    mask_share: float = option(0.8, "Share of these that become [MASK].")
    random_share: float = option(0.1, "Share of these that become a random token; the rest stays.")
    unit: Unit = option("token", "Hide single tokens, whole words, or whole phrases and words.")
    lexicon: str = option("", "File of phrases and names, one a line; none: they are detected.")

    def __post_init__(self) -> None:
        """Refuse shares that no text could satisfy."""
        check_choices(self, unit=UNITS)
        check_ranges(self, rate=(0.001, 1), mask_share=(0, 1), random_share=(0, 1))
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise OptionError(
                "mask_share and random_share must not pass 1 together "
                f"({self.mask_share} and {self.random_share} were given)."
            )
        if self.lexicon and self.unit != "phrase":
            raise OptionError(
                f"A lexicon serves the unit phrase, not {self.unit}: set unit to phrase."
            )
