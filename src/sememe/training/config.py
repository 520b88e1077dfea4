"""The options that networks share: training, presets, the sizes of Transformers.

One dataclass serves the command, the Python call and sememe.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from sememe.errors import OptionError
from sememe.options import Config, changed, option, parse_duration

Schedule = Literal["linear", "cosine", "constant", "inverse-sqrt", "slanted"]
Precision = Literal["auto", "bf16", "fp16", "fp32"]
Device = Literal["auto", "cpu", "cuda", "mps"]

DEFAULT_BUDGET = "10m"

# Options that may change when a run is resumed: they do not affect its steps.
_PASSING = (
    "workers", "device", "compile", "evaluate_every", "evaluate_batches", "checkpoint_minutes",
    "keep", "tensorboard", "recompute", "baselines", "sharding",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """How a network is trained; the steps do not depend on the number of processes."""

    # A class with several options to choose from lists their names here.
    optimizer: ClassVar[str] = "adamw"
    average_after: ClassVar[int] = 5
    average_share: ClassVar[float] = 0.0
    sharding: ClassVar[str] = "none"
    # What `precision: auto` means on a CPU with bfloat16 instructions.
    fast_cpu_precision: ClassVar[str] = "fp32"

    budget: str = option("", "Training time, such as 20m; sets the steps; default: 10m.")
    steps: int = option(0, "Training steps, instead of a budget.", 0, 10**12)
    epochs: float = option(0.0, "Passes over the corpus, instead of a budget or steps.", 0, 10**6)
    batch_size: int = option(0, "Rows per batch, over all processes; 0: from the preset.", 0, 10**7)
    length: int = option(128, "Sequence length in tokens.", 2, 2**20)
    accumulate: int = option(1, "Gradient accumulation steps per batch, to save memory.", 1, 10**6)
    learning_rate: float = option(
        0.0,
        "Peak learning rate; 0: from the preset.",
        0,
        1_000,
    )
    warmup: float = option(0.05, "Warm-up steps; below 1: fraction of all steps.", 0, 10**12)
    schedule: Schedule = option("linear", "Learning rate schedule after warm-up.")
    final_rate: float = option(0.0, "Final learning rate, as a fraction of the peak.", 0, 1)
    weight_decay: float = option(
        0.01, "Weight decay; not applied to biases and layer norms.", 0, 10
    )
    beta2: float = option(0.98, "Adam beta2.", 0, 0.999999)
    epsilon: float = option(1e-6, "Adam epsilon.", 0, 1)
    clip: float = option(1.0, "Gradient clipping norm; 0: none.", 0, 10**9)
    precision: Precision = option("auto", "Precision of matrix products; auto: fp32 on a CPU.")
    compile: Literal["auto", "yes", "no"] = option(
        "auto", "Compile the network first (about a minute); auto: on a GPU."
    )
    device: Device = option("auto", "Device; auto: GPU if available.")
    seed: int = option(1, "Random seed.", 0, 2**63 - 1)
    workers: int = option(0, "Threads; 0: all cores.", 0, 1_024)
    evaluate_every: int = option(
        0, "Steps between validations; 0: ten validations in all.", 0, 10**12
    )
    evaluate_batches: int = option(32, "Batches per validation; 0: no validation.", 0, 10**9)
    checkpoint_minutes: float = option(10.0, "Minutes between checkpoints; 0: none.", 0, 10**9)
    keep: int = option(1, "Number of recent checkpoints to keep.", 1, 1_000)
    tensorboard: str = option("", "Folder for TensorBoard's event files.")

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if bool(self.steps) + bool(self.epochs) + bool(self.budget) > 1:
            raise OptionError("Give one of steps, epochs and budget: each says when to stop.")
        if self.budget:
            parse_duration(self.budget, "budget")
        if self.batch_size % self.accumulate:
            raise OptionError(
                f"batch_size ({self.batch_size}) must be a multiple of accumulate "
                f"({self.accumulate})."
            )

    @property
    def budget_s(self) -> float:
        """Seconds to train if no other option says when to stop; otherwise 0."""
        if self.steps or self.epochs:
            return 0.0
        return parse_duration(self.budget or DEFAULT_BUDGET, "budget")

    def one_of_several(self, name: str) -> Self:
        """The options of one run among several: each logs to its own TensorBoard folder."""
        if not self.tensorboard:
            return self
        return replace(self, tensorboard=f"{self.tensorboard}/{name}")

    def lasting(self) -> dict[str, Any]:
        """The options that a resumed run must share with the original run."""
        return {name: value for name, value in self.to_dict().items() if name not in _PASSING}


@dataclass(frozen=True, kw_only=True)
class RateSearch(Config):
    """The learning rates to try: this many steps from the lowest to the highest."""

    lowest: float = option(1e-5, "Learning rate of the first step.", 1e-12, 1e3)
    highest: float = option(
        1.0, "Learning rate of the last step, unless the loss diverges first.", 1e-12, 1e3
    )
    num_steps: int = option(
        150, "Steps; the learning rate grows by a constant factor.", 10, 1_000_000
    )

    def __post_init__(self) -> None:
        """Raise OptionError for a range that cannot be tried."""
        super().__post_init__()
        if not self.lowest < self.highest:
            raise OptionError(f"highest ({self.highest:g}) must be above lowest ({self.lowest:g}).")

    def rate_at(self, step: int) -> float:
        """The rate of a step."""
        return self.lowest * (self.highest / self.lowest) ** (step / (self.num_steps - 1))


def size_of_preset(num_layers: int, width: int, num_heads: int) -> dict[str, Any]:
    return {"num_layers": num_layers, "width": width, "num_heads": num_heads}


Sizes = TypeVar("Sizes")


@dataclass(frozen=True)
class Preset(Generic[Sizes]):
    """A size, with the learning rate, batch size and vocabulary size that suit it."""

    network: Sizes
    learning_rate: float
    batch_size: int
    max_words: int = 0  # of a word model


def chosen(
    presets: Mapping[str, Preset[Sizes]], owner: str, preset: str, options: dict[str, Any]
) -> Sizes:
    """The sizes of a preset with some options replaced; unknown names raise an error."""
    if preset not in presets:
        raise OptionError(f"preset must be one of {', '.join(presets)}, not {preset!r}.")
    return changed(presets[preset].network, owner, options)


@dataclass(frozen=True, kw_only=True)
class PretrainingConfig(TrainingConfig):
    """How a network is pre-trained on text."""

    validation_share: float = option(0.01, "Fraction of documents held out for validation.", 0, 0.9)
    smoothing: float = option(
        0.7, "Exponent of language sampling in a mix: 1 proportional, 0 uniform.", 0, 1
    )
    recompute: bool = option(False, "Activation checkpointing: less memory, a third more time.")
    sharding: Literal["none", "full"] = option(  # type: ignore[misc]
        "none", "Several processes: full divides weights and optimizer among them (FSDP)."
    )


# Learning rates that worked well in runs of minutes to hours; base and large as published.
RATES = {
    "tiny": 2e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 1e-4, "large": 1e-4,
    "gpt1": 2.5e-4, "gpt2": 6e-4, "gpt2-medium": 3e-4, "gpt2-large": 2.5e-4, "gpt2-xl": 2e-4,
}  # fmt: skip

# Rows per step: on a CPU, a small network gains more from many steps than from large ones.
BATCH_SIZES = {"tiny": 16, "mini": 32, "small": 128}

# What small networks use instead of the papers' values: a vocabulary that a small corpus can train,
# and no dropout for narrow ones, which need all their capacity.
_NARROW = {"vocab_size": 8_192, "dropout": 0.0, "attention_dropout": 0.0}
SMALL: dict[str, dict[str, Any]] = {
    "tiny": _NARROW, "mini": _NARROW, "small": {"vocab_size": 16_384},
    "medium": {"vocab_size": 16_384},
}  # fmt: skip


def pretrained_with(
    sizes: Mapping[str, Sizes], more: Mapping[str, dict[str, Any]]
) -> dict[str, Preset[Sizes]]:
    """The presets of BERT or GPT: the papers' sizes, and smaller ones with their training."""
    return {
        name: Preset(
            changed(own, name, SMALL.get(name, {}) | more.get(name, {})), RATES[name],
            BATCH_SIZES.get(name, 256),
        )
        for name, own in sizes.items()
    }  # fmt: skip


Softmax = Literal["auto", "full", "sampled"]


@dataclass(frozen=True, kw_only=True)
class WordTrainingConfig(TrainingConfig):
    """How a language model is trained on words."""

    min_count: int = option(3, "Minimum word count; rarer words become <unk>.", 1, 10**9)
    max_words: int = option(
        0, "Maximum vocabulary size, most frequent words first; 0: from the preset.", 0, 2**30
    )
    validation_share: float = option(0.01, "Fraction of documents held out for validation.", 0, 0.9)


@dataclass(frozen=True, kw_only=True)
class SampledTrainingConfig(WordTrainingConfig):
    """How it is trained if a full softmax may take too long."""

    softmax: Softmax = option("auto", "Full softmax, or sampled softmax in training.")
    num_samples: int = option(8_192, "Words sampled for the sampled softmax.", 1, 2**30)

    many_words: ClassVar[int]  # vocabulary size from which "auto" samples the softmax

    def is_sampled(self, num_words: int) -> bool:
        """Whether training samples the softmax for this many words."""
        is_asked = self.softmax == "sampled" or (
            self.softmax == "auto" and num_words >= self.many_words
        )
        return is_asked and self.num_samples < num_words


Activation = Literal["gelu", "gelu_tanh", "relu", "relu2"]  # relu2: its square
Positions = Literal["learned", "sinusoidal"]


class NetworkConfig(Config):
    """The base of the frozen dataclasses for network sizes."""

    vocab_size: int

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the embedding table, rounded up to 64, the tile size of matrix units."""
        return -(-self.vocab_size // 64) * 64


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(NetworkConfig):
    """The sizes that every stack of Transformer blocks needs."""

    vocab_size: int = option(
        30_522, "Vocabulary size in sub-word tokens; a given tokenizer decides.", 1, 2**31
    )
    num_layers: int = option(12, "Transformer blocks.", 1, 1_000)
    width: int = option(768, "Dimensions of a token vector.", 1, 100_000)
    num_heads: int = option(12, "Attention heads per block.", 1, 10_000)
    inner_size: int = option(
        0, "Dimensions of the feed-forward layer; 0: four times the width.", 0, 1_000_000
    )
    max_length: int = option(512, "Maximum sequence length in tokens.", 1, 10_000_000)
    positions: Positions = option("learned", "Position embeddings: learned, or sinusoidal.")
    dropout: float = option(0.1, "Dropout of block outputs.", 0, 0.99)
    attention_dropout: float = option(0.1, "Dropout of attention weights.", 0, 0.99)
    activation: Activation = option("gelu", "Activation of the feed-forward layer.")
    norm_eps: float = option(1e-12, "Epsilon of layer normalisation.", 0, 1)
    initial_std: float = option(0.02, "Standard deviation of initial weights.", 0, 10)

    def __post_init__(self) -> None:
        """Raise OptionError for sizes that no network could have."""
        super().__post_init__()
        if self.width % self.num_heads:
            raise OptionError(
                f"width must be a multiple of num_heads, not {self.width} and {self.num_heads}."
            )

    @property
    def inner_width(self) -> int:
        """Hidden units of the feed-forward part."""
        return self.inner_size or 4 * self.width
