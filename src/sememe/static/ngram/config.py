"""The options of the n-gram model: one dataclass for the command, the Python call, sememe.json."""

from __future__ import annotations

from dataclasses import dataclass

from sememe.errors import OptionError
from sememe.options import Config, check_ranges, option
from sememe.storage.sizes import parse_size


@dataclass(frozen=True, kw_only=True)
class NGramConfig(Config):
    """What is counted and what is kept of it (Chen & Goodman 1999)."""

    order: int = option(5, "Words of the longest n-grams, from 1 to 6.")
    min_count: int = option(1, "Count words that are rarer than this as <unk>.")
    max_words: int = option(0, "Keep at most this many words, the most frequent; 0 keeps all.")
    prune: str = option(
        "0",
        "Leave out n-grams seen this often or less, by order: 0,0,1 drops what was seen once from "
        "three words on.",
    )
    validation_share: float = option(0.01, "Share of the documents that is never counted.")
    memory: str = option("2G", "Memory to count in; what passes it goes to scratch files.")
    workers: int = option(0, "Threads; 0 takes every core. The result does not depend on them.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        check_ranges(
            self, order=(1, 6), min_count=(1, 10**12), max_words=(0, 2**31),
            validation_share=(0, 0.9), workers=(0, 1_024),
        )  # fmt: skip
        parse_size(self.memory)
        assert self.cuts

    @property
    def num_bytes(self) -> int:
        """The memory to count in, in bytes."""
        return parse_size(self.memory)

    @property
    def cuts(self) -> list[int]:
        """For each order the highest count that is left out; the last one given goes on."""
        try:
            given = [int(part) for part in str(self.prune).split(",")]
        except ValueError:
            given = [-1]
        if min(given) < 0 or len(given) > self.order or given != sorted(given) or given[0]:
            raise OptionError(
                f"prune must be up to {self.order} whole numbers that do not fall, the first of "
                f"them 0 (min_count leaves out words), such as 0,0,1; not {self.prune!r}."
            )
        return given + [given[-1]] * (self.order - len(given))
