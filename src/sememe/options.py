"""What the options of all models share: how a field is declared, checked, parsed and saved."""

import math
import re
from dataclasses import asdict, field, fields, replace
from functools import cache
from numbers import Integral, Real
from os import PathLike
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sememe.errors import OptionError
from sememe.machine import available_cores

Settings = TypeVar("Settings")
Device = Literal["auto", "cpu", "cuda"]  # of word vectors

MAX_SEEDS = 1_000  # runs of one task, each with its own seed

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m(?:in)?|s)\s*", re.IGNORECASE)
_LONGEST_S = 3 * 365 * 86_400
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def option(
    default: Any, help_text: str, low: float | None = None, high: float | None = None
) -> Any:
    """A field of a frozen dataclass with its range and the help text of its option."""
    limits = {} if low is None else {"range": (low, high)}
    return field(default=default, metadata={"help": help_text, **limits})


def check_choices(config: object, **choices: tuple[str, ...]) -> None:
    """Raise OptionError if a value is not among the choices of its option."""
    for name, known in choices.items():
        if getattr(config, name) not in known:
            raise OptionError(
                f"{name} must be one of {', '.join(known)}, not {getattr(config, name)!r}."
            )


def check_ranges(config: object, **ranges: tuple[float, float]) -> None:
    """Raise OptionError if a number is out of range, or not an integer where it is a count."""
    defaults = {field.name: field.default for field in fields(config)}  # type: ignore[arg-type]
    for name, limits in ranges.items():
        _check_range(config, name, limits, isinstance(defaults[name], int))


def check_number(name: str, value: float | None, low: float, high: float) -> None:
    """Raise OptionError if a number is out of range; None is allowed."""
    if value is not None and not low <= value <= high:  # NaN fails this too
        raise OptionError(f"{name} must be between {low:,} and {high:,}, not {value}.")


def _check_range(config: object, name: str, limits: tuple[float, float], is_whole: bool) -> None:
    value = getattr(config, name)
    if is_whole and value != value // 1:
        raise OptionError(f"{name} must be a whole number, not {value}.")
    check_number(name, value, *limits)
    if is_whole and not isinstance(value, Integral):  # 64.0, as some other programs write it
        object.__setattr__(config, name, int(value))


# The types that a field's annotation allows, and the words for them.
_KINDS: dict[Any, tuple[Any, str]] = {
    int: (Real, "a whole number"), float: (Real, "a number"), bool: (Integral, "true or false"),
    str: (str | PathLike, "text"),
}  # fmt: skip


@cache
def _rules_of(cls: Any) -> list[tuple[str, Any, Any, Any]]:
    """The name, default, annotation and range of each field; subclasses inherit ranges by name."""
    ranges: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        own = getattr(base, "__dataclass_fields__", {})
        ranges |= {key: x.metadata["range"] for key, x in own.items() if "range" in x.metadata}
    hints = get_type_hints(cls)
    return [(x.name, x.default, _of_given(hints[x.name]), ranges.get(x.name)) for x in fields(cls)]


def _of_given(hint: Any) -> Any:
    """The type of an option that may be None, where it is given."""
    given = [one for one in get_args(hint) if one is not NoneType]
    return given[0] if len(given) == 1 and NoneType in get_args(hint) else hint


def check_options(config: Any) -> None:
    """Raise OptionError for a value of the wrong type, not among its choices, or out of range."""
    cls: Any = type(config)
    for name, default, hint, limits in _rules_of(cls):
        value = getattr(config, name)
        if value is None and default is None:
            continue
        if get_origin(hint) is Literal:
            check_choices(config, **{name: get_args(hint)})
        kind, words = _KINDS.get(hint, (object, ""))
        if not isinstance(value, kind) or (isinstance(value, bool) and hint is not bool):
            raise OptionError(f"{name} must be {words}, not {value!r}.")
        if limits is not None:
            _check_range(config, name, limits, hint is int)


def parse_duration(duration: str | float, name: str) -> float:
    """Turn 20m, 1h30m or 45s into seconds; a number is in seconds, a string must have a unit."""
    if isinstance(duration, str):
        parts, rest = _PART.findall(duration), _PART.sub("", duration).strip()
        seconds = sum(float(number) * _SECONDS[unit[0].lower()] for number, unit in parts)
    else:
        seconds, rest = duration, ""
    if rest or not 0 < seconds < math.inf:
        raise OptionError(f"{name} must be a time such as 20m, 1h30m or 45s, not {duration!r}.")
    if seconds > _LONGEST_S:
        raise OptionError(f"{name} must be at most 3 years, not {duration}.")
    return seconds


def changed(settings: Settings, owner: str, options: dict[str, Any]) -> Settings:
    """The settings with some options replaced; an unknown one raises an error naming the owner."""
    known = {field.name for field in fields(settings)}  # type: ignore[arg-type]
    _check_known(owner, options, known)
    return replace(settings, **options)  # type: ignore[type-var]


def sorted_options(
    owner: str, options: dict[str, Any], classes: dict[str, type]
) -> dict[str, dict[str, Any]]:
    """Sort the options of a call by the class that has them; an unknown one raises an error."""
    known = {field.name: name for name, cls in classes.items() for field in fields(cls)}
    _check_known(owner, options, set(known))
    return {
        name: {own: value for own, value in options.items() if known[own] == name}
        for name in classes
    }


def _check_known(owner: str, options: dict[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(options) - known):
        raise OptionError(
            f"{owner} has no option {', '.join(unknown)}; it has {', '.join(sorted(known))}."
        )


class Config:
    """The base of the models' frozen dataclasses of options."""

    workers: int
    memory: str

    def __post_init__(self) -> None:
        """Raise OptionError for an option of a wrong type or out of range."""
        check_options(self)

    @property
    def num_bytes(self) -> int:
        """The option `memory` in bytes, for configs that have it."""
        return parse_size(self.memory)

    @property
    def num_workers(self) -> int:
        """Number of threads: `workers`, or the cores this process may use."""
        return self.workers or available_cores()

    def to_dict(self) -> dict[str, Any]:
        """The options as saved in sememe.json."""
        return asdict(self)  # type: ignore[call-overload]


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def parse_size(text: str | int, name: str = "memory") -> int:
    """Turn 4G or 512M into bytes (G is 2³⁰); a plain number is in bytes."""
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise OptionError(f"{name} must be an amount such as 4G or 512M, not {text!r}.")
    return int(float(match[1]) * (1 << _POWERS[match[2].upper()]))
