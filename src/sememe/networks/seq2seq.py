"""An encoder of LSTM or GRU layers reads a text, a decoder writes another, with attention or not.

B rows, T positions of a target, S of a source, N tokens of all rows laid end to end, D width, E
size of an embedding, V vocabulary, K hypotheses of a search. The layers compute in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sememe.errors import OptionError
from sememe.networks.dropout import leave_out
from sememe.networks.layers import Linear, table_logits
from sememe.networks.prediction import Score, smoothed_score
from sememe.networks.translation_config import RecurrentConfig
from sememe.networks.translation_inputs import Text, TranslationInputs, text_of

# Of each layer of a decoder: what it said last and, of an LSTM, its cells; (1, B, D) each.
States = list[tuple[Tensor, ...]]


def _layer(config: RecurrentConfig, input_size: int, size: int, is_double: bool) -> Any:
    kind = nn.LSTM if config.cell == "lstm" else nn.GRU
    return kind(input_size, size, batch_first=True, bidirectional=is_double)


class Encoded(NamedTuple):
    """What an encoder made of sources: a vector for each token, keys, and where it ended."""

    hidden_BSD: Tensor
    keys_BSD: Tensor  # what a query is compared with
    is_token_BS: Tensor
    final_BD: Tensor  # of the top layer: the whole text in one vector
    states: States

    def choose(self, kept_C: Tensor) -> Encoded:
        """These sources alone; the states, which a search has moved on, are left out."""
        return self._replace(
            hidden_BSD=self.hidden_BSD[kept_C], keys_BSD=self.keys_BSD[kept_C],
            is_token_BS=self.is_token_BS[kept_C], final_BD=self.final_BD[kept_C], states=[],
        )  # fmt: skip


class Encoder(nn.Module):
    """Layers that read each text from both ends, half of the width each."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        sizes = [config.embedding_size] + [config.width] * (config.num_layers - 1)
        self.layers = nn.ModuleList(_layer(config, size, config.width // 2, True) for size in sizes)

    def forward(self, x_BSE: Tensor, lengths: Sequence[int]) -> tuple[Tensor, States]:
        """A vector for each token, (B, S, D), zero beyond a text's end, and the last states."""
        # Packed, so that what reads backwards begins at the end of each text.
        packed = pack_padded_sequence(
            x_BSE, torch.tensor(lengths), batch_first=True, enforce_sorted=False
        )
        states: States = []
        for index, layer in enumerate(self.layers):
            if index and self.training:
                packed = packed._replace(data=leave_out(packed.data, self.dropout))
            packed, last = layer(packed)
            parts = last if isinstance(last, tuple) else (last,)
            # (2, B, D / 2) → (1, B, D): both directions beside each other.
            states.append(tuple(part.transpose(0, 1).flatten(1)[None] for part in parts))
        hidden_BSD, _ = pad_packed_sequence(packed, batch_first=True, total_length=x_BSE.shape[1])
        return hidden_BSD, states


class Decoder(nn.Module):
    """Layers that read the target from its start."""

    def __init__(self, config: RecurrentConfig, input_size: int) -> None:
        super().__init__()
        self.dropout = config.dropout
        sizes = [input_size] + [config.width] * (config.num_layers - 1)
        self.layers = nn.ModuleList(_layer(config, size, config.width, False) for size in sizes)

    def forward(self, x_BTE: Tensor, states: States) -> tuple[Tensor, States]:
        """What the top layer says, (B, T, D), and the states after the last token."""
        after: States = []
        for index, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            if index and self.training:
                x_BTE = leave_out(x_BTE, self.dropout)
            x_BTE, last = layer(x_BTE, state if len(state) > 1 else state[0])
            after.append(last if isinstance(last, tuple) else (last,))
        return x_BTE, after


class Attention(nn.Module):
    """Scores queries against the keys of a source: q·Wk (Luong), or v·tanh(Wq + Uk) (Bahdanau)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.kind, width = config.attention, config.width
        self.keys = Linear(width, width, bias=self.kind == "additive")
        if self.kind == "additive":
            self.queries = Linear(width, width, bias=False)
            self.score = Linear(width, 1, bias=False)

    def forward(self, queries_BTD: Tensor, source: Encoded) -> tuple[Tensor, Tensor]:
        """The mean of the source for each query, (B, T, D), and its weights, (B, T, S)."""
        if self.kind == "additive":
            sums_BTSD = self.queries(queries_BTD)[:, :, None] + source.keys_BSD[:, None]
            scores_BTS = self.score(sums_BTSD.tanh()).squeeze(-1)
        else:
            scores_BTS = queries_BTD @ source.keys_BSD.transpose(1, 2)
        scores_BTS = scores_BTS.masked_fill(~source.is_token_BS[:, None], -math.inf)
        weights_BTS = scores_BTS.softmax(-1)
        return weights_BTS @ source.hidden_BSD, weights_BTS


class Seq2SeqNetwork(nn.Module):
    """Encoder and decoder with one table for source, target and the scores of the next token."""

    casts_weights = False  # its layers know one precision

    def __init__(self, config: RecurrentConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        self.precision = torch.float32  # of the loss alone
        self.tokens = nn.Embedding(config.padded_vocab_size, config.embedding_size)
        self.encoder = Encoder(config)
        more = {"after": 0, "feeding": config.embedding_size, "before": config.width}
        self.is_stepwise = config.context != "after"
        self.decoder = Decoder(config, config.embedding_size + more[config.context])
        self.attention = Attention(config) if config.attention != "none" else None
        self.output = Linear(2 * config.width, config.embedding_size)
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Draw the first weights evenly; gates that forget start open."""
        generator = torch.Generator().manual_seed(seed)
        bound = 1 / math.sqrt(self.config.width)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
            else:
                nn.init.zeros_(parameter)
            if "bias_ih" in name and self.config.cell == "lstm":
                quarter = len(parameter) // 4
                nn.init.ones_(parameter[quarter : 2 * quarter])
        table_VE = self.tokens.weight
        nn.init.normal_(table_VE, std=self.config.embedding_size**-0.5, generator=generator)
        with torch.no_grad():
            table_VE[self.config.vocab_size :] = 0

    # ---- reading and writing ----------------------------------------------------------------

    def read(self, source: Text) -> Encoded:
        """Vectors of the tokens of sources, and where the encoder ended."""
        hidden_BSD, states = self.encoder(self._embed(source), source.lengths)
        keys_BSD = hidden_BSD if self.attention is None else self.attention.keys(hidden_BSD)
        is_token_BS = source.rows.is_token_BT
        assert is_token_BS is not None
        return Encoded(hidden_BSD, keys_BSD, is_token_BS, states[-1][0][0], states)

    def encode(self, source: Text) -> Tensor:
        """Vectors of the tokens of sources laid end to end, (N, D)."""
        return source.rows.flat(self.read(source).hidden_BSD)

    def write(self, target: Text, source: Encoded) -> tuple[Tensor, Tensor | None]:
        """Vectors that tell the next tokens, (B, T, E), and the attention, (B, T, S)."""
        x_BTE = self._embed(target)
        if not self.is_stepwise:
            said_BTD, _ = self.decoder(x_BTE, source.states)
            return self._look(said_BTD, source)
        states, told_B1E = source.states, None
        told, weights = [], []
        for x_B1E in x_BTE.split(1, 1):
            told_B1E, weights_B1S, states = self.step(x_B1E, told_B1E, states, source)
            told.append(told_B1E)
            weights.append(weights_B1S)
        if weights[0] is None:
            return torch.cat(told, 1), None
        return torch.cat(told, 1), torch.cat(weights, 1)  # type: ignore[arg-type]

    def step(
        self, x_R1E: Tensor, told_R1E: Tensor | None, states: States, source: Encoded
    ) -> tuple[Tensor, Tensor | None, States]:
        """One token further: what tells the next one, the attention, and the states after it.

        R rows: those of the source, or several hypotheses of each, which follow each other.
        """
        num_rows = len(source.hidden_BSD)
        if self.config.context == "feeding":
            if told_R1E is None:
                told_R1E = x_R1E.new_zeros(len(x_R1E), 1, self.config.embedding_size)
            x_R1E = torch.cat([x_R1E, told_R1E], -1)
        context_BKD = weights_BKS = None
        if self.config.context == "before":
            queries_BKD = states[-1][0][0].unflatten(0, (num_rows, -1))
            context_BKD, weights_BKS = self._context(queries_BKD, source)
            x_R1E = torch.cat([x_R1E, context_BKD.flatten(0, 1)[:, None]], -1)
        said_R1D, states = self.decoder(x_R1E, states)
        said_BKD = said_R1D.squeeze(1).unflatten(0, (num_rows, -1))
        if context_BKD is None:
            context_BKD, weights_BKS = self._context(said_BKD, source)
        told_BKE = self._tell(said_BKD, context_BKD)
        return told_BKE.flatten(0, 1)[:, None], weights_BKS, states

    def _look(self, said_BTD: Tensor, source: Encoded) -> tuple[Tensor, Tensor | None]:
        context_BTD, weights_BTS = self._context(said_BTD, source)
        return self._tell(said_BTD, context_BTD), weights_BTS

    def _context(self, queries_BTD: Tensor, source: Encoded) -> tuple[Tensor, Tensor | None]:
        if self.attention is None:
            return source.final_BD[:, None].expand_as(queries_BTD), None
        return self.attention(queries_BTD, source)

    def _tell(self, said_BTD: Tensor, context_BTD: Tensor) -> Tensor:
        told_BTE = self.output(torch.cat([said_BTD, context_BTD], -1)).tanh()
        return leave_out(told_BTE, self.config.dropout if self.training else 0.0)

    def _embed(self, text: Text) -> Tensor:
        embedded_NE = self.tokens(text.ids_N)
        embedded_NE = leave_out(embedded_NE, self.config.dropout if self.training else 0.0)
        return text.rows.padded(embedded_NE)

    def forward(self, source: Text, target: Text) -> Tensor:
        """Vectors that tell the next tokens of targets laid end to end, (N, E)."""
        told_BTE, _ = self.write(target, self.read(source))
        return target.rows.flat(told_BTE)

    def maps(self, source: Text, target: Text) -> list[Tensor]:
        """How much each target token looks at each of its source, one tensor (B, 1, T, S)."""
        _, weights_BTS = self.write(target, self.read(source))
        if weights_BTS is None:
            raise OptionError("This model has no attention: all of a text is in one vector.")
        return [weights_BTS[:, None]]

    def next_logits(self, told_ME: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one, (…, V); tied to the embedding."""
        return table_logits(told_ME, *self._table())[..., : self.config.vocab_size]

    def _table(self) -> tuple[Tensor, Tensor, int]:
        table_VE = self.tokens.weight
        return table_VE, torch.zeros(len(table_VE), device=table_VE.device), self.config.vocab_size

    # ---- learning ---------------------------------------------------------------------------

    def loss(self, batch: TranslationInputs, smoothing: float) -> tuple[Tensor, Score]:
        """What is to fall, summed over the tokens to predict, and their score without smoothing."""
        told_NE = self(batch.source, batch.target).to(self.precision)
        return smoothed_score(told_NE, *self._table(), batch.targets_N, smoothing)

    def compile(self, **options: Any) -> None:
        """Do nothing: cuDNN's layers are compiled already."""

    def uncompile(self) -> None:
        """Do nothing: there is nothing to forget."""

    # ---- search -----------------------------------------------------------------------------

    def writer(self, sources: Sequence[np.ndarray], num_beams: int) -> Seq2SeqWriter:
        """What writes translations of sources token by token (see search.py)."""
        return Seq2SeqWriter(self, sources, num_beams)


class Seq2SeqWriter:
    """Hypotheses that grow by a token a step, with the states of the decoder."""

    def __init__(
        self, network: Seq2SeqNetwork, sources: Sequence[np.ndarray], num_beams: int
    ) -> None:
        self.network, self.num_beams = network, num_beams
        source = network.read(text_of(sources).to(network.tokens.weight.device))
        self.states = [
            tuple(part.repeat_interleave(num_beams, 1) for part in state) for state in source.states
        ]
        self.source = source._replace(states=[])
        self.told_R1E: Tensor | None = None

    def step(self, ids_BK: Tensor) -> Tensor:
        """Take the newest token of every hypothesis; score its next one, (B, K, V)."""
        x_R1E = self.network.tokens(ids_BK.flatten())[:, None]
        self.told_R1E, _, self.states = self.network.step(
            x_R1E, self.told_R1E, self.states, self.source
        )
        return self.network.next_logits(self.told_R1E[:, 0]).unflatten(0, ids_BK.shape)

    def choose(self, kept_C: Tensor, parents_CK: Tensor) -> None:
        """Go on with these sources, each hypothesis continuing the one that is its parent."""
        rows_R = (kept_C[:, None] * self.num_beams + parents_CK).flatten()
        self.states = [tuple(part[:, rows_R] for part in state) for state in self.states]
        assert self.told_R1E is not None
        self.told_R1E = self.told_R1E[rows_R]
        if len(kept_C) < len(self.source.hidden_BSD):
            self.source = self.source.choose(kept_C)
