"""The options of fastText: one dataclass for the command, the Python call and sememe.json."""

from __future__ import annotations

from dataclasses import dataclass

from sememe.errors import OptionError
from sememe.options import check_ranges, option
from sememe.static.word2vec.config import WindowConfig


@dataclass(frozen=True, kw_only=True)
class FastTextConfig(WindowConfig):
    """What fastText learns and how (Bojanowski et al. 2017); defaults as Facebook's program."""

    noise_exponent: float = option(0.5, "Noise words are drawn by count to this power.")
    sample: float = option(1e-4, "Thin out words above this frequency; 0 keeps every word.")
    learning_rate: float = option(0.05, "Step size at the start.")
    min_learning_rate: float = option(0.0, "Step size at the end of its linear decay.")
    minn: int = option(3, "Shortest character n-gram.")
    maxn: int = option(6, "Longest character n-gram; 0 learns whole words only.")
    bucket: int = option(2_000_000, "Rows that the n-grams are hashed into.")
    hash_count: int = option(
        0, "Compact table as floret's: rows, 1 to 4, for each n-gram and word; 0: fastText's table."
    )

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_ranges(self, minn=(0, 100), maxn=(0, 100), bucket=(0, 2**30), hash_count=(0, 4))
        if self.minn > self.maxn > 0:
            raise OptionError(f"minn ({self.minn}) must not be above maxn ({self.maxn}).")
        if self.hash_count and not self.bucket:
            raise OptionError("A compact table needs rows: give bucket, 50,000 for example.")
