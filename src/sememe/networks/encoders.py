"""What a head sits on: sequences of ids in, a vector for each token or for each sequence out.

B sequences, T positions of one, N tokens of all sequences laid end to end, D width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from sememe.errors import OptionError
from sememe.examples.sequences import Sequence
from sememe.networks.bert import BERTNetwork
from sememe.networks.compilation import compile_parts, uncompile
from sememe.networks.features import choose_layers
from sememe.networks.gpt import GPTNetwork
from sememe.networks.readers import BiLSTM, Mix
from sememe.networks.rows import Rows, unpadded_rows
from sememe.training.objective import precision_of

MIX = "mix"


class Inputs(NamedTuple):
    """Sequences laid end to end, without padding."""

    ids_N: Tensor
    segments_N: Tensor
    positions_N: Tensor
    rows: Rows
    lengths: tuple[int, ...]


def inputs_of(sequences: Several[Sequence]) -> Inputs:
    """Lay sequences end to end; made on the host, before the batch travels."""
    lengths_B = np.array([len(sequence.ids_T) for sequence in sequences], np.int64)
    rows = unpadded_rows(lengths_B, int(lengths_B.max()))
    assert rows.places_N is not None
    return Inputs(
        ids_N=_flat([sequence.ids_T for sequence in sequences]),
        segments_N=_flat([sequence.segments_T for sequence in sequences]),
        positions_N=rows.places_N % rows.max_length,
        rows=rows,
        lengths=tuple(lengths_B.tolist()),
    )


def _flat(arrays: list[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate(arrays).astype(np.int64))


class Encoder(nn.Module):
    """What lies under a head. Word vectors with a reader can be one as BERT is."""

    width: int  # of the vectors that a head takes
    dropout: float  # what a head leaves out of them
    initial_std: float  # spread of the first weights of a head
    has_bias: bool  # whether heads have one
    is_standard: bool  # whether other programs know all that is between input and head
    num_depths: int  # of parameters, see `depth_of`
    precision: torch.dtype  # of what flows through it; the loop sets it

    def tokens(self, inputs: Inputs) -> Tensor:
        """A vector for each token, (N, D)."""
        raise NotImplementedError

    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """A vector for each sequence from those of its tokens, (B, D)."""
        raise NotImplementedError

    def depth_of(self, name: str) -> int:
        """How far from the input a parameter lies: 0 for the lowest, `num_depths` - 1 the highest.

        Lower ones may learn more slowly, or later.
        """
        raise NotImplementedError

    def compile(self, **options: Any) -> None:
        """Compile in place what gains from it on a GPU: here nothing."""

    def uncompile(self) -> None:
        """Forget what `compile` made."""


class UnderHead(Encoder):
    """A network that lies under a head, trained with it or frozen."""

    network: Any
    is_frozen: bool
    precision = precision_of("network")

    def train(self, mode: bool = True) -> Self:
        """Switch dropout; a frozen network gives the same vectors each time."""
        super().train(mode)
        if self.is_frozen:
            self.network.eval()
        return self


class NetworkEncoder(UnderHead):
    """BERT or GPT under a head, trained with it or frozen."""

    def __init__(
        self,
        network: BERTNetwork | GPTNetwork,
        *,
        features: str = "",
        is_frozen: bool = False,
        reader_width: int = 0,
    ) -> None:
        """`features` names the layers that a frozen network gives: one of six choices, or mix."""
        super().__init__()
        self.network, self.features = network, features
        self.is_frozen = is_frozen or bool(features)
        self.max_length = network.config.max_length
        self.num_depths = network.config.num_layers + 2
        self.dropout, self.initial_std = network.config.dropout, network.config.initial_std
        self.has_bias = isinstance(network, BERTNetwork)  # GPT's heads have none
        num_layers, width = network.config.num_layers, network.config.width
        self.mix = Mix(num_layers + 1) if features == MIX else None
        if features == "concat-last-four":
            width *= 4
        if features in ("concat-last-four", "sum-last-four") and num_layers < 4:
            raise OptionError(f"{features} needs four layers; this network has {num_layers}.")
        self.reader = BiLSTM(width, reader_width) if reader_width else None
        self.width = self.reader.output_width if self.reader is not None else width
        self.is_standard = not features and self.reader is None
        self._choose_parameters()

    @property
    def has_pooler(self) -> bool:
        """Whether sequences are seen through BERT's own layer on [CLS]."""
        return self.is_standard and isinstance(self.network, BERTNetwork)

    def _choose_parameters(self) -> None:
        """Let those parameters learn that the loss will reach."""
        # Others would be waited for where several processes exchange gradients.
        self.network.requires_grad_(not self.is_frozen)
        if isinstance(self.network, BERTNetwork):
            for part in ("masked_transform", "masked_norm", "next_head"):
                getattr(self.network, part).requires_grad_(False)
            self.network.masked_bias.requires_grad_(False)
            # The pooler belongs to the head rather than to what is frozen below.
            self.network.pooler.requires_grad_(self.has_pooler)

    def leave_pooler(self) -> None:
        """Tell that no head will ask for vectors of sequences."""
        if isinstance(self.network, BERTNetwork):
            self.network.pooler.requires_grad_(False)

    def tokens(self, inputs: Inputs) -> Tensor:
        """A vector for each token, (N, D)."""
        if not self.is_frozen:
            tokens_ND = self._last(inputs)
        else:
            with torch.no_grad():
                layers = self._layers(inputs) if self.features else [self._last(inputs)]
            tokens_ND = self._chosen(layers)
        return tokens_ND if self.reader is None else self.reader(tokens_ND, inputs)

    def _last(self, inputs: Inputs, wanted_M: Tensor | None = None) -> Tensor:
        network = self.network
        if isinstance(network, BERTNetwork):
            return network.encode(*inputs[:4], wanted_M)
        return network.encode(inputs.ids_N, inputs.positions_N, inputs.rows, wanted_M)

    def _layers(self, inputs: Inputs) -> list[Tensor]:
        network = self.network
        if isinstance(network, BERTNetwork):
            hidden_ND = network.embedding(*inputs[:3]).to(network.precision)
            return network.stack.layers(hidden_ND, inputs.rows)
        hidden_ND = network.embedding(inputs.ids_N, inputs.positions_N).to(network.precision)
        layers = network.stack.layers(hidden_ND, inputs.rows)
        return [*layers[:-1], network.norm(layers[-1])]

    def _chosen(self, layers: list[Tensor]) -> Tensor:
        if self.mix is not None:
            return self.mix(layers)
        return choose_layers(layers, self.features) if self.features else layers[-1]  # type: ignore

    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """A vector for each sequence, (B, D): [CLS] through the pooler, or GPT's last token.

        Frozen layers and readers give the mean over the tokens.
        """
        if not self.is_standard:
            return means(tokens_ND, inputs)
        return self._pooled(tokens_ND.index_select(0, self._wanted(inputs)))

    def sequences_alone(self, inputs: Inputs) -> Tensor:
        """`sequences` of `tokens`, without what the last block would do for other tokens."""
        if not self.is_standard:
            return self.sequences(self.tokens(inputs), inputs)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            wanted_BD = self._last(inputs, self._wanted(inputs))
        return self._pooled(wanted_BD)

    def _wanted(self, inputs: Inputs) -> Tensor:
        """The flat index of the token that stands for each sequence, (B,)."""
        starts = inputs.rows.starts
        assert starts is not None
        return (
            starts[:-1].long() if isinstance(self.network, BERTNetwork) else starts[1:].long() - 1
        )

    def _pooled(self, wanted_BD: Tensor) -> Tensor:
        network = self.network
        return network.pool(wanted_BD) if isinstance(network, BERTNetwork) else wanted_BD

    def depth_of(self, name: str) -> int:
        """The embedding lies at 0, block i at i + 1, what comes after the blocks above them."""
        parts = name.split(".")
        if parts[:2] == ["network", "embedding"]:
            return 0
        if parts[:3] == ["network", "stack", "blocks"]:
            return int(parts[3]) + 1
        return self.num_depths - 1

    def compile(self, **options: Any) -> None:
        """Compile the embedding and the blocks, in place."""
        compile_parts(self.network, **options)

    def uncompile(self) -> None:
        """Forget what was compiled: it belongs to one device."""
        uncompile(self.network)


def means(tokens_ND: Tensor, inputs: Inputs) -> Tensor:
    """The mean over the tokens of each sequence, (B, D)."""
    sums_BD = inputs.rows.padded(tokens_ND).sum(1, dtype=torch.float32)
    starts = inputs.rows.starts
    assert starts is not None
    return sums_BD / (starts[1:] - starts[:-1])[:, None]
