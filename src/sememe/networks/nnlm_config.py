"""The sizes and the training of NNLM: dataclasses for the command, the Python call, sememe.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.networks.config import NetworkConfig
from sememe.networks.word_config import SampledTrainingConfig, Softmax, WordPreset, sizes_of
from sememe.options import check_choices, check_ranges, option

Architecture = Literal["softmax", "ranking"]


@dataclass(frozen=True, kw_only=True)
class NNLMConfig(NetworkConfig):
    """The sizes of a network over a window of words (Bengio et al. 2003, section 2)."""

    num_words: int = option(0, "Words that have a vector; <unk>, </s> and <s> come on top.")
    architecture: Architecture = option(
        "softmax",
        "Predict the next word (Bengio), or rank a window above one with another word in its "
        "middle (Collobert & Weston).",
    )
    window: int = option(4, "Words before the one to predict; in ranking, words on each side.")
    dim: int = option(64, "Numbers in a word's vector.")
    num_hidden: int = option(128, "Units of the hidden layer.")
    direct: bool = option(False, "Connect the vectors to the output, past the hidden layer too.")
    dropout: float = option(0.0, "Share of the hidden units that is left out in training.")

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        check_choices(self, architecture=("softmax", "ranking"))
        check_ranges(
            self, num_words=(0, 2**31 - 4), window=(1, 100), dim=(1, 100_000),
            num_hidden=(1, 1_000_000), dropout=(0, 0.99),
        )  # fmt: skip
        if self.direct and self.architecture == "ranking":
            raise OptionError("direct connections belong to the softmax: ranking has none.")

    @property
    def num_inputs(self) -> int:
        """Words that the network sees at once."""
        return self.window if self.architecture == "softmax" else 2 * self.window + 1


# tiny and mini learn on a CPU in minutes.
PRESETS = {
    "tiny": WordPreset(NNLMConfig(), 1e-2, 16, 10_000),
    "mini": WordPreset(NNLMConfig(dim=100, num_hidden=256), 7e-3, 16, 20_000),
    "small": WordPreset(NNLMConfig(window=5, dim=200, num_hidden=512), 3e-3, 64, 50_000),
    "medium": WordPreset(
        NNLMConfig(window=7, dim=300, num_hidden=1_024, dropout=0.1), 2e-3, 128, 100_000
    ),
}


def nnlm_config(preset: str, **options: Any) -> NNLMConfig:
    """The sizes of a preset (tiny, mini, small, medium), some options replaced."""
    return sizes_of(PRESETS, "NNLM", preset, options)


@dataclass(frozen=True, kw_only=True)
class NNLMTrainingConfig(SampledTrainingConfig):
    """How a network over windows of words learns."""

    length: int = option(64, "Running words of a row; each of them is predicted.")
    weight_decay: float = option(0.0, "Decay of the weights; biases are left out.")
    softmax: Softmax = option(
        "auto", "Over all words, or over a sample while training; auto: sampled from 5,000 on."
    )
    num_samples: int = option(512, "Words of a sample.")
    noise_power: float = option(
        0.75,
        "Ranking: other words are drawn by their counts to this power; 0 evenly, as in the paper.",
    )

    many_words = 5_000  # a sample of them trains a CPU's network in less time

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_ranges(self, noise_power=(0, 1))
