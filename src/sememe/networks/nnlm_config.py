"""The sizes and the training of NNLM: dataclasses for the command, the Python call, sememe.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.options import changed, check_choices, check_ranges, option
from sememe.training.config import TrainingConfig

Architecture = Literal["softmax", "ranking"]


@dataclass(frozen=True, kw_only=True)
class NNLMConfig:
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

    def to_dict(self) -> dict[str, Any]:
        """The options as they are kept in sememe.json."""
        return asdict(self)


# tiny and mini learn on a CPU in minutes.
PRESETS = {
    "tiny": NNLMConfig(),
    "mini": NNLMConfig(dim=100, num_hidden=256),
    "small": NNLMConfig(window=5, dim=200, num_hidden=512),
    "medium": NNLMConfig(window=7, dim=300, num_hidden=1_024, dropout=0.1),
}
RATES = {"tiny": 1e-2, "mini": 7e-3, "small": 3e-3, "medium": 2e-3}
BATCH_SIZES = {"tiny": 16, "mini": 16, "small": 64}
MAX_WORDS = {"tiny": 10_000, "mini": 20_000, "small": 50_000}


def nnlm_config(preset: str, **options: Any) -> NNLMConfig:
    """The sizes of a preset (tiny, mini, small, medium), some options replaced."""
    if preset not in PRESETS:
        raise OptionError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}.")
    return changed(PRESETS[preset], "NNLM", options)


@dataclass(frozen=True, kw_only=True)
class NNLMTrainingConfig(TrainingConfig):
    """How a network over windows of words learns."""

    length: int = option(64, "Running words of a row; each of them is predicted.")
    weight_decay: float = option(0.0, "Decay of the weights; biases are left out.")
    min_count: int = option(3, "Rarer words are one unknown word.")
    max_words: int = option(
        0, "Words to keep at most, the most frequent; 0 takes the preset's number."
    )
    softmax: Literal["auto", "full", "sampled"] = option(
        "auto", "Over all words, or over a sample while training; auto: sampled from 5,000 on."
    )
    num_samples: int = option(512, "Words of a sample.")
    noise_power: float = option(
        0.75,
        "Ranking: other words are drawn by their counts to this power; 0 evenly, as in the paper.",
    )
    validation_share: float = option(0.01, "Share of the documents that is never trained on.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, softmax=("auto", "full", "sampled"))
        check_ranges(
            self, min_count=(1, 10**9), max_words=(0, 2**30), num_samples=(1, 2**30),
            noise_power=(0, 1), validation_share=(0, 0.9),
        )  # fmt: skip
