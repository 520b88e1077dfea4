"""The options of GPT: sizes, presets, pre-training and sampling."""

from dataclasses import dataclass, replace
from typing import Literal, Self

from sememe.errors import OptionError
from sememe.options import Config, option
from sememe.training.config import (
    Activation,
    Precision,
    PretrainingConfig,
    TransformerConfig,
    pretrained_with,
    size_of_preset,
)

AttentionPattern = Literal["dense", "alternating"]


@dataclass(frozen=True, kw_only=True)
class GPTConfig(TransformerConfig):
    """The sizes of GPT (Radford et al. 2018, 2019); the defaults are those of GPT-2 small."""

    vocab_size: int = option(
        50_257, "Vocabulary size in sub-word tokens; a given tokenizer decides."
    )
    max_length: int = option(1_024, "Maximum sequence length in tokens.")
    activation: Activation = option("gelu_tanh", "Activation of the feed-forward layer.")
    norm_eps: float = option(1e-5, "Epsilon of layer normalisation.")
    norm: Literal["pre", "post"] = option(
        "pre", "Layer normalisation before (GPT-2) or after (GPT-1) each sub-layer."
    )
    attention: AttentionPattern = option(
        "dense", "Dense in every layer, or alternating with a band (GPT-3)."
    )
    band: int = option(128, "Earlier tokens that a banded layer sees.", 1, 1_000_000)

    def __post_init__(self) -> None:
        """Raise OptionError for a band where no folder could say so."""
        super().__post_init__()
        if self.attention == "alternating" and self.norm == "post":
            raise OptionError("attention alternating needs norm pre.")

    @property
    def windows(self) -> tuple[int, ...]:
        """How far back each layer sees; 0: to the beginning. Every second layer has a band."""
        band = self.band if self.attention == "alternating" else 0
        return tuple(band * (index % 2) for index in range(self.num_layers))


GPT_PRESETS = {
    "tiny": GPTConfig(**size_of_preset(2, 128, 2), max_length=512),
    "mini": GPTConfig(**size_of_preset(4, 256, 4), max_length=512),
    "gpt1": GPTConfig(
        **size_of_preset(12, 768, 12), vocab_size=40_478, max_length=512, norm="post"
    ),
    "gpt2": GPTConfig(**size_of_preset(12, 768, 12)),
    "gpt2-medium": GPTConfig(**size_of_preset(24, 1024, 16)),
    "gpt2-large": GPTConfig(**size_of_preset(36, 1280, 20)),
    "gpt2-xl": GPTConfig(**size_of_preset(48, 1600, 25)),
}


@dataclass(frozen=True, kw_only=True)
class GPTTrainingConfig(PretrainingConfig):
    """How GPT is pre-trained: every token is predicted from those before it."""

    # Most of a step is products of equal shapes, as wide as the vocabulary: 1.7 times as fast in
    # bf16. BERT's batches differ in shape, and a tiny one loses more by that than it gains.
    fast_cpu_precision = "bf16"
    precision: Precision = option(
        "auto", "Precision of matrix products; auto: bf16, or fp32 on older CPUs."
    )


PRESETS = pretrained_with(GPT_PRESETS, {"tiny": {"initial_std": 0.05}})


@dataclass(frozen=True, kw_only=True)
class Sampling(Config):
    """How the next token is chosen."""

    max_tokens: int = option(50, "Maximum number of tokens to generate.", 1, 10**9)
    temperature: float = option(
        1.0, "Sampling temperature; 0: always the most probable token.", 0, 1_000
    )
    top_k: int = option(0, "Sample from the k most probable tokens; 0: all.", 0, 2**31)
    top_p: float = option(
        1.0, "Nucleus sampling: keep the top tokens with this total probability.", 0, 1
    )
    seed: int = option(1, "Random seed.", 0, 2**62)

    def strategies(self) -> dict[str, Self]:
        """The usual ways to choose tokens, each alone, with the values given here or usual ones."""
        plain = replace(self, temperature=1.0, top_k=0, top_p=1.0)
        usual = 0.7 if self.temperature in (0.0, 1.0) else self.temperature
        num, share = self.top_k or 40, self.top_p if self.top_p < 1 else 0.9
        return {
            "greedy": replace(plain, temperature=0.0),
            "all tokens": plain,
            f"temperature {usual:g}": replace(plain, temperature=usual),
            f"top-k {num}": replace(plain, top_k=num),
            f"nucleus {share:g}": replace(plain, top_p=share),
        }
