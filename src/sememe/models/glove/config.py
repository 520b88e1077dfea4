"""The options of GloVe: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.examples.cooccurrence.config import PairSettings
from sememe.options import Device, option

MAX_WORDS = 1 << 23


@dataclass(frozen=True, kw_only=True)
class GloVeConfig(PairSettings):
    """The options of GloVe (Pennington et al. 2014); defaults of the released C program.

    Only dim (50 there) and min_count (1) differ: they are those of our other models.
    """

    window: int = option(15, "Maximum distance to a context word, on each side.")
    dim: int = option(100, "Dimensions of a vector.", 1, 10_000)
    x_max: float = option(
        100.0, "Co-occurrence count above which the weight is 1 (x_max).", 1e-6, 1e30
    )
    alpha: float = option(0.75, "Exponent of the weight (count / x_max) below x_max.", 0, 10)
    min_count: int = option(5, "Minimum word count; rarer words are dropped.", 1, 10**12)
    max_words: int = option(
        0, "Maximum vocabulary size, most frequent words first; 0: unlimited.", 0, 2**31
    )
    epochs: int = option(25, "Passes over the co-occurrences.", 1, 100_000)
    learning_rate: float = option(0.05, "Initial learning rate of AdaGrad.", 0, 10)
    grad_clip: float = option(100.0, "Clip each gradient component to ± this.", 1e-6, 1e6)
    vectors: Literal["input", "output", "sum", "concat"] = option(
        "sum", "Vectors to use: word, context, their sum or their concatenation."
    )
    unk: bool = option(False, "Add an <unk> vector: the mean of the 100 rarest words.")
    memory: str = option("4G", "Working memory, such as 4G; the rest goes to disk.")
    seed: int = option(1, "Random seed.", 0, 2**63 - 1)
    workers: int = option(0, "Threads; 0: all cores. One worker makes runs reproducible.", 0, 1_024)
    device: Device = option("auto", "Device; auto: CPU.")
    deterministic: bool = option(False, "Same vectors for the same seed. On a CPU: one worker.")

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.num_bytes < 64 << 20:
            raise OptionError(f"memory must be at least 64M, not {self.memory}.")
