"""Artifacts appear whole or not at all, and what killed processes left goes with the next write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sememe.storage import leftovers
from sememe.storage.folder import write_file, write_folder


@pytest.fixture
def dead_mark() -> str:
    """The mark of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return leftovers.scratch_mark().replace(f"-{os.getpid()}-", f"-{process.pid}-")


def save(folder: Path, text: str) -> None:
    with write_folder(folder) as scratch:
        (scratch / "content").write_text(text)


def test_a_folder_is_replaced_whole_or_stays(tmp_path: Path) -> None:
    save(tmp_path / "model", "old")
    with pytest.raises(KeyboardInterrupt), write_folder(tmp_path / "model") as scratch:
        (scratch / "content").write_text("half")
        raise KeyboardInterrupt
    assert (tmp_path / "model" / "content").read_text() == "old"
    save(tmp_path / "model", "new")
    assert (tmp_path / "model" / "content").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_interrupt_between_the_renames_gives_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "model", "old")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "rename", interrupted)
        save(tmp_path / "model", "new")
    assert (tmp_path / "model" / "content").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_killed_processes_left_goes(tmp_path: Path, dead_mark: str) -> None:
    alive, elsewhere = leftovers.scratch_mark(), f"00000000-{dead_mark.partition('-')[2]}"
    for mark in (dead_mark, alive, elsewhere):
        (tmp_path / f".model.new-{mark}").mkdir()
        (tmp_path / f".new-{mark}-map.png").touch()
    save(tmp_path / "model", "new")
    with write_file(tmp_path / "map.png") as scratch:
        scratch.write_text("picture")
    kept = [name for mark in (alive, elsewhere) for name in (f".model.new-{mark}",
            f".new-{mark}-map.png")]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["map.png", "model", *kept])


def test_a_folder_lost_between_two_renames_is_found_again(tmp_path: Path, dead_mark: str) -> None:
    save(tmp_path / "model", "old")
    (tmp_path / "model").rename(tmp_path / f".model.old-{dead_mark}")
    with pytest.raises(KeyboardInterrupt), write_folder(tmp_path / "model"):
        raise KeyboardInterrupt
    assert (tmp_path / "model" / "content").read_text() == "old"
