"""One's own rows for the map: a file in; texts, their columns, and their vectors out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as NotYet
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.explore.jobs import Recent, Report
from sememe.localization import translate
from sememe.plots.vocabulary import Points
from sememe.progress import Reporter
from sememe.search.config import RowsConfig
from sememe.search.rows import Row, read_rows
from sememe.text.headers import is_number
from sememe.vectors.search import unit_rows

if TYPE_CHECKING:
    from sememe.serve.models import Served
    from sememe.serve.service import Service

MOST_ROWS = 100_000
_AT_ONCE = 64  # texts of one call of a model
_MOST_CATEGORIES = 10  # colors; rarer values share the last
_MOST_BYTES = 2_000_000_000  # of vectors that are kept: those of a few models


class _Notes(Reporter):
    """Keeps what a reader says about a file, for the page."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(translate(text))


class OwnRows:
    """The rows of a file, read when the explorer starts."""

    def __init__(self, path: str) -> None:
        reporter = _Notes()
        self.path = path
        self.rows: list[Row] = list(islice(read_rows(path, RowsConfig(), reporter), MOST_ROWS + 1))
        self.notes = reporter.texts
        if bad := next((row for row in self.rows if row.problem), None):
            raise InputError(f"{path}: row {bad.id}: {bad.problem}.")
        if len(self.rows) > MOST_ROWS:
            del self.rows[MOST_ROWS:]
            self.notes.append(translate(f"Only the first {MOST_ROWS:,} rows are shown."))
        if len(self.rows) < 3:
            raise InputError(f"{path} has {len(self.rows)} rows: too few for a map.")
        self._units = Recent[np.ndarray](_MOST_BYTES)  # by model

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, name: str) -> list[Any]:
        """The values of a column; None where a row has none."""
        return [row.cells.get(name) for row in self.rows]

    @cached_property
    def labels(self) -> list[str]:
        """The beginning of each row."""
        return [" ".join(row.text[:200].split()) for row in self.rows]

    @cached_property
    def columns(self) -> list[str]:
        """The columns that can color points, categories first; constant ones are left out."""
        names = dict.fromkeys(name for row in self.rows for name in row.cells)
        found: dict[str, bool] = {}
        for name in names:
            values = [cell for cell in self.cells(name) if cell not in (None, "")]
            num_values = len(set(map(str, values)))
            is_scale = num_values > _MOST_CATEGORIES and all(is_number(str(v)) for v in values)
            if num_values > 1 and (is_scale or num_values < len(values)):
                found[name] = is_scale
        return sorted(found, key=found.__getitem__)

    def colors(self, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A column as a scale of numbers, or as categories, the most frequent first."""
        if name not in self.columns:
            raise OptionError(f"There is no column “{name}” that can color the rows.")
        cells = self.cells(name)
        known = [cell for cell in cells if cell not in (None, "")]
        counts = Counter(map(str, known))
        if len(counts) > _MOST_CATEGORIES and all(is_number(value) for value in counts):
            numbers = np.array([float(v) if v not in (None, "") else np.nan for v in cells])
            numbers = np.nan_to_num(numbers, nan=float(np.nanmin(numbers)))
            told = {"low": float(numbers.min()), "high": float(numbers.max())}
            return told, {"value": numbers.astype(np.float32)}
        is_whole = len(counts) <= _MOST_CATEGORIES and len(known) == len(cells)
        named = [
            value for value, _ in counts.most_common(_MOST_CATEGORIES - (0 if is_whole else 1))
        ]
        places = {value: index for index, value in enumerate(named)}
        category = [places.get(str(cell), len(named)) for cell in cells]
        return {"names": named, "has_others": not is_whole}, {
            "category": np.array(category, np.uint8)
        }

    def described(self, index: int, score: float | None = None) -> dict[str, Any]:
        """A row in JSON values."""
        row = self.rows[index]
        cells = {name: str(cell) for name, cell in row.cells.items() if cell is not None}
        return {"index": index, "text": row.text, "cells": cells, "score": score}

    # ---- vectors --------------------------------------------------------------------------------

    def embed(
        self, service: Service, own: Served, loop: asyncio.AbstractEventLoop, report: Report
    ) -> np.ndarray:
        """The unit vectors of all rows, (N, D), computed between the requests of others."""
        model, parts = own.model, []
        if (found := self._units.get(ref(model))) is None:
            for start, texts in self._blocks():

                def call(texts: list[str] = texts) -> np.ndarray:
                    return np.asarray(model.embed(texts), np.float32)

                share = start / len(self)
                pending = asyncio.run_coroutine_threadsafe(service.batcher.call(call), loop)
                while True:
                    report(share, "Embedding the rows")
                    try:
                        parts.append(pending.result(0.5))
                        break
                    except NotYet:
                        continue
            found = unit_rows(np.concatenate(parts)).astype(np.float32)
            self._units.put(ref(model), found, found.nbytes)
        return found

    def _blocks(self) -> Iterator[tuple[int, list[str]]]:
        """The texts that are embedded together, with the index of the first."""
        for start in range(0, len(self), _AT_ONCE):
            yield start, [row.text or " " for row in self.rows[start : start + _AT_ONCE]]

    def points_by(self, model: Any) -> Points:
        """The rows that have a vector, as points; `embed` without a service."""
        parts = [np.asarray(model.embed(texts), np.float32) for _, texts in self._blocks()]
        units_ND = unit_rows(np.concatenate(parts)).astype(np.float32)
        is_known_N = np.asarray(units_ND.any(axis=1))
        if is_known_N.sum() < 3:
            raise InputError(f"{self.path}: the model knows fewer than three rows.")
        labels = [own for own, is_one in zip(self.labels, is_known_N, strict=True) if is_one]
        return Points(units_ND[is_known_N], labels, [])

    def units(self, own: Served) -> np.ndarray:
        """The vectors that `embed` has computed."""
        if (found := self._units.get(ref(own.model))) is None:
            raise InputError("The rows are not embedded by this model yet: draw its map first.")
        return found

    def containing(self, query: str, num: int) -> list[int]:
        """The rows whose text contains the query, in any case of its letters."""
        small = query.casefold()
        matches = (i for i, row in enumerate(self.rows) if small in row.text.casefold())
        return list(islice(matches, num))


def nearest_rows(
    units_ND: np.ndarray, query_D: np.ndarray, num: int
) -> Sequence[tuple[int, float]]:
    """Indexes and cosines of the rows nearest to a vector."""
    scores_N = units_ND @ unit_rows(query_D[None])[0].astype(np.float32)
    order = np.argsort(-scores_N, kind="stable")[:num]
    return [(int(index), float(scores_N[index])) for index in order]
