"""The files of benchmarks in a folder: a folder and descriptions in, paths out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from sememe.errors import InputError
from sememe.evaluation.benchmarks import Benchmark, Files, Places

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_DEEPEST = 4


class Found(NamedTuple):
    """Files that are there, and how their rows are read."""

    paths: list[Path]
    files: Files


class Holdings(NamedTuple):
    """What a folder holds of one benchmark."""

    benchmark: Benchmark
    train: Found | None
    parts: dict[str, Found]
    unlabelled: dict[str, Found]

    @property
    def missing(self) -> list[str]:
        """The official files that are not there, by their first names."""
        places = [] if self.train else [self.benchmark.train]
        places += [own for part, own in self.benchmark.parts.items() if part not in self.parts]
        return [own[0].pattern for own in places]


class DataFolder:
    """The files below a folder, by their paths without case and endings of compression."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(f"{self.folder} is no folder; give the one that holds the data sets.")
        self._paths: dict[str, Path] = {}
        self._values: dict[tuple[Path, str], set[str]] = {}
        root = self.folder.resolve()
        for place, folders, names in os.walk(root):
            here = Path(place)
            depth = len(here.relative_to(root).parts)
            folders[:] = sorted(name for name in folders if name[0] != "." and depth < _DEEPEST)
            for name in sorted(names):
                if name[0] != ".":
                    key = "/".join([root.name, *(here / name).relative_to(root).parts])
                    self._paths.setdefault(_plain(key), here / name)

    def find(self, places: Places) -> Found | None:
        """The first of the places that is there."""
        for files in places:
            pattern = files.pattern.lower()
            paths = [
                path for key, path in self._paths.items() if fnmatchcase(f"/{key}", f"*/{pattern}")
            ]
            if paths:
                return Found(paths if files.is_many else paths[:1], files)
        return None

    def _holds(self, found: Found) -> bool:
        """Whether the rows that are meant are in a file of several kinds, such as languages."""
        for column, value in found.files.where.items():
            for path in found.paths:
                key = (path, column)
                if key not in self._values:
                    self._values[key] = _values_of(path, column)
                if value in self._values[key]:
                    break
            else:
                return False
        return True

    def holdings(self, benchmark: Benchmark) -> Holdings:
        """What there is of a benchmark."""

        def found(places: Mapping[str, Places]) -> dict[str, Found]:
            pairs = {name: self.find(own) for name, own in places.items()}
            return {name: own for name, own in pairs.items() if own and self._holds(own)}

        return Holdings(
            benchmark, self.find(benchmark.train), found(benchmark.parts),
            found(benchmark.unlabelled),
        )  # fmt: skip


def _values_of(path: Path, column: str) -> set[str]:
    from sememe.examples.labelled.records import open_tables

    tables = open_tables([str(path)], encoding="utf-8", is_header=lambda _: True)
    return {str(record.cells.get(column, "")) for table in tables for record in table.records}


def _plain(key: str) -> str:
    key = key.lower()
    for ending in _COMPRESSED:
        if key.endswith(ending):
            return key[: -len(ending)]
    return key
