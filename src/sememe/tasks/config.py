"""The options of fine-tuning, and grids of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.examples.labelled.label_options import LabelOptions
from sememe.options import MAX_SEEDS, check_number, option
from sememe.training.config import TrainingConfig
from sememe.training.lora import LoRAOptions

Features = Literal[
    "", "first", "last", "second-to-last", "sum-all", "sum-last-four", "concat-last-four", "mix"
]


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(LoRAOptions, TrainingConfig):
    """How an encoder with a new head is fine-tuned on labelled rows."""

    steps: int = option(0, "Training steps, instead of epochs.")
    budget: str = option("", "Training time, such as 5m, instead of epochs.")
    epochs: float = option(0.0, "Passes over the training rows; 0: 3, unless --steps or --budget.")
    batch_size: int = option(32, "Rows per batch, over all processes.", 1, 10**7)
    length: int = option(128, "Maximum tokens per row; longer rows are truncated.")
    learning_rate: float = option(0.0, "Peak learning rate; 0: chosen by network size.")
    warmup: float = option(0.1, "Warm-up steps; below 1: fraction of all steps.")
    beta2: float = option(0.999, "Adam beta2.")
    compile: Literal["auto", "yes", "no"] = option(
        "no", "Compile the network first (about a minute); worthwhile on a GPU."
    )
    evaluate_every: int = option(0, "Steps between validations; 0: once per epoch.")
    evaluate_batches: int = option(0, "Batches per validation; 0: all.")
    dropout: float | None = option(None, "Dropout; default: the network's.")
    layer_decay: float | None = option(
        None, "Layer-wise learning rate decay from the top down; default: 1.", 0, 1
    )
    unfreeze_every: float = option(
        0.0, "Gradual unfreezing: epochs per layer, top first; 0: all at once.", 0, 10**6
    )
    freeze: bool = option(False, "Freeze the network and train only the head.")
    features: Features = option(
        "", "Freeze the network and use these layers; mix: learned weighting."
    )
    vectors: str = option("", "Word vectors (folder or file) concatenated with ELMo's.")
    reader_width: int = option(
        0, "BiLSTM units per direction above the vectors; 0: chosen by task.", 0, 100_000
    )
    both_orders: Literal["auto", "yes", "no"] = option(
        "auto", "Encode pairs in both orders and add; auto: GPT regression."
    )
    class_weights: str = option(
        "none", "Class weights: balanced (rarer labels weigh more), or LABEL=WEIGHT,…"
    )
    lm_weight: float = option(
        0.0, "Weight of the auxiliary language model loss (GPT's λ).", 0, 1_000
    )
    metric: str = option("", "Validation metric to select by; default: the task's own.")
    keep_best: bool = option(True, "Restore the weights of the best validation, or keep the last.")
    patience: int = option(
        0, "Early stopping: validations without improvement; 0: never.", 0, 10**6
    )
    dev_share: float = option(
        0.1, "Fraction of training rows held out for validation, without --dev.", 0, 0.9
    )
    baselines: bool = option(True, "Print the scores of baselines on the same rows.")
    sort_batches: int = option(16, "Batches sorted by length together; 1: no sorting.", 1, 10**6)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.dropout is not None and not 0 <= self.dropout <= 0.99:
            raise OptionError(f"dropout must be between 0 and 0.99, not {self.dropout}.")
        if self.lm_weight and self.is_frozen:
            raise OptionError("lm_weight has nothing to teach a frozen network.")
        if self.unfreeze_every and self.is_frozen:
            raise OptionError("unfreeze_every has nothing to unfreeze with freeze or features.")

    @property
    def is_frozen(self) -> bool:
        """Whether the encoder is frozen."""
        return self.freeze or bool(self.features)


@dataclass(frozen=True, kw_only=True)
class ClassifyConfig(LabelOptions, FinetuneConfig):
    """How a classifier of texts or pairs is trained, and how it decides."""


@dataclass(frozen=True, kw_only=True)
class TagConfig(FinetuneConfig):
    """How a tagger is trained."""

    scheme: Literal["iob2", "iob1", "bioes", "same"] = option(
        "iob2", "Tagging scheme to train and predict in; files are converted."
    )
    crf: bool = option(False, "Decode with a CRF layer.")
    any_tags: bool = option(False, "CRF: allow invalid tag sequences, such as O I-PER.")
    predicate_column: int = option(
        0, "Column of the predicate, from 1; negative: from the end; 0: none.", -1_000, 1_000
    )


@dataclass(frozen=True, kw_only=True)
class AnswerConfig(FinetuneConfig):
    """How a question-answering model is trained, and how it searches for answers."""

    length: int = option(
        384,
        "Maximum tokens of a question with its context window.",
    )
    stride: int = option(128, "Tokens between the starts of consecutive windows.", 1, 2**20)
    question_length: int = option(
        64, "Maximum question length in tokens; longer ones are truncated.", 1, 2**20
    )
    answer_length: int = option(30, "Maximum answer length in tokens.", 1, 4_096)
    num_best: int = option(20, "Answers per prediction, best first.", 1, 10_000)
    scorer: Literal["auto", "squad", "cmrc"] = option(
        "auto", "Scoring: by words (SQuAD) or by characters (CMRC)."
    )


# The values that the paper searched (Devlin et al. 2019, A.3).
PAPER_GRID: dict[str, tuple[Any, ...]] = {
    "batch_size": (16, 32), "learning_rate": (5e-5, 3e-5, 2e-5), "epochs": (2, 3, 4),
}  # fmt: skip


def grid(seeds: int = 1, first_seed: int = 1, **choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of the choices, each with every seed."""
    check_number("seeds", seeds, 1, MAX_SEEDS)
    found = []
    for values in product(*choices.values()):
        options = dict(zip(choices, values, strict=True))
        found += [{**options, "seed": first_seed + number} for number in range(seeds)]
    return found
