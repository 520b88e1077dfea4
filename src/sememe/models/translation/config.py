"""The sizes and the training of models that translate: one dataclass each for call and command."""

from dataclasses import dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.options import Config, option
from sememe.tokens.subwords.tokenizer import Kind
from sememe.training.config import (
    Activation,
    NetworkConfig,
    Positions,
    Preset,
    Schedule,
    TrainingConfig,
    TransformerConfig,
    chosen,
)

Penalty = Literal["gnmt", "average", "none"]
Cell = Literal["lstm", "gru"]
Attention = Literal["multiplicative", "additive", "none"]
Context = Literal["after", "feeding", "before"]


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(TransformerConfig):
    """The sizes of the Transformer (Vaswani et al. 2017); the defaults are those of its base."""

    vocab_size: int = option(
        37_000, "Vocabulary size in sub-word tokens, shared by both languages."
    )
    num_layers: int = option(6, "Transformer blocks in the encoder, and in the decoder.")
    width: int = option(512, "Dimensions of a token vector.")
    num_heads: int = option(8, "Attention heads per block.")
    positions: Positions = option(
        "sinusoidal", "Position embeddings: the paper's sinusoids, or learned."
    )
    activation: Activation = option("relu", "Activation of the feed-forward layer.")
    norm_eps: float = option(1e-6, "Epsilon of layer normalisation.")
    initial_std: float = option(
        0.0, "Standard deviation of initial weights; 0: Xavier, as published."
    )
    norm: Literal["post", "pre"] = option(
        "post", "Layer normalisation after (paper) or before each sub-layer."
    )


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(NetworkConfig):
    """The sizes of an encoder and a decoder of LSTM or GRU layers, and how they look at each other.

    The context of a step enters `after` the decoder has read its token (Luong et al. 2015, 3): so
    the whole target is read at once, by cuDNN on a GPU. With `feeding` what a step said also enters
    the next one (their 3.3), and `before` attends with the state before the token (Bahdanau et al.
    2015): both go step by step. Without attention all of a source is in one vector.
    """

    vocab_size: int = option(
        8_000, "Vocabulary size in sub-word tokens, shared by both languages.", 1, 2**31
    )
    num_layers: int = option(2, "Layers in the encoder, and in the decoder.", 1, 100)
    width: int = option(512, "Dimensions of the state; half per encoder direction.", 2, 100_000)
    embedding_size: int = option(256, "Dimensions of a token vector.", 1, 100_000)
    cell: Cell = option("lstm", "Recurrent cell.")
    attention: Attention = option(
        "multiplicative", "Attention: multiplicative (Luong), additive (Bahdanau), or none."
    )
    context: Context = option(
        "after", "Attention after the step, with input feeding, or before the step."
    )
    dropout: float = option(0.3, "Dropout of embeddings and layer outputs.", 0, 0.99)
    max_length: int = option(512, "Maximum text length in tokens.", 1, 10_000_000)

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        super().__post_init__()
        if self.width % 2:
            raise OptionError(f"width must be even, for two directions, not {self.width}.")


@dataclass(frozen=True, kw_only=True)
class TranslationTrainingConfig(TrainingConfig):
    """How a translation model is trained: batches by tokens, label smoothing."""

    batch_size: int = option(0, "Tokens per batch, on the longer side; 0: from the preset.")
    length: int = option(128, "Maximum tokens per side; longer pairs are dropped.")
    warmup: float = option(0.1, "Warm-up steps; below 1: fraction of all steps.")
    schedule: Schedule = option("inverse-sqrt", "Learning rate schedule after warm-up.")
    weight_decay: float = option(0.0, "Weight decay; not applied to biases and layer norms.")
    epsilon: float = option(1e-9, "Adam epsilon.")
    smoothing: float = option(0.1, "Label smoothing.", 0, 0.9)
    pieces: Kind = option("bpe", "Shared tokenizer: byte-level BPE or WordPiece.")
    lowercase: bool = option(False, "Convert both sides to lower case.")
    dev_share: float = option(
        0.02, "Fraction of pairs held out for validation, without --dev-source.", 0, 0.9
    )
    average: int = option(5, "Average the weights of this many best validations.", 1, 1_000)
    patience: int = option(
        0, "Stop after this many validations without improvement; 0: never.", 0, 10**9
    )
    evaluate_batches: int = option(1_000, "Batches per validation; 0: no validation.")
    bleu_pairs: int = option(
        1_000, "Validation pairs translated for the final BLEU; 0: none.", 0, 10**9
    )


@dataclass(frozen=True, kw_only=True)
class RecurrentTrainingConfig(TranslationTrainingConfig):
    """How LSTM and GRU translators are trained: with a learning rate that decays to 0."""

    warmup: float = option(0.02, "Warm-up steps; below 1: fraction of all steps.")
    schedule: Schedule = option("cosine", "Learning rate schedule after warm-up.")


@dataclass(frozen=True, kw_only=True)
class SearchConfig(Config):
    """The options of the search."""

    beam: int = option(5, "Beam size; 1: greedy decoding.", 1, 10_000)
    n_best: int = option(1, "Translations per text, best first.", 1, 10_000)
    penalty: Penalty = option("gnmt", "Length penalty: GNMT, average per token, or none.")
    alpha: float = option(
        0.6, "Strength of the length penalty; 1 with average: mean log-probability.", 0, 100
    )
    max_extra: int = option(
        50, "Maximum tokens by which a translation may exceed its source.", 1, 100_000
    )

    def __post_init__(self) -> None:
        """Refuse options out of their ranges."""
        super().__post_init__()
        if self.n_best > self.beam:
            raise OptionError(
                f"n_best ({self.n_best}) must not exceed beam ({self.beam}): it gives no more."
            )


def _size(num_layers: int, width: int, num_heads: int, dropout: float) -> dict[str, Any]:
    sizes = {"num_layers": num_layers, "width": width, "num_heads": num_heads}
    return {**sizes, "dropout": dropout, "attention_dropout": min(dropout, 0.1)}


# base and big: table 3 of the paper. Small ones, with more dropout, for tens of thousands of pairs.
TRANSFORMER_PRESETS = {
    "tiny": Preset(
        EncoderDecoderConfig(**_size(4, 128, 4, 0.3), inner_size=256, vocab_size=8_000),
        1.5e-3, 4_096,
    ),
    "small": Preset(
        EncoderDecoderConfig(**_size(4, 256, 4, 0.3), vocab_size=8_000), 1e-3, 4_096
    ),
    # The paper's rate rises to 1/√(width × 4,000).
    "base": Preset(EncoderDecoderConfig(), 7e-4, 25_000),
    "big": Preset(EncoderDecoderConfig(**_size(6, 1024, 16, 0.3)), 4.9e-4, 25_000),
}  # fmt: skip

SEQ2SEQ_PRESETS = {
    "tiny": Preset(RecurrentConfig(num_layers=1, width=128, embedding_size=128), 3e-3, 4_096),
    "small": Preset(RecurrentConfig(), 1e-3, 4_096),
    "base": Preset(
        RecurrentConfig(num_layers=4, width=1_000, embedding_size=1_000, vocab_size=37_000),
        5e-4, 25_000,
    ),
}  # fmt: skip


def seq2seq_config(preset: str = "small", **options: Any) -> RecurrentConfig:
    """The sizes of a preset (tiny, small, base as in Luong et al. 2015), some options replaced."""
    return chosen(SEQ2SEQ_PRESETS, "Seq2Seq", preset, options)


def transformer_config(preset: str = "base", **options: Any) -> EncoderDecoderConfig:
    """The sizes of a preset (tiny, small, base, big), some options replaced."""
    return chosen(TRANSFORMER_PRESETS, "Transformer", preset, options)


@dataclass(frozen=True, kw_only=True)
class ReversalConfig(TrainingConfig):
    """Sequences to reverse, and the training of each model; the budget is per model."""

    budget: str = option("", "Training time per model, such as 10m.")
    steps: int = option(0, "Steps per model; 0: 2,000, unless --budget or --epochs.")
    batch_size: int = option(1_024, "Symbols per batch.")
    learning_rate: float = option(0.0, "Peak learning rate; 0: chosen for each model.")
    schedule: Schedule = option("cosine", "Learning rate schedule after warm-up.")
    weight_decay: float = option(0.0, "Weight decay; not applied to biases and layer norms.")
    num_symbols: int = option(20, "Number of different symbols.", 2, 10_000)
    longest: int = option(24, "Maximum sequence length in symbols.", 2, 500)
    num_sequences: int = option(20_000, "Number of training sequences.", 1, 10**9)
    num_tests: int = option(100, "Test sequences per length.", 1, 10**6)
    width: int = option(128, "Dimensions of a state or symbol vector.", 8, 8_192)
