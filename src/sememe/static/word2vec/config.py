"""The options of word2vec: one dataclass for the command, the Python call and sememe.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, check_choices, check_ranges, option

Architecture = Literal["skipgram", "cbow"]
Loss = Literal["negative", "hierarchical", "softmax"]
Kept = Literal["input", "output", "sum", "concat"]

# cbow takes larger steps, as in the released C program: it makes one where skip-gram makes one for
# each pair.
START_RATES: dict[Architecture, float] = {"skipgram": 0.03, "cbow": 0.05}


@dataclass(frozen=True, kw_only=True)
class WindowConfig(Config):
    """The options of the models that predict words from words of a window around them."""

    architecture: Architecture = option(
        "skipgram",
        "Predict the words around a word (skipgram), or the word from those around it (cbow).",
    )
    loss: Loss = option("negative", "Negative sampling, hierarchical softmax or the full softmax.")
    dim: int = option(100, "Numbers in a vector.")
    window: int = option(5, "Furthest context word on each side; shorter windows are drawn too.")
    negatives: int = option(5, "Noise words for each true pair.")
    noise_exponent: float = option(0.75, "Noise words are drawn by count to this power.")
    sample: float = option(1e-3, "Thin out words that make up more of the text than this; 0 none.")
    min_count: int = option(5, "Leave out words that are rarer than this.")
    max_words: int = option(0, "Keep at most this many words, the most frequent; 0 keeps all.")
    epochs: int = option(5, "Passes over the text.")
    learning_rate: float = option(
        0.0, "Step size at the start; 0 takes 0.03 for skipgram, 0.05 for cbow."
    )
    min_learning_rate: float = option(1e-4, "Step size at the end of its linear decay.")
    combine: Literal["mean", "sum"] = option("mean", "How cbow joins its context vectors.")
    seed: int = option(1, "Start of every random choice.")
    workers: int = option(0, "Threads; 0 takes every core. One worker gives bit-equal runs.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        check_choices(
            self,
            architecture=("skipgram", "cbow"),
            loss=("negative", "hierarchical", "softmax"),
            combine=("mean", "sum"),
        )
        check_ranges(
            self, dim=(1, 10_000), window=(1, 1_000), negatives=(1, 1_000),
            noise_exponent=(-10, 10), sample=(0, 1), min_count=(1, 10**12), max_words=(0, 2**31),
            epochs=(1, 100_000), learning_rate=(0, 10), min_learning_rate=(0, 10),
            seed=(0, 2**63 - 1), workers=(0, 1_024),
        )  # fmt: skip
        if self.min_learning_rate > self.start_rate:
            raise OptionError(
                "learning_rate must not be below min_learning_rate "
                f"({self.start_rate} and {self.min_learning_rate} were given)."
            )

    @property
    def start_rate(self) -> float:
        """The learning rate at the start: the given one, or that of the architecture."""
        return self.learning_rate or START_RATES[self.architecture]


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig(WindowConfig):
    """What word2vec learns and how (Mikolov et al. 2013a, 2013b); names as the field uses them."""

    vectors: Kept = option(
        "input",
        "Vectors to use: of words as they predict (input), as they are predicted (output), or of "
        "both.",
    )

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, vectors=("input", "output", "sum", "concat"))
