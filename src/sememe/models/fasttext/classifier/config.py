"""The options of the classifier: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from sememe.errors import OptionError
from sememe.examples.labelled.label_options import AUTO, NONE, LabelOptions
from sememe.options import option

# "auto" comes last: the places of the others are their numbers in the kernels.
Loss = Literal["softmax", "hierarchical", "ova", "negative", "auto"]

LABEL_PREFIX = "__label__"
_LOWEST_RATE = 1e-6
# The defaults of Facebook's program.
ORIGINAL: dict[str, Any] = {
    "loss": "softmax", "dim": 100, "learning_rate": 0.1, "epochs": 5, "word_ngrams": 1, "minn": 0,
    "maxn": 0, "word_rates": "equal",
}  # fmt: skip
# What an option is that the data chooses.
_OPEN: dict[str, Any] = {
    "loss": "auto", "dim": 0, "learning_rate": 0.0, "epochs": 0, "word_ngrams": 0, "minn": -1,
    "maxn": -1, "word_rates": "auto",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FastTextClassifierConfig(LabelOptions):
    """The options of the classifier (Joulin et al. 2016), with the field's names.

    Options that are left open (auto, 0, or -1 for minn and maxn) are chosen by the data, or with
    the preset fasttext those of Facebook's program.
    """

    preset: Literal["auto", "fasttext"] = option(
        "auto", "Options left open: chosen by the data, or the original's defaults."
    )
    loss: Loss = option(
        "auto",
        "Loss: softmax; hierarchical for thousands of labels; ova for multi-label.",
    )
    dim: int = option(0, "Dimensions of a vector; 0: by the labels.", 0, 10_000)
    learning_rate: float = option(
        0.0, "Initial learning rate, decays to 0; 0: by held-out lines.", 0, 100
    )
    epochs: int = option(0, "Passes over the training file; 0: by held-out lines.", 0, 100_000)
    word_ngrams: int = option(
        0, "Maximum length of word n-grams; 1: words only, 0: by language.", 0, 100
    )
    minn: int = option(-1, "Minimum length of character n-grams; -1: by language.", -1, 100)
    maxn: int = option(
        -1, "Maximum length of character n-grams; 0: none, -1: by language.", -1, 100
    )
    word_rates: Literal["auto", "equal", "idf"] = option(
        "auto", "Learning rate of each word: equal, or idf (rarer ones learn faster)."
    )
    bucket: int = option(2_000_000, "Number of hash buckets for n-grams.", 0, 2**31 - 2)
    min_count: int = option(1, "Minimum word count; rarer words are dropped.", 1, 10**12)
    min_count_label: int = option(0, "Minimum label count; rarer labels are dropped.", 0, 10**12)
    negatives: int = option(5, "Negative samples per label, with loss negative.", 1, 1_000)
    label_prefix: str = option(LABEL_PREFIX, "Prefix that marks a label.")
    baselines: bool = option(True, "Score baselines on the validation rows too.")
    seed: int = option(1, "Random seed.", 0, 2**63 - 1)
    workers: int = option(0, "Threads; 0: all cores. One worker makes runs reproducible.", 0, 1_024)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        if self.preset == "fasttext":
            for name, value in ORIGINAL.items():
                if self.is_open(name):
                    object.__setattr__(self, name, value)
        super().__post_init__()
        if 0 < self.learning_rate < _LOWEST_RATE:
            raise OptionError(
                f"learning_rate must be 0 (chosen) or at least {_LOWEST_RATE}, not "
                f"{self.learning_rate}."
            )
        if self.maxn > 0 and self.minn > self.maxn:
            raise OptionError(f"minn ({self.minn}) must not be above maxn ({self.maxn}).")
        if self.has_buckets and not self.bucket:
            raise OptionError("word_ngrams above 1 and maxn above 0 need a bucket of at least 1.")
        if not self.label_prefix or self.label_prefix.split() != [self.label_prefix]:
            raise OptionError(
                f"label_prefix must be a word without blanks, not {self.label_prefix!r}."
            )

    def is_open(self, name: str) -> bool:
        """Whether an option is left to the data."""
        return bool(getattr(self, name) == _OPEN[name])

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
