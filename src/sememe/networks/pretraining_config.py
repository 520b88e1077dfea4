"""The options of pre-training: those of the loop, and what they are for BERT and GPT."""

from __future__ import annotations

from dataclasses import dataclass

from sememe.options import check_ranges, option
from sememe.training.config import Precision, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class PretrainingConfig(TrainingConfig):
    """How a network is pre-trained on text."""

    validation_share: float = option(0.01, "Share of the documents that is never trained on.")
    smoothing: float = option(
        0.7, "Several languages: power of a size that says how much of the mix it is."
    )
    recompute: bool = option(
        False, "Compute layers again on the way back: less memory, a third more time."
    )

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_ranges(self, validation_share=(0, 0.9), smoothing=(0, 1))


@dataclass(frozen=True, kw_only=True)
class BERTTrainingConfig(PretrainingConfig):
    """How BERT is pre-trained: hidden tokens, and pairs of which one half follows the other."""

    next_sentence: bool = option(True, "Learn from pairs whether B follows A.")


@dataclass(frozen=True, kw_only=True)
class GPTTrainingConfig(PretrainingConfig):
    """How GPT is pre-trained: every token is told from those before it."""

    # Most of a step are products of equal shapes, a vocabulary long: 1.7 times as fast in bf16.
    # BERT's batches differ in shape, and a tiny one loses more by that than it gains.
    fast_cpu_precision = "bf16"
    precision: Precision = option(
        "auto", "Numbers of the matrix products; auto: bf16, or fp32 on a CPU that lacks it."
    )


# Rates at which small runs of a few minutes to hours learned well; base and large as published.
RATES = {
    "tiny": 2e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 1e-4, "large": 1e-4,
    "gpt1": 2.5e-4, "gpt2": 6e-4, "gpt2-medium": 3e-4, "gpt2-large": 2.5e-4, "gpt2-xl": 2e-4,
}  # fmt: skip

# Rows of a step: a small network on a CPU gains more from many steps than from large ones.
BATCH_SIZES = {"tiny": 16, "mini": 32, "small": 128}

# Narrow networks: the papers' first weights leave them on a plateau, their dropout takes from them
# what they cannot spare.
_UNDROPPED = {"dropout": 0.0, "attention_dropout": 0.0}
BERT_SIZES = {name: {"start": "quick", **_UNDROPPED} for name in ("tiny", "mini")}
GPT_SIZES = {"tiny": {"initial_std": 0.05, **_UNDROPPED}, "mini": _UNDROPPED}

# Tables of words that a small network and a small text can fill.
VOCAB_SIZES = {"tiny": 8_192, "mini": 8_192, "small": 16_384, "medium": 16_384}
