"""GPT: a stack of blocks in which a token sees only those before it (Radford et al. 2018, 2019).

B rows, T positions, N tokens of all rows laid end to end, M of them with a next one, D width,
V vocabulary. Ids come in, the scores of the next token go out.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sememe.networks.blocks import Stack
from sememe.networks.config import GPTConfig
from sememe.networks.dropout import leave_out
from sememe.networks.inputs import GPTInputs
from sememe.networks.layers import LayerNorm, initialise, table_logits
from sememe.networks.memory import Memory
from sememe.networks.positions import Positions
from sememe.networks.prediction import figures_of, score_tokens
from sememe.networks.rows import Rows, padded_rows


class GPTEmbedding(nn.Module):
    """The sum of what a token is and where it stands."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.tokens = nn.Embedding(config.padded_vocab_size, config.width)
        self.positions = Positions(config.max_length, config.width, config.positions)

    def forward(self, ids_N: Tensor, positions_N: Tensor) -> Tensor:
        """Look up and add the two vectors of each token, (N, D)."""
        hidden_ND = self.tokens(ids_N) + self.positions(positions_N)
        return leave_out(hidden_ND, self.dropout if self.training else 0.0)


class GPTNetwork(nn.Module):
    """GPT-1 (post-norm) or GPT-2 (pre-norm) with its vocabulary head tied to the embedding."""

    def __init__(self, config: GPTConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        # What flows between the layers; the weights stay in float32 whatever it is.
        self.precision = torch.float32
        # Heads that no training has seen, because a file lacked them.
        self.untrained: frozenset[str] = frozenset()
        # The longest rows of its training: what it knows of later positions is chance.
        self.seen_length = config.max_length
        is_prenorm = config.norm == "pre"
        self.embedding = GPTEmbedding(config)
        self.stack = Stack(config, is_causal=True, is_prenorm=is_prenorm)
        self.norm = LayerNorm(config.width, eps=config.norm_eps) if is_prenorm else nn.Identity()
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Draw the first weights as the papers do; the same seed gives the same weights."""
        config = self.config
        generator = torch.Generator().manual_seed(seed)
        initialise(self, config.initial_std, generator)
        self.embedding.positions.initialise(config.initial_std, generator)
        with torch.no_grad():
            self.embedding.tokens.weight[config.vocab_size :] = 0
            if config.norm == "pre":
                # 2 L parts add to the same stream; scaled so, its variance does not grow with
                # depth (Radford et al. 2019, 2.3).
                for block in self.stack:
                    for part in (block.attention.output, block.feed_forward.output):
                        part.weight.div_(math.sqrt(2 * config.num_layers))

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Vectors of the tokens of rows, (B, T, D); padding at the end of a row does no harm."""
        rows = padded_rows(ids_BT)
        return rows.padded(self.norm(self.stack(self.embed(ids_BT), rows)))

    def layers(self, ids_BT: Tensor) -> list[Tensor]:
        """The embedding and the output of every block, L + 1 tensors (B, T, D)."""
        rows = padded_rows(ids_BT)
        layers = self.stack.layers(self.embed(ids_BT), rows)
        return [rows.padded(x) for x in [*layers[:-1], self.norm(layers[-1])]]

    def maps(self, ids_BT: Tensor) -> list[Tensor]:
        """The attention of every block, L tensors (B, H, T, S): row t says where t looks."""
        return self.stack.maps(self.embed(ids_BT), padded_rows(ids_BT))

    def extend(self, ids_BT: Tensor, places_BT: Tensor, memory: Memory) -> Tensor:
        """Vectors of tokens at these places of rows whose earlier tokens memory holds, (B, T, D).

        Equal to `forward` on the whole rows, and remembers the new tokens.
        """
        hidden_ND = self.embedding(ids_BT.flatten(), places_BT.flatten()).to(self.precision)
        hidden_ND = self.norm(self.stack.extend(hidden_ND, places_BT, memory))
        return hidden_ND.unflatten(0, ids_BT.shape)

    def embed(self, ids_BT: Tensor) -> Tensor:
        """What the first block sees of padded rows, (B × T, D)."""
        positions_T = torch.arange(ids_BT.shape[1], device=ids_BT.device)
        hidden_ND = self.embedding(ids_BT.flatten(), positions_T.expand_as(ids_BT).flatten())
        return hidden_ND.to(self.precision)

    def encode(
        self, ids_N: Tensor, positions_N: Tensor, rows: Rows, wanted_M: Tensor | None = None
    ) -> Tensor:
        """Vectors of tokens laid end to end, (N, D), or of those that are wanted, (M, D)."""
        hidden_ND = self.embedding(ids_N, positions_N).to(self.precision)
        return self.norm(self.stack(hidden_ND, rows, wanted_M))

    def next_logits(self, hidden_MD: Tensor) -> Tensor:
        """Score every word of the vocabulary as the next one, (…, V); tied to the embedding."""
        return table_logits(hidden_MD, *self._table())[..., : self.config.vocab_size]

    def _table(self) -> tuple[Tensor, Tensor, int]:
        table_VD = self.embedding.tokens.weight
        bias_V = torch.zeros(len(table_VD), device=table_VD.device)
        return table_VD, bias_V, self.config.vocab_size

    def loss(self, batch: GPTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and the sums to report (see prediction.py)."""
        hidden_ND = self.encode(batch.ids_N, batch.positions_N, batch.rows)
        return self.head_loss(hidden_ND, batch)

    def head_loss(self, hidden_ND: Tensor, batch: GPTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and the sums to report, from the vectors of its tokens."""
        hidden_MD = hidden_ND.index_select(0, batch.hidden_M)
        following = score_tokens(hidden_MD, *self._table(), batch.targets_M)
        return following.loss / batch.num_targets, figures_of(token=following)
