"""BERT: a stack of post-norm blocks that see both sides of every token (Devlin et al. 2019).

B rows, T positions, N tokens of all rows concatenated, M of them masked, D width, V vocabulary. Ids
and segments come in; token vectors go out, and from them predictions at masked positions and
whether one text follows another. `MaskedObjective` is what the training loop sees.

The papers initialize every weight with a standard deviation of 0.02, which suits 768 dimensions.
With 128 dimensions, attention then passes on almost nothing, and training stays for thousands of
steps at the level of token frequencies: small networks start differently (`start_quickly`).
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.examples.batches import Batch
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.families import FamilyConfig
from sememe.nn.blocks import PLAIN, BlockVariant, CompiledObjective, Stack, TokenNetwork
from sememe.nn.layers import (
    LayerNorm,
    Linear,
    Positions,
    activate,
    drop_out,
    initialise,
    sinusoidal_table,
    table_logits,
)
from sememe.nn.rows import BERTInputs, bert_inputs, filled_up, num_pairs
from sememe.nn.softmax import metrics_of, score, score_tokens


class BERTEmbedding(nn.Module):
    """The sum of the token, position and segment embeddings, as far as the family has them."""

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.dropout, width = config.dropout, config.embedding_width
        self.first_position = config.first_position
        self.tokens = nn.Embedding(config.padded_vocab_size, width)
        self.segments: Any = None
        if config.num_segments:
            self.segments = nn.Embedding(config.num_segments, width)
        self.positions: Any = None
        if config.positions != "rotary":
            num_positions = config.first_position + config.max_length
            self.positions = Positions(num_positions, width, config.positions)
        self.norm = LayerNorm(width, eps=config.norm_eps, bias=not config.is_modern)
        self.projection = Linear(width, config.width) if config.has_projection else None
        # Another embedding, to whose tables those here are added without gradients: replaced.py.
        # In a tuple, since it is not a part of this network.
        self.shared: tuple[BERTEmbedding, ...] = ()

    def forward(self, ids_N: Tensor, segments_N: Tensor, positions_N: Tensor) -> Tensor:
        """Look up and add the vectors of each token, (N, D)."""
        hidden_ND = self.tokens(ids_N)
        if self.positions is not None:
            hidden_ND = hidden_ND + self.positions(positions_N + self.first_position)
        for base in self.shared:
            hidden_ND = hidden_ND + functional.embedding(ids_N, base.tokens.weight.detach())
            if self.positions is not None:
                own = positions_N + self.first_position
                hidden_ND = hidden_ND + functional.embedding(own, base.positions.weight.detach())
        if self.segments is not None:
            hidden_ND = hidden_ND + self._of_segments(segments_N)
        hidden_ND = drop_out(self.norm(hidden_ND), self.dropout if self.training else 0.0)
        return hidden_ND if self.projection is None else self.projection(hidden_ND)

    def _of_segments(self, segments_N: Tensor) -> Tensor:
        num_segments, table = self.segments.num_embeddings, self.segments.weight
        if num_segments == 1:  # both texts of a pair look alike
            segments_N = torch.zeros_like(segments_N)
        # A product with one-hot rows, because gradients of a table of two rows would be serialized.
        return functional.one_hot(segments_N, num_segments).to(table.dtype) @ table


def block_variants(config: BERTConfig) -> list[BlockVariant]:
    """How each block differs from BERT's."""
    if not isinstance(config, FamilyConfig) or not config.is_modern:
        return [PLAIN] * (config.num_groups or config.num_layers)
    variants = []
    for layer in range(config.num_layers):
        is_global = layer % config.global_every == 0
        variants.append(
            BlockVariant(
                has_biases=False,
                is_gated=True,
                has_attention_norm=layer > 0,
                theta=config.global_theta if is_global else config.local_theta,
                window=0 if is_global else config.window,
            )
        )
    return variants


class BERTNetwork(TokenNetwork):
    """BERT with its two pre-training heads: masked tokens and next sentences."""

    def __init__(self, config: BERTConfig, *, seed: int = 1) -> None:
        super().__init__(config)
        self.config = config
        self.embedding = BERTEmbedding(config)
        has_bias = not config.is_modern
        self.stack = Stack(
            config, is_causal=False, is_prenorm=config.is_modern, variants=block_variants(config),
            order=config.order,
        )  # fmt: skip
        self.norm: nn.Module = nn.Identity()  # every post-norm block ends with one of its own
        if config.is_modern:
            self.norm = LayerNorm(config.width, eps=config.norm_eps, bias=has_bias)
        self.pooler = Linear(config.width, config.width)
        self.masked_transform = Linear(config.width, config.embedding_width, bias=has_bias)
        self.masked_norm = LayerNorm(config.embedding_width, eps=config.norm_eps, bias=has_bias)
        self.masked_bias = nn.Parameter(torch.zeros(config.padded_vocab_size))
        self.next_head = Linear(config.width, 2)
        if config.has_replaced_head:
            self.replaced_transform = Linear(config.width, config.width)
            self.replaced_head = Linear(config.width, 1)
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Initialize the weights as in the paper, or for a quick start, by a seed."""
        generator = torch.Generator().manual_seed(seed)
        initialise(self, self.config.initial_std, generator)
        if self.embedding.positions is not None:
            self.embedding.positions.initialise(self.config.initial_std, generator)
        if self.config.start == "quick":
            start_quickly(self.embedding, self.stack, generator)
        with torch.no_grad():
            self.embedding.tokens.weight[self.config.vocab_size :] = 0
            if self.config.is_modern and self.config.start == "paper":
                # What 2 L parts add to the residual stream does not grow with depth (Radford et
                # al. 2019, 2.3); ModernBERT does the same.
                for block in self.stack:
                    for part in (block.attention.output, block.feed_forward.output):
                        part.weight.div_(math.sqrt(2 * self.config.num_layers))

    def pool(self, first_BD: Tensor) -> Tensor:
        """The vector of a row, from that of its first token, [CLS], (B, D)."""
        return torch.tanh(self.pooler(first_BD))

    def masked_logits(self, hidden_MD: Tensor) -> Tensor:
        """Score every vocabulary token at masked positions, (M, V); tied to the embedding."""
        return table_logits(self._transformed(hidden_MD), *self._table())

    def _transformed(self, hidden_MD: Tensor) -> Tensor:
        transformed_MD = activate(self.masked_transform(hidden_MD), self.config.head_activation)
        return self.masked_norm(transformed_MD)

    def _table(self) -> tuple[Tensor, Tensor, int]:
        return self.embedding.tokens.weight, self.masked_bias, self.config.vocab_size

    def replaced_logits(self, hidden_ND: Tensor) -> Tensor:
        """Score whether each token was replaced, (N,); above 0: it was."""
        transformed_ND = activate(self.replaced_transform(hidden_ND), self.config.activation)
        return self.replaced_head(transformed_ND).squeeze(-1)

    def head_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters of the pre-training heads, each with the name of its head."""
        for start, head in _HEADS.items():
            for name, parameter in self.named_parameters():
                if name.startswith(start):
                    yield head, parameter

    def train_heads(self, heads: set[str]) -> None:
        """Train only these heads; the others are untrained afterwards."""
        # Other processes must not wait for parameters that no loss reaches.
        for head, parameter in self.head_parameters():
            parameter.requires_grad_(head in heads)
        own = {head for head, _ in self.head_parameters()}
        self.untrained = (self.untrained | own) - heads

    def next_logits(self, pooled_BD: Tensor) -> Tensor:
        """Score "follows" and "does not follow" for each pair of texts, (B, 2)."""
        return self.next_head(pooled_BD)

    def loss(self, batch: BERTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, both tasks added, and the sums to report."""
        wanted_M = batch.hidden_M
        if batch.follows_B is not None:
            first_B = batch.rows.first_tokens(wanted_M.device)
            wanted_M = torch.cat([wanted_M, first_B])
        return self.head_loss(self.encode(*batch[:4], wanted_M), batch)

    def head_loss(self, wanted_MD: Tensor, batch: BERTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss and the sums to report, from the vectors of masked and first tokens."""
        num_hidden = batch.hidden_M.shape[0]
        hidden_MD = self._transformed(wanted_MD[:num_hidden])
        masked = score_tokens(hidden_MD, *self._table(), batch.targets_M)
        loss = masked.loss / batch.num_targets
        if batch.follows_B is None:
            return loss, metrics_of(masked=masked)
        logits_B2 = self.next_logits(self.pool(wanted_MD[num_hidden:]))
        follows = score(logits_B2, batch.follows_B)
        return loss + follows.loss / batch.num_pairs, metrics_of(masked=masked, next=follows)


# The heads by how the names of their parameters start.
_HEADS = {
    "masked_": "masked head", "pooler.": "pooler", "next_head.": "next head",
    "replaced_": "replaced head",
}  # fmt: skip
_LENGTH = 0.02 * math.sqrt(768)  # of the first vector of a token in BERT base


@torch.no_grad()
def start_quickly(embedding: Any, stack: Stack, generator: torch.Generator) -> None:
    """Scale token vectors as in BERT base, start positions as sine waves, and preserve values."""
    tokens_VD = embedding.tokens.weight
    width = tokens_VD.shape[1]
    nn.init.normal_(tokens_VD, std=_LENGTH / math.sqrt(width), generator=generator)
    positions_TD = None if embedding.positions is None else embedding.positions.weight
    if isinstance(positions_TD, nn.Parameter):
        # A shift to the left or right is the same rotation everywhere, so it is learned once.
        waves_TD = sinusoidal_table(*positions_TD.shape)
        positions_TD.copy_(waves_TD * (_LENGTH * math.sqrt(2 / width)))
    if embedding.projection is not None:
        nn.init.normal_(embedding.projection.weight, std=1 / math.sqrt(width), generator=generator)
    for block in stack:
        width = block.attention.output.out_features
        for weight in (
            block.attention.projection.weight[2 * width :],
            block.attention.output.weight,
        ):
            nn.init.normal_(weight, std=1 / math.sqrt(width), generator=generator)


# Tokens and targets of a step that is compiled as a whole are multiples of these: a batch of
# 131,072 tokens then has one of a few sizes.
FIXED_TOKENS, FIXED_TARGETS = 4096, 1024


class MaskedObjective(CompiledObjective):
    """BERT's two objectives: masked tokens and, with pairs, whether B follows A."""

    def __init__(self, network: BERTNetwork, *, has_pairs: bool) -> None:
        super().__init__(network)
        self._fixed_length, self._has_graphs = 0, False
        self.counted_by = {"masked_loss": "masked", "masked_accuracy": "masked"}
        if has_pairs:
            self.counted_by |= {"next_loss": "pairs", "next_accuracy": "pairs"}
        pair_heads = {"pooler", "next head"}
        network.train_heads({"masked head"} | (pair_heads if has_pairs else set()))

    def counts(self, batch: Batch) -> dict[str, int]:
        """Tokens, masked tokens and pairs of a batch."""
        assert batch.targets_N is not None
        return {
            "tokens": batch.num_tokens,
            "masked": len(batch.targets_N),
            "pairs": num_pairs(batch),
        }

    def compile_step(self, length: int, **options: Any) -> None:
        """Compile the whole network as one graph, for batches of few sizes."""
        self._fixed_length, self._has_graphs = length, options.get("mode") == "reduce-overhead"
        self.network.loss = torch.compile(self.network.loss, dynamic=False, **options)

    def prepare(self, batch: Batch) -> BERTInputs:
        """Concatenate the rows of a batch, filled up if a whole step is compiled."""
        if not self._fixed_length:
            return bert_inputs(batch)
        assert batch.targets_N is not None
        filled = filled_up(batch, self._fixed_length, FIXED_TOKENS, FIXED_TARGETS)
        counts = torch.tensor(float(max(len(batch.targets_N), 1)))
        return bert_inputs(filled)._replace(num_targets=counts)

    def forward(
        self, inputs: BERTInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        num_pairs = counts.get("pairs", inputs.num_pairs)
        if self._has_graphs:
            # What the batch before gave may be overwritten: in a validation nothing else says so,
            # and every batch would be recorded as a graph of its own.
            torch.compiler.cudagraph_mark_step_begin()
        return self.network.loss(inputs._replace(num_targets=counts["masked"], num_pairs=num_pairs))
