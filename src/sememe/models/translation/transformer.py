"""The Transformer: an encoder reads a text, a decoder writes another (Vaswani et al. 2017).

B rows, T positions, N tokens of all rows concatenated, D width, V vocabulary, K hypotheses of a
search. The ids of a source and of the target so far come in, scores of the next token go out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sememe.models.translation.coding import PackedText, TranslationInputs, text_of
from sememe.models.translation.config import EncoderDecoderConfig
from sememe.nn.attention import AttendedSource
from sememe.nn.blocks import Stack, compile_parts, uncompile
from sememe.nn.kv_cache import KVCache
from sememe.nn.layers import LayerNorm, Positions, drop_out, initialise, table_logits, tied_table
from sememe.nn.softmax import ScoreSums, smoothed_score

_FIRST_PLACES = 16  # of a cache that grows
# Matrices that are in one but are drawn as if each was its own.
_JOINED = {"attention.projection": 3, "crossing.projection": 2}


class ScaledEmbedding(nn.Module):
    """Token embeddings times √D plus positions: the paper's 3.4 and 3.5."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.scale = math.sqrt(config.width)
        self.tokens = nn.Embedding(config.padded_vocab_size, config.width)
        self.positions = Positions(config.max_length, config.width, config.positions)

    def forward(self, ids_N: Tensor, positions_N: Tensor) -> Tensor:
        """Look up and add the two vectors of each token, (N, D)."""
        hidden_ND = self.scale * self.tokens(ids_N) + self.positions(positions_N)
        return drop_out(hidden_ND, self.dropout if self.training else 0.0)


class TransformerNetwork(nn.Module):
    """Encoder and decoder with one shared table for source, target and output."""

    casts_weights = True  # its layers follow the precision of what flows through them

    def __init__(self, config: EncoderDecoderConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        # The activation precision; the weights stay float32.
        self.precision = torch.float32
        is_prenorm = config.norm == "pre"
        self.embedding = ScaledEmbedding(config)
        self.encoder = Stack(config, is_causal=False, is_prenorm=is_prenorm)
        self.decoder = Stack(config, is_causal=True, is_prenorm=is_prenorm, has_source=True)
        self.encoder_norm, self.decoder_norm = (
            LayerNorm(config.width, eps=config.norm_eps) if is_prenorm else nn.Identity()
            for _ in range(2)
        )
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Initialize the weights, as in the paper's program or from a normal distribution."""
        config, generator = self.config, torch.Generator().manual_seed(seed)
        initialise(self, config.initial_std or config.width**-0.5, generator)
        for name, part in self.named_modules():
            if isinstance(part, nn.Linear) and not config.initial_std:
                parts = next((num for end, num in _JOINED.items() if name.endswith(end)), 1)
                bound = math.sqrt(6 / (part.in_features + part.out_features // parts))
                nn.init.uniform_(part.weight, -bound, bound, generator=generator)
        self.embedding.positions.initialise(config.width**-0.5, generator)
        with torch.no_grad():
            self.embedding.tokens.weight[config.vocab_size :] = 0

    # ---- reading and writing ----------------------------------------------------------------

    def read(self, source: PackedText) -> AttendedSource:
        """The token vectors of sources."""
        hidden_ND = self.encoder(self._embed(source), source.rows)
        return AttendedSource(self.encoder_norm(hidden_ND), source.rows)

    def encode(self, source: PackedText) -> Tensor:
        """Vectors of the tokens of sources concatenated, (N, D)."""
        return self.read(source).hidden_MD

    def write(self, target: PackedText, source: AttendedSource) -> Tensor:
        """Token vectors of targets, which predict their next tokens, (N, D)."""
        hidden_ND = self.decoder(self._embed(target), target.rows, source=source)
        return self.decoder_norm(hidden_ND)

    def forward(self, source: PackedText, target: PackedText) -> Tensor:
        """Vectors of the tokens of targets, given their sources, (N, D)."""
        return self.write(target, self.read(source))

    def maps(self, source: PackedText, target: PackedText) -> list[Tensor]:
        """The attention of each target token over its source, L tensors (B, H, T, S)."""
        return self.decoder.maps(self._embed(target), target.rows, self.read(source))

    def layers(self, source: PackedText) -> list[Tensor]:
        """The embedding of sources and the output of every encoder block, (N, D) each."""
        *layers, last = self.encoder.layers(self._embed(source), source.rows)
        return [*layers, self.encoder_norm(last)]

    def next_logits(self, hidden_MD: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one, (…, V); tied to the embedding."""
        return table_logits(hidden_MD, *self._table())

    def _embed(self, text: PackedText) -> Tensor:
        return self.embedding(text.ids_N, text.positions_N).to(self.precision)

    def _table(self) -> tuple[Tensor, Tensor, int]:
        return tied_table(self.embedding.tokens, self.config.vocab_size)

    # ---- learning ---------------------------------------------------------------------------

    def loss(self, batch: TranslationInputs, smoothing: float) -> tuple[Tensor, ScoreSums]:
        """The training loss, summed over the tokens to predict, and their unsmoothed score."""
        return self.head_loss(self(batch.source, batch.target), batch.targets_N, smoothing)

    def head_loss(
        self, hidden_ND: Tensor, targets_N: Tensor, smoothing: float
    ) -> tuple[Tensor, ScoreSums]:
        """The training loss and the score, from the vectors of the target's tokens."""
        return smoothed_score(hidden_ND, *self._table(), targets_N, smoothing)

    def compile(self, **options: Any) -> None:
        """Compile the embedding, the blocks and the loss, in place."""
        compile_parts(self, self.encoder, self.decoder, **options)

    def uncompile(self) -> None:
        """Discard what `compile` made, so that the network can move to another device."""
        uncompile(self, self.encoder, self.decoder)

    # ---- search -----------------------------------------------------------------------------

    def writer(self, sources: Sequence[np.ndarray], num_beams: int) -> TransformerWriter:
        """The decoder of translations, token by token (see beam_search.py)."""
        return TransformerWriter(self, sources, num_beams)


class TransformerWriter:
    """Hypotheses that grow by one token per step, with cached keys and values."""

    def __init__(
        self, network: TransformerNetwork, sources: Sequence[np.ndarray], num_beams: int
    ) -> None:
        device = network.embedding.tokens.weight.device
        self.network, self.num_beams, self.place = network, num_beams, 0
        source = network.read(text_of(sources).to(device))
        self.cache = KVCache(
            network.config, len(sources) * num_beams, _FIRST_PLACES, device=device,
            dtype=network.precision,
        )  # fmt: skip
        for layer, block in zip(self.cache.layers, network.decoder, strict=True):
            layer.source = block.crossing.project(source)

    def step(self, ids_BK: Tensor) -> Tensor:
        """Take the newest token of every hypothesis; score its next one, (B, K, V)."""
        network, ids_R = self.network, ids_BK.flatten()
        places_R1 = torch.full_like(ids_R, self.place)[:, None]
        self.place += 1
        self.cache.use(self.place)
        hidden_RD = network.embedding(ids_R, places_R1[:, 0]).to(network.precision)
        hidden_RD = network.decoder_norm(network.decoder.extend(hidden_RD, places_R1, self.cache))
        return network.next_logits(hidden_RD).unflatten(0, ids_BK.shape)

    def choose(self, kept_C: Tensor, parents_CK: Tensor) -> None:
        """Continue with these sources, each hypothesis from its parent."""
        rows_CK = kept_C[:, None] * self.num_beams + parents_CK
        self.cache.choose(rows_CK.flatten())
        for layer in self.cache.layers:
            assert layer.source is not None
            if len(kept_C) < len(layer.source.keys_BHSK):
                layer.source = layer.source.choose(kept_C)
