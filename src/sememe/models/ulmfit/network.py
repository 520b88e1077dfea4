"""AWD-LSTM: a stack of LSTMs with several kinds of dropout (Merity et al. 2018).

The network and its objective: the next word of running text.

T positions, B rows, N = T × B entries, M predictions, E width of a word's vector, H cells, V words.
Word ids come in; the outputs of every layer, or scores of the next word, go out. Dropout masks are
the same at all positions of a row.

B rows, T positions, M predictions, K of them after another position, E width.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.examples.word_rows import UNKNOWN_ID, WordRows, has_target, neighbors_of
from sememe.models.ulmfit.config import AWDConfig
from sememe.nn.layers import drop_out, table_logits
from sememe.nn.lstm import LSTMLayer, State
from sememe.nn.softmax import ScoreSums, log_shares, score_tokens
from sememe.training.objective import NetworkObjective


def drop_out_locked(x_TBD: Tensor, share: float) -> Tensor:
    """Locked dropout: the same mask at all positions of a row."""
    return x_TBD if share == 0 else x_TBD * drop_out(x_TBD.new_ones(1, *x_TBD.shape[1:]), share)


class WeightDropLSTM(LSTMLayer):
    """An LSTM layer with dropout on its hidden-to-hidden weights, drawn once per batch.

    The masked weights are given to PyTorch's LSTM, and so to cuDNN, instead of its own; the
    gradient flows through the weights that were kept.
    """

    def __init__(self, input_width: int, num_cells: int, share: float) -> None:
        super().__init__(input_width, num_cells)
        self.share = share

    def forward(self, x_TBD: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The outputs (T, B, H), and the state after the last position."""
        if not self.training or not self.share:
            return super().forward(x_TBD, state)
        own: Any = self.lstm
        thinned_GH = drop_out(own.weight_hh_l0, self.share)
        weights = [own.weight_ih_l0, thinned_GH, own.bias_ih_l0, own.bias_hh_l0]
        x_TBD = x_TBD.float()
        if state is None:
            empty_BH = x_TBD.new_zeros(x_TBD.shape[1], self.num_cells)
            state = State(empty_BH, empty_BH)
        given = [state.output_BP[None], state.cells_BH[None]]
        with warnings.catch_warnings():
            # New weights are not contiguous; to copy them together costs little.
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single")
            outputs_TBH, output_1BH, cells_1BH = torch.lstm(
                x_TBD, given, weights, True, 1, 0.0, True, False, False
            )
        return outputs_TBH, State(output_1BH[0], cells_1BH[0])


class AWDOutputs(NamedTuple):
    """The outputs of the layers; `dropped` is the softmax's input."""

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
        self.layers: Any = nn.ModuleList(
            WeightDropLSTM(below, above, config.share("weight"))
            for below, above in itertools.pairwise(widths)
        )
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Draw the initial weights; the same seed gives the same weights."""
        generator = torch.Generator().manual_seed(seed)
        nn.init.uniform_(self.table_VE, -0.1, 0.1, generator=generator)
        for layer in self.layers:
            layer.initialise(generator)
        with torch.no_grad():
            self.table_VE[self.config.vocab_size :] = 0

    @torch.no_grad()
    def begin_with(self, counts_V: np.ndarray) -> None:
        """Start from word frequencies, so that only the effect of context must be learned."""
        self.bias_V[: self.config.vocab_size] = log_shares(counts_V)

    @torch.no_grad()
    def take_from(self, other: AWDNetwork, old_ids_V: np.ndarray) -> None:
        """Continue from a network with other words; new ones (-1) start as the mean of all."""
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
        """The input vectors of words; in training some words are dropped entirely."""
        vectors = functional.embedding(ids, self.table_VE)
        if not self.training or not self.config.share("embedding"):
            return vectors
        kept_V = drop_out(
            self.table_VE.new_ones(len(self.table_VE)), self.config.share("embedding")
        )
        return vectors * kept_V[ids][..., None]

    def forward(self, ids_TB: Tensor, states: Sequence[State] | None = None) -> AWDOutputs:
        """Read rows from their first position; each position sees only those before it."""
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
        return drop_out_locked(x_TBD, self.config.share(place) if self.training else 0.0)

    def score(self, hidden_ME: Tensor, targets_M: Tensor) -> ScoreSums:
        """The summed loss over all words, and the number of right predictions."""
        hidden_ME, size = hidden_ME.to(self.precision), self.config.vocab_size
        return score_tokens(hidden_ME, self.table_VE, self.bias_V, size, targets_M)

    def next_logits(self, hidden_ME: Tensor) -> Tensor:
        """Score every word as the next one, (M, V)."""
        hidden_ME, size = hidden_ME.to(self.precision), self.config.vocab_size
        return table_logits(hidden_ME, self.table_VE, self.bias_V, size).float()

    def depth_of(self, name: str) -> int:
        """Layer i has depth i; the words, which are also the softmax, come above all of them."""
        parts = name.split(".")
        return int(parts[1]) if parts[0] == "layers" else len(self.layers)


class AWDBatch(NamedTuple):
    """A batch as tensors: rows, targets and their positions."""

    ids_TB: Tensor
    places_M: Tensor
    targets_M: Tensor
    later_K: Tensor  # the places among them that have one before them


class ULMFiTObjective(NetworkObjective):
    """The loss of the next word, with the penalties of Merity et al. 2017b on the outputs."""

    counted_by: Mapping[str, str] = {"word_loss": "words"}

    def __init__(
        self, network: AWDNetwork, *, activation: float = 2.0, change: float = 1.0
    ) -> None:
        super().__init__(network)
        self.activation, self.change = activation, change

    def counts(self, batch: WordRows) -> dict[str, int]:
        """Words and marks of a batch, and how many are predicted."""
        return {"tokens": int(batch.lengths_B.sum()), "words": int(has_target(batch, +1).sum())}

    def prepare(self, batch: WordRows) -> AWDBatch:
        """Stack rows and find the targets; rare words become the unknown word."""
        ids_BT = batch.ids_BT.astype(np.int64)
        ids_BT = np.where(ids_BT < self.network.config.vocab_size, ids_BT, UNKNOWN_ID)
        places_M, targets_M = neighbors_of(batch, +1, self.network.config.vocab_size)
        return AWDBatch(
            ids_TB=torch.from_numpy(np.ascontiguousarray(ids_BT.T)),
            places_M=torch.from_numpy(places_M),
            targets_M=torch.from_numpy(targets_M),
            later_K=torch.from_numpy(places_M[places_M >= len(ids_BT)]),
        )

    def forward(
        self, batch: AWDBatch, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        outputs = self.network(batch.ids_TB)
        hidden_ME = outputs.dropped_TBE.flatten(0, 1).index_select(0, batch.places_M)
        loss = self.network.score(hidden_ME, batch.targets_M).loss
        total = loss
        if self.training and self.activation:
            total = total + self.activation * hidden_ME.square().mean(1).sum()
        if self.training and self.change:
            total = total + self.change * self._changes(outputs.layers[-1], batch)
        return total / counts["words"], {"word_loss": loss.detach()}

    def _changes(self, last_TBE: Tensor, batch: AWDBatch) -> Tensor:
        """The squared change of the outputs from one position to the next, summed."""
        last_NE, num_rows = last_TBE.flatten(0, 1), last_TBE.shape[1]
        before_KE = last_NE.index_select(0, batch.later_K - num_rows)
        return (last_NE.index_select(0, batch.later_K) - before_KE).square().mean(1).sum()
