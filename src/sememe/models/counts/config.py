"""The options of the count model: one dataclass for the command, the Python call, sememe.json."""

from dataclasses import dataclass
from typing import Literal

from sememe.examples.cooccurrence.config import PairSettings
from sememe.options import Device, option, parse_size

Transform = Literal["counts", "log", "ppmi"]


@dataclass(frozen=True, kw_only=True)
class CountsConfig(PairSettings):
    """The options for counting and transforming (Levy, Goldberg & Dagan 2015, section 3)."""

    transform: Transform = option("ppmi", "Matrix values: raw counts, log counts or positive PMI.")
    shift: float = option(
        1.0, "Subtract log(shift) from the PMI, like shift negative samples.", 1e-6, 1e6
    )
    smoothing: float = option(
        0.75, "Context smoothing: exponent of the context counts; 1: none.", 0, 1
    )
    dim: int = option(100, "Dimensions after SVD; 0: no SVD, keep the full matrix rows.", 0, 10_000)
    eigenvalue_weight: float = option(
        0.5, "Exponent of the singular values that scale the vectors.", -1, 2
    )
    min_count: int = option(5, "Minimum word count; rarer words are dropped.", 1, 10**12)
    max_words: int = option(
        0, "Maximum vocabulary size, most frequent words first; 0: unlimited.", 0, 2**31
    )
    memory: str = option("4G", "Memory for counting, such as 4G; the rest goes to disk.")
    seed: int = option(1, "Random seed.", 0, 2**63 - 1)
    workers: int = option(
        0, "Threads; 0: all cores. The result is the same for any number.", 0, 1_024
    )
    device: Device = option("auto", "Device for the decomposition; auto: CPU.")

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        parse_size(self.memory)
