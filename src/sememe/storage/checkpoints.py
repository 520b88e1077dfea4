"""Checkpoints of a run: `step-N` folders, a pointer to the last complete one, and the run's plan.

A plan identifies a run: its options by part ("config", "training", …) and its content.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sememe.errors import ArtifactError, OptionError
from sememe.storage.folder import read_json, verify, write_folder, write_json

_POINTER = "latest.json"
_NAME = re.compile(r"step-\d{1,20}(-again){0,9}")
STATE, HISTORY = "state.json", "history.json"  # in every checkpoint


class Checkpoints:
    """The newest checkpoints in `folder`; a kill at any moment leaves a complete one."""

    def __init__(self, folder: str | Path, *, keep: int = 1) -> None:
        self.folder, self.keep = Path(folder), keep

    @contextmanager
    def write(self, step: int) -> Iterator[Path]:
        """Yield a folder to fill; it becomes the newest checkpoint when the block ends."""
        name = f"step-{step}"
        while (self.folder / name).exists():
            # If it were replaced in place, a kill between two renames would leave a dangling
            # pointer.
            name += "-again"
        with write_folder(self.folder / name) as scratch:
            yield scratch
        write_json(self.folder / _POINTER, {"latest": name})
        self._rotate(name)

    @property
    def has_one(self) -> bool:
        """Whether a complete checkpoint has been written."""
        return (self.folder / _POINTER).exists()

    def latest(self) -> Path | None:
        """The newest complete checkpoint, or None."""
        if not (self.folder / _POINTER).exists():
            return None
        pointer = read_json(self.folder / _POINTER)
        name = str(pointer.get("latest")) if isinstance(pointer, dict) else ""
        if not _NAME.fullmatch(name):
            raise ArtifactError(f"{self.folder / _POINTER} names no checkpoint.")
        path = self.folder / name
        if not path.is_dir():
            raise ArtifactError(f"The checkpoint {path} is missing; start without --resume.")
        return path

    def clear(self) -> None:
        """Remove every checkpoint."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _rotate(self, newest: str) -> None:
        folders = [path for path in self.folder.iterdir() if path.is_dir()]
        others = [p for p in folders if p.name.startswith("step-") and p.name != newest]
        others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        kept = {newest, *(path.name for path in others[: self.keep - 1])}
        for path in folders:
            # Also removes scratch folders of a killed run.
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)


def check_plan(place: Path, old: Any, plan: dict[str, Any]) -> None:
    """Raise an error when resuming a run with other options or other data than its plan."""
    if old == plan:
        return
    if not isinstance(old, dict) or not old:
        raise ArtifactError(f"{place} does not say how it was made; start again without resume.")
    for part, settings in plan.items():
        before = old.get(part)
        if not isinstance(settings, dict) or not isinstance(before, dict) or part == "content":
            continue
        names = {*before, *settings}
        other = sorted(name for name in names if before.get(name) != settings.get(name))
        if other:
            found = "; ".join(f"{n} was {before.get(n)}, is {settings.get(n)}" for n in other)
            raise OptionError(
                f"{place} was made with other options: {found}. "
                "Use those, or start again without resume."
            )
    raise ArtifactError(f"{place} was made from other text; start again without resume.")


def read_state(folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """The state in a checkpoint, after checking that it belongs to this plan."""
    verify(folder)
    state = read_json(folder / STATE)
    if not isinstance(state, dict):
        raise ArtifactError(f"{folder / STATE} is damaged: start again without resume.")
    check_plan(folder, state.get("plan"), plan)
    return state
