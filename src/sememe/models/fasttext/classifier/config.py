"""The options of the classifier: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass
from typing import Literal, get_args

from sememe.errors import OptionError
from sememe.examples.labelled.label_options import AUTO, NONE, LabelOptions
from sememe.options import option

Loss = Literal["softmax", "hierarchical", "ova", "negative"]

LABEL_PREFIX = "__label__"


@dataclass(frozen=True, kw_only=True)
class FastTextClassifierConfig(LabelOptions):
    """The options of the classifier (Joulin et al. 2016), with the field's names."""

    loss: Loss = option(
        "softmax",
        "Loss: softmax; hierarchical for thousands of labels; ova for multi-label.",
    )
    dim: int = option(100, "Dimensions of a vector.", 1, 10_000)
    learning_rate: float = option(0.1, "Initial learning rate; decays to 0.", 1e-6, 100)
    epochs: int = option(5, "Passes over the training file.", 1, 100_000)
    word_ngrams: int = option(1, "Maximum length of word n-grams; 1: words only.", 1, 100)
    minn: int = option(0, "Minimum length of character n-grams.", 0, 100)
    maxn: int = option(0, "Maximum length of character n-grams; 0: none.", 0, 100)
    bucket: int = option(2_000_000, "Number of hash buckets for n-grams.", 0, 2**31 - 2)
    min_count: int = option(1, "Minimum word count; rarer words are dropped.", 1, 10**12)
    min_count_label: int = option(0, "Minimum label count; rarer labels are dropped.", 0, 10**12)
    negatives: int = option(5, "Negative samples per label, with loss negative.", 1, 1_000)
    label_prefix: str = option(LABEL_PREFIX, "Prefix that marks a label.")
    seed: int = option(1, "Random seed.", 0, 2**63 - 1)
    workers: int = option(0, "Threads; 0: all cores. One worker makes runs reproducible.", 0, 1_024)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.maxn and self.minn > self.maxn:
            raise OptionError(f"minn ({self.minn}) must not be above maxn ({self.maxn}).")
        if self.has_buckets and not self.bucket:
            raise OptionError("word_ngrams above 1 and maxn above 0 need a bucket of at least 1.")
        if not self.label_prefix or self.label_prefix.split() != [self.label_prefix]:
            raise OptionError(
                f"label_prefix must be a word without blanks, not {self.label_prefix!r}."
            )

    @property
    def separator(self) -> str:
        """What separates several labels in a cell; "" if nothing does, or nobody knows."""
        return "" if self.label_separator in (AUTO, NONE) else self.label_separator

    @property
    def loss_number(self) -> int:
        """The number of the loss in the kernels."""
        return get_args(Loss).index(self.loss)

    @property
    def is_softmax(self) -> bool:
        """Whether the probabilities of all labels sum up to 1."""
        return self.loss in ("softmax", "hierarchical")

    @property
    def has_buckets(self) -> bool:
        """Whether word or character n-grams are used."""
        return self.word_ngrams > 1 or self.maxn > 0
