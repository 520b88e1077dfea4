"""The figures a run leaves behind: one record (a dict of numbers) each time it reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.storage.folder import read_json, write_json


class History(list[dict[str, Any]]):
    """Records in the order they were made: `history.append({"words": 10_000, "loss": 0.3})`."""

    def column(self, name: str) -> np.ndarray:
        """One figure over all records as float64; NaN where a record lacks it."""
        values = [record.get(name) for record in self]
        return np.array([math.nan if value is None else value for value in values], np.float64)

    def smooth(self, name: str, half_life: float = 5.0) -> np.ndarray:
        """The exponential mean of one figure; a record's weight halves every `half_life` records.

        The weights are normalised, so that the first values are not pulled towards zero.
        """
        if not half_life > 0:
            raise OptionError(f"half_life must be positive, not {half_life}.")
        keep = 0.5 ** (1.0 / half_life)
        total = weight = 0.0
        smoothed = np.full(len(self), np.nan)
        for index, value in enumerate(self.column(name)):
            total, weight = total * keep, weight * keep
            if math.isfinite(value):
                total, weight = total + value, weight + 1.0
            smoothed[index] = total / weight if weight else math.nan
        return smoothed

    def last(self) -> dict[str, Any]:
        """The newest value of every figure, fit for JSON; evaluations have records of their own."""
        return _jsonable({name: value for record in self for name, value in record.items()})

    def save(self, path: str | Path) -> None:
        """Write the records as JSON; NaN and infinity, which JSON lacks, become null."""
        write_json(Path(path), [_jsonable(record) for record in self])

    @classmethod
    def load(cls, path: str | Path) -> History:
        """Read what `save` wrote."""
        content = read_json(Path(path))
        if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
            raise ArtifactError(f"{path} is not a history: a list of records was expected.")
        return cls(content)


def _jsonable(record: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: getattr(value, "item", lambda v=value: v)() for name, value in record.items()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
    }
