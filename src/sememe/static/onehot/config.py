"""The options of one-hot vectors: one dataclass for the command, the Python call, sememe.json."""

from __future__ import annotations

from dataclasses import dataclass

from sememe.options import Config, check_ranges, option


@dataclass(frozen=True, kw_only=True)
class OneHotConfig(Config):
    """Which words there are; nothing else can be chosen."""

    min_count: int = option(5, "Leave out words that are rarer than this.")
    max_words: int = option(0, "Keep at most this many words, the most frequent; 0 keeps all.")
    workers: int = option(0, "Threads that read the text; 0 takes every core.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        check_ranges(self, min_count=(1, 10**12), max_words=(0, 2**31), workers=(0, 1_024))

    @property
    def dim(self) -> int:
        """No choice: a vector has as many numbers as there are words."""
        return 0
