"""The options of BERT: sizes, presets and pre-training, for commands, calls and sememe.json."""

from dataclasses import dataclass
from typing import Literal

from sememe.options import option
from sememe.training.config import (
    PretrainingConfig,
    TransformerConfig,
    pretrained_with,
    size_of_preset,
)

Start = Literal["paper", "quick"]


@dataclass(frozen=True, kw_only=True)
class BERTConfig(TransformerConfig):
    """The sizes of BERT (Devlin et al. 2019); the defaults are those of BERT base."""

    num_segments: int = option(
        2, "Number of segment embeddings (sentence A and sentence B).", 1, 1_000
    )
    start: Start = option(
        "paper", "Initialisation: the paper's, or one that trains small networks faster."
    )


# Heads of 64 dimensions everywhere. tiny to medium: Turc et al. 2019.
BERT_PRESETS = {
    "tiny": BERTConfig(**size_of_preset(2, 128, 2)),
    "mini": BERTConfig(**size_of_preset(4, 256, 4)),
    "small": BERTConfig(**size_of_preset(4, 512, 8)),
    "medium": BERTConfig(**size_of_preset(8, 512, 8)),
    "base": BERTConfig(**size_of_preset(12, 768, 12)),
    "large": BERTConfig(**size_of_preset(24, 1024, 16)),
}


@dataclass(frozen=True, kw_only=True)
class BERTTrainingConfig(PretrainingConfig):
    """How BERT is pre-trained: masked tokens, and sentence pairs, half of them consecutive."""

    next_sentence: bool = option(True, "Train next-sentence prediction as well.")


# The papers' initial weights leave narrow networks on a plateau.
PRESETS = pretrained_with(BERT_PRESETS, {key: {"start": "quick"} for key in ("tiny", "mini")})


@dataclass(frozen=True, kw_only=True)
class StudyConfig(BERTTrainingConfig):
    """How each model of a study is trained; the budget is per masking rate."""

    budget: str = option("", "Training time per masking rate, such as 20m; default: 2m.")
    validation_share: float = option(0.1, "Fraction of documents held out for validation.")
    next_sentence: bool = option(False, "Train next-sentence prediction as well.")
