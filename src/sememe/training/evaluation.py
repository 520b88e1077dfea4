"""Validation: the means of an objective's figures over batches that are never trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from sememe.training.distributed import Processes
from sememe.training.feeding import Part, to_device
from sememe.training.objective import Source, Totals


class Validation:
    """The first batches of a held-out source, the same ones each time, shared among processes."""

    def __init__(self, source: Source, num_batches: int) -> None:
        self.source = source
        self.num_batches = min(num_batches, max(1, source.batches_per_epoch))
        self._made: dict[int, Part] = {}

    def __call__(
        self, objective: Any, device: torch.device, processes: Processes
    ) -> dict[str, float]:
        """The means of the figures, dropout off."""
        return self.totals(objective, device, processes).means(processes)

    def totals(self, objective: Any, device: torch.device, processes: Processes) -> Totals:
        """The sums of the figures of this process, and the counts of all."""
        totals, was_training = Totals(objective.counted_by), objective.training
        objective.eval()
        try:
            with torch.no_grad():
                for number in range(processes.rank, self.num_batches, processes.size):
                    prepared, counts = self._part(objective, number)
                    shares = {
                        name: torch.tensor(max(1.0, count), device=device)
                        for name, count in counts.items()
                    }
                    totals.add(objective(to_device(prepared, device), shares)[1])
                    totals.add_counts(counts)
        finally:
            objective.train(was_training)
        summed = processes.sum(list(totals.counts.values()))
        totals.counts = dict(zip(totals.counts, summed, strict=True))
        return totals

    def _part(self, objective: Any, number: int) -> Part:
        if number not in self._made:
            batch = self.source.batch(number)
            self._made[number] = Part(objective.prepare(batch), objective.counts(batch))
        return self._made[number]


class Validations:
    """Validations by name: the figures of all together, and of each with its name before them."""

    def __init__(self, parts: Mapping[str, Validation]) -> None:
        self.parts = dict(parts)

    def __call__(
        self, objective: Any, device: torch.device, processes: Processes
    ) -> dict[str, float]:
        """The means of the figures, dropout off."""
        joined = Totals(objective.counted_by)
        named: dict[str, float] = {}
        for name, part in self.parts.items():
            own = part.totals(objective, device, processes)
            joined.add_totals(own)
            named |= {f"{name}_{key}": value for key, value in own.means(processes).items()}
        return joined.means(processes) | named
