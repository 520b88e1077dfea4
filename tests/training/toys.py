"""A network of a few hundred weights, with dropout, that learns to read numbers off rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from sememe.randomness import stream_key


@dataclass(frozen=True)
class ToyBatch:
    """Rows of numbers and the class of each; `is_asked` rows alone are to be predicted."""

    rows_BD: np.ndarray
    classes_B: np.ndarray
    is_asked_B: np.ndarray

    def part(self, index: int, num_parts: int) -> ToyBatch:
        own = slice(index, None, num_parts)
        return ToyBatch(self.rows_BD[own], self.classes_B[own], self.is_asked_B[own])


class ToySource:
    """Batches by number; the classes follow from the rows, up to some noise."""

    batches_per_epoch = 25

    def __init__(self, batch_size: int = 16, seed: int = 0, scale: float = 1.0) -> None:
        self.batch_size, self.seed, self.scale = batch_size, seed, scale

    def num_steps(self, epochs: float) -> int:
        return round(epochs * self.batches_per_epoch)

    def batch(self, step: int) -> ToyBatch:
        random = np.random.default_rng(stream_key(self.seed, step))
        rows_BD = random.normal(size=(self.batch_size, 8)).astype(np.float32)
        classes_B = rows_BD[:, :3].argmax(1)
        is_asked_B = random.random(self.batch_size) < 0.6
        return ToyBatch(self.scale * rows_BD, classes_B, is_asked_B)


class ToyObjective(nn.Module):
    """Two layers, and the mean loss over the rows that are asked for."""

    counted_by: Mapping[str, str] = {"class_loss": "asked", "class_accuracy": "asked"}

    def __init__(self, dropout: float = 0.1, width: int = 16, seed: int = 5) -> None:
        super().__init__()
        self.precision = torch.float32
        self.first, self.norm = nn.Linear(8, width), nn.LayerNorm(width)
        self.second = nn.Linear(width, 3)
        self.dropout = nn.Dropout(dropout)
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.3, generator=generator)
            elif parameter is not self.norm.weight:
                nn.init.zeros_(parameter)

    def counts(self, batch: ToyBatch) -> dict[str, int]:
        return {"tokens": len(batch.rows_BD), "asked": int(batch.is_asked_B.sum())}

    def prepare(self, batch: ToyBatch) -> Any:
        arrays = {name: torch.from_numpy(value) for name, value in vars(batch).items()}
        return replace(batch, **arrays)

    def forward(
        self, batch: Any, counts: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        hidden = self.dropout(self.norm(torch.tanh(self.first(batch.rows_BD.float()))))
        logits = self.second(hidden)[batch.is_asked_B]
        classes = batch.classes_B[batch.is_asked_B]
        loss = nn.functional.cross_entropy(logits, classes, reduction="sum")
        right = (logits.argmax(-1) == classes).sum()
        return loss / counts["asked"], {"class_loss": loss, "class_accuracy": right}


def weights(objective: nn.Module) -> dict[str, np.ndarray]:
    """A copy of every weight."""
    return {name: value.detach().numpy().copy() for name, value in objective.named_parameters()}


def assert_equal(first: nn.Module, second: nn.Module) -> None:
    """Two networks hold the same bits."""
    ours, theirs = weights(first), weights(second)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
