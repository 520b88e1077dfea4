"""ELMo: a language model that reads forwards and one that reads backwards (Peters et al. 2018).

U distinct words of a batch, T positions, B rows, N = T × B places, M predictions, P width of a
direction, V vocabulary, L layers. Both directions share what comes before and after the LSTMs:
the vectors of words by themselves, and the softmax. Forms of words come in; vectors of each layer,
or losses, go out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sememe.networks.dropout import leave_out
from sememe.networks.elmo_config import ELMoConfig
from sememe.networks.layers import table_logits
from sememe.networks.prediction import score_tokens
from sememe.networks.recurrent import LSTMLayer, State, turn, turned_places
from sememe.networks.sampled_softmax import Samples, sampled_loss
from sememe.networks.word_forms import Form, input_layer


class ELMoInputs(NamedTuple):
    """Rows of words: the form of each distinct one, and which one stands where."""

    form: Form
    index_N: Tensor  # which of the distinct words, the rows of a position side by side
    turned_N: Tensor  # where each place goes when rows are turned round
    num_rows: int


def rows_of_words(index_BT: np.ndarray, lengths_B: np.ndarray, form: Form) -> ELMoInputs:
    """Rows as the network takes them; made on the host."""
    return ELMoInputs(
        form=form,
        index_N=torch.from_numpy(np.ascontiguousarray(index_BT.T).reshape(-1).astype(np.int64)),
        turned_N=torch.from_numpy(turned_places(lengths_B.astype(np.int64), index_BT.shape[1])),
        num_rows=len(index_BT),
    )


class Read(NamedTuple):
    """What the network makes of rows: words by themselves, then each direction's layers."""

    words_TBP: Tensor
    forward: list[Tensor]  # L of (T, B, P)
    backward: list[Tensor]

    def layers(self) -> list[Tensor]:
        """L + 1 layers of both directions side by side, (T, B, 2 P); a word alone stands twice."""
        pairs = [(self.words_TBP, self.words_TBP), *zip(self.forward, self.backward, strict=True)]
        return [torch.cat(pair, 2) for pair in pairs]


class Direction(nn.Module):
    """The layers of one direction; each above the first adds to what goes into it."""

    def __init__(self, config: ELMoConfig) -> None:
        super().__init__()
        self.residual, self.dropout = config.residual, config.dropout
        self.layers = nn.ModuleList(
            LSTMLayer(
                config.width, config.num_cells, config.width, cell_clip=config.cell_clip,
                output_clip=config.output_clip,
            )
            for _ in range(config.num_layers)
        )  # fmt: skip

    def forward(
        self, x_TBP: Tensor, states: Sequence[State] | None = None
    ) -> tuple[list[Tensor], list[State]]:
        """The outputs of every layer, and where each stands after the last position."""
        found, ends = [], []
        for index, layer in enumerate(self.layers):
            seen_TBP = leave_out(x_TBP, self.dropout if self.training else 0.0)
            said_TBP, end = layer(seen_TBP, None if states is None else states[index])
            x_TBP = said_TBP + seen_TBP if self.residual and index else said_TBP
            found.append(x_TBP)
            ends.append(end)
        return found, ends


class ELMoNetwork(nn.Module):
    """Two stacks of LSTMs between one input layer and one softmax."""

    def __init__(self, config: ELMoConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        # What flows outside the LSTMs; the weights stay in float32 whatever it is.
        self.precision = torch.float32
        self.input = input_layer(config)
        self.reads_forward, self.reads_backward = Direction(config), Direction(config)
        self.table_VP: nn.Parameter | None = None
        self.bias_V: nn.Parameter | None = None
        if config.has_softmax:
            self.table_VP = nn.Parameter(torch.zeros(config.padded_vocab_size, config.width))
            self.bias_V = nn.Parameter(torch.zeros(config.padded_vocab_size))
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Draw the first weights; the same seed gives the same weights."""
        generator = torch.Generator().manual_seed(seed)
        self.input.initialise(generator)
        for direction in (self.reads_forward, self.reads_backward):
            for layer in direction.layers:
                assert isinstance(layer, LSTMLayer)
                layer.initialise(generator)
        if self.table_VP is not None:
            std = 1 / math.sqrt(self.config.width)
            nn.init.normal_(self.table_VP, std=std, generator=generator)
            with torch.no_grad():
                self.table_VP[self.config.vocab_size :] = 0

    @torch.no_grad()
    def begin_with(self, counts_V: np.ndarray) -> None:
        """Start from how frequent words are, so that only what context adds must be learned."""
        assert self.bias_V is not None
        counts_V = np.maximum(counts_V, 0.5)
        logs_V = torch.from_numpy(np.log(counts_V / counts_V.sum())).float()
        self.bias_V[: self.config.vocab_size] = logs_V

    def words(self, form: Form) -> Tensor:
        """The vectors of distinct words by themselves, (U, P)."""
        return self.input(*form, dtype=self.precision)

    def read(self, inputs: ELMoInputs) -> Read:
        """Read rows in both directions."""
        return self.read_vectors(self.words(inputs.form), inputs)

    def read_vectors(self, words_UP: Tensor, inputs: ELMoInputs) -> Read:
        """Read rows in both directions, the vectors of their distinct words given."""
        words_NP = words_UP.index_select(0, inputs.index_N)
        words_TBP = words_NP.unflatten(0, (-1, inputs.num_rows))
        forward, _ = self.reads_forward(words_TBP)
        backward, _ = self.reads_backward(turn(words_TBP, inputs.turned_N))
        return Read(words_TBP, forward, [turn(own, inputs.turned_N) for own in backward])

    def next_logits(self, hidden_MP: Tensor) -> Tensor:
        """Score every word as the next one, (M, V)."""
        assert self.table_VP is not None and self.bias_V is not None
        logits = table_logits(hidden_MP, self.table_VP, self.bias_V, self.config.vocab_size)
        return logits[..., : self.config.vocab_size]

    def loss(
        self, hidden_TBP: Tensor, places_M: Tensor, targets_M: Tensor, samples: Samples | None
    ) -> Tensor:
        """The summed loss of one direction's predictions, over all words or over a sample."""
        assert self.table_VP is not None and self.bias_V is not None
        hidden_MP = hidden_TBP.flatten(0, 1).index_select(0, places_M)
        hidden_MP = leave_out(hidden_MP, self.config.dropout if self.training else 0.0)
        hidden_MP = hidden_MP.to(self.precision)
        if samples is not None:
            return sampled_loss(hidden_MP, self.table_VP, self.bias_V, targets_M, samples)
        size = self.config.vocab_size
        return score_tokens(hidden_MP, self.table_VP, self.bias_V, size, targets_M).loss
