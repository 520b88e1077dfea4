"""Results of fine-tuning on benchmarks: scores by seed with their context; tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sememe.errors import InputError
from sememe.evaluation.benchmarks import ANSWER_SETS, GLUE, SETS, TAG_SETS, Benchmark
from sememe.evaluation.results import (
    PUBLISHED_MARK,
    ResultTable,
    SystemRow,
    format_percents,
    format_score,
    format_spread,
    gain_cells,
    plain,
)
from sememe.metrics import Interval, Spread, spread
from sememe.metrics.by_name import METRICS
from sememe.progress import FEW

_HEADINGS = {"f1": "F1", "exact": "EM"}

KNOWN: dict[str, Benchmark] = {**GLUE, **SETS, **TAG_SETS, **ANSWER_SETS}
# What an earlier result must contain.
_TYPES: dict[str, Any] = {
    "benchmark": str, "title": str, "model": str, "seeds": list, "num_train": int,
    "seconds": int | float, "options": dict, "files": dict,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PartScores:
    """The scores of one set of rows: a list per metric, one score per seed, as fractions."""

    metrics: dict[str, list[float]]
    num_rows: int
    num_skipped: int = 0
    # The 95 % interval over the rows; with several seeds, the mean of their bounds.
    intervals: dict[str, Interval] = field(default_factory=dict)
    baselines: list[dict[str, Any]] = field(default_factory=list)  # of the main metric

    @property
    def coverage(self) -> float:
        """Fraction of the file's rows that could be scored."""
        total = self.num_rows + self.num_skipped
        return self.num_rows / total if total else math.nan

    def spread(self, metric: str) -> Spread:
        """Mean and deviation over the seeds; NaN if a seed has no score."""
        values = self.metrics[metric]
        if not all(map(math.isfinite, values)):
            return Spread(math.nan, math.nan, len(values))
        return spread(values)

    def format_score(self, metric: str) -> str:
        """A metric as tables show it."""
        return format_spread(self.spread(metric), self.num_rows)

    def format_interval(self, metric: str) -> str:
        """The interval of a metric as tables show it, in percent."""
        return format_percents(self.intervals.get(metric))

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return {
            "metrics": {
                name: {
                    **self.spread(name)._asdict(),
                    "by_seed": values,
                    "interval": self.intervals.get(name),
                }
                for name, values in self.metrics.items()
            },
            "baselines": self.baselines,
            "num_rows": self.num_rows,
            "num_skipped": self.num_skipped,
            "coverage": self.coverage,
            "few_questions": self.num_rows < FEW,
        }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One model on one benchmark."""

    benchmark: str
    model: str
    seeds: list[int]
    parts: dict[str, PartScores]
    num_train: int
    seconds: float
    title: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # Details per seed that are not metrics, such as SQuAD 2.0's best thresholds.
    details: list[dict[str, Any]] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def undefined(self) -> list[str]:
        """The scores that could not be computed, such as a correlation of constant predictions."""
        return [
            f"{METRICS[metric].short} on {name} is not defined: all gold or all predicted values "
            "are equal, or a value is not a number."
            for name, part in self.parts.items()
            for metric in part.metrics
            if not math.isfinite(part.spread(metric).mean)
        ]

    @property
    def description(self) -> Benchmark:
        """The benchmark that was run."""
        return KNOWN[self.benchmark]

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {
                "benchmark": self.benchmark,
                "title": self.title or self.description.title,
                "model": self.model,
                "seeds": self.seeds,
                "main_metric": self.description.main_metric,
                "parts": {name: part.to_dict() for name, part in self.parts.items()},
                "num_train": self.num_train,
                "seconds": round(self.seconds, 2),
                "options": self.options,
                "files": self.files,
                "notes": [*self.notes, *self.undefined],
                "details": self.details,
                "published": [vars(row) for row in self.description.published],
                "provenance": self.provenance,
            }
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Outcome:
        """Read the output of `to_dict` of an earlier run."""
        try:
            parts = {
                name: PartScores(
                    metrics={
                        metric: [math.nan if x is None else float(x) for x in own["by_seed"]]
                        for metric, own in part["metrics"].items()
                    },
                    intervals={
                        metric: Interval(*map(float, own["interval"]))
                        for metric, own in part["metrics"].items()
                        if own.get("interval")
                    },
                    baselines=list(part.get("baselines") or ()),
                    num_rows=int(part["num_rows"]),
                    num_skipped=int(part["num_skipped"]),
                )
                for name, part in content["parts"].items()
            }
            values = {name: content[name] for name in _TYPES}
            wrong = [name for name, own in _TYPES.items() if not isinstance(values[name], own)]
            if wrong or values["benchmark"] not in KNOWN:
                raise ValueError(", ".join(wrong) or f"benchmark {values['benchmark']!r}")
            asked = KNOWN[values["benchmark"]].metrics
            if not parts or not all(
                part.metrics[name] for part in parts.values() for name in asked
            ):
                raise ValueError("parts")
            return cls(parts=parts, **values)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise InputError(
                f"This is not a result of `sememe evaluate … --json`: {error} is missing or bad."
            ) from error


def read_outcomes(content: Any) -> list[Outcome]:
    """The outcomes in the JSON output of an evaluation."""
    if isinstance(content, Mapping) and "outcomes" in content:
        content = content["outcomes"]
    found = content if isinstance(content, list) else [content]
    return [Outcome.from_dict(one if isinstance(one, Mapping) else {}) for one in found]


def benchmark_table(outcomes: Sequence[Outcome]) -> ResultTable:
    """A table of published rows, earlier outcomes and, last, the newest one.

    Gains are computed from the first outcome if there are several, otherwise from the published row
    that the benchmark names, on the same set of rows.
    """
    description = outcomes[-1].description
    # The papers print exact matches before F1.
    metrics = sorted(description.metrics, key=lambda name: not name.endswith("exact"))
    shorts = [METRICS[name].short for name in metrics]
    main = METRICS[description.main_metric].short
    headings = [_HEADINGS.get(short, short) for short in shorts]
    baselines = _baselines(outcomes)
    rows = [
        SystemRow(
            row.system,
            [
                row.split,
                *(format_score(row.scores.get(short)) for short in shorts),
                "",
                *gain_cells(baselines.get(row.split), row.scores.get(main)),
            ],
            is_published=True,
        )
        for row in description.published
    ]
    rows += _baseline_rows(outcomes[-1], metrics, baselines)
    for outcome in outcomes:
        for part, scores in outcome.parts.items():
            mean = 100 * scores.spread(description.main_metric).mean
            rows.append(
                SystemRow(
                    outcome.model,
                    [
                        part,
                        *map(scores.format_score, metrics),
                        scores.format_interval(description.main_metric),
                        *gain_cells(baselines.get(part), mean),
                    ],
                )
            )
    return ResultTable(
        title=f"{outcomes[-1].title or description.title} ({description.name})",
        headings=["system", "set", *headings, "95 % interval", "gain", "error reduction"],
        rows=rows,
        notes=list(_notes(outcomes[-1])),
    )


def _baseline_rows(
    outcome: Outcome, metrics: Sequence[str], gains_from: Mapping[str, float]
) -> list[SystemRow]:
    """The baselines of each set of rows, which have the main metric alone."""
    main = outcome.description.main_metric
    rows = []
    for part, scores in outcome.parts.items():
        for one in scores.baselines:
            if one["score"] is not None:
                score = 100 * one["score"]
                cells = [format_score(score) if name == main else "–" for name in metrics]
                gains = gain_cells(gains_from.get(part), score)
                interval = format_percents(one["interval"])
                rows.append(SystemRow(one["name"], [part, *cells, interval, *gains]))
    return rows


def _baselines(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The score from which gains are computed, by set of rows."""
    description = outcomes[-1].description
    short = METRICS[description.main_metric].short
    found = {
        row.split: row.scores[short]
        for row in description.published
        if row.system == description.baseline and short in row.scores
    }
    if len(outcomes) > 1:
        first = outcomes[0]
        found |= {
            name: 100 * part.spread(description.main_metric).mean
            for name, part in first.parts.items()
        }
    return found


def _notes(outcome: Outcome) -> Iterator[str]:
    sources = dict.fromkeys(row.source for row in outcome.description.published)
    if sources:
        yield f"{PUBLISHED_MARK} published, not measured here: {'; '.join(sources)}."
    yield from (ours_note(outcome), *outcome.notes, *outcome.undefined)


def ours_note(outcome: Outcome) -> str:
    """The context of the scores of one outcome."""
    rows = ", ".join(
        f"{name} {part.num_rows:,}"
        + (f" ({part.coverage:.1%} of its rows)" if part.num_skipped else "")
        for name, part in outcome.parts.items()
    )
    num_seeds = len(outcome.seeds)
    seeds = f"seeds {', '.join(map(str, outcome.seeds))}" if num_seeds else "as it was fine-tuned"
    if num_seeds == 1:
        seeds = f"one seed ({outcome.seeds[0]})"
    learned = f"{outcome.num_train:,} training rows; " if outcome.num_train else ""
    mean = "; mean ± standard deviation" if num_seeds > 1 else ""
    version = outcome.provenance.get("versions", {}).get("sememe", "")
    time = f"{outcome.seconds:.0f} s; sememe {version}"
    return f"{outcome.model}: {learned}{rows}; {seeds}{mean}; {time}."
