"""One step of a training: the figures and gradients of its parts, then one move of the weights."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from sememe.examples.randomness import stream_key
from sememe.training.feeding import Part, to_device
from sememe.training.optimizers import make_optimizer, rest, set_rates
from sememe.training.precision import (
    TYPES,
    choose_device,
    choose_precision,
    resumed_precision,
    seed_device,
)
from sememe.training.records import Recorder
from sememe.training.run import Run

_DROPOUT = 0x44  # the purpose of a stream of random numbers


class Stepper:
    """Moves the weights of an objective on its device, and leaves the figures with a recorder."""

    def __init__(self, objective: Any, run: Run, recorder: Recorder, begun_in: str = "") -> None:
        """`begun_in` is the precision of a run that goes on; a new one follows its options."""
        self.objective, self.run, self.recorder = objective, run, recorder
        self.config, self.processes = run.config, run.processes
        self.device = choose_device(self.config.device, self.processes.local_rank)
        self._usual = self.precision = choose_precision(
            self.config.precision, self.device, self.config.fast_cpu_precision
        )
        if begun_in:
            self.precision = resumed_precision(begun_in, self.device)
        self.norm: torch.Tensor | None = None  # of the last gradient, where it is measured

    def start(self) -> None:
        """Bring the objective to its device."""
        self.objective.to(self.device)
        self.objective.precision = TYPES[self.precision]
        self.objective.train()
        is_gpu = self.device.type == "cuda"
        if self.precision != self._usual:
            self.run.reporter.note(
                f"Matrix products stay in {self.precision}, with which this run began; "
                f"a new one would take {self._usual} here."
            )
        elif self.config.precision == "auto" and self.precision == "bf16" and not is_gpu:
            self.run.reporter.note("Matrix products are in bf16, which this CPU has (precision).")
        if self.config.compile == "yes" or (self.config.compile == "auto" and is_gpu):
            self.run.reporter.note("Compiling the network.")
            self.objective.compile()
        self.module = self.processes.wrap(self.objective, self.device)

    def renew(self, num_steps: int) -> None:
        """Make an optimizer that has seen nothing."""
        groups = self.run.rate_groups(num_steps) if self.run.rate_groups else None
        self.optimizer = make_optimizer(self.objective, self.config, groups)
        # Looking for them in every step would take as long as a layer of a small network does.
        self._trained = [own for own in self.objective.parameters() if own.requires_grad]
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")

    def do(self, step: int, parts: list[Part], counts: dict[str, float], rate: float) -> None:
        """One step: the gradients of all parts, then one move of the weights."""
        set_rates(self.optimizer, step, rate)
        self.gather(step, parts, counts, learns=True)
        self._move(step)

    def gather(
        self, step: int, parts: list[Part], counts: dict[str, float], *, learns: bool
    ) -> None:
        """The figures of all parts, and their gradients where it learns."""
        processes, shares = self.processes, self._on_device(counts)
        for index, part in enumerate(parts):
            number = index * processes.size + processes.rank
            seed_device(self.device, stream_key(self.config.seed, _DROPOUT, step, number) >> 1)
            is_last = index == len(parts) - 1
            with torch.set_grad_enabled(learns), self._synchronised(is_last=is_last):
                loss, figures = self.module(to_device(part.prepared, self.device), shares)
                if learns:
                    # Gradients are averaged over the processes, and the loss is a share already.
                    own = loss if processes.size == 1 else loss * processes.size
                    self.scaler.scale(own).backward()
            self.recorder.add(figures)
        self.recorder.add_counts(counts)

    def _synchronised(self, *, is_last: bool) -> AbstractContextManager[object]:
        """Gradients travel between processes once a step."""
        if self.processes.size == 1 or is_last:
            return nullcontext()
        return self.module.no_sync()  # type: ignore[operator]

    def _move(self, step: int) -> None:
        rest(self.optimizer, step)
        if self.config.clip:
            self.scaler.unscale_(self.optimizer)
            self.norm = torch.nn.utils.clip_grad_norm_(self._trained, self.config.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def _on_device(self, counts: dict[str, float]) -> dict[str, torch.Tensor]:
        row = torch.tensor([max(1.0, count) for count in counts.values()])
        if self.device.type == "cuda":
            row = row.pin_memory()
        return dict(zip(counts, to_device(row, self.device).unbind(), strict=True))
