"""Rows held out for measuring must not repeat what was trained on, whatever module they are from.

Docstrings are copied from function to function and from package to package; a row of which much
stands in the training rows word for word would measure memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

_SHINGLE_SIZE = 6  # words
_SHARE = 1 / 3
_WORD = re.compile(r"\w+")

Row = TypeVar("Row")


def shingles(text: str) -> list[str]:
    """Every run of six words of a text; a shorter text is one run."""
    words = _WORD.findall(text.lower())
    num_runs = max(1, len(words) - _SHINGLE_SIZE + 1)
    return [" ".join(words[first : first + _SHINGLE_SIZE]) for first in range(num_runs)]


def without_repeats(
    rows: Iterable[Row], trained: Iterable[Row], text_of: Callable[[Row], str]
) -> list[Row]:
    """The rows of which at most a third stands in the training rows."""
    known = {run for row in trained for run in shingles(text_of(row))}
    kept = []
    for row in rows:
        own = shingles(text_of(row))
        if sum(run in known for run in own) <= _SHARE * len(own):
            kept.append(row)
    return kept
