"""The sizes and the training of ULMFiT: dataclasses for commands, Python calls, sememe.json."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from sememe.networks.config import NetworkConfig
from sememe.networks.word_config import WordPreset, WordTrainingConfig, sizes_of
from sememe.options import check_choices, check_ranges, option
from sememe.training.config import Schedule

_SHARES = (
    "embedding_dropout", "input_dropout", "hidden_dropout", "output_dropout", "weight_dropout",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AWDConfig(NetworkConfig):
    """The sizes of an AWD-LSTM; the defaults are ULMFiT's (Howard & Ruder 2018, section 4.1)."""

    vocab_size: int = option(0, "Words that are read and predicted, three marks among them.")
    num_layers: int = option(3, "LSTM layers.")
    num_cells: int = option(1_150, "Cells of a layer; the last has as many as a vector numbers.")
    width: int = option(400, "Numbers in a word's vector.")
    embedding_dropout: float = option(0.05, "Share of the words whose vector is left out.")
    input_dropout: float = option(0.4, "Share left out of what goes into the first layer.")
    hidden_dropout: float = option(0.3, "Share left out between layers.")
    output_dropout: float = option(0.4, "Share left out of what comes out of the last layer.")
    weight_dropout: float = option(0.5, "Share of the weights between steps that is left out.")
    dropout_factor: float = option(1.0, "All these shares times this; less for much text.")

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        check_ranges(
            self, vocab_size=(0, 2**31), num_layers=(1, 100), num_cells=(1, 1_000_000),
            width=(1, 1_000_000), dropout_factor=(0, 10), **dict.fromkeys(_SHARES, (0, 0.99)),
        )  # fmt: skip

    def share(self, place: str) -> float:
        """The share that is left out at a place: embedding, input, hidden, output or weight."""
        return min(0.95, self.dropout_factor * float(getattr(self, f"{place}_dropout")))


# tiny and mini learn on a CPU in minutes; in so little time they learn no text by heart.
PRESETS = {
    "tiny": WordPreset(AWDConfig(num_cells=128, width=64, dropout_factor=0.2), 1e-2, 16, 10_000),
    "mini": WordPreset(AWDConfig(num_cells=256, width=128, dropout_factor=0.3), 5e-3, 32, 20_000),
    "small": WordPreset(AWDConfig(num_cells=512, width=200, dropout_factor=0.5), 4e-3, 64, 60_000),
    "medium": WordPreset(AWDConfig(num_cells=800, width=300, dropout_factor=0.7), 4e-3, 64, 60_000),
    "original": WordPreset(AWDConfig(), 4e-3, 64, 60_000),
}


def awd_config(preset: str, **options: Any) -> AWDConfig:
    """The sizes of a preset (tiny, mini, small, medium, original), some options replaced."""
    return sizes_of(PRESETS, "ULMFiT", preset, options)


# What SGD learns with in the AWD-LSTM paper, where an option stands at its default.
SGD = {
    "learning_rate": 30.0, "schedule": "constant", "warmup": 0.0, "weight_decay": 1.2e-6,
    "clip": 0.25,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ULMFiTTrainingConfig(WordTrainingConfig):
    """How the language model learns, from a general text or from that of a task."""

    length: int = option(70, "Words of a row; each row starts with empty cells.")
    schedule: Schedule = option("slanted", "How the rate falls after its rise.")
    warmup: float = option(0.1, "Steps in which the rate rises; below 1 their share of all.")
    layer_decay: float = option(
        1.0, "Each layer learns at this share of the rate of that above; the paper: 0.3846."
    )
    optimizer: Literal["adamw", "asgd"] = option(  # type: ignore[misc]
        "adamw", "What moves the weights; asgd: SGD that ends with the mean of its weights."
    )
    average_after: int = option(  # type: ignore[misc]
        5, "asgd: averaging begins with a validation worse than the best of so many before."
    )
    activation_penalty: float = option(2.0, "Keeps outputs small (AR).")
    change_penalty: float = option(1.0, "Keeps outputs from changing much between words (TAR).")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, optimizer=("adamw", "asgd"))
        if self.optimizer == "asgd":
            for field in fields(self):
                if field.name in SGD and getattr(self, field.name) == field.default:
                    object.__setattr__(self, field.name, SGD[field.name])
        check_ranges(
            self, average_after=(0, 10**6), layer_decay=(0, 1), activation_penalty=(0, 1_000),
            change_penalty=(0, 1_000),
        )  # fmt: skip
