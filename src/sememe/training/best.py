"""The best weights by a validation figure, kept while training goes on, and when to give up."""

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
from sememe.training.weights import take_weights, weights_of

_WEIGHTS = "best.safetensors"


class Best:
    """Remembers the weights of the validation with the highest figure, the first of equals."""

    def __init__(self, figure: str, patience: int = 0) -> None:
        """Watch that figure; `patience` validations in a row without a better one end the run."""
        self.figure, self.patience = figure, patience
        self.value, self.step, self.num_since = -math.inf, 0, 0
        self._weights: dict[str, torch.Tensor] = {}

    @property
    def is_hopeless(self) -> bool:
        """Whether the patience is spent."""
        return bool(self.patience) and self.num_since >= self.patience

    def look(self, figures: Mapping[str, float], step: int, module: nn.Module) -> None:
        """Keep the weights where the figure is the highest so far."""
        value = figures[self.figure]
        if not value > self.value and self._weights:  # NaN is never better
            self.num_since += 1
            return
        self.value = value if math.isfinite(value) else -math.inf
        self.step, self.num_since = step, 0
        self._weights = {
            name: tensor.to("cpu", copy=True) for name, tensor in weights_of(module).items()
        }

    def restore(self, module: nn.Module) -> None:
        """Give the module the best weights, if any validation has been."""
        if self._weights:
            take_weights(module, self._weights, "the best weights")

    def write(self, folder: Path) -> dict[str, Any]:
        """Put the weights into the folder of a checkpoint; the answer goes into its state."""
        arrays = {name: tensor.numpy() for name, tensor in self._weights.items()}
        if arrays:
            write_tensors(folder / _WEIGHTS, arrays)
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "step": self.step, "num_since": self.num_since}

    def read(self, folder: Path, kept: Mapping[str, Any]) -> None:
        """Take up what `write` left."""
        self.value = -math.inf if kept["value"] is None else float(kept["value"])
        self.step, self.num_since = int(kept["step"]), int(kept["num_since"])
        if self.step and not (folder / _WEIGHTS).exists():
            raise ArtifactError(f"{folder / _WEIGHTS} is missing: start without resume.")
        if self.step:
            found = read_tensors(folder / _WEIGHTS)
            self._weights = {name: torch.from_numpy(np.array(x)) for name, x in found.items()}
