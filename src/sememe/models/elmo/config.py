"""The sizes and the training of ELMo: dataclasses for the command, the Python call, sememe.json."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.options import option
from sememe.text.settings import TextSettings
from sememe.training.config import (
    NetworkConfig,
    Preset,
    SampledTrainingConfig,
    Softmax,
)

Input = Literal["characters", "words", "subwords"]
PAPER_FILTERS = "1:32 2:32 3:64 4:128 5:256 6:512 7:1024"


@dataclass(frozen=True, kw_only=True)
class ELMoConfig(NetworkConfig):
    """The sizes of a bidirectional language model; the defaults are ELMo's (Peters et al. 2018)."""

    vocab_size: int = option(0, "Words in the softmax, including three special tokens.", 0, 2**31)
    num_layers: int = option(2, "LSTM layers per direction.", 1, 100)
    num_cells: int = option(4_096, "LSTM cells per layer.", 1, 1_000_000)
    width: int = option(512, "Dimensions of each layer's projected output.", 1, 1_000_000)
    input: Input = option(
        "characters", "Word input: character CNN, one vector per word, or character n-grams."
    )
    char_width: int = option(16, "Dimensions of a character embedding.", 1, 10_000)
    filters: str = option(
        PAPER_FILTERS, "Character CNN filters as WIDTH:COUNT, separated by spaces."
    )
    num_highways: int = option(2, "Highway layers above the character CNN.", 0, 100)
    max_characters: int = option(
        50, "Maximum characters per word, including start and end markers.", 3, 10_000
    )
    activation: Literal["relu", "tanh"] = option("relu", "Activation after the character CNN.")
    bucket: int = option(
        100_000, "Hash buckets for character n-grams (3 to 6), with sub-word input.", 1, 2**31 - 1
    )
    residual: bool = option(True, "Residual connections around LSTM layers above the first.")
    dropout: float = option(0.1, "Dropout before and after each layer.", 0, 0.99)
    cell_clip: float = option(
        0.0, "Clip cell states to ± this (released ELMo: 3); disables cuDNN.", 0, 1e9
    )
    output_clip: float = option(
        0.0, "Clip projections to ± this (released ELMo: 3); disables cuDNN.", 0, 1e9
    )

    def __post_init__(self) -> None:
        """Raise OptionError for sizes that no network could have."""
        super().__post_init__()
        if self.width > self.num_cells:
            raise OptionError(
                f"width ({self.width}) must not exceed num_cells ({self.num_cells}): a layer "
                "projects its cells."
            )
        widest = max(size for size, _ in self.filter_sizes)
        if widest > self.max_characters:
            raise OptionError(
                f"filters see up to {widest} characters, but a word has {self.max_characters} "
                "places (max_characters)."
            )

    @property
    def filter_sizes(self) -> list[tuple[int, int]]:
        """The filters as pairs: width in characters, and number of filters."""
        parts = [re.fullmatch(r"(\d{1,4}):(\d{1,6})", part) for part in self.filters.split()]
        found = [(int(part[1]), int(part[2])) for part in parts if part]
        if not found or len(found) < len(parts) or not all(map(all, found)):
            raise OptionError(
                f'filters must be lengths with numbers, such as "1:32 2:64", not {self.filters!r}.'
            )
        return found

    @property
    def has_softmax(self) -> bool:
        """Whether words are predicted at all; released weights may lack the softmax."""
        return self.vocab_size > 0


def _size(num_cells: int, width: int, **more: Any) -> ELMoConfig:
    return ELMoConfig(num_cells=num_cells, width=width, **more)


_SMALL_FILTERS = {"filters": "1:16 2:32 3:64 4:64", "num_highways": 1}

# original, medium and small have the sizes of the released models; tiny and mini suit a CPU.
PRESETS = {
    "tiny": Preset(_size(256, 64, **_SMALL_FILTERS), 5e-3, 16, 10_000),
    "mini": Preset(_size(512, 128, **_SMALL_FILTERS), 3e-3, 32, 20_000),
    "small": Preset(_size(1_024, 128, num_highways=1), 2e-3, 128, 100_000),
    "medium": Preset(_size(2_048, 256, num_highways=1), 1e-3, 128, 100_000),
    "original": Preset(_size(4_096, 512), 7e-4, 128, 100_000),
}


@dataclass(frozen=True, kw_only=True)
class ELMoTrainingConfig(SampledTrainingConfig):
    """How a bidirectional language model is trained on words."""

    length: int = option(64, "Sequence length in words; the state resets at each row.")
    min_count: int = option(3, "Minimum word count; rarer words are predicted as <unk>.")
    max_words: int = option(
        0, "Maximum softmax vocabulary, most frequent words first; 0: from the preset."
    )
    softmax: Softmax = option("auto", "Full or sampled softmax; auto: sampled from 100,000 words.")
    start_epochs: int = option(
        0, "Skip-gram epochs to initialise the softmax, and word input, with.", 0, 10_000,
    )  # fmt: skip

    many_words = 100_000  # the softmax of a step would take longer than its LSTMs


@dataclass(frozen=True, kw_only=True)
class CasedTextSettings(TextSettings):
    """Text settings for character-based models: words keep their case."""

    lowercase: bool = option(False, "Convert words to lower case.")
