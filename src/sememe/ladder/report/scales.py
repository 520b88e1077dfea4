"""Scales: values to places along an axis, with ticks a person would have chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sememe.ladder.report.figures import duration, megabytes

_TIMES = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 108000, 360000)
_FINE_TIMES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 1200, 1800, 3600,
               7200, 18000, 36000, 72000, 180000)  # fmt: skip
_TICK_ROOM = 38.0  # from one text below an axis to the next


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
    candidates: Sequence[Sequence[float]],
    label: Callable[[float], str],
    pad: float = 0.08,
) -> Scale:
    """A scale on which equal ratios are equally far; what is below `floor` stands on it.

    Its ticks are of the first `candidates` of which three or more fit.
    """
    kept = [max(value, floor) for value in values]
    low, high = min(kept), max(kept)
    # A narrow range would stretch differences that nobody should see.
    while high / low < 4:
        low, high = low / 1.1, high * 1.1
    ratio = (high / low) ** pad
    low, high = low / ratio, high * ratio
    scale = Scale(low, high, start, end, [], is_log=True)
    choices = [_spaced(scale, [tick for tick in one if low <= tick <= high]) for one in candidates]
    chosen = next((one for one in choices if len(one) > 2), max(choices, key=len))
    ticks = [(tick, label(tick)) for tick in chosen]
    if any(value < floor for value in values):
        ticks = [(floor, "≤ " + label(floor)), *(tick for tick in ticks if tick[0] > floor * 1.5)]
    return replace(scale, ticks=ticks)


def _spaced(scale: Scale, ticks: Sequence[float]) -> list[float]:
    """The ticks that leave each other room."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or abs(scale(tick) - scale(kept[-1])) >= _TICK_ROOM:
            kept.append(tick)
    return kept


def _decades(steps: Sequence[int]) -> list[float]:
    return [step * 10.0**power for power in range(-2, 10) for step in steps]


def time_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Seconds, minutes and hours, by ratio."""
    return logarithmic(
        values, start, end, floor=0.1, candidates=(_TIMES, _FINE_TIMES), label=duration
    )


def size_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Megabytes, by ratio."""

    def label(value: float) -> str:
        return megabytes(value).removesuffix(".0")

    candidates = (_decades((1,)), _decades((1, 3)), _decades((1, 2, 5)))
    return logarithmic(values, start, end, floor=0.1, candidates=candidates, label=label)


def ratio_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Perplexities, by ratio."""
    candidates = (_decades((1,)), _decades((1, 2, 5)))
    return logarithmic(
        values, start, end, floor=1.0, candidates=candidates, label=lambda value: f"{value:,.0f}"
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
