"""How tokens are masked: only the options, which the command line reads without NumPy."""

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, option

Unit = Literal["token", "word", "phrase"]
UNITS = ("token", "word", "phrase")


@dataclass(frozen=True, kw_only=True)
class MaskingConfig(Config):
    """How tokens are masked (Devlin et al. 2019, 3.1; phrases: Sun et al. 2019, ERNIE)."""

    rate: float = option(0.15, "Fraction of tokens to predict.", 0.001, 1)
    mask_share: float = option(0.8, "Fraction of predicted tokens replaced by [MASK].", 0, 1)
    random_share: float = option(
        0.1, "Fraction of predicted tokens replaced by random ones; the rest stay.", 0, 1
    )
    unit: Unit = option(
        "token", "Masking unit: single tokens, whole words, or phrases and whole words."
    )
    lexicon: str = option(
        "", "File of phrases and names, one per line; default: detected automatically."
    )

    def __post_init__(self) -> None:
        """Raise OptionError for fractions that no text could satisfy."""
        super().__post_init__()
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise OptionError(
                "mask_share and random_share must not exceed 1 together "
                f"({self.mask_share} and {self.random_share} were given)."
            )
        if self.lexicon and self.unit != "phrase":
            raise OptionError(
                f"A lexicon serves the unit phrase, not {self.unit}: set unit to phrase."
            )
