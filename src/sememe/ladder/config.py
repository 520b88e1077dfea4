"""The options of the ladder: one dataclass for the command, the Python call and its results."""

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, option, parse_duration
from sememe.training.config import Device

DEFAULT_BUDGET = "30s"
PRESETS = ("tiny", "mini", "small", "medium")


@dataclass(frozen=True, kw_only=True)
class LadderConfig(Config):
    """Which models a ladder trains, and the budget of each."""

    budget: str = option("", "Training time per model, such as 30s, 5m or 1h; default: 30s.")
    tokens: int = option(0, "Training tokens per model, instead of a time budget.", 0, 10**15)
    rungs: str = option(
        "",
        "Comma-separated models (names, paths); -name excludes one; default: all.",
    )
    preset: Literal["auto", "tiny", "mini", "small", "medium"] = option(
        "auto", "Size of the networks; auto: chosen by budget and hardware."
    )
    dim: int = option(100, "Dimensions of word vectors.", 1, 10_000)
    min_count: int = option(0, "Minimum word count; 0: 5, or 3 for a small corpus.", 0, 10**12)
    max_words: int = option(
        0,
        "Maximum corpus size in words; 0: what the slowest model can read.",
        0,
        10**15,
    )
    rows: int = option(0, "Training rows per task; 0: chosen by budget.", 0, 10**9)
    seeds: int = option(
        3, "Training samples drawn per task; scores are mean ± standard deviation.", 1, 100
    )
    finetune: bool = option(
        False, "Fine-tune networks, and word vectors under a BiLSTM, instead of freezing."
    )
    device: Device = option("auto", "Device for networks; auto: GPU if available.")
    seed: int = option(1, "Random seed.", 0, 2**62)
    workers: int = option(0, "Threads; 0: all cores. One worker makes runs reproducible.", 0, 1_024)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no ladder could satisfy."""
        super().__post_init__()
        if self.tokens and self.budget:
            raise OptionError("Give budget or tokens: each says when a rung is done.")
        if self.budget:
            parse_duration(self.budget, "budget")

    @property
    def budget_s(self) -> float:
        """Seconds that a rung may train, or 0 if the budget is in tokens."""
        return 0.0 if self.tokens else parse_duration(self.budget or DEFAULT_BUDGET, "budget")
