"""The options of training: one dataclass for the command, the Python call and sememe.json."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from sememe.errors import OptionError
from sememe.options import Config, check_choices, check_ranges, option, parse_duration

Schedule = Literal["linear", "cosine", "constant", "inverse-sqrt", "slanted"]
Precision = Literal["auto", "bf16", "fp16", "fp32"]
Device = Literal["auto", "cpu", "cuda", "mps"]

DEFAULT_BUDGET = "10m"

# Options that may change between a run and its continuation: the steps stay what they were.
_PASSING = (
    "workers", "device", "compile", "evaluate_every", "evaluate_batches", "checkpoint_minutes",
    "keep", "tensorboard", "recompute",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """How a network is trained; the same steps follow whatever the number of processes."""

    # A class that gives a choice of them has options of these names.
    optimizer: ClassVar[str] = "adamw"
    average_after: ClassVar[int] = 5
    # What `precision: auto` takes on a CPU that multiplies bfloat16.
    fast_cpu_precision: ClassVar[str] = "fp32"

    budget: str = option(
        "", "Time to train, such as 20m; the speed is measured, then a number of steps is fixed."
    )
    steps: int = option(0, "Steps to train, instead of a budget (10m when neither is given).")
    epochs: float = option(0.0, "Passes over the text, instead of a budget or steps.")
    batch_size: int = option(
        0, "Rows of a step, all processes together; 0 takes that of the preset."
    )
    length: int = option(128, "Tokens of a row.")
    accumulate: int = option(1, "Parts in which a step is computed, for little memory.")
    learning_rate: float = option(
        0.0, "Highest step size; 0 takes that of the preset; `sememe study rates` searches one."
    )
    warmup: float = option(0.05, "Steps in which the rate rises; below 1 their share of all.")
    schedule: Schedule = option("linear", "How the rate falls after that.")
    final_rate: float = option(0.0, "Share of the learning rate that is left at the end.")
    weight_decay: float = option(0.01, "Decay of the weights; biases and norms are left out.")
    beta2: float = option(0.98, "How slowly Adam forgets the sizes of gradients.")
    epsilon: float = option(1e-6, "Added to those sizes, as in the released BERT.")
    clip: float = option(1.0, "Longest gradient; longer ones are shortened; 0 never.")
    precision: Precision = option("auto", "Numbers of the matrix products; auto: fp32 on a CPU.")
    compile: Literal["auto", "yes", "no"] = option(
        "auto", "Compile the network first, a minute or so; auto: on a GPU."
    )
    device: Device = option("auto", "Where to compute; auto takes a GPU where there is one.")
    seed: int = option(1, "Start of every random choice.")
    workers: int = option(0, "Threads; 0 takes every core.")
    evaluate_every: int = option(0, "Steps between two validations; 0: ten over the run.")
    evaluate_batches: int = option(32, "Batches of one validation; 0 validates nothing.")
    checkpoint_minutes: float = option(10.0, "Save the state of the training this often; 0 never.")
    keep: int = option(1, "Checkpoints to keep, the newest.")
    tensorboard: str = option("", "Folder for TensorBoard's event files.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        check_choices(
            self,
            schedule=("linear", "cosine", "constant", "inverse-sqrt", "slanted"),
            precision=("auto", "bf16", "fp16", "fp32"),
            device=("auto", "cpu", "cuda", "mps"),
            compile=("auto", "yes", "no"),
        )
        check_ranges(
            self, steps=(0, 10**12), epochs=(0, 10**6), batch_size=(0, 10**7), length=(2, 2**20),
            accumulate=(1, 10**6), learning_rate=(0, 1_000), warmup=(0, 10**12), final_rate=(0, 1),
            weight_decay=(0, 10), beta2=(0, 1), epsilon=(0, 1), clip=(0, 10**9),
            seed=(0, 2**63 - 1), workers=(0, 1_024), evaluate_every=(0, 10**12),
            evaluate_batches=(0, 10**9), checkpoint_minutes=(0, 10**9), keep=(1, 1_000),
        )  # fmt: skip
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
        """Seconds to train where nothing else says when to stop; otherwise 0."""
        if self.steps or self.epochs:
            return 0.0
        return parse_duration(self.budget or DEFAULT_BUDGET, "budget")

    def one_of_several(self, name: str) -> Self:
        """The options of one run among several: TensorBoard shows each in a folder of its own."""
        if not self.tensorboard:
            return self
        return replace(self, tensorboard=f"{self.tensorboard}/{name}")

    def lasting(self) -> dict[str, Any]:
        """The options that a continued run must share with the run before."""
        return {name: value for name, value in self.to_dict().items() if name not in _PASSING}
