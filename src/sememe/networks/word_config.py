"""What the options of language models over words share: words to know, and sizes by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from sememe.networks.presets import chosen
from sememe.options import check_choices, check_ranges, option
from sememe.training.config import TrainingConfig

Softmax = Literal["auto", "full", "sampled"]
Sizes = TypeVar("Sizes")


@dataclass(frozen=True)
class WordPreset(Generic[Sizes]):
    """A size, and the rate, the rows of a step and the number of words that suit it."""

    network: Sizes
    learning_rate: float
    batch_size: int
    max_words: int


def sizes_of(
    presets: Mapping[str, WordPreset[Sizes]], owner: str, preset: str, options: dict[str, Any]
) -> Sizes:
    """The sizes of a preset, some options replaced."""
    return chosen({name: own.network for name, own in presets.items()}, owner, preset, options)


@dataclass(frozen=True, kw_only=True)
class WordTrainingConfig(TrainingConfig):
    """How a language model learns from the words of a text."""

    min_count: int = option(3, "Rarer words are one unknown word.")
    max_words: int = option(
        0, "Words to keep at most, the most frequent; 0 takes the preset's number."
    )
    validation_share: float = option(0.01, "Share of the documents that is never trained on.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_ranges(self, min_count=(1, 10**9), max_words=(0, 2**30), validation_share=(0, 0.9))


@dataclass(frozen=True, kw_only=True)
class SampledTrainingConfig(WordTrainingConfig):
    """How it learns where a softmax over all words may take too long."""

    softmax: Softmax = option("auto", "Over all words, or over a sample while training.")
    num_samples: int = option(8_192, "Words of a sample.")

    many_words: ClassVar[int]  # from so many on the softmax is sampled, where it is "auto"

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, softmax=("auto", "full", "sampled"))
        check_ranges(self, num_samples=(1, 2**30))

    def is_sampled(self, num_words: int) -> bool:
        """Whether training looks at a sample of so many words only."""
        is_asked = self.softmax == "sampled" or (
            self.softmax == "auto" and num_words >= self.many_words
        )
        return is_asked and self.num_samples < num_words
