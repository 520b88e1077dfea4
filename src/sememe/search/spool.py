"""Rows of any corpus on disk while they are grouped: written once, then read by number.

A pipe can be grouped like a file, and memory holds a few bytes per row. N rows, D dimensions.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.progress import Reporter
from sememe.search.config import RowsConfig
from sememe.search.rows import Row, read_rows
from sememe.storage.folder import write_errors
from sememe.storage.tables import free_name, write_table

AT_ONCE = 1_024  # rows


def usable_rows(data: Any, config: RowsConfig, reporter: Reporter) -> Iterator[Row]:
    """The rows that have a text; bad ones are an error, or skipped and counted."""
    num_bad = num_empty = num_rows = 0
    for row in read_rows(data, config, reporter):
        if row.problem and not config.skip_bad:
            raise InputError(f"{row.problem} (--skip-bad skips such rows).")
        num_bad += bool(row.problem)
        num_empty += not row.problem and not row.text.strip()
        if not row.problem and row.text.strip():
            num_rows += 1
            yield row
    if not num_rows:
        raise InputError("There are no rows with a text.")
    if num_bad:
        reporter.note(f"{num_bad:,} bad rows were skipped.")
    if num_empty:
        reporter.note(f"{num_empty:,} rows without a text were skipped.")


class Spool:
    """Rows in a scratch file, in the order in which they were added."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "rows.jsonl"
        self._ends = array("q", [0])
        with write_errors(self._path):
            self._file = self._path.open("w+b")

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def filled(self, rows: Iterable[Row]) -> Iterator[list[Row]]:
        """Add rows, and give them in parts as they come."""
        rows = iter(rows)
        while part := list(islice(rows, AT_ONCE)):
            with write_errors(self._path):
                for row in part:
                    line = json.dumps([row.id, row.text, row.cells], default=str) + "\n"
                    self._ends.append(self._ends[-1] + self._file.write(line.encode()))
            yield part

    def __getitem__(self, number: int) -> Row:
        start, end = self._ends[number : number + 2]
        self._file.seek(start)
        return Row(*json.loads(self._file.read(end - start)))

    def __iter__(self) -> Iterator[Row]:
        return (self[number] for number in range(len(self)))


class VectorFile:
    """Vectors in a scratch file that grows; `mapped` maps all of them."""

    def __init__(self, path: Path) -> None:
        self._path, self._dim, self._num = path, 0, 0

    def __len__(self) -> int:
        return self._num

    def add(self, rows_ND: np.ndarray) -> None:
        """Append vectors in float32."""
        self._dim, self._num = rows_ND.shape[1], self._num + len(rows_ND)
        with write_errors(self._path), self._path.open("ab") as file:
            file.write(np.ascontiguousarray(rows_ND, np.float32).data)

    def mapped(self) -> np.ndarray:
        """All vectors, as a map of the file that can be changed."""
        if not self._num:
            return np.empty((0, self._dim), np.float32)
        return np.memmap(self._path, np.float32, "r+", shape=(self._num, self._dim))


def write_rows(
    out: Path,
    rows: Iterable[tuple[Mapping[str, Any], Row]],
    types: Mapping[str, Any],
    reporter: Reporter,
) -> None:
    """Write a table of rows, each after the cells that were found for it.

    A column of the rows with the name of such a cell, or `text`, gets another name.
    """
    rows, renamed = iter(rows), dict[str, str]()
    with write_table(out, types=types) as table:
        while part := list(islice(rows, AT_ONCE)):
            for found, row in part:
                for name in ({*found, "text"} & row.cells.keys()) - renamed.keys():
                    renamed[name] = free_name(name, {*found, *row.cells})
            table.add(
                [
                    {**found, "id": row.id, "text": row.text}
                    | {renamed.get(name, name): cell for name, cell in row.cells.items()}
                    for found, row in part
                ]
            )
    for name, own in sorted(renamed.items()):
        reporter.note(f"The file has a column {name!r}; in the table it is {own!r}.")
