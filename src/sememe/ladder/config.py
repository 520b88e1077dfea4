"""The options of the ladder: one dataclass for the command, the Python call and its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, check_choices, check_ranges, option, parse_duration
from sememe.training.config import Device

DEFAULT_BUDGET = "30s"
PRESETS = ("tiny", "mini", "small", "medium")


@dataclass(frozen=True, kw_only=True)
class LadderConfig(Config):
    """What is climbed, and what each rung is given."""

    budget: str = option(
        "", "Time to train each rung, such as 30s, 5m or 1h; 30s when nothing is given."
    )
    tokens: int = option(0, "Tokens that each rung reads in training, instead of a time.")
    rungs: str = option(
        "",
        "Rungs between commas: names, folders or files of own models; -name leaves one out. "
        "Left out: the whole line.",
    )
    preset: Literal["auto", "tiny", "mini", "small", "medium"] = option(
        "auto", "Size of the networks; auto: what the budget and the machine can train."
    )
    dim: int = option(100, "Numbers in a word vector.")
    min_count: int = option(0, "Rarer words have no vector; 0: 5, or 3 of a short text.")
    max_words: int = option(
        0, "Words of the text at most, drawn; 0: as many as the slowest rung can read in its time."
    )
    rows: int = option(0, "Rows that a task is learned from; 0: as many as suit the budget.")
    seeds: int = option(3, "Draws of rows that each task is learned from; mean and deviation.")
    finetune: bool = option(
        False, "Fine-tune the networks and put word vectors under a BiLSTM, not frozen vectors."
    )
    device: Device = option("auto", "Where networks compute; auto takes a GPU where there is one.")
    seed: int = option(1, "Start of every random choice.")
    workers: int = option(0, "Threads; 0 takes every core. One worker gives the same bits again.")

    def __post_init__(self) -> None:
        """Refuse options that no ladder could satisfy, naming the option and its range."""
        check_choices(
            self, preset=("auto", *PRESETS), device=("auto", "cpu", "cuda", "mps")
        )  # fmt: skip
        check_ranges(
            self, tokens=(0, 10**15), dim=(1, 10_000), min_count=(0, 10**12),
            max_words=(0, 10**15), rows=(0, 10**9),
            seeds=(1, 100), seed=(0, 2**62), workers=(0, 1_024),
        )  # fmt: skip
        if self.tokens and self.budget:
            raise OptionError("Give budget or tokens: each says when a rung is done.")
        if self.budget:
            parse_duration(self.budget, "budget")

    @property
    def budget_s(self) -> float:
        """Seconds that a rung may train, or 0 where tokens say when it is done."""
        return 0.0 if self.tokens else parse_duration(self.budget or DEFAULT_BUDGET, "budget")
