"""What the options of every model share: how a field is written, checked and kept."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, field, fields, replace
from typing import Any, TypeVar

from sememe.cores import available_cores
from sememe.errors import OptionError

Settings = TypeVar("Settings")

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m(?:in)?|s)\s*", re.IGNORECASE)
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def option(default: Any, help_text: str) -> Any:
    """A field of a frozen dataclass whose help the command shows."""
    return field(default=default, metadata={"help": help_text})


def check_choices(config: object, **choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices of its option."""
    for name, known in choices.items():
        if getattr(config, name) not in known:
            raise OptionError(
                f"{name} must be one of {', '.join(known)}, not {getattr(config, name)!r}."
            )


def check_ranges(config: object, **ranges: tuple[float, float]) -> None:
    """Refuse a number outside the range of its option, or a broken one where it counts things."""
    defaults = {field.name: field.default for field in fields(config)}  # type: ignore[arg-type]
    for name, (low, high) in ranges.items():
        value = getattr(config, name)
        if isinstance(defaults[name], int) and value != value // 1:
            raise OptionError(f"{name} must be a whole number, not {value}.")
        if not low <= value <= high:  # NaN fails this too
            raise OptionError(f"{name} must lie between {low:,} and {high:,}, not {value}.")


def parse_duration(duration: str | float, name: str) -> float:
    """Turn 20m, 1h30m or 45s into seconds; a number is seconds, but text must say its unit."""
    if isinstance(duration, str):
        parts, rest = _PART.findall(duration), _PART.sub("", duration).strip()
        seconds = sum(float(number) * _SECONDS[unit[0].lower()] for number, unit in parts)
    else:
        seconds, rest = duration, ""
    if rest or not 0 < seconds < math.inf:
        raise OptionError(f"{name} must be a time such as 20m, 1h30m or 45s, not {duration!r}.")
    return seconds


def changed(settings: Settings, owner: str, options: dict[str, Any]) -> Settings:
    """The settings with some options replaced; an unknown one is named as the owner's."""
    known = {field.name for field in fields(settings)}  # type: ignore[arg-type]
    _check_known(owner, options, known)
    return replace(settings, **options)  # type: ignore[type-var]


def sorted_options(
    owner: str, options: dict[str, Any], classes: dict[str, type]
) -> dict[str, dict[str, Any]]:
    """The options of a call by the class that knows them; an unknown one is named."""
    found: dict[str, dict[str, Any]] = {name: {} for name in classes}
    known = {field.name: name for name, cls in classes.items() for field in fields(cls)}
    _check_known(owner, options, set(known))
    for name, value in options.items():
        found[known[name]][name] = value
    return found


def _check_known(owner: str, options: dict[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(options) - known):
        raise OptionError(
            f"{owner} has no option {', '.join(unknown)}; it has {', '.join(sorted(known))}."
        )


class Config:
    """The base of the models' frozen dataclasses."""

    workers: int

    @property
    def num_workers(self) -> int:
        """Threads to start: `workers`, or the cores this process may use."""
        return self.workers or available_cores()

    def to_dict(self) -> dict[str, Any]:
        """The options as they are kept in sememe.json."""
        return asdict(self)  # type: ignore[call-overload]
