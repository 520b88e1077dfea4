"""Long texts in overlapping windows: every token is seen, most with context on both sides."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from sememe.errors import OptionError


class Window(NamedTuple):
    """Tokens `start` to `end` of a text, of which it answers for `first` to `last`."""

    start: int
    end: int
    first: int
    last: int


def windows(num_tokens: int, size: int, overlap: int) -> list[Window]:
    """Cut a text into windows of at most `size` tokens, neighbors sharing `overlap` of them.

    A token that two windows see belongs to the one in which it stands further from the edge.
    """
    if not 0 <= overlap < size:
        raise OptionError(f"overlap must lie between 0 and {size - 1:,}, not {overlap:,}.")
    if num_tokens <= size:
        return [Window(0, num_tokens, 0, num_tokens)]
    starts = [*range(0, num_tokens - size, size - overlap), num_tokens - size]
    borders = [0]
    for start, following in pairwise(starts):
        borders.append((start + size + following) // 2)
    borders.append(num_tokens)
    return [
        Window(start, start + size, first, last)
        for start, first, last in zip(starts, borders[:-1], borders[1:], strict=True)
    ]
