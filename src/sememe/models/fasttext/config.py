"""The options of fastText: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass

from sememe.errors import OptionError
from sememe.models.word2vec.config import DeviceConfig
from sememe.options import option


@dataclass(frozen=True, kw_only=True)
class FastTextConfig(DeviceConfig):
    """What fastText learns and how (Bojanowski et al. 2017); defaults as Facebook's program."""

    noise_exponent: float = option(0.5, "Exponent of the noise distribution for negative samples.")
    sample: float = option(1e-4, "Subsampling threshold for frequent words; 0: none.")
    learning_rate: float = option(0.05, "Initial learning rate.")
    min_learning_rate: float = option(0.0, "Final learning rate, after linear decay.")
    minn: int = option(3, "Minimum length of character n-grams.", 0, 100)
    maxn: int = option(6, "Maximum length of character n-grams; 0: whole words only.", 0, 100)
    bucket: int = option(2_000_000, "Number of hash buckets for n-grams.", 0, 2**30)
    hash_count: int = option(
        0,
        "Compact table (floret): hashes per n-gram, 1 to 4; 0: off.",
        0,
        4,
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.minn > self.maxn > 0:
            raise OptionError(f"minn ({self.minn}) must not be above maxn ({self.maxn}).")
        if self.hash_count and not self.bucket:
            raise OptionError("A compact table needs rows: give bucket, 50,000 for example.")
