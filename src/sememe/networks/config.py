"""The sizes of BERT and GPT: one dataclass for the command, the Python call and sememe.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.options import check_choices, check_ranges, option

Activation = Literal["gelu", "gelu_tanh", "relu"]
Positions = Literal["learned", "sinusoidal"]
Start = Literal["paper", "quick"]
ACTIVATIONS = ("gelu", "gelu_tanh", "relu")


class NetworkConfig:
    """The base of the frozen dataclasses that hold the sizes of a network."""

    vocab_size: int

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the table of words or tokens: matrix units work in tiles of 64."""
        return -(-self.vocab_size // 64) * 64

    def to_dict(self) -> dict[str, Any]:
        """The options as they are kept in sememe.json."""
        return asdict(self)  # type: ignore[call-overload]


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(NetworkConfig):
    """What every stack of Transformer blocks needs to know."""

    vocab_size: int = option(30_522, "Sub-words; the tokenizer's number when one is given.")
    num_layers: int = option(12, "Transformer blocks.")
    width: int = option(768, "Numbers in the vector of a token.")
    num_heads: int = option(12, "Attention heads in a block; they share the width.")
    inner_size: int = option(0, "Numbers inside the feed-forward part; 0 takes four widths.")
    max_length: int = option(512, "Most tokens that the network can see at once.")
    positions: Positions = option("learned", "Learned positions, or the Transformer's sine waves.")
    dropout: float = option(0.1, "Share of a block's outputs left out in training.")
    attention_dropout: float = option(0.1, "Share of the attention left out in training.")
    activation: Activation = option("gelu", "Inside the feed-forward part.")
    norm_eps: float = option(1e-12, "Added to the variance in layer normalisation.")
    initial_std: float = option(0.02, "Spread of the first weights.")

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        check_choices(self, activation=ACTIVATIONS, positions=("learned", "sinusoidal"))
        check_ranges(
            self, vocab_size=(1, 2**31), num_layers=(1, 1_000), width=(1, 100_000),
            num_heads=(1, 10_000), inner_size=(0, 1_000_000), max_length=(1, 10_000_000),
            dropout=(0, 0.99), attention_dropout=(0, 0.99), norm_eps=(0, 1), initial_std=(0, 10),
        )  # fmt: skip
        if self.width % self.num_heads:
            raise OptionError(
                f"width must be a multiple of num_heads, not {self.width} and {self.num_heads}."
            )

    @property
    def inner_width(self) -> int:
        """Numbers inside the feed-forward part."""
        return self.inner_size or 4 * self.width

    @property
    def head_size(self) -> int:
        """Numbers in the queries and keys of one head."""
        return self.width // self.num_heads


@dataclass(frozen=True, kw_only=True)
class BERTConfig(TransformerConfig):
    """The sizes of BERT (Devlin et al. 2019); the defaults are those of BERT base."""

    num_segments: int = option(2, "Kinds of segments: sentence A and sentence B.")
    start: Start = option(
        "paper", "First weights: the paper's, or such that a small network learns sooner."
    )

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        super().__post_init__()
        check_choices(self, start=("paper", "quick"))
        check_ranges(self, num_segments=(1, 1_000))


@dataclass(frozen=True, kw_only=True)
class GPTConfig(TransformerConfig):
    """The sizes of GPT (Radford et al. 2018, 2019); the defaults are those of GPT-2 small."""

    vocab_size: int = option(50_257, "Sub-words; the tokenizer's number when one is given.")
    max_length: int = option(1_024, "Most tokens that the network can see at once.")
    activation: Activation = option("gelu_tanh", "Inside the feed-forward part.")
    norm_eps: float = option(1e-5, "Added to the variance in layer normalisation.")
    norm: Literal["pre", "post"] = option(
        "pre", "Normalise before each part of a block (GPT-2) or after it (GPT-1)."
    )

    def __post_init__(self) -> None:
        """Refuse sizes that no network could have, naming the option and its range."""
        super().__post_init__()
        check_choices(self, norm=("pre", "post"))
