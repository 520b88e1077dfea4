"""The scores of a task on some rows, and how they are printed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sememe.metrics import calibration_lines, class_table
from sememe.metrics.baselines import ONE_SEED, beside_table, interval_line, reasons
from sememe.progress import baseline_remark, few_remark, format_score


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores of a task on some rows."""

    metrics: dict[str, float]
    main_metric: str
    num_rows: int
    num_skipped: int = 0
    seconds: float = 0.0
    labels: list[str] = field(default_factory=list)
    confusion: list[list[int]] | None = None  # row: true label, column: predicted label
    majority: float | None = None  # accuracy of always predicting the most frequent label
    only: str = ""  # the label that every row got
    classes: list[dict[str, Any]] = field(default_factory=list)  # precision, recall, F1 of each
    averages: dict[str, dict[str, float]] = field(default_factory=dict)  # macro, micro, weighted
    calibration: dict[str, float] = field(default_factory=dict)  # see metrics.Reliability
    interval: list[float] | None = None  # of the main metric over the rows, 95 %
    seeds: str = ONE_SEED  # the runs that the scores are from
    baselines: list[dict[str, Any]] = field(default_factory=list)  # see metrics.BaselineScore

    @property
    def value(self) -> float:
        """The main metric."""
        return self.metrics[self.main_metric]

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        metrics = {n: value if math.isfinite(value) else None for n, value in self.metrics.items()}
        return {**asdict(self), "metrics": metrics}

    def tables(self, name: str) -> Iterator[tuple[Sequence[str], list[Sequence[Any]], str]]:
        """Headings, rows and title of each table to print for these rows, if there are labels."""
        if self.confusion is not None and self.labels:
            title = f"{name} rows: a line for each right label, a column for each given one"
            rows: list[Sequence[Any]] = [
                (label, *own) for label, own in zip(self.labels, self.confusion, strict=True)
            ]
            yield ("right label \\ given label", *self.labels), rows, title
        if self.classes:
            yield *class_table(self.classes, self.averages), f"{name} rows: scores of each label"
        if self.baselines:
            yield beside_table(
                name, self.main_metric, self.value, self.interval, self.seeds, self.baselines
            )

    def summary(self, name: str) -> str:
        """The scores as a line of text; `name` names the rows."""
        told = [
            f"{one.replace('_', ' ')} {format_score(value)}" for one, value in self.metrics.items()
        ]
        scores = f"{name}: {', '.join(told)} ({self.num_rows:,} rows)"
        certainty = interval_line(name, self.main_metric, self.interval, self.seeds)
        lines = [scores, certainty, *calibration_lines(name, self.calibration)]
        return "\n".join([*lines, *reasons(self.baselines)])

    @property
    def remark(self) -> str:
        """A sentence about skipped rows, the majority baseline and scores from few rows."""
        skipped = f"{self.num_skipped:,} bad rows were left out." if self.num_skipped else ""
        accuracy = self.metrics.get("accuracy", math.nan)
        baseline = baseline_remark(accuracy, self.majority, self.only)
        return " ".join(filter(None, (skipped, baseline, few_remark(self.num_rows))))

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Scores:
        """Read the output of `to_dict`; earlier versions wrote the key `figures`."""
        known = dict(content)
        own = known.pop("figures", None) or known["metrics"]
        metrics = {name: math.nan if value is None else float(value) for name, value in own.items()}
        majority = known.get("majority")
        majority = None if majority is None else float(majority)
        return cls(**{**known, "metrics": metrics, "majority": majority})


def beside_majority(gold: Sequence[Any], said: Sequence[Any]) -> dict[str, Any]:
    """The fields of Scores that compare a model with always predicting one label."""
    given = {*said}
    return {
        "majority": max(Counter(gold).values(), default=0) / max(1, len(gold)),
        "only": str(*given) if len(given) == 1 else "",
    }
