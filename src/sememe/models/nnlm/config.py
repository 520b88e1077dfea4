"""The sizes and the training of NNLM: dataclasses for the command, the Python call, sememe.json."""

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import option
from sememe.training.config import (
    NetworkConfig,
    Preset,
    SampledTrainingConfig,
    Softmax,
)

Architecture = Literal["softmax", "ranking"]


@dataclass(frozen=True, kw_only=True)
class NNLMConfig(NetworkConfig):
    """The sizes of a network over a window of words (Bengio et al. 2003, section 2)."""

    num_words: int = option(0, "Vocabulary size, without <unk>, </s> and <s>.", 0, 2**31 - 4)
    architecture: Architecture = option(
        "softmax",
        "Predict the next word (Bengio) or rank windows (Collobert & Weston).",
    )
    window: int = option(4, "Context words before the target; with ranking: on each side.", 1, 100)
    dim: int = option(64, "Dimensions of a word vector.", 1, 100_000)
    num_hidden: int = option(128, "Units of the hidden layer.", 1, 1_000_000)
    direct: bool = option(False, "Also connect word vectors directly to the output layer.")
    dropout: float = option(0.0, "Dropout of the hidden layer.", 0, 0.99)

    def __post_init__(self) -> None:
        """Raise OptionError for sizes that no network could have."""
        super().__post_init__()
        if self.direct and self.architecture == "ranking":
            raise OptionError("direct connections belong to the softmax: ranking has none.")

    @property
    def num_inputs(self) -> int:
        """Words that the network sees at once."""
        return self.window if self.architecture == "softmax" else 2 * self.window + 1


# tiny and mini train on a CPU in minutes.
PRESETS = {
    "tiny": Preset(NNLMConfig(), 1e-2, 16, 10_000),
    "mini": Preset(NNLMConfig(dim=100, num_hidden=256), 7e-3, 16, 20_000),
    "small": Preset(NNLMConfig(window=5, dim=200, num_hidden=512), 3e-3, 64, 50_000),
    "medium": Preset(
        NNLMConfig(window=7, dim=300, num_hidden=1_024, dropout=0.1), 2e-3, 128, 100_000
    ),
}


@dataclass(frozen=True, kw_only=True)
class NNLMTrainingConfig(SampledTrainingConfig):
    """How a network over windows of words is trained."""

    length: int = option(64, "Words predicted per row.")
    weight_decay: float = option(0.0, "Weight decay; not applied to biases.")
    softmax: Softmax = option("auto", "Full or sampled softmax; auto: sampled from 5,000 words.")
    num_samples: int = option(512, "Words sampled for the sampled softmax.")
    noise_power: float = option(
        0.75,
        "Ranking: exponent of the noise distribution; 0: uniform, as published.",
        0,
        1,
    )

    many_words = 5_000  # sampling trains faster on a CPU
