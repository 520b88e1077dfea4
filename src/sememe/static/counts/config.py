"""The options of the count model: one dataclass for the command, the Python call, sememe.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.examples.pair_settings import PairSettings
from sememe.options import Config, check_choices, check_ranges, option
from sememe.storage.sizes import parse_size

Transform = Literal["counts", "log", "ppmi"]


@dataclass(frozen=True, kw_only=True)
class CountsConfig(PairSettings, Config):
    """What is counted and what becomes of it (Levy, Goldberg & Dagan 2015, section 3)."""

    transform: Transform = option(
        "ppmi", "Keep the counts, their logarithm, or positive mutual information."
    )
    shift: float = option(1.0, "Take log(shift) off the mutual information, as k negatives do.")
    smoothing: float = option(0.75, "Context counts are taken to this power; 1 smooths nothing.")
    dim: int = option(100, "Numbers in a vector; 0 keeps the rows of the matrix themselves.")
    eigenvalue_weight: float = option(0.5, "Power of the singular values that scale the vectors.")
    min_count: int = option(5, "Leave out words that are rarer than this.")
    max_words: int = option(0, "Keep at most this many words, the most frequent; 0 keeps all.")
    memory: str = option("4G", "Memory to count in; what passes it goes to scratch files.")
    seed: int = option(1, "Start of every random choice.")
    workers: int = option(0, "Threads; 0 takes every core. The result does not depend on them.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, transform=("counts", "log", "ppmi"))
        check_ranges(
            self, shift=(1e-6, 1e6), smoothing=(0, 1), dim=(0, 10_000),
            eigenvalue_weight=(-1, 2), min_count=(1, 10**12), max_words=(0, 2**31),
            seed=(0, 2**63 - 1), workers=(0, 1_024),
        )  # fmt: skip
        parse_size(self.memory)

    @property
    def num_bytes(self) -> int:
        """The memory to count in, in bytes."""
        return parse_size(self.memory)
