"""BERT: a stack of post-norm blocks that see both sides of every token (Devlin et al. 2019).

B rows, T positions, N tokens of all rows laid end to end, M of them hidden, D width, V vocabulary.
Ids and segments come in; vectors of tokens go out, and from them the likeliest words at hidden
places and whether one text follows another.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.networks.blocks import Stack
from sememe.networks.config import BERTConfig
from sememe.networks.dropout import leave_out
from sememe.networks.inputs import BERTInputs
from sememe.networks.layers import LayerNorm, Linear, activate, initialise, table_logits
from sememe.networks.positions import Positions
from sememe.networks.prediction import figures_of, score, score_tokens
from sememe.networks.quick_start import start_quickly
from sememe.networks.rows import Rows, padded_rows


class BERTEmbedding(nn.Module):
    """The sum of what a token is, where it stands and which text it belongs to."""

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.tokens = nn.Embedding(config.padded_vocab_size, config.width)
        self.segments = nn.Embedding(config.num_segments, config.width)
        self.positions = Positions(config.max_length, config.width, config.positions)
        self.norm = LayerNorm(config.width, eps=config.norm_eps)

    def forward(self, ids_N: Tensor, segments_N: Tensor, positions_N: Tensor) -> Tensor:
        """Look up and add the three vectors of each token, (N, D)."""
        # A product with one-hot rows: the gradient of a table of two rows would be a queue.
        is_segment_NS = functional.one_hot(segments_N, self.segments.num_embeddings)
        segments_ND = is_segment_NS.to(self.segments.weight.dtype) @ self.segments.weight
        hidden_ND = self.tokens(ids_N) + self.positions(positions_N) + segments_ND
        return leave_out(self.norm(hidden_ND), self.dropout if self.training else 0.0)


class BERTNetwork(nn.Module):
    """BERT with its two heads for pre-training: hidden words and next sentences."""

    def __init__(self, config: BERTConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        # What flows between the layers; the weights stay in float32 whatever it is.
        self.precision = torch.float32
        # Heads that no training has seen, because a file lacked them.
        self.untrained: frozenset[str] = frozenset()
        # The longest rows of its training: what it knows of later positions is chance.
        self.seen_length = config.max_length
        self.embedding = BERTEmbedding(config)
        self.stack = Stack(config, is_causal=False, is_prenorm=False)
        self.pooler = Linear(config.width, config.width)
        self.masked_transform = Linear(config.width, config.width)
        self.masked_norm = LayerNorm(config.width, eps=config.norm_eps)
        self.masked_bias = nn.Parameter(torch.zeros(config.padded_vocab_size))
        self.next_head = Linear(config.width, 2)
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Draw the first weights as the paper does, or for a quick start; a seed fixes them."""
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

    def forward(
        self, ids_BT: Tensor, segments_BT: Tensor | None = None, lengths_B: Tensor | None = None
    ) -> Tensor:
        """Vectors of the tokens of padded rows, (B, T, D); without lengths every place counts."""
        rows = padded_rows(ids_BT, lengths_B)
        return rows.padded(self.stack(self.embed(ids_BT, segments_BT), rows))

    def layers(
        self, ids_BT: Tensor, segments_BT: Tensor | None = None, lengths_B: Tensor | None = None
    ) -> list[Tensor]:
        """The embedding and the output of every block, L + 1 tensors (B, T, D)."""
        rows = padded_rows(ids_BT, lengths_B)
        return [rows.padded(x) for x in self.stack.layers(self.embed(ids_BT, segments_BT), rows)]

    def maps(
        self, ids_BT: Tensor, segments_BT: Tensor | None = None, lengths_B: Tensor | None = None
    ) -> list[Tensor]:
        """The attention of every block, L tensors (B, H, T, S): row t says where t looks."""
        rows = padded_rows(ids_BT, lengths_B)
        return self.stack.maps(self.embed(ids_BT, segments_BT), rows)

    def embed(self, ids_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        """What the first block sees of padded rows, (B × T, D)."""
        segments_BT = torch.zeros_like(ids_BT) if segments_BT is None else segments_BT
        positions_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device).expand_as(ids_BT)
        hidden_ND = self.embedding(ids_BT.flatten(), segments_BT.flatten(), positions_BT.flatten())
        return hidden_ND.to(self.precision)

    def encode(
        self,
        ids_N: Tensor,
        segments_N: Tensor,
        positions_N: Tensor,
        rows: Rows,
        wanted_M: Tensor | None = None,
    ) -> Tensor:
        """Vectors of tokens laid end to end, (N, D), or of those that are wanted, (M, D)."""
        hidden_ND = self.embedding(ids_N, segments_N, positions_N).to(self.precision)
        return self.stack(hidden_ND, rows, wanted_M)

    def pool(self, first_BD: Tensor) -> Tensor:
        """The vector of a whole row from that of its first token, [CLS], (B, D)."""
        return torch.tanh(self.pooler(first_BD))

    def masked_logits(self, hidden_MD: Tensor) -> Tensor:
        """Score every word of the vocabulary for hidden places, (M, V); tied to the embedding."""
        logits_MV = table_logits(self._transformed(hidden_MD), *self._table())
        return logits_MV[:, : self.config.vocab_size]

    def _transformed(self, hidden_MD: Tensor) -> Tensor:
        transformed_MD = activate(self.masked_transform(hidden_MD), self.config.activation)
        return self.masked_norm(transformed_MD)

    def _table(self) -> tuple[Tensor, Tensor, int]:
        return self.embedding.tokens.weight, self.masked_bias, self.config.vocab_size

    def next_logits(self, pooled_BD: Tensor) -> Tensor:
        """Score "follows" and "does not follow" for each pair of texts, (B, 2)."""
        return self.next_head(pooled_BD)

    def loss(self, batch: BERTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, both tasks added, and the sums to report (see prediction.py)."""
        wanted_M = batch.hidden_M
        if batch.follows_B is not None:
            first_B = batch.rows.first_tokens(wanted_M.device)
            wanted_M = torch.cat([wanted_M, first_B])
        wanted_MD = self.encode(
            batch.ids_N, batch.segments_N, batch.positions_N, batch.rows, wanted_M
        )
        return self.head_loss(wanted_MD, batch)

    def head_loss(self, wanted_MD: Tensor, batch: BERTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and the sums to report, from its hidden tokens, then its first."""
        num_hidden = batch.hidden_M.shape[0]
        hidden_MD = self._transformed(wanted_MD[:num_hidden])
        masked = score_tokens(hidden_MD, *self._table(), batch.targets_M)
        loss = masked.loss / batch.num_targets
        if batch.follows_B is None:
            return loss, figures_of(masked=masked)
        logits_B2 = self.next_logits(self.pool(wanted_MD[num_hidden:]))
        follows = score(logits_B2, batch.follows_B)
        return loss + follows.loss / batch.num_pairs, figures_of(masked=masked, next=follows)
