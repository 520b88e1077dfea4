"""Which layers of a network are used and how they are pooled. T tokens, D width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sememe.errors import OptionError
from sememe.nn.encoders import Inputs

Layers = Literal["first", "last", "second-to-last", "sum-all", "sum-last-four", "concat-last-four"]
Choice = Layers | int | tuple[int, ...]
Pool = Literal["cls", "mean", "max"]
LAYERS = ("first", "last", "second-to-last", "sum-all", "sum-last-four", "concat-last-four")
POOLS = ("cls", "mean", "max")


def choose_layers(layers: Sequence[Tensor], choice: Choice) -> Tensor:
    """Combine the embedding and the blocks' outputs as chosen, (…, D or 4 D).

    A tuple of numbers concatenates those layers.
    """
    if isinstance(choice, tuple):
        return torch.cat([choose_layers(layers, one) for one in choice], -1)
    if isinstance(choice, int):
        if not -len(layers) <= choice < len(layers):
            raise OptionError(f"layers must be between 0 and {len(layers) - 1}, not {choice}.")
        return layers[choice]
    if choice not in LAYERS:
        raise OptionError(f"layers must be a number or one of {', '.join(LAYERS)}, not {choice!r}.")
    outputs = layers[1:]
    if choice in ("first", "last", "second-to-last"):
        return layers[{"first": 0, "last": -1, "second-to-last": -2}[choice]]
    if choice == "sum-all":
        return torch.stack(list(outputs)).sum(0)
    if len(outputs) < 4:
        raise OptionError(f"{choice} needs four layers; this network has {len(outputs)}.")
    if choice == "sum-last-four":
        return torch.stack(list(outputs[-4:])).sum(0)
    return torch.cat(list(outputs[-4:]), -1)


class Mix(nn.Module):
    """γ Σ s_l h_l with s = softmax(w): a learned mix of layers (Peters et al. 2018)."""

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
        """Initialize the weights uniformly, as PyTorch does."""
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


MIX = "mix"
