"""Which learning rate to take: a few steps at rates that grow, the loss of each, two suggestions.

The rate grows by the same factor in every step, until the loss is lost (Smith 2017, section 3.3).
Any training of the loop can be searched: it is begun as always, and inside `find_rate` the loop
searches before its first step and ends there, with the weights that it began with.

Rows differ more in how hard they are than a few steps change a network. So the loss of a step is
told as a share of that of the first weights on the same rows, with the same numbers left out,
times the mean of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sememe.errors import OptionError
from sememe.options import check_ranges, option

if TYPE_CHECKING:
    import numpy as np

    from sememe.training.loop import Loop

# The noise of single steps is smoothed over so many of them; less of it where the rate jumps.
_HALF_LIFE = 3.0
# The means of the first steps are of too few losses to tell a fall from chance.
_FIRST = 5


@dataclass(frozen=True, kw_only=True)
class RateSearch:
    """What is tried: so many steps from the lowest rate to the highest."""

    lowest: float = option(1e-5, "The rate of the first step.")
    highest: float = option(1.0, "The rate of the last step, should the loss hold so long.")
    num_steps: int = option(150, "Steps; the rate grows by the same factor in each.")

    def __post_init__(self) -> None:
        """Refuse what cannot be tried, naming the option and its range."""
        check_ranges(self, lowest=(1e-12, 1e3), highest=(1e-12, 1e3), num_steps=(10, 1_000_000))
        if not self.lowest < self.highest:
            raise OptionError(
                f"highest ({self.highest:g}) must lie above lowest ({self.lowest:g})."
            )

    def rate_at(self, step: int) -> float:
        """The rate of a step."""
        return self.lowest * (self.highest / self.lowest) ** (step / (self.num_steps - 1))


@dataclass(frozen=True)
class RateCurve:
    """The loss at every rate that was tried, and the rates that it suggests."""

    rates: list[float]
    losses: list[float]
    has_diverged: bool  # whether the search ended because the loss rose too far
    present: float  # the rate of the options

    @property
    def smoothed(self) -> np.ndarray:
        """The losses smoothed from both ends, so that the line lags behind neither.

        How far above its bound a divergence goes says nothing of the rates before it.
        """
        from sememe.progress import History

        high = max([_bound(min(self.losses, default=0.0)), *self.losses[:_FIRST]])
        records = [{"loss": min(loss, high)} for loss in self.losses]
        forward = History(records).smooth("loss", _HALF_LIFE)
        return (forward + History(records[::-1]).smooth("loss", _HALF_LIFE)[::-1]) / 2

    @property
    def minimum(self) -> float | None:
        """The rate at which the loss is lowest; None where it never fell."""
        lowest = self._lowest
        return None if lowest is None else self.rates[lowest]

    @property
    def tenth(self) -> float | None:
        """A tenth of that rate: well on the safe side, the usual choice."""
        return None if self.minimum is None else self.minimum / 10

    @property
    def steepest(self) -> float | None:
        """The middle of the decade of rates in which the loss falls most.

        Between two neighboring steps the loss falls by chance more often than by the rate.
        """
        import numpy as np

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
        """All of it, fit for JSON."""
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
    """What the loop itself takes for a divergence."""
    return 1.5 * lowest + 1


class _Found(Exception):  # noqa: N818
    """No failure: carries the curve out of the training that was begun."""

    def __init__(self, curve: RateCurve) -> None:
        super().__init__()
        self.curve = curve


_ASKED: ContextVar[RateSearch | None] = ContextVar("rate_search", default=None)


@contextmanager
def _asking(search: RateSearch) -> Iterator[None]:
    token = _ASKED.set(search)
    try:
        yield
    finally:
        _ASKED.reset(token)


def search_instead(loop: Loop) -> None:
    """Search, and leave the training, where somebody asked for that."""
    search = _ASKED.get()
    if search is not None:
        raise _Found(_searched(loop, search))


def _searched(loop: Loop, search: RateSearch) -> RateCurve:
    import numpy as np

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
    """The loss of the first weights on the rows of every step."""
    found = []
    task = loop.run.reporter.task("looking at the rows", search.num_steps, "steps")
    with task, loop.rehearsed() as step:
        for index in range(search.num_steps):
            step(index, None)
            found.append(loop.recorder.taken()["loss"])
            task.update(index + 1)
    return found


def _wake(loop: Loop) -> None:
    """Let layers that would begin to learn later learn from the start: the rate is for them too."""

    def always(factor: float) -> Callable[[int], float]:
        return lambda step: factor

    for group in loop.optimizer.param_groups:
        group["factor"] = always(group["factor"](1 << 40))


def find_rate_of(train: Callable[[], object], search: RateSearch) -> RateCurve:
    """Search in the training that `train` begins."""
    try:
        with _asking(search):
            train()
    except _Found as found:
        return found.curve
    raise OptionError(
        "Nothing was searched, for nothing was to be trained: a rate is searched for a network "
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
    """Search a learning rate for model.fit(*data, **options), and leave the model untrained.

    sememe.find_rate(sememe.ULMFiT("tiny"), "my-texts").steepest
    """
    search = RateSearch(lowest=lowest, highest=highest, num_steps=num_steps)
    own = copy(model)  # `fit` gives it a network, words, a plan
    return find_rate_of(lambda: own.fit(*data, **options), search)
