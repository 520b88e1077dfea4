"""The sizes and the training of ULMFiT: dataclasses for commands, Python calls, sememe.json."""

from dataclasses import dataclass
from typing import Any, Literal

from sememe.options import option
from sememe.training.config import NetworkConfig, Preset, Schedule, WordTrainingConfig


@dataclass(frozen=True, kw_only=True)
class AWDConfig(NetworkConfig):
    """The sizes of an AWD-LSTM; the defaults are ULMFiT's (Howard & Ruder 2018, section 4.1)."""

    vocab_size: int = option(
        0, "Vocabulary size in words, including three special tokens.", 0, 2**31
    )
    num_layers: int = option(3, "LSTM layers.", 1, 100)
    num_cells: int = option(
        1_150, "LSTM cells per layer; the last layer has `width` cells.", 1, 1_000_000
    )
    width: int = option(400, "Dimensions of a word vector.", 1, 1_000_000)
    embedding_dropout: float = option(0.05, "Embedding dropout: fraction of words zeroed.", 0, 0.99)
    input_dropout: float = option(0.4, "Dropout of the first layer's input.", 0, 0.99)
    hidden_dropout: float = option(0.3, "Dropout between layers.", 0, 0.99)
    output_dropout: float = option(0.4, "Dropout of the last layer's output.", 0, 0.99)
    weight_dropout: float = option(
        0.5, "Weight dropout of the recurrent weights (DropConnect).", 0, 0.99
    )
    dropout_factor: float = option(
        1.0, "Factor for all dropouts; use less for a large corpus.", 0, 10
    )

    def share(self, place: str) -> float:
        """The dropout rate of a part: embedding, input, hidden, output or weight."""
        return min(0.95, self.dropout_factor * float(getattr(self, f"{place}_dropout")))


# tiny and mini learn on a CPU in minutes; in so little time they do not overfit.
PRESETS = {
    "tiny": Preset(AWDConfig(num_cells=128, width=64, dropout_factor=0.2), 1e-2, 16, 10_000),
    "mini": Preset(AWDConfig(num_cells=256, width=128, dropout_factor=0.3), 5e-3, 32, 20_000),
    "small": Preset(AWDConfig(num_cells=512, width=200, dropout_factor=0.5), 4e-3, 64, 60_000),
    "medium": Preset(AWDConfig(num_cells=800, width=300, dropout_factor=0.7), 4e-3, 64, 60_000),
    "original": Preset(AWDConfig(), 4e-3, 64, 60_000),
}


# What each optimizer learns with where an option is left out; SGD: the AWD-LSTM paper's.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "adamw": {"schedule": "slanted", "warmup": 0.1, "weight_decay": 0.01, "clip": 1.0},
    "asgd": {
        "schedule": "constant", "warmup": 0.0, "weight_decay": 1.2e-6, "clip": 0.25,
        "learning_rate": 30.0,
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ULMFiTTrainingConfig(WordTrainingConfig):
    """How the language model is trained, on a general text or on that of a task."""

    length: int = option(70, "Sequence length in words; the state resets at each row.")
    schedule: Schedule = option(
        None, "Learning rate schedule after warm-up; default: slanted (asgd: constant)."
    )
    warmup: float = option(None, "Warm-up steps; below 1: fraction; default: 0.1 (asgd: 0).")
    weight_decay: float = option(
        None, "Weight decay, not for biases; default: 0.01 (asgd: 1.2e-6)."
    )
    clip: float = option(None, "Gradient clipping norm; 0: none; default: 1 (asgd: 0.25).")
    layer_decay: float = option(1.0, "Layer-wise learning rate decay factor (paper: 0.3846).", 0, 1)
    optimizer: Literal["adamw", "asgd"] = option(  # type: ignore[misc]
        "adamw", "Optimizer: AdamW, or averaged SGD as in AWD-LSTM."
    )
    average_after: int = option(  # type: ignore[misc]
        5,
        "asgd: start averaging after this many validations without improvement.",
        0,
        10**6,
    )
    activation_penalty: float = option(
        2.0, "Activation regularisation (AR): penalty on large outputs.", 0, 1_000
    )
    change_penalty: float = option(
        1.0, "Temporal activation regularisation (TAR): penalty on changes between words.", 0, 1_000
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        for name, value in LEFT_OUT.get(self.optimizer, LEFT_OUT["adamw"]).items():
            if getattr(self, name) is None or (name == "learning_rate" and not self.learning_rate):
                object.__setattr__(self, name, value)
        super().__post_init__()
