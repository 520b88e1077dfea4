"""What an evaluation says: figures by name, which of them decides, and the table of confusions."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The figures of a task on some rows."""

    figures: dict[str, float]
    main_metric: str
    num_rows: int
    num_skipped: int = 0
    seconds: float = 0.0
    labels: list[str] = field(default_factory=list)
    confusion: list[list[int]] | None = None  # a row for each true label, a column for each said

    @property
    def value(self) -> float:
        """The figure that decides."""
        return self.figures[self.main_metric]

    def to_dict(self) -> dict[str, Any]:
        """All of it, fit for JSON."""
        figures = {n: value if math.isfinite(value) else None for n, value in self.figures.items()}
        return {**asdict(self), "figures": figures}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Scores:
        """Read what `to_dict` gave."""
        known = content["figures"].items()
        figures = {name: math.nan if value is None else value for name, value in known}
        return cls(**{**content, "figures": figures})
