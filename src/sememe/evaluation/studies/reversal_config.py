"""The options of the study of reversal: what is made, and how each model is trained."""

from __future__ import annotations

from dataclasses import dataclass

from sememe.options import check_ranges, option
from sememe.training.config import Schedule, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class ReversalConfig(TrainingConfig):
    """Sequences to turn round, and the training of each model; a budget is that of one model."""

    steps: int = option(0, "Steps of each model, instead of a budget (2,000 when none is given).")
    batch_size: int = option(1_024, "Symbols of a step.")
    learning_rate: float = option(0.0, "Highest step size; 0 takes one that suits each model.")
    schedule: Schedule = option("cosine", "How the rate falls after that.")
    weight_decay: float = option(0.0, "Decay of the weights; biases and norms are left out.")
    num_symbols: int = option(20, "Different symbols that a sequence may hold.")
    longest: int = option(24, "Symbols of the longest sequence.")
    num_sequences: int = option(20_000, "Sequences to learn from.")
    num_tests: int = option(100, "Sequences of each length to test with.")
    width: int = option(128, "Numbers in a state or in the vector of a symbol.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_ranges(
            self, num_symbols=(2, 10_000), longest=(2, 500), num_sequences=(1, 10**9),
            num_tests=(1, 10**6), width=(8, 8_192),
        )  # fmt: skip
