"""The options of training a sentence encoder; nothing here imports PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from sememe.errors import OptionError
from sememe.options import Config, option
from sememe.training.config import TrainingConfig

Objective = Literal["auto", "simcse", "neighbors", "titles", "tsdae"]
Pool = Literal["", "mean", "cls", "max"]


@dataclass(frozen=True, kw_only=True)
class SentenceConfig(TrainingConfig):
    """How a network learns to give one vector per text."""

    # Options of fine-tuning that a backbone reads, too, and that have no choice here.
    features: ClassVar[str] = ""
    freeze: ClassVar[bool] = False
    is_frozen: ClassVar[bool] = False
    vectors: ClassVar[str] = ""
    reader_width: ClassVar[int] = 0
    lm_weight: ClassVar[float] = 0.0
    lora: ClassVar[int] = 0
    # The negatives of a row are the other rows of its batch, so a batch is never split:
    # `chunk_size` bounds the memory instead.
    accumulate: ClassVar[int] = 1  # type: ignore[misc]

    objective: Objective = option(
        "auto",
        "What a corpus teaches; auto: neighbors, or simcse for single sentences.",
    )
    pool: Pool = option("", "Pooling: mean, cls or max; default: the model's own, or mean.")
    dropout: float = option(
        0.1, "Dropout in training, also if the model was trained without.", 0, 0.99
    )
    temperature: float = option(0.05, "Cosines are divided by this in the softmax.", 1e-4, 100)
    hard_negatives: int = option(
        0, "Similar wrong texts per row, found with the model's vectors first.", 0, 100
    )
    matryoshka: str = option("", "Also train the first dimensions alone, such as 64,128.")
    score_loss: Literal["cosent", "cosine"] = option(
        "cosent", "Loss of scored pairs: order of the cosines, or squared error."
    )
    query_prompt: str = option("", "Written before each first text, such as 'query: '.")
    document_prompt: str = option("", "Written before the other texts, such as 'passage: '.")
    deletion: float = option(0.6, "TSDAE: fraction of words deleted from the input.", 0, 0.99)
    chunk_size: int = option(
        256, "Texts encoded at once; larger batches cache gradients, with equal results.", 1, 10**7
    )
    max_examples: int = option(
        250_000, "Maximum examples taken from a corpus, at random.", 1, 10**9
    )

    epochs: float = option(
        0.0, "Passes over the examples; 0: 1 (rows: 3), unless --steps or --budget."
    )
    budget: str = option("", "Training time, such as 20m, instead of epochs.")
    steps: int = option(0, "Training steps, instead of epochs.")
    batch_size: int = option(64, "Rows per batch; the others are a row's negatives.", 2, 10**7)
    length: int = option(128, "Maximum tokens per text; longer texts are truncated.")
    learning_rate: float = option(0.0, "Peak learning rate; 0: chosen by network size.")
    warmup: float = option(0.1, "Warm-up steps; below 1: fraction of all steps.")
    beta2: float = option(0.999, "Adam beta2.")
    compile: Literal["auto", "yes", "no"] = option(
        "no", "Compile the network first (about a minute); worthwhile on a GPU."
    )
    dev_share: float = option(
        0.01, "Fraction of examples held out for validation, without --dev.", 0, 0.9
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.objective == "simcse" and not self.dropout:
            raise OptionError("simcse needs dropout: without it, both vectors of a text are equal.")
        self.dims  # noqa: B018  # checks them

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that are trained alone, besides all of them."""
        parts = [part.strip() for part in self.matryoshka.split(",") if part.strip()]
        if not all(part.isdecimal() and int(part) for part in parts):
            raise OptionError(
                f"matryoshka must be numbers of dimensions such as 64,128, not {self.matryoshka!r}."
            )
        return tuple(sorted({int(part) for part in parts}))


@dataclass(frozen=True, kw_only=True)
class DistillConfig(Config):
    """The options of distillation."""

    dim: int = option(256, "Dimensions of a vector; 0: the teacher's.", 0, 10_000)
    a: float = option(1e-4, "Weight of a token: a ÷ (a + its probability).", 1e-9, 1)
    words: int = option(0, "Frequent words of the corpus that become tokens.", 0, 1_000_000)
    train_sentences: int = option(
        50_000, "Sentences to train on, at random; 0: no training.", 0, 10_000_000
    )
    epochs: int = option(10, "Passes over these sentences.", 1, 10_000)
    batch_size: int = option(256, "Sentences per step.", 1, 100_000)
    learning_rate: float = option(1e-3, "Learning rate of Adam.", 1e-9, 10)
    seed: int = option(1, "Random seed.", 0, 2**63 - 1)
