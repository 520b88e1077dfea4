"""The figures of a run as it goes: means since the last record, speed, and a watch on the loss."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from sememe.errors import DivergedError
from sememe.progress import History
from sememe.progress.figures import format_count
from sememe.training.distributed import Processes
from sememe.training.objective import TOKENS, Totals


class Recorder:
    """Gathers what the steps give and leaves records of it in the history."""

    def __init__(
        self,
        counted_by: Mapping[str, str],
        processes: Processes,
        *,
        watches_rises: bool = True,
        shown: Sequence[str] = ("validation_loss",),
    ) -> None:
        self.history = History()
        self.tokens = 0
        self.writer: Any = None  # TensorBoard's
        self._counted_by, self._processes = counted_by, processes
        self._totals = Totals(counted_by)
        self._watches_rises, self._names = watches_rises, tuple(shown)
        self._lowest = math.inf
        self._before_s, self._begun_s = 0.0, time.monotonic()
        self._mark = (self._begun_s, 0)
        self.shown: dict[str, float | str] = {}  # beside the bar

    @property
    def seconds(self) -> float:
        """Seconds of training, those before the last checkpoint included."""
        return self._before_s + time.monotonic() - self._begun_s

    def begin(self) -> None:
        """Forget what was measured; the time counts from now."""
        self._totals, self.tokens = Totals(self._counted_by), 0
        self._begun_s = time.monotonic()
        self._mark = (self._begun_s, 0)

    def add(self, figures: Mapping[str, torch.Tensor]) -> None:
        """Add the sums of a part of a step."""
        self._totals.add(figures)

    def add_counts(self, counts: Mapping[str, float]) -> None:
        """Add the counts of a step, all processes together."""
        self._totals.add_counts(counts)
        self.tokens += int(counts[TOKENS])

    def wait(self) -> None:
        """Wait until the device has done what it was given."""
        if self._totals.sums is not None:
            self._totals.sums.tolist()

    def taken(self) -> dict[str, float]:
        """The means since the last record; they are forgotten here."""
        means = self._totals.means(self._processes)
        self._totals = Totals(self._counted_by)
        return means

    def record(self, step: int, **more: float) -> None:
        """Keep the means since the last record, after a look at the loss."""
        figures = self._totals.means(self._processes)
        self._watch(figures["loss"])
        (before_s, before), now_s = self._mark, time.monotonic()
        self._mark = (now_s, self.tokens)
        speed = (self.tokens - before) / max(now_s - before_s, 1e-9)
        own = {"seconds": round(self.seconds, 3), "tokens_per_s": speed}
        self.keep(step, {**figures, **more, **own})
        self._totals = Totals(self._counted_by)

    def keep(self, step: int, figures: Mapping[str, float]) -> None:
        """Append a record to the history."""
        self.history.append({"step": step, "tokens": self.tokens, **figures})
        if self.writer is not None:
            for name, value in figures.items():
                self.writer.add_scalar(name, value, step)
        self.shown = self._show()

    def pause(self) -> None:
        """Leave the time of a validation or a checkpoint out of the speed."""
        self._mark = (time.monotonic(), self.tokens)

    def _show(self) -> dict[str, float | str]:
        last = self.history.last()
        validated = {name: last[name] for name in self._names if last.get(name) is not None}
        if "loss" not in last:  # a device that is not waited for is validated before it is recorded
            return validated
        loss = float(self.history.smooth("loss", 3)[-1])
        speed = format_count(last["tokens_per_s"] or 0.0, "tokens") + "/s"
        return {"loss": loss, **validated, "speed": speed}

    def check(self) -> None:
        """Refuse numbers that are none."""
        sums = self._totals.sums
        if sums is not None and not bool(torch.isfinite(sums).all()):
            raise DivergedError("the loss is not a number any more")

    def _watch(self, loss: float) -> None:
        self.check()
        if not math.isfinite(loss):  # another process has seen it
            raise DivergedError("the loss is not a number any more")
        # A record of a short run is one step of a few rows: three of them tell a rise from chance.
        before = [record["loss"] for record in self.history[-8:] if "loss" in record][-2:]
        loss = sum([*before, loss]) / (len(before) + 1)
        if self._watches_rises and loss > 1.5 * self._lowest + 1:
            raise DivergedError(f"the loss rose to {loss:.2f} after it had been {self._lowest:.2f}")
        self._lowest = min(self._lowest, loss)

    def to_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the history."""
        lowest = self._lowest if math.isfinite(self._lowest) else None
        totals = self._totals.to_dict(self._processes)
        return {
            "tokens": self.tokens, "seconds": self.seconds, "lowest": lowest, "totals": totals,
        }  # fmt: skip

    def restore(self, kept: Mapping[str, Any], history: History, device: torch.device) -> None:
        """Take up what a checkpoint kept."""
        self.history, self.tokens = history, int(kept["tokens"])
        self._before_s = float(kept["seconds"])
        self._lowest = math.inf if kept["lowest"] is None else float(kept["lowest"])
        self._totals.restore(kept["totals"], device, self._processes)
        self._mark = (time.monotonic(), self.tokens)
