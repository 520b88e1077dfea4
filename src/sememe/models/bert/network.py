"""BERT: a stack of post-norm blocks that see both sides of every token (Devlin et al. 2019).

B rows, T positions, N tokens of all rows concatenated, M of them masked, D width, V vocabulary. Ids
and segments come in; token vectors go out, and from them predictions at masked positions and
whether one text follows another. `MaskedObjective` is what the training loop sees.

The papers initialize every weight with a standard deviation of 0.02, which suits 768 dimensions.
With 128 dimensions, attention then passes on almost nothing, and training stays for thousands of
steps at the level of token frequencies: small networks start differently (`start_quickly`).
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.examples.batches import Batch
from sememe.models.bert.config import BERTConfig
from sememe.nn.blocks import CompiledObjective, Stack, TokenNetwork
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
from sememe.nn.rows import BERTInputs, bert_inputs
from sememe.nn.softmax import metrics_of, score, score_tokens


class BERTEmbedding(nn.Module):
    """The sum of the token, position and segment embeddings."""

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.tokens = nn.Embedding(config.padded_vocab_size, config.width)
        self.segments = nn.Embedding(config.num_segments, config.width)
        self.positions = Positions(config.max_length, config.width, config.positions)
        self.norm = LayerNorm(config.width, eps=config.norm_eps)

    def forward(self, ids_N: Tensor, segments_N: Tensor, positions_N: Tensor) -> Tensor:
        """Look up and add the three vectors of each token, (N, D)."""
        # A product with one-hot rows, because gradients of a table of two rows would be serialized.
        is_segment_NS = functional.one_hot(segments_N, self.segments.num_embeddings)
        segments_ND = is_segment_NS.to(self.segments.weight.dtype) @ self.segments.weight
        hidden_ND = self.tokens(ids_N) + self.positions(positions_N) + segments_ND
        return drop_out(self.norm(hidden_ND), self.dropout if self.training else 0.0)


class BERTNetwork(TokenNetwork):
    """BERT with its two pre-training heads: masked tokens and next sentences."""

    def __init__(self, config: BERTConfig, *, seed: int = 1) -> None:
        super().__init__(config)
        self.config = config
        self.embedding = BERTEmbedding(config)
        self.stack = Stack(config, is_causal=False, is_prenorm=False)
        self.norm = nn.Identity()  # every block ends with one of its own
        self.pooler = Linear(config.width, config.width)
        self.masked_transform = Linear(config.width, config.width)
        self.masked_norm = LayerNorm(config.width, eps=config.norm_eps)
        self.masked_bias = nn.Parameter(torch.zeros(config.padded_vocab_size))
        self.next_head = Linear(config.width, 2)
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Initialize the weights as in the paper, or for a quick start, by a seed."""
        generator = torch.Generator().manual_seed(seed)
        initialise(self, self.config.initial_std, generator)
        self.embedding.positions.initialise(self.config.initial_std, generator)
        if self.config.start == "quick":
            embedding = self.embedding
            start_quickly(
                embedding.tokens.weight, embedding.positions.weight, self.stack, generator
            )
        with torch.no_grad():
            self.embedding.tokens.weight[self.config.vocab_size :] = 0

    def pool(self, first_BD: Tensor) -> Tensor:
        """The vector of a row, from that of its first token, [CLS], (B, D)."""
        return torch.tanh(self.pooler(first_BD))

    def masked_logits(self, hidden_MD: Tensor) -> Tensor:
        """Score every vocabulary token at masked positions, (M, V); tied to the embedding."""
        return table_logits(self._transformed(hidden_MD), *self._table())

    def _transformed(self, hidden_MD: Tensor) -> Tensor:
        transformed_MD = activate(self.masked_transform(hidden_MD), self.config.activation)
        return self.masked_norm(transformed_MD)

    def _table(self) -> tuple[Tensor, Tensor, int]:
        return self.embedding.tokens.weight, self.masked_bias, self.config.vocab_size

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


_LENGTH = 0.02 * math.sqrt(768)  # of the first vector of a token in BERT base


@torch.no_grad()
def start_quickly(
    tokens_VD: Tensor, positions_TD: Tensor, stack: Stack, generator: torch.Generator
) -> None:
    """Scale token vectors as in BERT base, start positions as sine waves, and preserve values."""
    width = tokens_VD.shape[1]
    nn.init.normal_(tokens_VD, std=_LENGTH / math.sqrt(width), generator=generator)
    if isinstance(positions_TD, nn.Parameter):
        # A shift to the left or right is the same rotation everywhere, so it is learned once.
        waves_TD = sinusoidal_table(*positions_TD.shape)
        positions_TD.copy_(waves_TD * (_LENGTH * math.sqrt(2 / width)))
    for block in stack:
        for weight in (
            block.attention.projection.weight[2 * width :],
            block.attention.output.weight,
        ):
            nn.init.normal_(weight, std=1 / math.sqrt(width), generator=generator)


class MaskedObjective(CompiledObjective):
    """BERT's two objectives: masked tokens and, with pairs, whether B follows A."""

    def __init__(self, network: BERTNetwork, *, has_pairs: bool) -> None:
        super().__init__(network)
        self.counted_by = {"masked_loss": "masked", "masked_accuracy": "masked"}
        if has_pairs:
            self.counted_by |= {"next_loss": "pairs", "next_accuracy": "pairs"}
        else:  # other processes must not wait for parameters that no loss reaches
            for part in (network.pooler, network.next_head):
                part.requires_grad_(False)
            network.untrained = network.untrained | {"pooler", "next head"}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Tokens, masked tokens and pairs of a batch."""
        assert batch.targets_N is not None
        return {
            "tokens": batch.num_tokens,
            "masked": len(batch.targets_N),
            "pairs": len(batch.lengths_B),
        }

    def prepare(self, batch: Batch) -> BERTInputs:
        """Concatenate the rows of a batch."""
        return bert_inputs(batch)

    def forward(
        self, inputs: BERTInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        num_pairs = counts.get("pairs", inputs.num_pairs)
        return self.network.loss(inputs._replace(num_targets=counts["masked"], num_pairs=num_pairs))
