"""The ladder in the explorer: its results and its models."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Response

from sememe.errors import InputError
from sememe.explore.routing import explore_router
from sememe.localization import say, translate, using
from sememe.serve.service import json_response
from sememe.storage.folder import read_json

_RESULTS = "results.json"
_FAMILIES = {
    "counts": "Counts", "static": "Static vectors", "language model": "Language models",
    "contextual": "Contextual models",
}  # fmt: skip


class LadderFolder(NamedTuple):
    """A folder that `sememe ladder` has written."""

    path: Path
    results: dict[str, Any]

    @property
    def models(self) -> list[str]:
        """Its trained models as the service takes them: name=path."""
        return [f"{name}={self.path / 'models' / name}" for name in self.names]

    @property
    def names(self) -> list[str]:
        """The models that are there."""
        return [
            own["name"]
            for own in self.results["rungs"]
            if own.get("state") == "done" and (self.path / "models" / own["name"]).is_dir()
        ]

    @property
    def text(self) -> Path | None:
        """The text that its models were trained on, if it is still there."""
        path = self.path / "text" / "train.jsonl"
        return path if path.is_file() else None


def find_ladder(path: str | Path) -> LadderFolder | None:
    """The ladder at a path, or None if something else is there."""
    path = Path(path)
    if not (path / _RESULTS).is_file():
        return None
    found = LadderFolder(path, read_json(path / _RESULTS))
    if not isinstance(found.results.get("rungs"), list) or not found.models:
        raise InputError(f"{path} is a ladder without a trained model: run sememe ladder first.")
    return found


def ladder_routes(ladder: LadderFolder | None) -> APIRouter:
    """The table of the report."""
    router = explore_router()

    @router.get("/ladder", summary="The results of the ladder")
    async def results(language: Annotated[str, Query(max_length=10)] = "en") -> Response:
        if ladder is None:
            raise InputError("No ladder is open: start sememe explore with the folder of one.")
        with using("zh" if language == "zh" else "en"):
            return json_response(ladder_table(ladder))

    return router


class Cell(NamedTuple):
    """A score as the report prints it, or why there is none."""

    text: str
    value: float | None = None
    is_best: bool = False
    is_low: bool = False  # not above the best baseline
    told: str = ""


def ladder_table(ladder: LadderFolder) -> dict[str, Any]:
    """The table of the report: the same rounding, the same marks, in the language in use."""
    results = ladder.results
    tasks, cells = results["tasks"], {(own["rung"], own["task"]): own for own in results["cells"]}
    names = set(ladder.names)
    repeated = {len(own["scores"]) for own in cells.values() if _has_spread(own)}
    best = {task["name"]: _best(task, cells.values()) for task in tasks}
    return {
        "title": translate(results["title"]), "path": str(ladder.path),
        "command": results["command"], "notes": [translate(own) for own in results["notes"]],
        "spread": _spread(sorted(repeated)),
        "columns": [_column(task) for task in tasks],
        "rows": [
            {
                "name": rung["name"] if rung["name"] in names else None, "title": rung["title"],
                "family": say(_FAMILIES.get(rung["family"], rung["family"])),
                "why": translate(rung.get("why") or ""), "seconds": rung.get("train_s") or 0.0,
                "megabytes": rung.get("megabytes") or 0.0,
                "cells": [
                    _cell(cells.get((rung["name"], task["name"])), task, best[task["name"]])
                    for task in tasks
                ],
            }
            for rung in results["rungs"]
        ],
    }  # fmt: skip


def _spread(times: list[int]) -> str:
    if not times:
        return say("Each score was measured once, so there is no standard deviation.")
    return say(
        "Mean ± standard deviation over {times} repetitions; a score without ± was measured once.",
        times=" / ".join(map(str, times)),
    )


def _has_number(cell: Any) -> bool:
    return cell is not None and cell["mean"] is not None


def _has_spread(cell: Any) -> bool:
    return cell["sd"] is not None and len(cell["scores"]) != 1


def _best(task: Any, cells: Iterable[Any]) -> float | None:
    """The best printed score of a column; None if all are equal, or there is only one."""
    own = [cell for cell in cells if cell["task"] == task["name"] and _has_number(cell)]
    printed = [round(cell["mean"], 1) for cell in own]
    choose = max if task["higher_is_better"] else min
    return choose(printed) if len(set(printed)) > 1 else None


def _baseline(task: Any) -> tuple[str, float] | None:
    known = [(name, value) for name, value in task["baselines"].items() if value is not None]
    choose = max if task["higher_is_better"] else min
    return choose(known, key=lambda own: own[1]) if known else None


def _column(task: Any) -> dict[str, Any]:
    baseline = _baseline(task)
    metric, unit = translate(task["metric"]), translate(task["unit"])
    return {
        "name": task["name"], "title": translate(task["title"]), "what": translate(task["what"]),
        "metric": metric if task["unit"] in task["metric"] else f"{metric}, {unit}",
        "group": task["group"], "higher_is_better": task["higher_is_better"],
        "is_share": task["unit"] == "%",
        "baseline": {"name": translate(baseline[0]), "score": score(baseline[1])}
        if baseline else None,
    }  # fmt: skip


def _cell(cell: Any, task: Any, best: float | None) -> dict[str, Any]:
    if not _has_number(cell):
        why = translate(cell["why"]) if cell and cell["why"] else say("Not measured.")
        return Cell("–", told=why)._asdict()
    mean, baseline = round(cell["mean"], 1), _baseline(task)
    text = score(mean) + (f" ± {score(cell['sd'])}" if _has_spread(cell) else "")
    gain = 0.0 if baseline is None else mean - round(baseline[1], 1)
    is_low = baseline is not None and (gain <= 0 if task["higher_is_better"] else gain >= 0)
    told = ", ".join(map(score, cell["scores"]))
    return Cell(text, cell["mean"], mean == best, is_low, told)._asdict()


def score(value: float) -> str:
    """A score with one decimal, large ones with none."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")
