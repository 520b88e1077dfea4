"""Measurements of this machine: a task in, its seconds and memory out, kept for the next plan.

They are kept by machine, versions and task, with their date. A network whose step takes long is
measured with fewer rows, twice, and scaled: a step has a part that does not depend on its rows (the
optimizer) and a part that grows with them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sememe import errors
from sememe.errors import ArtifactError, OptionError
from sememe.machine import (
    available_cores,
    cache_dir,
    installed_versions,
    key_of,
    memory_size,
    processor,
)
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import read_json, write_json

# A step that is expected to take longer is measured with fewer rows.
_SLOW_STEP_S = 2.0
_SCALED = ("step_s", "evaluation_s", "memory_bytes")


def this_machine() -> dict[str, Any]:
    """What a measurement depends on beside its task."""
    return {
        "processor": processor(),
        "cores": available_cores(),
        "memory_bytes": memory_size(),
        "versions": installed_versions(("sememe", "numpy", "numba", "torch")),
    }


def measured(
    task: dict[str, Any], *, reporter: Reporter = SILENT, is_new: bool = False
) -> dict[str, Any]:
    """The measurements of a task: kept ones, unless new ones are wanted or there are none."""
    folder = cache_dir() / "plans" / "measured"
    place = folder / f"{key_of(task, this_machine())}.json"
    if not is_new and (found := _kept(place)) is not None:
        return found
    preset = task["options"].get("preset", "")
    reporter.note(f"Measuring {task['kind']} {preset}".strip() + ".")
    found = _in_process(task)
    if found.get("num_compiled") and task.get("timed_s", 1):
        # The compiler's memory stays with the process; the next one finds the kernels compiled.
        found = _in_process(task)
    found |= {"measured": datetime.now(UTC).isoformat(timespec="seconds")}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(place, found)
    return found


def _kept(place: Path) -> dict[str, Any] | None:
    try:
        found = read_json(place) if place.exists() else None
    except (ArtifactError, OSError):
        return None
    return found if isinstance(found, dict) and "measured" in found else None


def _in_process(task: dict[str, Any]) -> dict[str, Any]:
    """Run a trial in a process of its own, whose memory is that of the training alone."""
    # -P: a file of the user's working folder must not shadow a module.
    command = [sys.executable, "-P", "-m", "sememe.planning.trial"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            told, failure = process.communicate(json.dumps(task))
        except BaseException:  # Ctrl-C: nothing of it is kept
            process.kill()
            raise
    if process.returncode:
        if process.returncode == -9:
            raise OptionError("This machine has too little memory for it.")
        raise RuntimeError(f"The trial of {task['kind']} failed:\n{failure}")
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    if "error" in found:
        raise getattr(errors, found["class"])(found["error"])
    return found


def measured_network(
    task: dict[str, Any], *, expected_s: float, batch_size: int, accumulate: int,
    reporter: Reporter, is_new: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The measurements of a training step, from smaller ones if it is expected to be slow."""
    rows = batch_size // accumulate
    num = int(rows * _SLOW_STEP_S / (expected_s / accumulate)) if expected_s else rows
    num = max(1, min(rows, num))
    if num == rows and expected_s <= 4 * _SLOW_STEP_S:
        return measured(task, reporter=reporter, is_new=is_new) | {"is_scaled": False}
    few, more = (max(1, num // 2), max(2, num))
    found = [
        measured(_with_rows(task, own), reporter=reporter, is_new=is_new) for own in (few, more)
    ]
    return _extrapolated(found, (few, more), rows, accumulate)


def _with_rows(task: dict[str, Any], num_rows: int) -> dict[str, Any]:
    return task | {"options": task["options"] | {"batch_size": num_rows, "accumulate": 1}}


def _extrapolated(
    found: list[dict[str, Any]], rows: tuple[int, int], num_rows: int, accumulate: int
) -> dict[str, Any]:
    """Measurements with this many rows per part, from those with two smaller numbers."""
    first, second = found
    scaled: dict[str, Any] = {}
    for name in _SCALED:
        slope = max(0.0, (second[name] - first[name]) / (rows[1] - rows[0]))
        fixed = max(0.0, second[name] - slope * rows[1])
        if name == "memory_bytes":
            scaled[name] = int(fixed + slope * num_rows)
        else:
            scaled[name] = fixed + slope * num_rows * accumulate
    for name in ("tokens_per_step", "flops"):
        scaled[name] = second[name] * num_rows * accumulate / rows[1]
    return second | scaled | {"is_scaled": True}
