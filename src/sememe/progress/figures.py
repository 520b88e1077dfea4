"""Figures as people read them: counts, rates, durations; numbers in, short strings out."""

from __future__ import annotations

import math

_SHORT_NAMES = {"learning_rate": "lr"}
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def format_count(number: float, unit: str = "") -> str:
    """Write a count with three digits and its unit: `1.21 M words`, `34.0 MB`."""
    scale, mark = next(((s, m) for s, m in _SCALES if abs(number) >= s), (1.0, ""))
    value = number / scale
    if mark == "" and float(number).is_integer():
        digits = f"{int(number)}"
    else:
        # 999.9 k would round to "1000 k" at no decimals; three digits are enough to see it move.
        digits = f"{value:.{max(0, 2 - int(math.log10(max(abs(value), 1))))}f}"
    if unit == "B":
        return f"{digits} {mark}B"
    return " ".join(part for part in (digits, mark, unit) if part)


def format_duration(seconds: float) -> str:
    """Write seconds as a clock does: `0:07`, `12:30`, `3:05:00`, `2 d 4:00:00`."""
    if not math.isfinite(seconds) or seconds < 0:
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_figure(name: str, value: float | str) -> str:
    """Write one named figure with four digits: `loss 0.2134`, `lr 0.0182`."""
    shown = _SHORT_NAMES.get(name, name.replace("_", " "))
    return f"{shown} {value}" if isinstance(value, str) else f"{shown} {value:.4g}"
