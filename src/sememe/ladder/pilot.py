"""How fast a rung trains: some seconds of a training that is then given up."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, NamedTuple

from sememe.ladder.plan import Plan
from sememe.ladder.rungs import Spec
from sememe.ladder.text import LadderText
from sememe.progress import Reporter
from sememe.progress.reporter import Task

_PILOT_S = (0.2, 5.0)  # at least and at most; a tenth of the budget between
_MOST_EPOCHS = 10_000


class Speed(NamedTuple):
    """Seconds of one pass over the text, and of what comes before the first."""

    pass_s: float
    before_s: float

    def epochs_within(self, budget_s: float) -> int:
        """The passes that come nearest to a budget, one at least."""
        return min(_MOST_EPOCHS, max(1, round((budget_s - self.before_s) / self.pass_s)))


def measured(
    spec: Spec, plan: Plan, options: dict[str, Any], text: LadderText, reporter: Reporter
) -> Speed:
    """The speed of a pilot run, whose time is no part of the budget."""
    reporter.note(f"{spec.title}: measuring the speed.")
    pilot = Pilot(max(_PILOT_S[0], min(_PILOT_S[1], plan.budget_s / 10)))
    model = spec.model_class(**{**options, "epochs": _MOST_EPOCHS})
    begun_s = time.monotonic()
    with suppress(EnoughError):
        model.fit(text.words, text=text.settings, progress=pilot)
    # GloVe counts pairs before its first step; that is part of its budget.
    before_s = pilot.begun_s - begun_s if spec.command == "glove" else 0.0
    return Speed(text.words.num_tokens / max(pilot.rate, 1e-9), before_s)


class EnoughError(Exception):
    """A pilot run has told how fast it is."""


class Pilot(Reporter):
    """A reporter that watches a training for some seconds, and then ends it.

    A callback would do so too, but each one has the threads meet and copies the vectors: on many
    cores that takes longer than the steps between two of them.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(quiet=True)
        self._seconds = seconds
        self.begun_s = 0.0
        self._is_warm = False
        self._num_looks = 0  # at which there was something new
        self._first = self._last = (0.0, 0)  # when, and how many words were done

    @property
    def rate(self) -> float:
        """Words a second; the first ones, slow while kernels are loaded, are left out."""
        (first_s, first), (last_s, last) = self._first, self._last
        return (last - first) / max(last_s - first_s, 1e-9)

    def _open(self, task: Task) -> None:
        if task.title == "training":
            self.begun_s = time.monotonic()
            self._first = self._last = (self.begun_s, 0)

    def _redraw(self, task: Task, now_s: float) -> float:
        if task.title == "training":
            self._num_looks += task.done > self._last[1]
            self._last = (now_s, task.done)
            if not self._is_warm:
                if self._num_looks > 1 and now_s - self.begun_s >= self._seconds / 4:
                    self._is_warm, self._first = True, self._last
            elif now_s - self._first[0] >= self._seconds and self.rate > 0:
                raise EnoughError
        return 0.0
