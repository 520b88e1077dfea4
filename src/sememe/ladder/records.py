"""Records that JSON holds: frozen dataclasses to plain values and back, told by their hints."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from sememe.evaluation.results import plain


class Record:
    """A dataclass that JSON can hold."""

    def to_dict(self) -> dict[str, Any]:
        """The record for JSON: NaN becomes null, tuples lists."""
        return {one.name: _to_plain(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]


def _to_plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): _to_plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_to_plain(one) for one in value]
    return plain(value)


def from_plain(kind: Any, value: Any) -> Any:
    """Build the value of a type hint from JSON."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        return None if value is None else from_plain(parts[0], value)
    if origin is list:
        return [from_plain(parts[0], one) for one in value]
    if origin is dict:
        return {name: from_plain(parts[1], one) for name, one in value.items()}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = {one.name: hints[one.name] for one in fields(kind) if one.name in value}
        return kind(**{name: from_plain(hint, value[name]) for name, hint in known.items()})  # type: ignore[operator]
    if hasattr(kind, "_fields"):
        return kind(*value)
    if kind is float:
        return math.nan if value is None else float(value)
    return value
