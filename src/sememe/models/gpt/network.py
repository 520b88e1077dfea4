"""GPT: a stack of blocks in which a token sees only those before it (Radford et al. 2018, 2019).

B rows, T positions, N tokens of all rows concatenated, M of them with a next one, D width,
V vocabulary. Ids come in, the scores of the next token go out; `CausalObjective` is what the
training loop sees.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from sememe.examples.batches import Batch
from sememe.models.gpt.config import GPTConfig
from sememe.nn.blocks import BlockVariant, CompiledObjective, Stack, TokenNetwork
from sememe.nn.kv_cache import KVCache
from sememe.nn.layers import LayerNorm, Positions, drop_out, initialise, table_logits, tied_table
from sememe.nn.rows import GPTInputs, gpt_inputs
from sememe.nn.softmax import metrics_of, score_tokens


class GPTEmbedding(nn.Module):
    """The sum of the token and position embeddings."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.tokens = nn.Embedding(config.padded_vocab_size, config.width)
        self.positions = Positions(config.max_length, config.width, config.positions)

    def forward(self, ids_N: Tensor, segments_N: Tensor | None, positions_N: Tensor) -> Tensor:
        """Look up and add the two vectors of each token, (N, D); GPT ignores segments."""
        hidden_ND = self.tokens(ids_N) + self.positions(positions_N)
        return drop_out(hidden_ND, self.dropout if self.training else 0.0)


class GPTNetwork(TokenNetwork):
    """GPT-1 (post-norm) or GPT-2 (pre-norm) with its vocabulary head tied to the embedding."""

    def __init__(self, config: GPTConfig, *, seed: int = 1) -> None:
        super().__init__(config)
        self.config = config
        is_prenorm = config.norm == "pre"
        self.embedding = GPTEmbedding(config)
        variants = [BlockVariant(window=window) for window in config.windows]
        self.stack = Stack(config, is_causal=True, is_prenorm=is_prenorm, variants=variants)
        self.norm = LayerNorm(config.width, eps=config.norm_eps) if is_prenorm else nn.Identity()
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Initialize the weights as in the papers; the same seed gives the same weights."""
        config = self.config
        generator = torch.Generator().manual_seed(seed)
        initialise(self, config.initial_std, generator)
        self.embedding.positions.initialise(config.initial_std, generator)
        with torch.no_grad():
            self.embedding.tokens.weight[config.vocab_size :] = 0
            if config.norm == "pre":
                # 2 L parts add to the residual stream; scaled so, its variance does not grow with
                # depth (Radford et al. 2019, 2.3).
                for block in self.stack:
                    for part in (block.attention.output, block.feed_forward.output):
                        part.weight.div_(math.sqrt(2 * config.num_layers))

    def extend(self, ids_BT: Tensor, places_BT: Tensor, cache: KVCache) -> Tensor:
        """Vectors of tokens at these positions, given cached earlier tokens, (B, T, D).

        Equal to `forward` on the complete rows; caches the new tokens.
        """
        hidden_ND = self.embed(ids_BT.flatten(), None, places_BT.flatten())
        hidden_ND = self.norm(self.stack.extend(hidden_ND, places_BT, cache))
        return hidden_ND.unflatten(0, ids_BT.shape)

    def next_logits(self, hidden_MD: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one, (…, V); tied to the embedding."""
        return table_logits(hidden_MD, *self._table())

    def _table(self) -> tuple[Tensor, Tensor, int]:
        return tied_table(self.embedding.tokens, self.config.vocab_size)

    def loss(self, batch: GPTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and the sums to report."""
        hidden_ND = self.encode(batch.ids_N, None, batch.positions_N, batch.rows)
        return self.head_loss(hidden_ND, batch)

    def head_loss(self, hidden_ND: Tensor, batch: GPTInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and the sums to report, from the vectors of its tokens."""
        hidden_MD = hidden_ND.index_select(0, batch.hidden_M)
        following = score_tokens(hidden_MD, *self._table(), batch.targets_M)
        return following.loss / batch.num_targets, metrics_of(token=following)


class CausalObjective(CompiledObjective):
    """GPT's objective: the next token."""

    def __init__(self, network: GPTNetwork) -> None:
        super().__init__(network)
        self.counted_by = {"token_loss": "predicted", "token_accuracy": "predicted"}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Tokens of a batch, and those that have a next one."""
        num_rows = int((batch.lengths_B > 0).sum())
        return {"tokens": batch.num_tokens, "predicted": batch.num_tokens - num_rows}

    def prepare(self, batch: Batch) -> GPTInputs:
        """Concatenate the rows of a batch."""
        return gpt_inputs(batch)

    def forward(
        self, inputs: GPTInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        return self.network.loss(inputs._replace(num_targets=counts["predicted"]))
