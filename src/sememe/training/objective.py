"""What the loop asks of a network: sums of losses over a batch, divided by counts it is given.

A loss is a mean over the things predicted in a step (hidden tokens, pairs of sentences), wherever
they are computed: in the parts of a step or in several processes. So the loop adds the counts of
all parts first, and each part divides its sums by those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import torch
from torch import nn

from sememe.training.distributed import Processes

TOKENS = "tokens"  # the count that every objective has: tokens read, padding left out


class Objective(Protocol):
    """A network with what it is to learn, a torch.nn.Module."""

    # Each figure, and the count that makes a mean of its sum. The loss is the sum of the figures
    # whose names end in "_loss".
    counted_by: Mapping[str, str]
    # What flows through the network; the loop sets it.
    precision: torch.dtype

    def counts(self, batch: Any) -> dict[str, int]:
        """How many things a batch predicts, by name, and its `tokens`."""

    def prepare(self, batch: Any) -> Any:
        """Turn the arrays of a batch into what `forward` takes; runs in a thread beside it."""

    def compile(self) -> None:
        """Compile the network in place."""

    def __call__(
        self, prepared: Any, counts: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""


def precision_of(part: str) -> Any:
    """What flows between the layers of a part, as a property of the module that has the part."""

    def read(module: Any) -> torch.dtype:
        return cast(torch.dtype, getattr(module, part).precision)

    def write(module: Any, value: torch.dtype) -> None:
        getattr(module, part).precision = value

    return property(read, write)


class NetworkObjective(nn.Module):
    """The base of objectives that train one network, which knows what flows between its layers."""

    network: Any
    precision = precision_of("network")

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def compile(self, **options: Any) -> None:
        """Nothing, unless an objective knows how: LSTMs have a program of their own already."""


class Source(Protocol):
    """Batches by number: the same number gives the same batch, which can be cut into parts."""

    @property
    def batches_per_epoch(self) -> int:
        """Batches of one pass over the text."""

    def num_steps(self, epochs: float) -> int:
        """Steps after which `epochs` passes over the text are done."""

    def batch(self, step: int) -> Any:
        """The batch of a step; its part(index, num_parts) is a share of its rows."""


class Totals:
    """Sums of figures and counts over some steps; they stay on the device until they are read."""

    def __init__(self, counted_by: Mapping[str, str]) -> None:
        self.counted_by = counted_by
        self.sums: torch.Tensor | None = None
        self.counts = dict.fromkeys([TOKENS, *counted_by.values()], 0.0)

    def add(self, figures: Mapping[str, torch.Tensor]) -> None:
        """Add the sums of one batch."""
        row = torch.stack([figures[name].detach().float() for name in self.counted_by])
        self.sums = _exact(row) if self.sums is None else self.sums + _exact(row)

    def add_counts(self, counts: Mapping[str, float]) -> None:
        """Add the counts of one step."""
        for name in self.counts:
            self.counts[name] += counts.get(name, 0)

    def add_totals(self, other: Totals) -> None:
        """Add what another has summed up."""
        if other.sums is not None:
            self.sums = other.sums if self.sums is None else self.sums + other.sums
        self.add_counts(other.counts)

    def means(self, processes: Processes) -> dict[str, float]:
        """The figures as means, sums of all processes together; waits for the device."""
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
        """What a checkpoint keeps."""
        return {"sums": self._summed(processes), "counts": self.counts}

    def restore(self, kept: Mapping[str, Any], device: torch.device, processes: Processes) -> None:
        """Take up what a checkpoint kept; the sums of all processes go to the main one."""
        self.counts = {name: float(kept["counts"][name]) for name in self.counts}
        share = 1.0 if processes.is_main else 0.0
        row = [share * kept["sums"][name] for name in self.counted_by]
        exact = torch.float32 if device.type == "mps" else torch.float64
        self.sums = torch.tensor(row, dtype=exact, device=device)


def _exact(row: torch.Tensor) -> torch.Tensor:
    """The row in float64 where the device has that."""
    return row if row.device.type == "mps" else row.double()
