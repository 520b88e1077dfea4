"""The options of GloVe: one dataclass for the command, the Python call and sememe.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.examples.pair_settings import PairSettings
from sememe.options import Config, check_choices, check_ranges, option
from sememe.storage.sizes import parse_size

MAX_WORDS = 1 << 23


@dataclass(frozen=True, kw_only=True)
class GloVeConfig(PairSettings, Config):
    """What GloVe learns and how (Pennington et al. 2014); defaults of the released C program.

    Only dim (50 there) and min_count (1) differ: they are those of our other models.
    """

    window: int = option(15, "Furthest context word on each side.")
    dim: int = option(100, "Numbers in a vector.")
    x_max: float = option(100.0, "Counts from here on weigh the same.")
    alpha: float = option(0.75, "Lower counts weigh (count / x_max) to this power.")
    min_count: int = option(5, "Leave out words that are rarer than this.")
    max_words: int = option(0, "Keep at most this many words, the most frequent; 0 keeps all.")
    epochs: int = option(25, "Passes over the counts.")
    learning_rate: float = option(0.05, "Step size at the start; AdaGrad lowers it by itself.")
    grad_clip: float = option(100.0, "Largest part of a gradient, of either sign.")
    vectors: Literal["input", "output", "sum", "concat"] = option(
        "sum", "Vectors to use: the words' own, those of contexts, their sum or concatenation."
    )
    unk: bool = option(False, "Add a vector <unk>, the mean of the hundred rarest words.")
    memory: str = option("4G", "Memory to work in; what passes it goes to files beside the model.")
    seed: int = option(1, "Start of every random choice.")
    workers: int = option(0, "Threads; 0 takes every core. One worker gives bit-equal runs.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, vectors=("input", "output", "sum", "concat"))
        check_ranges(
            self, dim=(1, 10_000), x_max=(1e-6, 1e30), alpha=(0, 10),
            min_count=(1, 10**12), max_words=(0, 2**31), epochs=(1, 100_000),
            learning_rate=(0, 10), grad_clip=(1e-6, 1e6), seed=(0, 2**63 - 1),
            workers=(0, 1_024),
        )  # fmt: skip
        if self.num_bytes < 64 << 20:
            raise OptionError(f"memory must be at least 64M, not {self.memory}.")

    @property
    def num_bytes(self) -> int:
        """The memory to work in, in bytes."""
        return parse_size(self.memory)
