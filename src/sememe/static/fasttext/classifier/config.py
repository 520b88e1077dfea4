"""The options of the classifier: one dataclass for the command, the Python call and sememe.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, check_choices, check_ranges, option

Loss = Literal["softmax", "hierarchical", "ova", "negative"]


@dataclass(frozen=True, kw_only=True)
class FastTextClassifierConfig(Config):
    """What the classifier learns and how (Joulin et al. 2016); names as the field uses them."""

    loss: Loss = option(
        "softmax",
        "One label a line: softmax, or hierarchical for thousands of labels; several: ova.",
    )
    dim: int = option(100, "Numbers in a vector.")
    learning_rate: float = option(0.1, "Step size at the start; it falls to 0.")
    epochs: int = option(5, "Passes over the lines.")
    word_ngrams: int = option(1, "Longest run of words that has a row of its own; 1: no runs.")
    minn: int = option(0, "Shortest character n-gram.")
    maxn: int = option(0, "Longest character n-gram; 0: none.")
    bucket: int = option(2_000_000, "Rows that n-grams are hashed into.")
    min_count: int = option(1, "Leave out words that are rarer than this.")
    min_count_label: int = option(0, "Leave out labels that are rarer than this.")
    negatives: int = option(5, "Noise labels for each true one, with the loss negative.")
    label_prefix: str = option("__label__", "How a label starts in a line.")
    seed: int = option(1, "Start of every random choice.")
    workers: int = option(0, "Threads; 0 takes every core. One worker gives bit-equal runs.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        check_choices(self, loss=("softmax", "hierarchical", "ova", "negative"))
        check_ranges(
            self,
            dim=(1, 10_000),
            learning_rate=(1e-6, 100),
            epochs=(1, 100_000),
            word_ngrams=(1, 100),
            minn=(0, 100),
            maxn=(0, 100),
            bucket=(0, 2**31 - 2),
            min_count=(1, 10**12),
            min_count_label=(0, 10**12),
            negatives=(1, 1_000),
            seed=(0, 2**63 - 1),
            workers=(0, 1_024),
        )
        if self.maxn and self.minn > self.maxn:
            raise OptionError(f"minn ({self.minn}) must not be above maxn ({self.maxn}).")
        if self.has_buckets and not self.bucket:
            raise OptionError("word_ngrams above 1 and maxn above 0 need a bucket of at least 1.")
        if not self.label_prefix or self.label_prefix.split() != [self.label_prefix]:
            raise OptionError(
                f"label_prefix must be a word without blanks, not {self.label_prefix!r}."
            )

    @property
    def has_buckets(self) -> bool:
        """Whether n-grams of words or characters are looked at."""
        return self.word_ngrams > 1 or self.maxn > 0
