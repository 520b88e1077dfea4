"""The sizes and the training of ELMo: dataclasses for the command, the Python call, sememe.json."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.networks.config import NetworkConfig
from sememe.networks.word_config import SampledTrainingConfig, Softmax, WordPreset, sizes_of
from sememe.options import check_choices, check_ranges, option
from sememe.text.settings import TextSettings

Input = Literal["characters", "words", "subwords"]
INPUTS = ("characters", "words", "subwords")
PAPER_FILTERS = "1:32 2:32 3:64 4:128 5:256 6:512 7:1024"


@dataclass(frozen=True, kw_only=True)
class ELMoConfig(NetworkConfig):
    """The sizes of a bidirectional language model; the defaults are ELMo's (Peters et al. 2018)."""

    vocab_size: int = option(0, "Words that are predicted, three marks among them.")
    num_layers: int = option(2, "LSTM layers of each direction.")
    num_cells: int = option(4_096, "Cells of a layer.")
    width: int = option(512, "Numbers that a layer gives: a projection of its cells.")
    input: Input = option(
        "characters", "How words come in: by characters, a vector each, or by sub-words."
    )
    char_width: int = option(16, "Numbers of a character.")
    filters: str = option(PAPER_FILTERS, "Filters over characters: how many of each length.")
    num_highways: int = option(2, "Highway layers above the filters.")
    max_characters: int = option(50, "Places of a word, its two marks among them.")
    activation: Literal["relu", "tanh"] = option("relu", "Behind the filters.")
    bucket: int = option(100_000, "Rows for the n-grams of 3 to 6 characters, as sub-words.")
    residual: bool = option(True, "Add what goes into a layer above the first to what comes out.")
    dropout: float = option(0.1, "Share left out in training, before and after each layer.")
    cell_clip: float = option(
        0.0, "Hold cells inside ± this; the released ELMo: 3. Keeps cuDNN out: slow."
    )
    output_clip: float = option(0.0, "Hold projections inside ± this, as above.")

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        check_choices(self, input=INPUTS, activation=("relu", "tanh"))
        check_ranges(
            self, vocab_size=(0, 2**31), num_layers=(1, 100), num_cells=(1, 1_000_000),
            width=(1, 1_000_000), char_width=(1, 10_000), num_highways=(0, 100),
            max_characters=(3, 10_000), bucket=(1, 2**31 - 1), dropout=(0, 0.99),
            cell_clip=(0, 1e9), output_clip=(0, 1e9),
        )  # fmt: skip
        if self.width > self.num_cells:
            raise OptionError(
                f"width ({self.width}) must not pass num_cells ({self.num_cells}): a layer gives a "
                "projection of its cells."
            )
        widest = max(size for size, _ in self.filter_sizes)
        if widest > self.max_characters:
            raise OptionError(
                f"filters see up to {widest} characters, but a word has {self.max_characters} "
                "places (max_characters)."
            )

    @property
    def filter_sizes(self) -> list[tuple[int, int]]:
        """The filters as pairs: characters that one sees, and how many of that kind."""
        parts = [re.fullmatch(r"(\d{1,4}):(\d{1,6})", part) for part in self.filters.split()]
        found = [(int(part[1]), int(part[2])) for part in parts if part]
        if not found or len(found) < len(parts) or not all(map(all, found)):
            raise OptionError(
                f'filters must be lengths with numbers, such as "1:32 2:64", not {self.filters!r}.'
            )
        return found

    @property
    def has_softmax(self) -> bool:
        """Whether words are predicted at all; released weights come without that part."""
        return self.vocab_size > 0


def _size(num_cells: int, width: int, **more: Any) -> ELMoConfig:
    return ELMoConfig(num_cells=num_cells, width=width, **more)


_SMALL_FILTERS = {"filters": "1:16 2:32 3:64 4:64", "num_highways": 1}

# original, medium and small have the sizes of the released models; tiny and mini learn on a CPU.
PRESETS = {
    "tiny": WordPreset(_size(256, 64, **_SMALL_FILTERS), 5e-3, 16, 10_000),
    "mini": WordPreset(_size(512, 128, **_SMALL_FILTERS), 3e-3, 32, 20_000),
    "small": WordPreset(_size(1_024, 128, num_highways=1), 2e-3, 128, 100_000),
    "medium": WordPreset(_size(2_048, 256, num_highways=1), 1e-3, 128, 100_000),
    "original": WordPreset(_size(4_096, 512), 7e-4, 128, 100_000),
}


def elmo_config(preset: str, **options: Any) -> ELMoConfig:
    """The sizes of a preset (tiny, mini, small, medium, original), some options replaced."""
    return sizes_of(PRESETS, "ELMo", preset, options)


@dataclass(frozen=True, kw_only=True)
class ELMoTrainingConfig(SampledTrainingConfig):
    """How a bidirectional language model learns from words."""

    length: int = option(64, "Words of a row; each row starts with empty cells.")
    min_count: int = option(3, "Rarer words are predicted as one unknown word.")
    max_words: int = option(
        0, "Words to predict at most, the most frequent; 0 takes the preset's number."
    )
    softmax: Softmax = option(
        "auto", "Over all words, or over a sample while training; auto: sampled from 100,000 on."
    )
    start_epochs: int = option(
        0, "Passes of skip-gram over the text first, whose vectors the softmax, and with input "
        "words also the words, begin with.",
    )  # fmt: skip

    many_words = 100_000  # the softmax of a step would take longer than its LSTMs

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_ranges(self, start_epochs=(0, 10_000))


@dataclass(frozen=True, kw_only=True)
class CasedTextSettings(TextSettings):
    """How text is read where characters matter: words keep their capitals."""

    lowercase: bool = option(False, "Turn words into lower case.")
