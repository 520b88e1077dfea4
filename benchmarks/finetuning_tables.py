"""Tables of benchmarks/finetuning.py: records of trainings in, Markdown out."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from typing import Any

from finetuning_rows import OURS, SETS, SIDES, THEIRS


def table_of(records: list[dict[str, Any]], *, has_all: bool = False) -> list[str]:
    """Markdown: a row for each set: the means over seeds of both sides, their difference, speed."""
    lines: list[str] = []
    for comparison, (base, side) in SIDES.items():
        own = [record for record in records if record["comparison"] == comparison]
        if not own:
            continue
        speed = f" rows/s {side} | {base} | ratio |" if comparison == "scores" else ""
        lines += [
            f"| set | score | seeds | {side} | {base} | difference (95 %) |{speed}",
            "| --- | --- | --- | --- | --- | --- |" + " --- | --- | --- |" * bool(speed),
        ]
        for group in grouped(own):
            names = list(group[0]["scores"])
            for name in names if has_all else names[:1]:
                lines.append(row_of(group, name, base, side, has_speed=bool(speed)))
        lines += ["", *map(settings_of, grouped(own)), ""]
    lines += speeds_of([record for record in records if record["comparison"] == "speed"])
    found = {record["task"]: record for record in records if record["comparison"] == "losses"}
    if found:
        lines += [
            "| set | tokens of a row | steps | largest difference of losses | rows |",
            "| --- | --- | --- | --- | --- |",
        ]
        for r in found.values():
            cells = r["task"], r["length"], len(r[OURS]), f"{r['largest']:.1e}", r["compared"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def speeds_of(records: list[dict[str, Any]]) -> list[str]:
    """A row for each set: rows learned in a second on all sides, medians over seeds."""
    lines = []
    for group in grouped(records):
        by_side: dict[str, list[float]] = {}
        for record in group:
            by_side.setdefault(record["side"], []).append(record["rows_per_s"])
        medians = {side: statistics.median(values) for side, values in by_side.items()}
        base = medians.get(THEIRS, math.nan)
        said = [f"{name} {value:,.0f} ({value / base:.2f}×)" for name, value in medians.items()]
        one = group[0]
        lines.append(f"- {one['task']}, rows/s on {one['device']}: {', '.join(said)}")
    return [*lines, ""] if lines else []


def grouped(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Records that differ in side and seed alone, in the order of the sets."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda record: list(SETS).index(record["task"])):
        shared = ("task", "model", "device", "versions", "is_compiled", "rows", "hyper")
        groups.setdefault(json.dumps([record[name] for name in shared]), []).append(record)
    return list(groups.values())


def row_of(
    group: list[dict[str, Any]], metric: str, base: str, side: str, *, has_speed: bool
) -> str:
    """A row of the table."""
    from sememe.evaluation.results import format_spread
    from sememe.metrics import spread

    by_seed = {
        name: {record["seed"]: record for record in group if record["side"] == name}
        for name in (base, side)
    }
    values = {
        name: [record["scores"][metric] for record in own.values()] for name, own in by_seed.items()
    }
    nums = sorted({len(own) for own in values.values()})
    cells = [
        group[0]["task"], metric, "/".join(map(str, nums)),
        *(format_spread(spread(values[name])) for name in (side, base)),
        difference_of(values[side], values[base]),
    ]  # fmt: skip
    if has_speed:
        speeds = {
            name: {seed: record["rows_per_s"] for seed, record in own.items()}
            for name, own in by_seed.items()
        }
        # The two trainings of a seed ran one after the other.
        pairs = speeds[side].keys() & speeds[base].keys()
        cells += [
            *(_median(speeds[name].values(), ",.0f") for name in (side, base)),
            _median([speeds[side][seed] / speeds[base][seed] for seed in pairs], ".2f"),
        ]
    return f"| {' | '.join(cells)} |"


def _median(values: Iterable[float], form: str) -> str:
    found = list(values)
    return format(statistics.median(found), form) if found else "–"


def difference_of(first: list[float], second: list[float]) -> str:
    """The difference of two means in points, with Welch's interval: seeds are not pairs."""
    from scipy.stats import t

    if not first or not second:
        return "–"
    difference = 100 * (statistics.mean(first) - statistics.mean(second))
    if min(len(first), len(second)) < 2:
        return f"{difference:+.2f}"
    errors = [statistics.variance(own) / len(own) for own in (first, second)]
    shares = [error**2 / (len(own) - 1) for error, own in zip(errors, (first, second), strict=True)]
    if not sum(shares):
        return f"{difference:+.2f}"
    half = 100 * float(t.ppf(0.975, sum(errors) ** 2 / sum(shares))) * math.sqrt(sum(errors))
    return f"{difference:+.2f} ({difference - half:+.2f} to {difference + half:+.2f})"


def settings_of(group: list[dict[str, Any]]) -> str:
    """What the results of a set were got with."""
    one = group[0]
    hyper = ", ".join(f"{name} {value:g}" for name, value in one["hyper"].items())
    versions = ", ".join(f"{name} {value}" for name, value in one["versions"].items())
    compiled = ", ours compiled" if one["is_compiled"] else ""
    return (
        f"- {one['task']}: {one['model']} on {one['device']}{compiled}; {hyper}; "
        f"{one['num_steps']:,} steps; {versions}"
    )
