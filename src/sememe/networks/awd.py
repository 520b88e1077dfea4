"""AWD-LSTM: a stack of LSTMs that leave out much while they learn (Merity et al. 2018).

T positions, B rows, N = T × B places, M predictions, E width of a word's vector, H cells, V words.
Ids of words come in; the outputs of every layer, or scores of the next word, go out. What a
dropout leaves out of a row it leaves out at all of the row's positions.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.networks.awd_config import AWDConfig
from sememe.networks.dropout import leave_out
from sememe.networks.layers import table_logits
from sememe.networks.prediction import Score, score_tokens
from sememe.networks.recurrent import LSTMLayer, State


def leave_out_locked(x_TBD: Tensor, share: float) -> Tensor:
    """Leave out a share of each row's numbers, the same ones at all its positions."""
    if share == 0:
        return x_TBD
    return x_TBD * leave_out(x_TBD.new_ones(1, *x_TBD.shape[1:]), share)


class WeightDropLSTM(LSTMLayer):
    """An LSTM layer that leaves out a share of its hidden-to-hidden weights, drawn once a batch.

    The thinned weights are given to PyTorch's LSTM, and so to cuDNN, in the place of its own; the
    gradient comes back through what was left.
    """

    def __init__(self, input_width: int, num_cells: int, share: float) -> None:
        super().__init__(input_width, num_cells)
        self.share = share

    def forward(self, x_TBD: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The outputs (T, B, H), and where the layer stands after the last position."""
        if not self.training or not self.share:
            return super().forward(x_TBD, state)
        own: Any = self.lstm
        thinned_GH = leave_out(own.weight_hh_l0, self.share)
        weights = [own.weight_ih_l0, thinned_GH, own.bias_ih_l0, own.bias_hh_l0]
        x_TBD = x_TBD.float()
        if state is None:
            empty_BH = x_TBD.new_zeros(x_TBD.shape[1], self.num_cells)
            state = State(empty_BH, empty_BH)
        given = [state.output_BP[None], state.cells_BH[None]]
        with warnings.catch_warnings():
            # New weights lie in no one piece; to copy them together costs little.
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single")
            outputs_TBH, output_1BH, cells_1BH = torch.lstm(
                x_TBD, given, weights, True, 1, 0.0, True, False, False
            )
        return outputs_TBH, State(output_1BH[0], cells_1BH[0])


class AWDOutputs(NamedTuple):
    """The outputs of the layers; `dropped` is what the softmax sees of the last."""

    layers: list[Tensor]  # L of (T, B, H), the last one (T, B, E)
    dropped_TBE: Tensor
    states: list[State]


class AWDNetwork(nn.Module):
    """A table of words, LSTMs above it, and the same table as softmax."""

    def __init__(self, config: AWDConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        # What flows outside the LSTMs; the weights stay in float32 whatever it is.
        self.precision = torch.float32
        self.table_VE = nn.Parameter(torch.zeros(config.padded_vocab_size, config.width))
        self.bias_V = nn.Parameter(torch.zeros(config.padded_vocab_size))
        widths = [config.width, *[config.num_cells] * (config.num_layers - 1), config.width]
        self.layers = nn.ModuleList(
            WeightDropLSTM(below, above, config.share("weight"))
            for below, above in itertools.pairwise(widths)
        )
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Draw the first weights; the same seed gives the same weights."""
        generator = torch.Generator().manual_seed(seed)
        nn.init.uniform_(self.table_VE, -0.1, 0.1, generator=generator)
        for layer in self.layers:
            assert isinstance(layer, WeightDropLSTM)
            layer.initialise(generator)
        with torch.no_grad():
            self.table_VE[self.config.vocab_size :] = 0

    @torch.no_grad()
    def begin_with(self, counts_V: np.ndarray) -> None:
        """Start from how frequent words are, so that only what context adds must be learned."""
        counts_V = np.maximum(counts_V, 0.5)
        logs_V = torch.from_numpy(np.log(counts_V / counts_V.sum())).float()
        self.bias_V[: self.config.vocab_size] = logs_V

    @torch.no_grad()
    def take_from(self, other: AWDNetwork, old_ids_V: np.ndarray) -> None:
        """Go on from a network with other words; those it has not, -1, start as the mean of all."""
        own = {name: x for name, x in self.state_dict().items() if name.startswith("layers.")}
        theirs = other.state_dict()
        for name, tensor in own.items():
            tensor.copy_(theirs[name])
        old_V, size = torch.from_numpy(old_ids_V), other.config.vocab_size
        for name in ("table_VE", "bias_V"):
            old = theirs[name][:size]
            rows = old[old_V.clamp(min=0)]
            rows[old_V < 0] = old.mean(0)
            getattr(self, name)[: len(rows)] = rows

    def words(self, ids: Tensor) -> Tensor:
        """The vectors of words by themselves; in training all of some words are left out."""
        vectors = functional.embedding(ids, self.table_VE)
        if not self.training or not self.config.share("embedding"):
            return vectors
        kept_V = leave_out(
            self.table_VE.new_ones(len(self.table_VE)), self.config.share("embedding")
        )
        return vectors * kept_V[ids][..., None]

    def forward(self, ids_TB: Tensor, states: Sequence[State] | None = None) -> AWDOutputs:
        """Read rows from their first position on; each position sees those before it alone."""
        x_TBD = self._left(self.words(ids_TB), "input")
        found, ends = [], []
        for index, layer in enumerate(self.layers):
            x_TBD, end = layer(x_TBD, None if states is None else states[index])
            found.append(x_TBD)
            ends.append(end)
            is_last = index == len(self.layers) - 1
            x_TBD = self._left(x_TBD, "output" if is_last else "hidden")
        return AWDOutputs(found, x_TBD, ends)

    def _left(self, x_TBD: Tensor, place: str) -> Tensor:
        return leave_out_locked(x_TBD, self.config.share(place) if self.training else 0.0)

    def score(self, hidden_ME: Tensor, targets_M: Tensor) -> Score:
        """The summed loss over all words, and how often the likeliest is right."""
        hidden_ME, size = hidden_ME.to(self.precision), self.config.vocab_size
        return score_tokens(hidden_ME, self.table_VE, self.bias_V, size, targets_M)

    def next_logits(self, hidden_ME: Tensor) -> Tensor:
        """Score every word as the next one, (M, V)."""
        size = self.config.vocab_size
        logits = table_logits(hidden_ME.to(self.precision), self.table_VE, self.bias_V, size)
        return logits[..., :size].float()

    def depth_of(self, name: str) -> int:
        """Layer i lies at i; the words, which are the softmax too, above all of them."""
        parts = name.split(".")
        return int(parts[1]) if parts[0] == "layers" else len(self.layers)
