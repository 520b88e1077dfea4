"""The options of fine-tuning: those of the loop, and how an encoder is taught a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import check_choices, check_ranges, option
from sememe.training.config import TrainingConfig

Features = Literal[
    "", "first", "last", "second-to-last", "sum-all", "sum-last-four", "concat-last-four", "mix"
]
FEATURES = Features.__args__  # type: ignore[attr-defined]

DEFAULT_EPOCHS = 3.0
# A head on frozen vectors starts from nothing.
HEAD_RATE = 1e-3


def default_rate(width: int, num_layers: int) -> float:
    """The highest step size for a network of these sizes: the papers' for base and large.

    Small networks learn little at their rates; Turc et al. 2019 tried up to 3e-4.
    """
    middle = 1e-4 if num_layers > 4 else 2e-4
    for least, rate in ((1_024, 2e-5), (768, 5e-5), (384, middle), (256, 3e-4)):
        if width >= least:
            return rate
    return 5e-4


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(TrainingConfig):
    """How an encoder with a new head learns from labelled rows."""

    steps: int = option(0, "Steps to train, instead of epochs.")
    budget: str = option("", "Time to train, such as 5m, instead of epochs.")
    epochs: float = option(0.0, "Passes over the rows; 3 when nothing else says when to stop.")
    batch_size: int = option(32, "Rows of a step, all processes together.")
    length: int = option(128, "Most tokens of a row; longer ones are cut, and counted aloud.")
    learning_rate: float = option(0.0, "Highest step size; 0 takes one by the network's size.")
    warmup: float = option(0.1, "Steps in which the rate rises; below 1 their share of all.")
    beta2: float = option(0.999, "How slowly Adam forgets the sizes of gradients.")
    compile: Literal["auto", "yes", "no"] = option(
        "no", "Compile the network first, a minute or so; pays on a GPU with much data."
    )
    evaluate_every: int = option(0, "Steps between two looks at the dev rows; 0: once an epoch.")
    evaluate_batches: int = option(0, "Batches of dev rows at each look; 0 takes all of them.")
    dropout: float | None = option(None, "Share left out in training, instead of the network's.")
    layer_decay: float = option(1.0, "Each layer learns at this share of the rate of that above.")
    unfreeze_every: float = option(
        0.0, "Epochs between layers that begin to learn, from the top down; 0: all at once."
    )
    freeze: bool = option(False, "Leave the network as it is and train the head alone.")
    features: Features = option(
        "", "Freeze the network and take these layers; mix learns their weights and a scale."
    )
    vectors: str = option(
        "", "Word vectors to stand beside ELMo's, a folder or file of any format."
    )
    reader_width: int = option(
        0,
        "Read vectors with a BiLSTM of so many numbers each way; 0: ELMo, and word vectors for "
        "tags and answers, with 128, others with none.",
    )
    both_orders: Literal["auto", "yes", "no"] = option(
        "auto", "Show both orders of a pair and add their vectors; auto: scores with a GPT."
    )
    class_weights: Literal["none", "balanced"] = option(
        "none", "balanced: rows of rare classes count more."
    )
    lm_weight: float = option(0.0, "Share of the language model's loss that is added (GPT's λ).")
    metric: str = option("", "The dev figure that decides; left out: that of the task.")
    keep_best: bool = option(True, "End with the weights of the best look at the dev rows.")
    patience: int = option(0, "Stop after so many looks in a row without a better one; 0 never.")
    dev_share: float = option(0.1, "Share of the training rows held out where no dev is given.")
    sort_batches: int = option(
        16, "Batches whose rows are sorted by length together; 1 sorts nothing."
    )

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(
            self, features=FEATURES, class_weights=("none", "balanced"),
            both_orders=("auto", "yes", "no"),
        )  # fmt: skip
        check_ranges(
            self, batch_size=(1, 10**7), layer_decay=(0, 1), unfreeze_every=(0, 10**6),
            reader_width=(0, 100_000), lm_weight=(0, 1_000), patience=(0, 10**6),
            dev_share=(0, 0.9), sort_batches=(1, 10**6),
        )  # fmt: skip
        if self.dropout is not None and not 0 <= self.dropout <= 0.99:
            raise OptionError(f"dropout must lie between 0 and 0.99, not {self.dropout}.")
        if self.lm_weight and self.is_frozen:
            raise OptionError("lm_weight has nothing to teach a frozen network.")
        if self.unfreeze_every and self.is_frozen:
            raise OptionError("unfreeze_every has nothing to unfreeze with freeze or features.")

    @property
    def is_frozen(self) -> bool:
        """Whether the network stays as it is."""
        return self.freeze or bool(self.features)


@dataclass(frozen=True, kw_only=True)
class TagConfig(FinetuneConfig):
    """How a tagger learns."""

    scheme: Literal["iob2", "iob1", "bioes", "same"] = option(
        "iob2", "Scheme that spans are learned and written in, whatever that of the files."
    )
    crf: bool = option(False, "Choose the tags of a sentence together, by a CRF.")
    any_tags: bool = option(
        False, "Let a CRF write sequences that the scheme forbids, such as O I-PER."
    )
    predicate_column: int = option(
        0,
        "Column that marks the predicate whose roles the tags of a row are, from 1 on, or from the "
        "end below 0; 0: none.",
    )

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy."""
        super().__post_init__()
        check_choices(self, scheme=("iob2", "iob1", "bioes", "same"))
        check_ranges(self, predicate_column=(-1_000, 1_000))


@dataclass(frozen=True, kw_only=True)
class AnswerConfig(FinetuneConfig):
    """How answers are learned and looked for."""

    length: int = option(
        384,
        "Most tokens of a question with a window of its context; no more than the rows had that "
        "the network was trained on.",
    )
    stride: int = option(128, "Tokens from the start of one window to that of the next.")
    question_length: int = option(64, "Most tokens of a question; longer ones are cut.")
    answer_length: int = option(30, "Most tokens of an answer.")
    num_best: int = option(20, "Answers that a prediction lists, the best first.")
    scorer: Literal["auto", "squad", "cmrc"] = option(
        "auto", "How answers are scored: by words as SQuAD, or by characters as CMRC does."
    )

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, scorer=("auto", "squad", "cmrc"))
        check_ranges(
            self, stride=(1, 2**20), question_length=(1, 2**20), answer_length=(1, 4_096),
            num_best=(1, 10_000),
        )  # fmt: skip
