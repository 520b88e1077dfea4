"""Contextual word vectors from ULMFiT's language model, alone or under a head.

T positions, B rows, W words. Layer 0 is the input vector, layer i the output of LSTM i; each has
seen only the words before it.

B sequences, T positions, N words and special tokens concatenated, E width of the network. A text is
the last, the maximum and the mean output (Howard & Ruder 2018, 3.3), through a layer of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from sememe.errors import ArtifactError, OptionError
from sememe.examples.running_words import is_word, places_in, written
from sememe.examples.word_rows import BEGIN_ID, END_ID, NUM_MARKS, UNKNOWN_ID
from sememe.machine import provenance
from sememe.models.language.model import WORDS
from sememe.models.language.word_reading import read_sentences
from sememe.models.ulmfit.config import AWDConfig
from sememe.models.ulmfit.network import AWDNetwork
from sememe.nn.encoders import (
    Backbone,
    Coder,
    Inputs,
    Reads,
    SequenceMarks,
    UnderHead,
    means,
    refuse_vectors,
)
from sememe.nn.feature_layers import Choice, choose_layers
from sememe.nn.layers import LayerNorm, Linear, drop_out
from sememe.storage.folder import MANIFEST
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import Encoding
from sememe.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from sememe.models.ulmfit.model import ULMFiT


def read_layers(model: ULMFiT, sentences: Sequence[Sequence[str]]) -> list[list[Tensor]]:
    """The layers of each sentence, (W, D) each; the first and last are narrower than the others."""
    network = model.trained().eval()

    def read(rows: list[Sequence[str]]) -> list[Tensor]:
        ids_TB = rows_of_ids(model, rows)
        return [network.words(ids_TB), *network(ids_TB).layers]

    return read_sentences(read, sentences)


def rows_of_ids(model: ULMFiT, rows: Sequence[Sequence[str]]) -> Tensor:
    """Rows of words in columns, each after the start token, (1 + W, B)."""
    longest = max(len(words) for words in rows)
    # Padding comes after the words, which do not see it.
    ids_TB = np.full((1 + longest, len(rows)), BEGIN_ID, np.int64)
    for column, words in enumerate(rows):
        ids_TB[1 : 1 + len(words), column] = model.ids_of(words)
    return torch.from_numpy(ids_TB).to(model.device)


def embed_sentences(
    model: ULMFiT, sentences: Sequence[Sequence[str]], layers: Choice = "last"
) -> list[np.ndarray]:
    """The vectors of the words of each sentence, (W, D)."""
    config = model.config
    if layers in ("sum-all", "sum-last-four") and config.num_layers > 1:
        raise OptionError(
            f"The layers of ULMFiT have {config.num_cells} and {config.width} numbers and cannot "
            f"be added: choose first, last, second-to-last or a number from 0 to "
            f"{config.num_layers}."
        )
    return [choose_layers(own, layers).cpu().numpy() for own in read_layers(model, sentences)]


_HIDDEN = 50  # numbers between the pooled outputs and the head, as in the paper


class AWDEncoder(UnderHead):
    """An AWD-LSTM, fine-tuned or frozen, with concat pooling for texts."""

    initial_std, has_bias, is_standard = 0.1, True, False
    default_rate, default_epochs = 0.01, 10.0

    def __init__(self, network: AWDNetwork, *, reads: Reads, is_frozen: bool = False) -> None:
        super().__init__()
        self.network, self.reads, self.is_frozen = network, reads, is_frozen
        self.network.requires_grad_(not is_frozen)
        self.network.bias_V.requires_grad_(False)  # of the softmax, which no head asks
        width = network.config.width
        self.num_depths = network.config.num_layers + 2
        self.norm: Any = None  # layers under the head, where texts are told
        self.hidden: Any = None
        self.width = self.word_width = width
        # A quarter of what the network leaves out of its output, as the paper's 0.1.
        self.dropout = network.config.share("output") / 4
        if reads in ("text", "texts"):
            self.norm, self.hidden = LayerNorm(3 * width), Linear(3 * width, _HIDDEN)
            self.width = _HIDDEN

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the initial weights of the layer under the head."""
        if self.hidden is not None:
            nn.init.kaiming_uniform_(self.hidden.weight, nonlinearity="relu", generator=generator)
            nn.init.zeros_(self.hidden.bias)

    def leave_pooler(self) -> None:
        """Declare that no head needs the vectors of sequences."""
        for part in (self.norm, self.hidden):
            if part is not None:
                part.requires_grad_(False)

    def tokens(self, inputs: Inputs) -> Tensor:
        """The last layer's output for each word and special token, (N, E)."""
        rows = inputs.rows
        # Short rows are filled up at their ends, which nothing before them sees.
        ids_TB = rows.padded(inputs.ids_N).t().contiguous()
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            read_TBE = self.network(ids_TB).dropped_TBE
        return rows.flat(read_TBE.transpose(0, 1)).to(self.precision)

    def sequences(self, tokens_NE: Tensor, inputs: Inputs) -> Tensor:
        """A vector for each text, (B, 50)."""
        pooled_BP = self.norm(concat_pooled(tokens_NE, inputs).to(tokens_NE.dtype))
        share = self.network.config.share("output") if self.training else 0.0
        return torch.relu(self.hidden(drop_out(pooled_BP, share)))

    def depth_of(self, name: str) -> int:
        """The embedding has depth 0, LSTM layer i depth i + 1, the rest comes above."""
        parts = name.split(".")
        if parts[:2] == ["network", "layers"]:
            return int(parts[2]) + 1
        return 0 if parts[0] == "network" else self.num_depths - 1


def concat_pooled(tokens_NE: Tensor, inputs: Inputs) -> Tensor:
    """The last, maximum and mean vector of each sequence concatenated, (B, 3 E)."""
    rows = inputs.rows
    assert rows.starts is not None and rows.is_token_BT is not None
    last_BE = tokens_NE.index_select(0, rows.starts[1:].long() - 1)
    is_empty_BT1 = ~rows.is_token_BT[..., None]
    greatest_BE = rows.padded(tokens_NE).masked_fill(is_empty_BT1, float("-inf")).amax(1)
    return torch.cat([last_BE, greatest_BE, means(tokens_NE, inputs).to(tokens_NE.dtype)], 1)


# ---- fine-tuning ----------------------------------------------------------------------------


class ULMFiTCoder(Coder):
    """Words as in the language model; every text begins like a sentence."""

    kind = "words"
    unknown_id = UNKNOWN_ID
    marks = SequenceMarks((BEGIN_ID,), (END_ID,), (BEGIN_ID,), ())

    def __init__(self, vocabulary: Vocabulary, text: TextSettings, length: int) -> None:
        self.vocabulary, self.text, self.length = vocabulary, text, length

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Split texts into words with their positions, without punctuation."""
        cut = places_in(texts, self.text)
        return [self._encoded(text, places) for text, places in zip(texts, cut, strict=True)]

    def _encoded(self, text: str, places: list[tuple[int, int]]) -> Encoding:
        own = [place for place in places if is_word(text[slice(*place)], self.text)]
        ids = np.array([self._id(text[slice(*place)]) for place in own], np.int32)
        own_N2 = np.array(own, np.int32).reshape(-1, 2)
        return Encoding(ids, own_N2[:, 0], own_N2[:, 1], np.ones(len(ids), np.bool_))

    def encode_words(self, words: Sequence[str]) -> list[Encoding]:
        """Tokenized words, each kept as one word whatever it contains."""
        return [self._encoded(word, [(0, len(word))]) for word in words]

    def _id(self, piece: str) -> int:
        found = self.vocabulary.find(written(piece, self.text))
        return UNKNOWN_ID if found < 0 else NUM_MARKS + found


class ULMFiTBackbone(Backbone):
    """A language model under a head: ULMFiT's third step. Its weights are in head.safetensors."""

    network = "ulmfit"
    encoder: AWDEncoder
    coder: ULMFiTCoder

    @classmethod
    def of(cls, model: ULMFiT, reads: Reads, config: Any) -> Self:
        """A copy of the network, for a head that needs `reads`."""
        coder = ULMFiTCoder(model.vocabulary, model.text, config.length)
        return cls(_taken(model.trained(), reads, config), coder)

    def again(self, encoder: AWDEncoder, reads: Reads, config: Any) -> Self:
        """Continue from an earlier task, with the layer under its head if both have one."""
        own = _taken(encoder.network, reads, config)
        if own.hidden is not None and encoder.hidden is not None:
            own.hidden.load_state_dict(encoder.hidden.state_dict())
            own.norm.load_state_dict(encoder.norm.state_dict())
        return type(self)(own, ULMFiTCoder(self.coder.vocabulary, self.coder.text, config.length))

    @property
    def description(self) -> str:
        """What the task starts from, in words."""
        config = self.encoder.network.config
        pooling = "" if self.encoder.hidden is None else ", last, max and mean of the outputs"
        return f"ULMFiT, {config.num_layers} layers × {config.num_cells}/{config.width}{pooling}"

    def write(self, folder: Path) -> None:
        """Write the words of a task."""
        write_tensors(folder / WORDS, self.coder.vocabulary.to_tensors())

    def manifest(self, objective: Any) -> dict[str, Any]:
        """What sememe.json says about the network."""
        return {
            "network": self.network,
            "reads": self.encoder.reads,
            "config": self.encoder.network.config.to_dict(),
            "text": self.coder.text.to_dict(),
            "words": len(self.coder.vocabulary),
            "provenance": provenance(),
        }

    @classmethod
    def read(cls, folder: Path, manifest: dict[str, Any], config: Any) -> Self:
        """Open the words of a task."""
        try:
            sizes, reads = AWDConfig(**manifest["config"]), manifest["reads"]
            text = TextSettings.from_dict(manifest["text"])
        except (KeyError, TypeError, OptionError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        vocabulary = Vocabulary.from_tensors(read_tensors(folder / WORDS), folder / WORDS)
        if sizes.vocab_size != NUM_MARKS + len(vocabulary):
            raise ArtifactError(f"{folder} has another number of words than its network.")
        encoder = AWDEncoder(AWDNetwork(sizes), reads=reads, is_frozen=config.freeze)
        return cls(encoder, ULMFiTCoder(vocabulary, text, config.length))

    def new_encoder(self, folder: Path, config: Any) -> Any:
        """The encoder of another ensemble member, of the same sizes."""
        own = self.encoder
        network = AWDNetwork(own.network.config)
        return AWDEncoder(network, reads=own.reads, is_frozen=own.is_frozen)


def _taken(network: AWDNetwork, reads: Reads, config: Any) -> AWDEncoder:
    """A copy of a network, set up for a head as in the options."""
    refuse_vectors(config)
    if config.features or config.lm_weight or config.reader_width:
        raise OptionError(
            "ULMFiT is trained whole, under a layer of its own: leave out features, lm_weight and "
            "reader_width."
        )
    if reads == "roles":
        raise OptionError("ULMFiT knows no segments, by which predicates are marked.")
    own = AWDNetwork(_with_dropout(network.config, config.dropout))
    own.load_state_dict(network.state_dict())
    encoder = AWDEncoder(own, reads=reads, is_frozen=config.freeze)
    encoder.initialise(torch.Generator().manual_seed(config.seed))
    return encoder


def _with_dropout(config: AWDConfig, dropout: float | None) -> AWDConfig:
    """The sizes with that output dropout, and the other dropout rates in proportion."""
    if dropout is None:
        return config
    if not config.output_dropout:
        return replace(config, output_dropout=dropout, dropout_factor=1.0)
    return replace(config, dropout_factor=min(10.0, dropout / config.output_dropout))
