"""The options of word2vec: one dataclass for the command, the Python call and sememe.json."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sememe.errors import OptionError

Architecture = Literal["skipgram", "cbow"]
Loss = Literal["negative", "hierarchical", "softmax"]
Kept = Literal["input", "output", "sum", "concat"]


def _option(default: Any, help_text: str) -> Any:
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig:
    """What word2vec learns and how (Mikolov et al. 2013a, 2013b); names as the field uses them."""

    architecture: Architecture = _option(
        "skipgram", "Predict the context (skipgram) or from it (cbow)."
    )
    loss: Loss = _option("negative", "Negative sampling, hierarchical softmax or the full softmax.")
    dim: int = _option(100, "Numbers in a vector.")
    window: int = _option(5, "Furthest context word on each side; shorter windows are drawn too.")
    negatives: int = _option(5, "Noise words for each true pair.")
    noise_exponent: float = _option(0.75, "Noise words are drawn by count to this power.")
    sample: float = _option(1e-3, "Thin out words above this frequency; 0 keeps every word.")
    min_count: int = _option(5, "Leave out words that are rarer than this.")
    max_words: int = _option(0, "Keep at most this many words, the most frequent; 0 keeps all.")
    epochs: int = _option(5, "Passes over the text.")
    learning_rate: float = _option(
        0.0, "Step size at the start; 0 takes 0.03 for skipgram, 0.05 for cbow."
    )
    min_learning_rate: float = _option(1e-4, "Step size at the end of its linear decay.")
    combine: Literal["mean", "sum"] = _option("mean", "How cbow joins its context vectors.")
    vectors: Kept = _option("input", "Vectors to use: input, output, their sum or concatenation.")
    seed: int = _option(1, "Start of every random choice.")
    workers: int = _option(0, "Threads; 0 takes every core. One worker gives bit-equal runs.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        for name, choices in (
            ("architecture", ("skipgram", "cbow")),
            ("loss", ("negative", "hierarchical", "softmax")),
            ("combine", ("mean", "sum")),
            ("vectors", ("input", "output", "sum", "concat")),
        ):
            if getattr(self, name) not in choices:
                raise OptionError(
                    f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}."
                )
        for name, low, high in (
            ("dim", 1, 10_000), ("window", 1, 1_000), ("negatives", 1, 1_000),
            ("noise_exponent", -10, 10), ("sample", 0, 1), ("min_count", 1, 10**12),
            ("max_words", 0, 2**31), ("epochs", 1, 100_000), ("learning_rate", 0, 10),
            ("min_learning_rate", 0, 10), ("seed", 0, 2**63 - 1), ("workers", 0, 1_024),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:  # NaN fails this too
                raise OptionError(f"{name} must lie between {low:,} and {high:,}, not {value}.")
        if self.min_learning_rate > self.start_rate:
            raise OptionError(
                "learning_rate must not be below min_learning_rate "
                f"({self.start_rate} and {self.min_learning_rate} were given)."
            )

    @property
    def start_rate(self) -> float:
        """The learning rate at the start: the given one, or that of the architecture."""
        # cbow takes larger steps, as in the released C program: it makes one where skip-gram
        # makes one for each pair.
        return self.learning_rate or (0.03 if self.architecture == "skipgram" else 0.05)

    @property
    def num_workers(self) -> int:
        """Threads to start: `workers`, or the cores this process may use."""
        if self.workers:
            return self.workers
        if hasattr(os, "sched_getaffinity"):  # Linux, where a container may be given few cores
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def to_dict(self) -> dict[str, Any]:
        """The options as they are kept in sememe.json."""
        return asdict(self)
