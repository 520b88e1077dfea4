"""The mean of the weights of several validations: what checkpoint averaging gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from sememe.errors import ArtifactError
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.training.best import Best
from sememe.training.weights import take_weights, weights_of

_WEIGHTS = "best-{}.safetensors"


class LowestMean(Best):
    """Remembers the weights of the validations with the lowest figures, and ends with their mean.

    The paper's Transformer averages its last checkpoints; the best ones are the last of a run that
    still learns, and those before the turn of one that does not.
    """

    def __init__(self, figure: str, num_kept: int, patience: int = 0) -> None:
        """Watch that figure; `patience` validations in a row without a lower one end the run."""
        super().__init__(figure, patience)
        self.num_kept = num_kept
        self._kept: list[tuple[float, int, dict[str, torch.Tensor]]] = []  # the lowest first

    @property
    def steps(self) -> list[int]:
        """The steps whose weights are averaged, the best first."""
        return [step for _, step, _ in self._kept]

    def look(self, figures: Mapping[str, float], step: int, module: nn.Module) -> None:
        """Keep the weights where the figure is among the lowest so far."""
        value = figures[self.figure]
        value = value if math.isfinite(value) else math.inf
        if not self._kept or -value > self.value:
            self.value, self.step, self.num_since = -value, step, 0
        else:
            self.num_since += 1
        if len(self._kept) == self.num_kept and value >= self._kept[-1][0]:
            return
        own = {name: tensor.to("cpu", copy=True) for name, tensor in weights_of(module).items()}
        self._kept.append((value, step, own))
        self._kept.sort(key=lambda kept: kept[:2])
        del self._kept[self.num_kept :]

    def restore(self, module: nn.Module) -> None:
        """Give the module the mean of the kept weights, if any validation has been."""
        if self._kept:
            take_weights(module, self._mean(), "the best weights")

    def _mean(self) -> dict[str, torch.Tensor]:
        every = [weights for _, _, weights in self._kept]
        return {
            name: torch.stack([weights[name] for weights in every]).mean(0)
            if tensor.is_floating_point()
            else tensor
            for name, tensor in every[0].items()
        }

    def write(self, folder: Path) -> dict[str, Any]:
        """Put the weights into the folder of a checkpoint; the answer goes into its state."""
        for number, (_, _, weights) in enumerate(self._kept):
            arrays = {name: tensor.numpy() for name, tensor in weights.items()}
            write_tensors(folder / _WEIGHTS.format(number), arrays)
        kept = [[value if math.isfinite(value) else None, step] for value, step, _ in self._kept]
        return {"kept": kept, "step": self.step, "num_since": self.num_since}

    def read(self, folder: Path, kept: Mapping[str, Any]) -> None:
        """Take up what `write` left."""
        self._kept = []
        for number, (value, step) in enumerate(kept["kept"]):
            place = folder / _WEIGHTS.format(number)
            if not place.exists():
                raise ArtifactError(f"{place} is missing: start without resume.")
            weights = {n: torch.from_numpy(np.array(x)) for n, x in read_tensors(place).items()}
            self._kept.append((math.inf if value is None else float(value), int(step), weights))
        self.step, self.num_since = int(kept["step"]), int(kept["num_since"])
        self.value = -self._kept[0][0] if self._kept else -math.inf
