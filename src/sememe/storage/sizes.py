"""Amounts of memory as people write them: 4G, 512M, 1.5 GB."""

from __future__ import annotations

import re

from sememe.errors import OptionError

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def parse_size(text: str | int, name: str = "memory") -> int:
    """Turn 4G or 512M into bytes (G is 2³⁰); a plain number is bytes already."""
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise OptionError(f"{name} must be an amount such as 4G or 512M, not {text!r}.")
    return int(float(match[1]) * (1 << _POWERS[match[2].upper()]))
