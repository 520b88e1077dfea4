"""Replaced-token detection: a small generator fills masks, the network detects what it replaced.

ELECTRA (Clark et al. 2020). Every token is a prediction, not only the masked ones. The generator
learns masked tokens; tokens are sampled from its predictions, and the network, the discriminator,
says for each token of the text whether it is the original one. The embedding of the discriminator
is that of the generator, without its gradients, plus a table of its own that starts at zero (He et
al. 2023, DeBERTaV3, 2.3): the two tasks do not pull the same vectors in two directions.

N tokens of all rows concatenated, M of them masked, D width, V vocabulary.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sememe.examples.batches import Batch
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.families import FamilyConfig
from sememe.models.bert.network import BERTNetwork
from sememe.nn.blocks import CompiledObjective, compile_parts
from sememe.nn.rows import BERTInputs, bert_inputs
from sememe.nn.softmax import metrics_of, score
from sememe.randomness import numbers, stream_key
from sememe.training.objective import TOKENS

_DRAWS = 0x52  # the purpose of a random stream
_WIDTH_STEP = 16


def discriminator_config(config: BERTConfig) -> FamilyConfig:
    """The same sizes as an ELECTRA, whose folder can say that it detects replaced tokens."""
    if isinstance(config, FamilyConfig):
        return config
    return FamilyConfig(**{**config.to_dict(), "family": "electra"})


def generator_config(config: FamilyConfig, share: float) -> FamilyConfig:
    """A generator that is narrower, with embeddings as wide as those of the discriminator."""
    width = max(_WIDTH_STEP, round(share * config.width / _WIDTH_STEP) * _WIDTH_STEP)
    num_heads = max(1, round(share * config.num_heads))
    while width % num_heads:
        num_heads -= 1
    # An ELECTRA whatever the discriminator is: no other family has embeddings of another width and
    # a folder that says so.
    return FamilyConfig(
        family="electra", vocab_size=config.vocab_size, num_layers=config.num_layers, width=width,
        num_heads=num_heads, embedding_size=config.embedding_width, max_length=config.max_length,
        dropout=config.dropout, attention_dropout=config.attention_dropout, start=config.start,
        initial_std=config.initial_std,
    )  # fmt: skip


def share_embedding(
    network: BERTNetwork, generator: BERTNetwork, *, is_trained: bool = False
) -> None:
    """Let the tables of a network be added to those of its generator; they are zero at first.

    With `is_trained` they become the difference: the sums are the tables as they were.
    """
    with torch.no_grad():
        for own, base in _shared_tables(network, generator):
            own.sub_(base) if is_trained else own.zero_()
    network.embedding.shared = (generator.embedding,)


def part_embedding(network: BERTNetwork, generator: BERTNetwork) -> None:
    """Make the sums the tables of the network, which then needs no generator."""
    with torch.no_grad():
        for own, base in _shared_tables(network, generator):
            own.add_(base)
    network.embedding.shared = ()


def _shared_tables(network: BERTNetwork, generator: BERTNetwork) -> list[tuple[Tensor, Tensor]]:
    pairs = [(network.embedding.tokens.weight, generator.embedding.tokens.weight)]
    if network.embedding.positions is not None:
        own, base = network.embedding.positions.weight, generator.embedding.positions.weight
        pairs.append((own, base))
    return pairs


class ReplacedInputs(NamedTuple):
    """A masked batch, and the draw that samples each masked token."""

    masked: BERTInputs
    draws_M: Tensor  # between 0 and 1


def sampled(logits_MV: Tensor, draws_M: Tensor) -> Tensor:
    """Sample a token from each row of scores by its draw, (M,)."""
    sums_MV = logits_MV.detach().float().softmax(-1).cumsum(-1)
    found_M1 = torch.searchsorted(sums_MV, draws_M[:, None] * sums_MV[:, -1:])
    return found_M1.squeeze(1).clamp_max(logits_MV.shape[1] - 1)


class ReplacedObjective(CompiledObjective):
    """The losses of a generator and of the network that detects what it replaced."""

    def __init__(
        self, network: BERTNetwork, generator: BERTNetwork, *, weight: float, seed: int = 1
    ) -> None:
        super().__init__(network)
        self.generator, self.weight, self._seed = generator, weight, seed
        self.counted_by = {
            "masked_loss": "masked", "masked_accuracy": "masked",
            **dict.fromkeys(
                ("replaced_loss", "replaced_accuracy", "replaced_share", "replaced_found"), TOKENS
            ),
        }  # fmt: skip
        network.train_heads({"replaced head"})
        generator.train_heads({"masked head"})

    @property
    def precision(self) -> torch.dtype:
        """The precision of the activations of both networks."""
        return self.network.precision

    @precision.setter
    def precision(self, value: torch.dtype) -> None:
        self.network.precision = self.generator.precision = value

    def compile(self, **options: Any) -> None:
        """Compile both networks part by part, in place."""
        for own in (self.network, self.generator):
            compile_parts(own, own.stack, **options)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Tokens and masked tokens of a batch."""
        assert batch.targets_N is not None
        return {TOKENS: batch.num_tokens, "masked": len(batch.targets_N)}

    def prepare(self, batch: Batch) -> ReplacedInputs:
        """Concatenate the rows of a batch, and draw; the same batch has the same draws."""
        # By the content, so that neither the device nor what was drawn before makes a difference.
        masked = bert_inputs(batch)
        key = stream_key(self._seed, _DRAWS, zlib.crc32(masked.ids_N.numpy().tobytes()))
        draws_M = ((numbers(key, len(masked.targets_M)) >> 40) + 0.5) / (1 << 24)
        return ReplacedInputs(masked, torch.from_numpy(draws_M.astype(np.float32)))

    def forward(
        self, inputs: ReplacedInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        batch, generator = inputs.masked, self.generator
        logits_MV = generator.masked_logits(generator.encode(*batch[:4], batch.hidden_M))
        masked = score(logits_MV, batch.targets_M)
        sampled_M = sampled(logits_MV, inputs.draws_M)
        ids_N = batch.ids_N.index_copy(0, batch.hidden_M, sampled_M)
        is_replaced_N = torch.zeros_like(ids_N, dtype=torch.bool)
        is_replaced_N = is_replaced_N.index_copy(0, batch.hidden_M, sampled_M != batch.targets_M)
        hidden_ND = self.network.encode(ids_N, *batch[1:4])
        logits_N = self.network.replaced_logits(hidden_ND).float()
        loss = functional.binary_cross_entropy_with_logits(
            logits_N, is_replaced_N.float(), reduction="sum"
        )
        is_flagged_N = logits_N.detach() > 0
        metrics = metrics_of(masked=masked) | {
            "replaced_loss": loss.detach(),
            "replaced_accuracy": (is_flagged_N == is_replaced_N).sum().float(),
            "replaced_share": is_replaced_N.sum().float(),
            "replaced_found": (is_flagged_N & is_replaced_N).sum().float(),
        }
        total = masked.loss / counts["masked"] + self.weight * loss / counts[TOKENS]
        return total, metrics


def new_generator(config: FamilyConfig, share: float, seed: int) -> BERTNetwork:
    """An untrained generator for a discriminator of these sizes."""
    return BERTNetwork(generator_config(config, share), seed=seed)


def detection_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """The share of replaced tokens that are found, and the accuracy of always saying original."""
    found: dict[str, float] = {}
    for name, share in metrics.items():
        if name.endswith("replaced_share"):
            mark = name.removesuffix("replaced_share")
            found[f"{mark}replaced_baseline"] = max(share, 1 - share)
            if share:
                found[f"{mark}replaced_recall"] = metrics[f"{mark}replaced_found"] / share
    return found
