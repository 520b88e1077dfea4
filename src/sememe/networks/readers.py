"""What may stand between frozen vectors and a head: a weighted mix of layers, a BiLSTM.

B sequences, T positions, N tokens laid end to end, D width, L layers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

if TYPE_CHECKING:
    from sememe.networks.encoders import Inputs


class Mix(nn.Module):
    """γ Σ s_l h_l with s = softmax(w): how much of each layer a task wants (Peters et al. 2018)."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.weights_L = nn.Parameter(torch.zeros(num_layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, layers: list[Tensor]) -> Tensor:
        """Mix the layers, (N, D)."""
        shares_L = self.weights_L.softmax(0)
        mixed_ND = shares_L[0] * layers[0].float()
        for share, layer_ND in zip(shares_L[1:], layers[1:], strict=True):
            mixed_ND = mixed_ND + share * layer_ND.float()
        return self.scale * mixed_ND


class BiLSTM(nn.Module):
    """Reads each sequence from both ends (two layers over frozen features: Devlin et al. 2019)."""

    def __init__(self, width: int, reader_width: int, num_layers: int = 2) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, reader_width, num_layers, batch_first=True, bidirectional=True)
        self.output_width = 2 * reader_width

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the first weights evenly, as PyTorch does."""
        bound = 1 / math.sqrt(self.lstm.hidden_size)
        for parameter in self.lstm.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """A vector of both directions for each token, (N, 2 × reader width), in float32."""
        padded_BTD = inputs.rows.padded(tokens_ND.float())
        lengths_B = torch.tensor(inputs.lengths)  # the packing needs them on the host
        packed = pack_padded_sequence(padded_BTD, lengths_B, batch_first=True, enforce_sorted=False)
        read_BTD, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return inputs.rows.flat(read_BTD)
