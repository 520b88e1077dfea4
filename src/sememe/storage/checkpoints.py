"""Checkpoints of a run: `step-N` folders and a pointer to the last whole one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sememe.errors import ArtifactError
from sememe.storage.folder import read_json, write_folder, write_json

_POINTER = "latest.json"


class Checkpoints:
    """Keeps the newest checkpoints in `folder`; a kill at any moment leaves a whole one."""

    def __init__(self, folder: str | Path, *, keep: int = 1) -> None:
        self.folder, self.keep = Path(folder), keep

    @contextmanager
    def write(self, step: int) -> Iterator[Path]:
        """Give a folder to fill; it becomes the newest checkpoint when the block ends."""
        name = f"step-{step}"
        while (self.folder / name).exists():
            # Replaced in place, a kill between two renames would leave the pointer without it.
            name += "-again"
        with write_folder(self.folder / name) as scratch:
            yield scratch
        write_json(self.folder / _POINTER, {"latest": name})
        self._rotate(name)

    @property
    def has_one(self) -> bool:
        """Whether a whole checkpoint has been written."""
        return (self.folder / _POINTER).exists()

    def latest(self) -> Path | None:
        """The newest whole checkpoint, or None where there is none."""
        if not (self.folder / _POINTER).exists():
            return None
        try:
            path = self.folder / str(read_json(self.folder / _POINTER)["latest"])
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{self.folder / _POINTER} names no checkpoint.") from error
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
            # Scratch folders that a killed run left behind go too.
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)
