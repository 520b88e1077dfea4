"""The loss of pooled vectors: a batch of texts in, what the training loop needs out.

A batch larger than `chunk_size` is encoded in chunks whose activations are computed again for the
backward pass, so that memory holds those of one chunk (gradient caching: Gao et al. 2021); the
gradients are those of the whole batch.

B rows, C candidates, N tokens, D dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sememe.examples.pair_batches import Side
from sememe.models.sentence.batches import SentenceBatch
from sememe.models.sentence.config import SentenceConfig
from sememe.models.sentence.denoising import Decoder, next_tokens
from sememe.models.sentence.encoders import Trainable, pooled, sequences_of
from sememe.models.sentence.losses import cosent_loss, cosine_loss, ranking_loss, same_texts, unit
from sememe.nn.encoders import Inputs
from sememe.nn.layers import cast_at_once, trained_layers
from sememe.nn.rows import grouped
from sememe.training.device import to_device
from sememe.training.objective import precision_of

_TOKENS_AT_ONCE = {"cuda": 65_536, "cpu": 4_096, "mps": 16_384}


class PreparedTexts(NamedTuple):
    """A batch as tensors."""

    kind: str
    chunks: tuple[Inputs, ...]  # the texts of all columns, in order
    sizes: tuple[int, ...]  # texts of each column
    is_hidden_BC: Tensor | None
    scores_B: Tensor | None
    decoded: Inputs | None  # what a decoder restores
    targets_M: Tensor | None
    weight: float


class DenseModule(nn.Module):
    """A linear layer above the pooling, trained with the network."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.activation = layer.activation
        self.weight_OI = nn.Parameter(torch.from_numpy(np.array(layer.weight_OI, np.float32)))
        bias = layer.bias_O
        self.bias_O = None if bias is None else nn.Parameter(torch.from_numpy(np.array(bias)))

    def forward(self, vectors_BI: Tensor) -> Tensor:
        """Map each vector, (B, O)."""
        mapped = nn.functional.linear(vectors_BI.float(), self.weight_OI, self.bias_O)
        return getattr(nn, self.activation)()(mapped)

    def layer(self, cls: Any) -> Any:
        """The trained weights."""
        bias = None if self.bias_O is None else self.bias_O.detach().cpu().numpy()
        return cls(self.weight_OI.detach().cpu().numpy(), bias, self.activation)


class SentenceObjective(nn.Module):
    """The loss of pooled vectors: ranking, order of scores, or the text restored."""

    precision = precision_of("encoder")

    def __init__(
        self,
        trainable: Trainable,
        config: SentenceConfig,
        *,
        kind: str = "pairs",
        pools: Sequence[str] = ("mean",),
        dense: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        self.encoder, self.config, self.pools = trainable.encoder, config, tuple(pools)
        self.dense = nn.ModuleList(DenseModule(layer) for layer in dense)
        self.decoder: Decoder | None = None
        self.counted_by = {"ranking_loss": "rows", "ranking_accuracy": "rows"}
        if kind == "scored":
            self.counted_by = {"score_loss": "rows"}
        elif kind == "denoised":
            self.decoder = Decoder(self.encoder.network, seed=config.seed)
            self.counted_by = {"token_loss": "predicted", "token_accuracy": "predicted"}
        self._is_compiled = False
        self._layers = trained_layers(self.encoder)

    def compile(self, **options: Any) -> None:
        """Compile the encoder, in place."""
        self._is_compiled = True
        self.encoder.compile(**options)

    def counts(self, batch: SentenceBatch) -> dict[str, int]:
        """Tokens and rows of a batch, and tokens to restore; 0 for a placeholder."""
        if not batch.weight:
            return {"tokens": 0, "rows": 0, "predicted": 0}
        num_tokens = sum(len(ids) for column in batch.columns for ids in column)
        restored = batch.columns[-1] if batch.kind == "denoised" else []
        return {
            "tokens": num_tokens,
            "rows": len(batch.columns[0]),
            "predicted": sum(len(ids) - 1 for ids in restored),
        }

    def prepare(self, batch: SentenceBatch) -> PreparedTexts:
        """Concatenate the texts, in chunks; find texts that are equal."""
        columns, hidden, decoded, targets = batch.columns, None, None, None
        if batch.kind == "denoised":
            decoded = sequences_of(columns[1])
            targets, columns = next_tokens(decoded), columns[:1]
        filled = [[ids for ids in column if len(ids)] for column in columns]
        if batch.kind in ("pairs", "triplets"):
            anchors, *others = [[text_hash(ids) for ids in column] for column in filled]
            candidates = [own for column in others for own in column]
            hidden = same_texts(torch.tensor(anchors), torch.tensor(candidates))
        together, size = [ids for column in filled for ids in column], self.config.chunk_size
        return PreparedTexts(
            kind=batch.kind,
            chunks=tuple(
                sequences_of(together[start : start + size])
                for start in range(0, len(together), size)
            ),
            sizes=tuple(len(column) for column in filled),
            is_hidden_BC=hidden,
            scores_B=None if batch.scores is None else torch.from_numpy(batch.scores),
            decoded=decoded,
            targets_M=targets,
            weight=batch.weight,
        )

    def encode(self, inputs: Inputs) -> Tensor:
        """One vector per text, (B, D)."""
        if self._is_compiled or self.precision == torch.float32 or not torch.is_grad_enabled():
            return self._pooled(inputs)
        with cast_at_once(self._layers, self.precision):
            return self._pooled(inputs)

    def _pooled(self, inputs: Inputs) -> Tensor:
        tokens_ND = self.encoder.tokens(inputs)
        vectors_BD = torch.cat([pooled(tokens_ND, inputs, pool) for pool in self.pools], 1)
        for layer in self.dense:
            vectors_BD = layer(vectors_BD)
        return vectors_BD

    def forward(
        self, prepared: PreparedTexts, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, divided by the counts of the step, and the sums of its metrics."""
        is_cached = len(prepared.chunks) > 1 and torch.is_grad_enabled()
        vectors = [
            checkpoint(self.encode, chunk, use_reentrant=False) if is_cached else self.encode(chunk)
            for chunk in prepared.chunks
        ]
        vectors_ND = torch.cat(vectors)
        if prepared.kind == "denoised":
            assert self.decoder is not None and prepared.targets_M is not None
            sums = self.decoder(vectors_ND, prepared.decoded, prepared.targets_M)
            metrics = {"token_loss": sums.loss, "token_accuracy": sums.num_right}
            return self._shared(sums.loss, metrics, counts["predicted"], prepared.weight)
        columns = vectors_ND.split(list(prepared.sizes))
        width = vectors_ND.shape[1]
        losses, metrics = [], {}
        for dim in [*(own for own in self.config.dims if own < width), width]:
            cut = [unit(column[:, :dim]) for column in columns]
            loss, metrics = self._loss(cut, prepared)
            losses.append(loss)
        mean = torch.stack(losses).mean()
        return self._shared(mean, metrics, counts["rows"], prepared.weight)

    def _loss(
        self, columns: list[Tensor], prepared: PreparedTexts
    ) -> tuple[Tensor, dict[str, Tensor]]:
        if prepared.kind == "scored":
            assert prepared.scores_B is not None
            first, second = columns[:2]
            if self.config.score_loss == "cosine":
                loss = cosine_loss(first, second, prepared.scores_B)
            else:
                loss = cosent_loss(first, second, prepared.scores_B, self.config.temperature)
            return loss, {"score_loss": loss}
        assert prepared.is_hidden_BC is not None
        anchors, *others = columns
        loss, num_right = ranking_loss(
            anchors, torch.cat(others), prepared.is_hidden_BC, self.config.temperature
        )
        return loss, {"ranking_loss": loss, "ranking_accuracy": num_right}

    @staticmethod
    def _shared(
        loss: Tensor, metrics: dict[str, Tensor], count: Tensor, weight: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return weight * loss / count, {name: weight * own.detach() for name, own in metrics.items()}


def text_hash(ids: np.ndarray) -> int:
    """A number that only equal texts share."""
    digest = hashlib.blake2b(ids.tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@torch.no_grad()
def vectors_of(objective: SentenceObjective, side: Side, device: torch.device) -> np.ndarray:
    """The vectors of texts without dropout, of length 1, (texts, D)."""
    was_training = objective.training
    objective.eval()
    order = sorted(range(len(side)), key=lambda index: int(side.lengths[index]))
    found: list[Any] = [None] * len(side)
    try:
        for group in grouped(order, lambda i: int(side.lengths[i]), _TOKENS_AT_ONCE[device.type]):
            inputs = to_device(sequences_of([side[index] for index in group]), device)
            own = unit(objective.encode(inputs)).cpu().numpy()
            for index, vector_D in zip(group, own, strict=True):
                found[index] = vector_D
    finally:
        objective.train(was_training)
    return np.stack(found)
