"""The columns of a wide table in parts that a page has room for; tasks in, groups of them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil

from sememe.ladder.results import Results, Task

_MOST_COLUMNS = 11


def in_parts(results: Results) -> list[Results]:
    """The same results once for each part of the table, with the tasks of that part."""
    return [replace(results, tasks=part) for part in _parts(results.tasks)] or [results]


def _parts(tasks: Sequence[Task], most: int = _MOST_COLUMNS) -> list[list[Task]]:
    """Tasks in their order, about as many in each part; a group is cut where it is too long."""
    size = ceil(len(tasks) / max(1, ceil(len(tasks) / most)))
    parts: list[list[Task]] = []
    for _, group in groupby(tasks, key=lambda task: task.group):
        own = list(group)
        pieces = [own[first : first + size] for first in range(0, len(own), size)]
        if parts and len(parts[-1]) + len(pieces[0]) <= size:
            parts[-1] += pieces.pop(0)
        parts += pieces
    return parts
