"""The sizes and the training of models that translate: one dataclass each for call and command."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.networks.config import Activation, NetworkConfig, Positions, TransformerConfig
from sememe.networks.presets import chosen
from sememe.options import check_choices, check_ranges, option
from sememe.tokens.subword_config import Kind
from sememe.training.config import Schedule, TrainingConfig

Penalty = Literal["gnmt", "average", "none"]
Cell = Literal["lstm", "gru"]
Attention = Literal["multiplicative", "additive", "none"]
Context = Literal["after", "feeding", "before"]
CELLS, ATTENTIONS = ("lstm", "gru"), ("multiplicative", "additive", "none")
CONTEXTS = ("after", "feeding", "before")


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(TransformerConfig):
    """The sizes of the Transformer (Vaswani et al. 2017); the defaults are those of its base."""

    vocab_size: int = option(37_000, "Sub-words of both languages together.")
    num_layers: int = option(6, "Blocks of the encoder, and as many of the decoder.")
    width: int = option(512, "Numbers in the vector of a token.")
    num_heads: int = option(8, "Attention heads in a block; they share the width.")
    positions: Positions = option("sinusoidal", "The paper's sine waves, or learned positions.")
    activation: Activation = option("relu", "Inside the feed-forward part.")
    norm_eps: float = option(1e-6, "Added to the variance in layer normalisation.")
    initial_std: float = option(0.0, "Spread of the first weights; 0: Xavier's, as the paper's.")
    norm: Literal["post", "pre"] = option(
        "post", "Normalise after each part of a block, as in the paper, or before it."
    )

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        super().__post_init__()
        check_choices(self, norm=("pre", "post"))


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(NetworkConfig):
    """The sizes of an encoder and a decoder of LSTM or GRU layers, and how they look at each other.

    The context of a step enters `after` the decoder has read its token (Luong et al. 2015, 3): so
    the whole target is read at once, by cuDNN on a GPU. With `feeding` what a step said also enters
    the next one (their 3.3), and `before` looks with the state before the token (Bahdanau et al.
    2015): both go step by step. Without attention all of a source is in one vector.
    """

    vocab_size: int = option(8_000, "Sub-words of both languages together.")
    num_layers: int = option(2, "Layers of the encoder, and as many of the decoder.")
    width: int = option(512, "Numbers in a state; each direction of the encoder has half of them.")
    embedding_size: int = option(256, "Numbers in the vector of a token.")
    cell: Cell = option("lstm", "The kind of layers: lstm or gru.")
    attention: Attention = option(
        "multiplicative", "Luong's attention, Bahdanau's (additive), or one vector for a text."
    )
    context: Context = option(
        "after", "Where the context enters: after a step, fed to the next too, or before."
    )
    dropout: float = option(0.3, "Share of vectors and of layers' outputs left out in training.")
    max_length: int = option(512, "Most tokens of a text.")

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        check_choices(self, cell=CELLS, attention=ATTENTIONS, context=CONTEXTS)
        check_ranges(
            self, vocab_size=(1, 2**31), num_layers=(1, 100), width=(2, 100_000),
            embedding_size=(1, 100_000), dropout=(0, 0.99), max_length=(1, 10_000_000),
        )  # fmt: skip
        if self.width % 2:
            raise OptionError(f"width must be even, for two directions, not {self.width}.")


@dataclass(frozen=True, kw_only=True)
class TranslationTrainingConfig(TrainingConfig):
    """How a model that translates is trained: batches by tokens, labels smoothed."""

    batch_size: int = option(
        0, "Tokens of a step, of the longer side of each pair; 0 takes that of the preset."
    )
    length: int = option(128, "Most tokens of either side; longer pairs are left out.")
    warmup: float = option(0.1, "Steps in which the rate rises; below 1 their share of all.")
    schedule: Schedule = option("inverse-sqrt", "How the rate falls after that.")
    weight_decay: float = option(0.0, "Decay of the weights; biases and norms are left out.")
    epsilon: float = option(1e-9, "Added to the sizes of gradients, as in the paper.")
    smoothing: float = option(0.1, "Share of the truth that is spread over all tokens.")
    pieces: Kind = option("bpe", "The sub-words both languages share; wordpiece: BERT's.")
    lowercase: bool = option(False, "Turn both sides into lower case.")
    dev_share: float = option(0.02, "Share of the pairs held out where no dev pairs are given.")
    average: int = option(5, "Validations, the best by dev loss, whose weights are averaged.")
    patience: int = option(0, "Stop after so many validations without a lower loss; 0 never.")
    evaluate_batches: int = option(1_000, "Batches of one validation; 0 validates nothing.")
    bleu_pairs: int = option(1_000, "Dev pairs translated at the end for BLEU; 0 none.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        super().__post_init__()
        check_choices(self, pieces=("bpe", "wordpiece"))
        check_ranges(
            self, smoothing=(0, 0.9), dev_share=(0, 0.9), average=(1, 1_000),
            patience=(0, 10**9), bleu_pairs=(0, 10**9),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RecurrentTrainingConfig(TranslationTrainingConfig):
    """How LSTM and GRU layers learn to translate: at a rate that falls to nothing."""

    warmup: float = option(0.02, "Steps in which the rate rises; below 1 their share of all.")
    schedule: Schedule = option("cosine", "How the rate falls after that.")


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How a translation is looked for."""

    beam: int = option(5, "Hypotheses that are followed; 1 takes the likeliest token each time.")
    n_best: int = option(1, "Translations to give of each text, the best first.")
    penalty: Penalty = option("gnmt", "How lengths are made equal: GNMT's, the average, or none.")
    alpha: float = option(0.6, "How strongly; 1 with average is the mean over the tokens.")
    max_extra: int = option(50, "Most tokens that a translation is longer than its source.")

    def __post_init__(self) -> None:
        """Refuse options out of their ranges."""
        check_choices(self, penalty=("gnmt", "average", "none"))
        check_ranges(
            self, beam=(1, 10_000), n_best=(1, 10_000), alpha=(0, 100), max_extra=(1, 100_000)
        )
        if self.n_best > self.beam:
            raise OptionError(
                f"n_best ({self.n_best}) must not pass beam ({self.beam}): it gives no more."
            )

    def to_dict(self) -> dict[str, Any]:
        """The options by name."""
        return asdict(self)


def _size(num_layers: int, width: int, num_heads: int, dropout: float) -> dict[str, Any]:
    sizes = {"num_layers": num_layers, "width": width, "num_heads": num_heads}
    return {**sizes, "dropout": dropout, "attention_dropout": min(dropout, 0.1)}


# base and big: table 3 of the paper. Small ones, with more dropout, for tens of thousands of pairs.
TRANSFORMER_PRESETS = {
    "tiny": EncoderDecoderConfig(**_size(4, 128, 4, 0.3), inner_size=256, vocab_size=8_000),
    "small": EncoderDecoderConfig(**_size(4, 256, 4, 0.3), vocab_size=8_000),
    "base": EncoderDecoderConfig(),
    "big": EncoderDecoderConfig(**_size(6, 1024, 16, 0.3)),
}

# The paper's rate rises to 1/√(width × 4,000): 7e-4 for base, 4.9e-4 for big.
TRANSFORMER_RATES = {"tiny": 1.5e-3, "small": 1e-3, "base": 7e-4, "big": 4.9e-4}
BATCH_TOKENS = {"tiny": 4_096, "small": 4_096, "base": 25_000, "big": 25_000}


SEQ2SEQ_PRESETS = {
    "tiny": RecurrentConfig(num_layers=1, width=128, embedding_size=128),
    "small": RecurrentConfig(),
    "base": RecurrentConfig(num_layers=4, width=1_000, embedding_size=1_000, vocab_size=37_000),
}
SEQ2SEQ_RATES = {"tiny": 3e-3, "small": 1e-3, "base": 5e-4}


def seq2seq_config(preset: str = "small", **options: Any) -> RecurrentConfig:
    """The sizes of a preset (tiny, small, base as in Luong et al. 2015), some options replaced."""
    return chosen(SEQ2SEQ_PRESETS, "Seq2Seq", preset, options)


def transformer_config(preset: str = "base", **options: Any) -> EncoderDecoderConfig:
    """The sizes of a preset (tiny, small, base, big), some options replaced."""
    return chosen(TRANSFORMER_PRESETS, "Transformer", preset, options)
