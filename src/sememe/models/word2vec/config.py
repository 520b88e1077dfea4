"""The options of word2vec: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, Device, option

Architecture = Literal["skipgram", "cbow"]
Loss = Literal["negative", "hierarchical", "softmax"]
Kept = Literal["input", "output", "sum", "concat"]

# cbow has larger steps, as in the released C program: it makes one step where skip-gram makes one
# for each pair.
START_RATES: dict[Architecture, float] = {"skipgram": 0.03, "cbow": 0.05}


@dataclass(frozen=True, kw_only=True)
class WindowConfig(Config):
    """The options of models that predict words from a window around them."""

    architecture: Architecture = option(
        "skipgram",
        "Predict context from word (skipgram), or word from context (cbow).",
    )
    loss: Loss = option("negative", "Negative sampling, hierarchical softmax or full softmax.")
    dim: int = option(100, "Dimensions of a vector.", 1, 10_000)
    window: int = option(5, "Maximum distance to a context word; sampled for each word.", 1, 1_000)
    negatives: int = option(5, "Negative samples per positive pair.", 1, 1_000)
    noise_exponent: float = option(
        0.75, "Exponent of the noise distribution for negative samples.", -10, 10
    )
    sample: float = option(
        1e-3, "Subsampling threshold (word frequency) for frequent words; 0: none.", 0, 1
    )
    min_count: int = option(5, "Minimum word count; rarer words are dropped.", 1, 10**12)
    max_words: int = option(
        0, "Maximum vocabulary size, most frequent words first; 0: unlimited.", 0, 2**31
    )
    epochs: int = option(5, "Passes over the corpus.", 1, 100_000)
    learning_rate: float = option(
        0.0, "Initial learning rate; 0: 0.03 for skipgram, 0.05 for cbow.", 0, 10
    )
    min_learning_rate: float = option(1e-4, "Final learning rate, after linear decay.", 0, 10)
    combine: Literal["mean", "sum"] = option("mean", "How cbow combines context vectors.")
    seed: int = option(1, "Random seed.", 0, 2**63 - 1)
    workers: int = option(0, "Threads; 0: all cores. One worker makes runs reproducible.", 0, 1_024)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.min_learning_rate > self.start_rate:
            raise OptionError(
                "learning_rate must not be below min_learning_rate "
                f"({self.start_rate} and {self.min_learning_rate} were given)."
            )

    @property
    def start_rate(self) -> float:
        """The initial learning rate: the given one, or the architecture's default."""
        return self.learning_rate or START_RATES[self.architecture]


@dataclass(frozen=True, kw_only=True)
class DeviceConfig(WindowConfig):
    """The options of those of them that train on a GPU as well."""

    device: Device = option("auto", "Device; auto: CPU.")
    deterministic: bool = option(
        False, "Same vectors for the same seed; slower. On a CPU: one worker."
    )


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig(DeviceConfig):
    """The options of word2vec (Mikolov et al. 2013a, 2013b), with the field's names."""

    vectors: Kept = option(
        "input",
        "Vectors to use: input, output, or both combined.",
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.loss == "hierarchical" and self.vectors != "input":
            raise OptionError(
                "Hierarchical softmax keeps no output vector for a word: vectors must be input."
            )
