"""Encoders that descend from BERT: what their folders say that a plain BERT's need not.

RoBERTa and XLM-R: positions start after a few unused rows, and pairs have no segments. DistilBERT:
no segments. ELECTRA: embeddings of another size. ALBERT: so too, and layers share their weights.
ModernBERT: pre-norm blocks with gates and rotary positions, most of them with local attention.
"""

from dataclasses import dataclass
from typing import Literal, Self

from sememe.errors import OptionError
from sememe.models.bert.config import BERTConfig
from sememe.options import option

Family = Literal["roberta", "xlm-roberta", "distilbert", "electra", "albert", "modernbert"]


# Of a ModernBERT that sememe trains: a multiple for matrix units, and ModernBERT's own values.
_INNER_STEP, _WINDOW, _THETA, _NORM_EPS = 64, 64, 10_000.0, 1e-5


@dataclass(frozen=True, kw_only=True)
class FamilyConfig(BERTConfig):
    """The sizes of an encoder of another family, from its config.json."""

    family: Family = option("roberta", "Encoder family.")
    num_segments: int = option(2, "Number of segment embeddings; 0: none.", 0, 1_000)
    positions: Literal["learned", "sinusoidal", "rotary"] = option(  # type: ignore[assignment]
        "learned", "Position embeddings: learned, sinusoidal, or rotary."
    )
    first_position: int = option(0, "Row of the first position in its table.", 0, 1_000_000)
    embedding_size: int = option(0, "Dimensions of the embeddings; 0: the width.", 0, 100_000)
    num_groups: int = option(0, "Blocks that layers share; 0: none are shared.", 0, 1_000)
    window: int = option(0, "Distance that local attention reaches.", 0, 10**7)
    global_every: int = option(1, "Every how many layers attention is global.", 1, 1_000)
    global_theta: float = option(160_000.0, "Rotary base of global attention.", 1e-3, 1e12)
    local_theta: float = option(10_000.0, "Rotary base of local attention.", 1e-3, 1e12)

    @property
    def is_modern(self) -> bool:
        """Whether blocks are pre-norm, gated and without biases."""
        return self.family == "modernbert"

    @property
    def embedding_width(self) -> int:
        """Dimensions of the embeddings, before they are projected to the width."""
        return self.embedding_size or self.width

    @property
    def has_projection(self) -> bool:
        """Whether embeddings are projected; ALBERT does so whatever their size."""
        return self.family == "albert" or self.embedding_width != self.width

    @property
    def has_next_head(self) -> bool:
        """Whether the family predicts if one text follows another."""
        return self.family == "albert"

    @property
    def has_replaced_head(self) -> bool:
        """Whether it may detect replaced tokens: in ModernBERT's case a head of sememe alone."""
        return self.family in ("electra", "modernbert")

    @property
    def head_activation(self) -> str:
        """The activation of the masked head, which some families fix."""
        return self.activation if self.family in ("albert", "distilbert") else "gelu"

    @classmethod
    def modern(cls, config: BERTConfig) -> Self:
        """The sizes of a ModernBERT for those of a BERT, with about as many weights in a block."""
        # Two matrices of four times the width have the weights of three of 8/3.
        inner_size = max(1, round(8 * config.width / (3 * _INNER_STEP))) * _INNER_STEP
        if config.width // config.num_heads % 2:
            raise OptionError(
                "Rotary positions turn pairs of dimensions: width ÷ num_heads must be even, not "
                f"{config.width} ÷ {config.num_heads}."
            )
        return cls(
            family="modernbert", vocab_size=config.vocab_size, num_layers=config.num_layers,
            width=config.width, num_heads=config.num_heads,
            inner_size=config.inner_size or inner_size, max_length=config.max_length,
            num_segments=0, positions="rotary", dropout=config.dropout,
            attention_dropout=config.attention_dropout, activation=config.activation,
            norm_eps=_NORM_EPS, initial_std=config.initial_std, start=config.start,
            # Rows of some hundred tokens need no local attention, nor slower rotations for it.
            window=_WINDOW, global_every=1, global_theta=_THETA, local_theta=_THETA,
        )  # fmt: skip

    @property
    def order(self) -> list[int]:
        """The index of the block that computes each layer."""
        # The division of the released program, whose rounding decides at some sizes.
        layers_per_group = self.num_layers / (self.num_groups or self.num_layers)
        return [int(layer / layers_per_group) for layer in range(self.num_layers)]
