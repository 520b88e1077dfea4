"""Scales: values to places along an axis, with ticks a person would have chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sememe.ladder.report.figures import count, duration, megabytes

_TIMES = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 108000, 360000)


@dataclass(frozen=True)
class Scale:
    """A range of values on a range of places; `ticks` are values with their texts."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[tuple[float, str]]
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value; what lies outside stands at the edge."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def linear(
    values: Sequence[float],
    start: float,
    end: float,
    *,
    label: Callable[[float], str] | None = None,
    num_ticks: int = 4,
    pad: float = 0.08,
) -> Scale:
    """A scale from the least to the largest value and a little beyond."""
    low, high = min(values), max(values)
    span = high - low or max(abs(high) * 0.1, 1.0)
    low, high = low - pad * span, high + pad * span
    step = _step((high - low) / num_ticks)
    first, last = math.ceil(low / step), math.floor(high / step)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    show = label or (lambda value: f"{value:.{digits}f}".replace("-", "−"))
    ticks = [(index * step, show(index * step + 0.0)) for index in range(first, last + 1)]
    return Scale(low, high, start, end, ticks)


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.999)


def logarithmic(
    values: Sequence[float],
    start: float,
    end: float,
    *,
    floor: float,
    candidates: Sequence[float],
    label: Callable[[float], str],
    pad: float = 0.08,
    most_ticks: int = 6,
) -> Scale:
    """A scale on which equal ratios are equally far; what is below `floor` stands on it."""
    kept = [max(value, floor) for value in values]
    low, high = min(kept), max(kept)
    # A narrow range would stretch differences that nobody should see.
    while high / low < 4:
        low, high = low / 1.1, high * 1.1
    ratio = (high / low) ** pad
    low, high = low / ratio, high * ratio
    inside = [tick for tick in candidates if low <= tick <= high]
    every = max(1, math.ceil(len(inside) / most_ticks))
    ticks = [(tick, label(tick)) for tick in inside[::every]]
    if any(value < floor for value in values):
        ticks = [(floor, "≤ " + label(floor)), *(tick for tick in ticks if tick[0] > floor * 1.5)]
    return Scale(low, high, start, end, ticks, is_log=True)


def _decades(steps: Sequence[int]) -> list[float]:
    return [step * 10.0**power for power in range(-2, 10) for step in steps]


def time_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Seconds, minutes and hours, by ratio."""
    return logarithmic(values, start, end, floor=0.1, candidates=_TIMES, label=duration)


def size_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Megabytes, by ratio."""

    def label(value: float) -> str:
        return megabytes(value).removesuffix(".0")

    steps = (1, 3) if max(values) > 20 * max(min(values), 0.1) else (1, 2, 5)
    return logarithmic(values, start, end, floor=0.1, candidates=_decades(steps), label=label)


def ratio_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Perplexities, by ratio."""
    return logarithmic(
        values, start, end, floor=1.0, candidates=_decades((1, 2, 5)), label=count, most_ticks=5
    )


def elapsed_scale(high: float, start: float, end: float) -> Scale:
    """Time from zero, evenly."""
    high = max(high, 1e-3)
    units = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 36000)
    fine = [0.001 * power for power in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    coarse = [86400.0 * power for power in (0.5, 1, 2, 5, 10, 20, 50)]
    every = [*fine, *units, *coarse]
    step = next((unit for unit in every if high / unit <= 4.2), high)
    ticks = [(index * step, _short(index * step)) for index in range(int(high / step) + 1)]
    return Scale(0.0, high, start, end, ticks)


def _short(seconds: float) -> str:
    if seconds == 0:
        return "0"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.1 else duration(seconds)
