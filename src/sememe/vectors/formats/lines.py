"""One line of a text format: a word, then D numbers. Plain Python, and the last word on errors.

The kernel in `kernels.py` parses the common lines and leaves every other line to this file.
"""

from __future__ import annotations

import re

# Words may hold any other white space (U+00A0, U+3000, U+0085): only these two separate.
_SEPARATORS = b" \t"
_NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)", re.I)


class LineError(ValueError):
    """A line that is not a word and its numbers."""


def count_numbers(line: bytes) -> int:
    """How many fields follow the first word of a line, numbers or not."""
    fields = line.rstrip(b" \t\r\n").replace(b"\t", b" ").split(b" ")
    return sum(1 for field in fields[1:] if field)


def parse_line(line: bytes, dim: int) -> tuple[bytes, list[float]]:
    """Split a line into its word and its last `dim` fields as numbers; words may hold spaces."""
    stripped = line.rstrip(b" \t\r\n")
    end = word_end = len(stripped)
    numbers: list[float] = []
    for _ in range(dim):
        start = max(stripped.rfind(b" ", 0, end), stripped.rfind(b"\t", 0, end)) + 1
        field = stripped[start:end]
        if start == 0 or not _NUMBER.fullmatch(field):
            raise LineError(_complaint(field, len(numbers), start == 0, dim))
        numbers.append(float(field))
        word_end = end = start - 1
        while end > 0 and stripped[end - 1] in _SEPARATORS and len(numbers) < dim:
            end -= 1
    return stripped[:word_end], numbers[::-1]


def _complaint(field: bytes, num_read: int, is_short: bool, dim: int) -> str:
    if is_short or field == b"":
        return f"it has {num_read} numbers where {dim} were expected"
    shown = field[:40].decode("utf-8", "replace")
    return f"“{shown}” is not a number ({dim} numbers were expected after the word)"
