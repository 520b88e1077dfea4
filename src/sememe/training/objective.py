"""What the loop needs from a network: sums of losses over a batch, divided by given counts.

A loss is a mean over the predictions of a step (masked tokens, sentence pairs), wherever they are
computed: in the parts of a step or in several processes. So the loop adds the counts of all parts
first, and each part divides its sums by those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import torch
from torch import nn

from sememe.training.distributed import Processes

TOKENS = "tokens"  # the count that every objective has: tokens read, without padding


class Objective(Protocol):
    """A network with its loss, a torch.nn.Module."""

    # Each metric, and the count that its sum is divided by. The loss is the sum of the metrics
    # whose names end in "_loss".
    counted_by: Mapping[str, str]
    # The precision of activations; the loop sets it.
    precision: torch.dtype

    def counts(self, batch: Any) -> dict[str, int]:
        """The number of predictions of a batch by name, and its `tokens`."""

    def prepare(self, batch: Any) -> Any:
        """Turn the arrays of a batch into the input of `forward`; called in a background thread."""

    def compile(self) -> None:
        """Compile the network in place."""

    def uncompile(self) -> None:
        """Discard what `compile` made, which belongs to one device."""

    def __call__(
        self, prepared: Any, counts: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""


def precision_of(part: str) -> Any:
    """The activation precision of a part, as a property of the module that contains it."""

    def read(module: Any) -> torch.dtype:
        return cast(torch.dtype, getattr(module, part).precision)

    def write(module: Any, value: torch.dtype) -> None:
        getattr(module, part).precision = value

    return property(read, write)


# Methods of networks that may be compiled: an attribute then covers the method.
COMPILED = ("head_loss", "loss")


class NetworkObjective(nn.Module):
    """The base of objectives that train one network, which knows its activation precision."""

    network: Any
    precision = precision_of("network")

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def compile(self, **options: Any) -> None:
        """Do nothing by default: LSTMs have compiled kernels already."""

    def uncompile(self) -> None:
        """Discard what `compile` made, which belongs to one device."""
        for part in self.modules():
            part._compiled_call_impl = None
            for name in COMPILED:
                vars(part).pop(name, None)


class TrainingSource(Protocol):
    """Batches by number: the same number gives the same batch, which can be split into parts."""

    @property
    def batches_per_epoch(self) -> int:
        """Batches per epoch."""

    def num_steps(self, epochs: float) -> int:
        """Steps of `epochs` epochs."""

    def batch(self, step: int) -> Any:
        """The batch of a step; its part(index, num_parts) has some of its rows."""


class Totals:
    """Sums of metrics and counts over some steps; they stay on the device until they are read."""

    def __init__(self, counted_by: Mapping[str, str]) -> None:
        self.counted_by = counted_by
        self.sums: torch.Tensor | None = None
        self.counts = dict.fromkeys([TOKENS, *counted_by.values()], 0.0)

    def add(self, metrics: Mapping[str, torch.Tensor]) -> None:
        """Add the sums of one batch."""
        row = torch.stack([metrics[name].detach().float() for name in self.counted_by])
        self.sums = _exact(row) if self.sums is None else self.sums + _exact(row)

    def add_counts(self, counts: Mapping[str, float]) -> None:
        """Add the counts of one step."""
        for name in self.counts:
            self.counts[name] += counts.get(name, 0)

    def add_totals(self, other: Totals) -> None:
        """Add the sums of another Totals."""
        if other.sums is not None:
            self.sums = other.sums if self.sums is None else self.sums + other.sums
        self.add_counts(other.counts)

    def means(self, processes: Processes) -> dict[str, float]:
        """The metrics as means over all processes; waits for the device."""
        sums = self._summed(processes)
        means = {
            name: sums[name] / self.counts[count]
            for name, count in self.counted_by.items()
            if self.counts[count]
        }
        loss = sum(value for name, value in means.items() if name.endswith("_loss"))
        return {"loss": loss, **means}

    def _summed(self, processes: Processes) -> dict[str, float]:
        own = [0.0] * len(self.counted_by) if self.sums is None else self.sums.tolist()
        return dict(zip(self.counted_by, processes.sum(own), strict=True))

    def to_dict(self, processes: Processes) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"sums": self._summed(processes), "counts": self.counts}

    def restore(self, kept: Mapping[str, Any], device: torch.device, processes: Processes) -> None:
        """Restore the state of a checkpoint; the main process gets the sums of all."""
        self.counts = {name: float(kept["counts"][name]) for name in self.counts}
        share = 1.0 if processes.is_main else 0.0
        row = [share * kept["sums"][name] for name in self.counted_by]
        exact = torch.float32 if device.type == "mps" else torch.float64
        self.sums = torch.tensor(row, dtype=exact, device=device)


def _exact(row: torch.Tensor) -> torch.Tensor:
    """The row in float64 if the device has it."""
    return row if row.device.type == "mps" else row.double()
