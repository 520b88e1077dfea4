"""Batches that change over a run: fewer masks, longer rows, more rows.

Sources of batches in, batches of the right kind for each step out. All is a function of the step
and of how much of the run is done then, so a resumed run sees the same batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sememe.examples.batches import Batch

_EIGHTHS = 8  # parts in which the number of rows grows


class Schedule(NamedTuple):
    """What changes over a run, by the fraction of it that is done."""

    first_rate: float  # fraction of masked tokens at the start
    last_rate: float  # and at the end
    short_share: float = 0.0  # fraction of the steps with short rows
    batch_warmup: float = 0.0  # fraction of the steps over which the number of rows grows

    def rate(self, done: float) -> float:
        """The masking rate, which changes linearly."""
        return self.first_rate + (self.last_rate - self.first_rate) * done

    def rows_share(self, done: float) -> float:
        """The fraction of a batch's rows: from an eighth to all of them, in eighths."""
        if done >= self.batch_warmup:
            return 1.0
        return (1 + math.floor(_EIGHTHS * done / self.batch_warmup)) / _EIGHTHS


class ScheduledBatches:
    """Batches from sources of short rows, if there are any, then from those of full length.

    A step takes the batch of its number from its source: both sources go through the text at about
    the same speed, so that the second continues where the first ended.
    """

    def __init__(self, sources: Sequence[Any], schedule: Schedule) -> None:
        """Take one source, or one of short rows and one of long ones."""
        self.sources, self.schedule = list(sources), schedule
        # Until a run is followed, it is at its start.
        self._done: Callable[[int], float] = lambda step: 0.0
        self._least = 1

    @property
    def full(self) -> Any:
        """The source of full length, which says how much text there is."""
        return self.sources[-1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "sources":
            raise AttributeError(name)
        return getattr(self.full, name)

    def follow(self, done: Callable[[int], float], num_parts: int) -> None:
        """Take how much of the run is done at a step, and the parts that need a row each."""
        self._done, self._least = done, num_parts

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""
        done, schedule = min(1.0, max(0.0, self._done(step))), self.schedule
        source = self.sources[0] if done < schedule.short_share else self.full
        source.rate = schedule.rate(done)
        batch: Batch = source.batch(step)
        num_rows = len(batch.ids_BT)
        wanted = math.ceil(schedule.rows_share(done) * num_rows)
        return batch.first(min(num_rows, max(wanted, self._least)))


def unscheduled(source: Any) -> Any:
    """The source of full length, if others come before it."""
    return source.full if isinstance(source, ScheduledBatches) else source
