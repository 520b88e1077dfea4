"""An encoder-decoder of LSTM or GRU layers, with or without attention.

B rows, T positions of a target, S of a source, N tokens of all rows concatenated, D width, E size
of an embedding, V vocabulary, K hypotheses of a search. The layers compute in float32.
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
from sememe.models.translation.coding import PackedText, TranslationInputs, text_of
from sememe.models.translation.config import RecurrentConfig
from sememe.nn.layers import Linear, drop_out, table_logits, tied_table
from sememe.nn.softmax import ScoreSums, smoothed_score

# For each decoder layer: its last output and, for an LSTM, its cells; (1, B, D) each.
States = list[tuple[Tensor, ...]]


def _layer(config: RecurrentConfig, input_size: int, size: int, is_double: bool) -> Any:
    kind = nn.LSTM if config.cell == "lstm" else nn.GRU
    return kind(input_size, size, batch_first=True, bidirectional=is_double)


class EncodedSources(NamedTuple):
    """The encoder's output for sources: a vector for each token, keys, and the last state."""

    hidden_BSD: Tensor
    keys_BSD: Tensor  # what a query is compared with
    is_token_BS: Tensor
    final_BD: Tensor  # of the top layer: the whole text in one vector
    states: States

    def choose(self, kept_C: Tensor) -> EncodedSources:
        """These sources alone; the states, which a search has moved on, are left out."""
        return self._replace(
            hidden_BSD=self.hidden_BSD[kept_C], keys_BSD=self.keys_BSD[kept_C],
            is_token_BS=self.is_token_BS[kept_C], final_BD=self.final_BD[kept_C], states=[],
        )  # fmt: skip


class RecurrentEncoder(nn.Module):
    """Layers that read each text in both directions, half of the width each."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        sizes = [config.embedding_size] + [config.width] * (config.num_layers - 1)
        self.layers = nn.ModuleList(_layer(config, size, config.width // 2, True) for size in sizes)

    def forward(self, x_BSE: Tensor, lengths: Sequence[int]) -> tuple[Tensor, States]:
        """A vector for each token, (B, S, D), zero beyond a text's end, and the last states."""
        packed = _packed(x_BSE, lengths)
        states: States = []
        for index, layer in enumerate(self.layers):
            if index and self.training:
                packed = packed._replace(data=drop_out(packed.data, self.dropout))
            packed, last = layer(packed)
            parts = last if isinstance(last, tuple) else (last,)
            # (2, B, D / 2) → (1, B, D): both directions beside each other.
            states.append(tuple(part.transpose(0, 1).flatten(1)[None] for part in parts))
        hidden_BSD, _ = pad_packed_sequence(packed, batch_first=True, total_length=x_BSE.shape[1])
        return hidden_BSD, states

    def outputs(self, x_BSE: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        """What goes in and what every layer makes of it, (B, S, E or D) each."""
        packed, found = _packed(x_BSE, lengths), [x_BSE]
        for layer in self.layers:
            packed, _ = layer(packed)
            found.append(pad_packed_sequence(packed, True, total_length=x_BSE.shape[1])[0])
        return found


def _packed(x_BSE: Tensor, lengths: Sequence[int]) -> Any:
    """Texts packed, so that what reads backwards begins at the end of each."""
    return pack_padded_sequence(
        x_BSE, torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )


class RecurrentDecoder(nn.Module):
    """Layers that read the target from its start."""

    def __init__(self, config: RecurrentConfig, input_size: int) -> None:
        super().__init__()
        self.dropout = config.dropout
        sizes = [input_size] + [config.width] * (config.num_layers - 1)
        self.layers = nn.ModuleList(_layer(config, size, config.width, False) for size in sizes)

    def forward(self, x_BTE: Tensor, states: States) -> tuple[Tensor, States]:
        """The top layer's outputs, (B, T, D), and the states after the last token."""
        after: States = []
        for index, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            if index and self.training:
                x_BTE = drop_out(x_BTE, self.dropout)
            x_BTE, last = layer(x_BTE, state if len(state) > 1 else state[0])
            after.append(last if isinstance(last, tuple) else (last,))
        return x_BTE, after


class SourceAttention(nn.Module):
    """Scores queries against the keys of a source: q·Wk (Luong), or v·tanh(Wq + Uk) (Bahdanau)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.kind, width = config.attention, config.width
        self.keys = Linear(width, width, bias=self.kind == "additive")
        if self.kind == "additive":
            self.queries = Linear(width, width, bias=False)
            self.score = Linear(width, 1, bias=False)

    def forward(self, queries_BTD: Tensor, source: EncodedSources) -> tuple[Tensor, Tensor]:
        """The context vector for each query, (B, T, D), and its weights, (B, T, S)."""
        if self.kind == "additive":
            sums_BTSD = self.queries(queries_BTD)[:, :, None] + source.keys_BSD[:, None]
            scores_BTS = self.score(sums_BTSD.tanh()).squeeze(-1)
        else:
            scores_BTS = queries_BTD @ source.keys_BSD.transpose(1, 2)
        scores_BTS = scores_BTS.masked_fill(~source.is_token_BS[:, None], -math.inf)
        weights_BTS = scores_BTS.softmax(-1)
        return weights_BTS @ source.hidden_BSD, weights_BTS


class Seq2SeqNetwork(nn.Module):
    """Encoder and decoder with one shared table for source, target and output."""

    casts_weights = False  # its layers know one precision

    def __init__(self, config: RecurrentConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        self.precision = torch.float32  # of the loss alone
        self.tokens = nn.Embedding(config.padded_vocab_size, config.embedding_size)
        self.encoder = RecurrentEncoder(config)
        more = {"after": 0, "feeding": config.embedding_size, "before": config.width}
        self.is_stepwise = config.context != "after"
        self.decoder = RecurrentDecoder(config, config.embedding_size + more[config.context])
        self.attention = SourceAttention(config) if config.attention != "none" else None
        self.output = Linear(2 * config.width, config.embedding_size)
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Initialize the weights uniformly; forget gates start open."""
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

    def read(self, source: PackedText) -> EncodedSources:
        """The token vectors of sources, and the encoder's last state."""
        hidden_BSD, states = self.encoder(self._embed(source), source.lengths)
        keys_BSD = hidden_BSD if self.attention is None else self.attention.keys(hidden_BSD)
        is_token_BS = source.rows.is_token_BT
        assert is_token_BS is not None
        return EncodedSources(hidden_BSD, keys_BSD, is_token_BS, states[-1][0][0], states)

    def encode(self, source: PackedText) -> Tensor:
        """Vectors of the tokens of sources concatenated, (N, D)."""
        return source.rows.flat(self.read(source).hidden_BSD)

    def layers(self, source: PackedText) -> list[Tensor]:
        """The embedding of sources and what every layer of the encoder makes of it, (N, …) each."""
        outputs = self.encoder.outputs(self._embed(source), source.lengths)
        return [source.rows.flat(own) for own in outputs]

    def write(self, target: PackedText, source: EncodedSources) -> tuple[Tensor, Tensor | None]:
        """Vectors that predict the next tokens, (B, T, E), and the attention, (B, T, S)."""
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
        self, x_R1E: Tensor, told_R1E: Tensor | None, states: States, source: EncodedSources
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

    def _look(self, said_BTD: Tensor, source: EncodedSources) -> tuple[Tensor, Tensor | None]:
        context_BTD, weights_BTS = self._context(said_BTD, source)
        return self._tell(said_BTD, context_BTD), weights_BTS

    def _context(self, queries_BTD: Tensor, source: EncodedSources) -> tuple[Tensor, Tensor | None]:
        if self.attention is None:
            return source.final_BD[:, None].expand_as(queries_BTD), None
        return self.attention(queries_BTD, source)

    def _tell(self, said_BTD: Tensor, context_BTD: Tensor) -> Tensor:
        told_BTE = self.output(torch.cat([said_BTD, context_BTD], -1)).tanh()
        return drop_out(told_BTE, self.config.dropout if self.training else 0.0)

    def _embed(self, text: PackedText) -> Tensor:
        embedded_NE = self.tokens(text.ids_N)
        embedded_NE = drop_out(embedded_NE, self.config.dropout if self.training else 0.0)
        return text.rows.padded(embedded_NE)

    def forward(self, source: PackedText, target: PackedText) -> Tensor:
        """Vectors that predict the next tokens of concatenated targets, (N, E)."""
        told_BTE, _ = self.write(target, self.read(source))
        return target.rows.flat(told_BTE)

    def maps(self, source: PackedText, target: PackedText) -> list[Tensor]:
        """The attention of each target token over its source, one tensor (B, 1, T, S)."""
        _, weights_BTS = self.write(target, self.read(source))
        if weights_BTS is None:
            raise OptionError("This model was trained with no attention: it has none to show.")
        return [weights_BTS[:, None]]

    def next_logits(self, told_ME: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one, (…, V); tied to the embedding."""
        return table_logits(told_ME, *self._table())

    def _table(self) -> tuple[Tensor, Tensor, int]:
        return tied_table(self.tokens, self.config.vocab_size)

    # ---- learning ---------------------------------------------------------------------------

    def loss(self, batch: TranslationInputs, smoothing: float) -> tuple[Tensor, ScoreSums]:
        """The training loss, summed over the tokens to predict, and their unsmoothed score."""
        told_NE = self(batch.source, batch.target).to(self.precision)
        return smoothed_score(told_NE, *self._table(), batch.targets_N, smoothing)

    def compile(self, **options: Any) -> None:
        """Do nothing: cuDNN's layers are compiled already."""

    def uncompile(self) -> None:
        """Do nothing: nothing was compiled."""

    # ---- search -----------------------------------------------------------------------------

    def writer(self, sources: Sequence[np.ndarray], num_beams: int) -> Seq2SeqWriter:
        """The decoder of translations, token by token (see beam_search.py)."""
        return Seq2SeqWriter(self, sources, num_beams)


class Seq2SeqWriter:
    """Hypotheses that grow by one token per step, with the states of the decoder."""

    def __init__(
        self, network: Seq2SeqNetwork, sources: Sequence[np.ndarray], num_beams: int
    ) -> None:
        self.network, self.num_beams = network, num_beams
        source = network.read(text_of(sources).to(network.tokens.weight.device))
        self.states = [
            tuple(part.repeat_interleave(num_beams, 1) for part in state) for state in source.states
        ]
        self.source = source._replace(states=[])
        self.told_R1E: Any = None  # a tensor after the first step

    def step(self, ids_BK: Tensor) -> Tensor:
        """Take the newest token of every hypothesis; score its next one, (B, K, V)."""
        x_R1E = self.network.tokens(ids_BK.flatten())[:, None]
        self.told_R1E, _, self.states = self.network.step(
            x_R1E, self.told_R1E, self.states, self.source
        )
        return self.network.next_logits(self.told_R1E[:, 0]).unflatten(0, ids_BK.shape)

    def choose(self, kept_C: Tensor, parents_CK: Tensor) -> None:
        """Continue with these sources, each hypothesis from its parent."""
        rows_R = (kept_C[:, None] * self.num_beams + parents_CK).flatten()
        self.states = [tuple(part[:, rows_R] for part in state) for state in self.states]
        self.told_R1E = self.told_R1E[rows_R]
        if len(kept_C) < len(self.source.hidden_BSD):
            self.source = self.source.choose(kept_C)
