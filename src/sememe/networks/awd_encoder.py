"""ULMFiT's language model under a head: words in, a vector for each word or for each text out.

B sequences, T positions, N words and marks laid end to end, E width of the network. A text is the
last, the greatest and the mean output (Howard & Ruder 2018, 3.3), through a layer of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sememe.networks.awd import AWDNetwork
from sememe.networks.dropout import leave_out
from sememe.networks.encoders import Inputs, UnderHead, means
from sememe.networks.layers import LayerNorm, Linear
from sememe.networks.words import Reads

_HIDDEN = 50  # numbers between the pooled outputs and the head, as in the paper


class AWDEncoder(UnderHead):
    """An AWD-LSTM, trained with a head or frozen, with concat pooling where texts are told."""

    initial_std, has_bias, is_standard = 0.1, True, False
    default_rate, default_epochs = 0.01, 10.0

    def __init__(self, network: AWDNetwork, *, reads: Reads, is_frozen: bool = False) -> None:
        super().__init__()
        self.network, self.reads, self.is_frozen = network, reads, is_frozen
        self.network.requires_grad_(not is_frozen)
        self.network.bias_V.requires_grad_(False)  # of the softmax, which no head asks
        width = network.config.width
        self.num_depths = network.config.num_layers + 2
        self.norm: LayerNorm | None = None
        self.hidden: Linear | None = None
        self.width = width
        # A quarter of what the network leaves out of its output, as the paper's 0.1.
        self.dropout = network.config.share("output") / 4
        if reads in ("text", "texts"):
            self.norm, self.hidden = LayerNorm(3 * width), Linear(3 * width, _HIDDEN)
            self.width = _HIDDEN

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the first weights of the layer under the head."""
        if self.hidden is not None:
            nn.init.kaiming_uniform_(self.hidden.weight, nonlinearity="relu", generator=generator)
            nn.init.zeros_(self.hidden.bias)

    def tokens(self, inputs: Inputs) -> Tensor:
        """The last layer's output for each word and mark, (N, E); it has seen those before it."""
        rows = inputs.rows
        # Short rows are filled up at their ends, which nothing before them sees.
        ids_TB = rows.padded(inputs.ids_N).t().contiguous()
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            read_TBE = self.network(ids_TB).dropped_TBE
        return rows.flat(read_TBE.transpose(0, 1)).to(self.precision)

    def sequences(self, tokens_NE: Tensor, inputs: Inputs) -> Tensor:
        """A vector for each text, (B, 50)."""
        assert self.norm is not None and self.hidden is not None
        pooled_BP = self.norm(concat_pooled(tokens_NE, inputs).to(tokens_NE.dtype))
        share = self.network.config.share("output") if self.training else 0.0
        return torch.relu(self.hidden(leave_out(pooled_BP, share)))

    def depth_of(self, name: str) -> int:
        """Words lie at 0, LSTM layer i at i + 1, what comes after them above."""
        parts = name.split(".")
        if parts[:2] == ["network", "layers"]:
            return int(parts[2]) + 1
        return 0 if parts[0] == "network" else self.num_depths - 1


def concat_pooled(tokens_NE: Tensor, inputs: Inputs) -> Tensor:
    """The last, the greatest and the mean vector of each sequence side by side, (B, 3 E)."""
    rows = inputs.rows
    assert rows.starts is not None and rows.is_token_BT is not None
    last_BE = tokens_NE.index_select(0, rows.starts[1:].long() - 1)
    is_empty_BT1 = ~rows.is_token_BT[..., None]
    greatest_BE = rows.padded(tokens_NE).masked_fill(is_empty_BT1, float("-inf")).amax(1)
    return torch.cat([last_BE, greatest_BE, means(tokens_NE, inputs).to(tokens_NE.dtype)], 1)
