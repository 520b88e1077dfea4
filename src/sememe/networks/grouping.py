"""Rows that go through a network together: as many as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Row = TypeVar("Row")


def grouped(
    rows: Iterable[Row], size_of: Callable[[Row], int], most: int, *, is_padded: bool = False
) -> Iterator[list[Row]]:
    """Runs of rows that hold `most` tokens together, or one row that alone holds more.

    Where rows are padded they come in rising order of size, and each counts as the longest.
    """
    group: list[Row] = []
    total = 0
    for row in rows:
        size = size_of(row)
        total = (len(group) + 1) * size if is_padded else total + size
        if group and total > most:
            yield group
            group, total = [], size
        group.append(row)
    if group:
        yield group
