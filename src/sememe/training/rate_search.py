"""Learning-rate range test: a few steps at growing rates, the loss of each, two suggestions.

The rate grows by the same factor in every step, until the loss diverges (Smith 2017, section 3.3).
Any training of the loop can be searched: it starts as always, and inside `find_rate` the loop
searches before its first step and stops there, with its initial weights restored.

Rows differ more in difficulty than a few steps change a network. So the loss of a step is divided
by that of the initial weights on the same rows, with the same dropout, and multiplied by the mean
of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.progress import History
from sememe.training.config import RateSearch
from sememe.training.loop import INSTEAD, Loop

# The noise of single steps is smoothed over this many of them; over fewer if the rate jumps.
_HALF_LIFE = 3.0
# The first means are over too few losses to distinguish a fall from chance.
_FIRST = 5


@dataclass(frozen=True)
class RateCurve:
    """The loss at every rate that was tried, and the suggested rates."""

    rates: list[float]
    losses: list[float]
    has_diverged: bool  # whether the search ended because the loss diverged
    present: float  # the rate in the options

    @property
    def smoothed(self) -> np.ndarray:
        """The losses smoothed in both directions, so that the curve has no lag.

        The size of a divergence says nothing about the rates before it.
        """
        high = max([_bound(min(self.losses, default=0.0)), *self.losses[:_FIRST]])
        records = [{"loss": min(loss, high)} for loss in self.losses]
        forward = History(records).smooth("loss", _HALF_LIFE)
        return (forward + History(records[::-1]).smooth("loss", _HALF_LIFE)[::-1]) / 2

    @property
    def minimum(self) -> float | None:
        """The rate with the lowest loss; None if the loss never fell."""
        lowest = self._lowest
        return None if lowest is None else self.rates[lowest]

    @property
    def tenth(self) -> float | None:
        """A tenth of that rate: the usual, safe choice."""
        return None if self.minimum is None else self.minimum / 10

    @property
    def steepest(self) -> float | None:
        """The middle of the decade of rates in which the loss falls most.

        Between two adjacent steps, the loss falls more by chance than because of the rate.
        """
        lowest = self._lowest
        if lowest is None:
            return None
        logs, fallen = np.log10(self.rates[: lowest + 1]), self.smoothed[: lowest + 1]
        before = np.interp(logs - 0.5, logs, fallen)
        after = np.interp(logs + 0.5, logs, fallen)
        return self.rates[int(np.argmin(after - before))]

    @property
    def _lowest(self) -> int | None:
        smoothed = self.smoothed
        if len(smoothed) <= _FIRST:
            return None
        found = int(smoothed.argmin())
        return found if found >= _FIRST and smoothed[found] < 0.999 * smoothed[0] else None

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "steepest": self.steepest,
            "tenth_of_minimum": self.tenth,
            "minimum": self.minimum,
            "present": self.present,
            "has_diverged": self.has_diverged,
            "rates": self.rates,
            "losses": self.losses,
            "smoothed": self.smoothed.tolist(),
        }


def _bound(lowest: float) -> float:
    """The loss that the loop itself treats as a divergence."""
    return 1.5 * lowest + 1


class _Found(Exception):  # noqa: N818
    """Not an error: carries the curve out of the training that was started."""

    def __init__(self, curve: RateCurve) -> None:
        super().__init__()
        self.curve = curve


def _searched(loop: Loop, search: RateSearch) -> RateCurve:
    before = np.array(_losses_before(loop, search))
    before = np.maximum(before, 0.01 * before.mean() + 1e-9)  # rows that were known already
    curve = RateCurve([], [], False, loop.config.learning_rate)
    smoothed = weight = 0.0
    keep, lowest = 0.5 ** (1 / _HALF_LIFE), math.inf
    task = loop.run.reporter.task("trying rates", search.num_steps, "steps")
    with task, loop.rehearsed() as step:
        _wake(loop)
        for index in range(search.num_steps):
            rate = search.rate_at(index)
            step(index, rate)
            loss = loop.recorder.taken()["loss"] * before.mean() / before[index]
            if not math.isfinite(loss):
                return replace(curve, has_diverged=True)
            curve.rates.append(rate)
            curve.losses.append(float(loss))
            smoothed, weight = smoothed * keep + loss, weight * keep + 1
            mean = float(smoothed / weight)
            task.update(index + 1, loss=mean, rate=f"{rate:.1e}")
            lowest = min(lowest, mean)
            if mean > _bound(lowest):
                return replace(curve, has_diverged=True)
    return curve


def _losses_before(loop: Loop, search: RateSearch) -> list[float]:
    """The loss of the initial weights on the rows of every step."""
    found = []
    task = loop.run.reporter.task("looking at the rows", search.num_steps, "steps")
    with task, loop.rehearsed() as step:
        for index in range(search.num_steps):
            step(index, None)
            found.append(loop.recorder.taken()["loss"])
            task.update(index + 1)
    return found


def _wake(loop: Loop) -> None:
    """Unfreeze layers that would start later, because the rate is for them too."""

    def always(factor: float) -> Callable[[int], float]:
        return lambda step: factor

    for group in loop.stepper.optimizer.param_groups:
        group["factor"] = always(group["factor"](1 << 40))


def find_rate_of(train: Callable[[], object], search: RateSearch) -> RateCurve:
    """Run the search in the training that `train` starts."""

    def instead(loop: Loop) -> None:
        raise _Found(_searched(loop, search))

    token = INSTEAD.set(instead)
    try:
        train()
    except _Found as found:
        return found.curve
    finally:
        INSTEAD.reset(token)
    raise OptionError(
        "No learning rate was searched, because nothing was trained: give a network "
        "(NNLM, ELMo, ULMFiT, GPT, BERT, translation, fine-tuning) that is not finished."
    )


def find_rate(
    model: Any,
    *data: Any,
    lowest: float = RateSearch.lowest,
    highest: float = RateSearch.highest,
    num_steps: int = RateSearch.num_steps,
    **options: Any,
) -> RateCurve:
    """Find a learning rate for model.fit(*data, **options), and leave the model untrained.

    sememe.find_rate(sememe.ULMFiT("tiny"), "my-texts").steepest
    """
    search = RateSearch(lowest=lowest, highest=highest, num_steps=num_steps)
    own = copy(model)  # `fit` gives it a network, words, a plan
    return find_rate_of(lambda: own.fit(*data, **options), search)
