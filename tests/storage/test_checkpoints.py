"""Checkpoints: the newest whole one is found, whatever moment a kill chose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sememe.errors import ArtifactError
from sememe.storage.checkpoints import STATE, Checkpoints, read_state
from sememe.storage.folder import write_json


def write(keeper: Checkpoints, step: int, text: str) -> None:
    with keeper.write(step) as folder:
        (folder / "state").write_text(text)


def state(keeper: Checkpoints) -> str:
    latest = keeper.latest()
    assert latest is not None
    return (latest / "state").read_text()


def test_the_newest_is_kept_and_the_others_go(tmp_path: Path) -> None:
    keeper = Checkpoints(tmp_path / "run")
    assert keeper.latest() is None
    write(keeper, 1, "one")
    (keeper.folder / ".step-2.new-12345678").mkdir()  # what a killed write left
    write(keeper, 3, "three")
    assert state(keeper) == "three"
    assert sorted(path.name for path in keeper.folder.iterdir()) == ["latest.json", "step-3"]


def test_several_are_kept_when_asked(tmp_path: Path) -> None:
    keeper = Checkpoints(tmp_path / "run", keep=2)
    for step in (5, 10, 15):
        write(keeper, step, str(step))
    assert state(keeper) == "15"
    names = ["latest.json", "step-10", "step-15"]
    assert sorted(path.name for path in keeper.folder.iterdir()) == names


def test_a_write_that_fails_leaves_the_last_one(tmp_path: Path) -> None:
    keeper = Checkpoints(tmp_path / "run")
    write(keeper, 1, "one")
    with pytest.raises(KeyboardInterrupt), keeper.write(2) as folder:
        (folder / "state").write_text("half")
        raise KeyboardInterrupt
    assert state(keeper) == "one"


def test_the_same_step_is_never_replaced_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Checkpoints(tmp_path / "run")
    write(keeper, 5, "first")
    with monkeypatch.context() as patch:
        # A kill right before the pointer moves.
        patch.setattr("sememe.storage.checkpoints.write_json", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write(keeper, 5, "second")
    assert state(keeper) == "first"
    write(keeper, 5, "third")
    assert state(keeper) == "third"
    assert len(list(keeper.folder.iterdir())) == 2


def test_a_pointer_to_nothing_says_what_to_do(tmp_path: Path) -> None:
    keeper = Checkpoints(tmp_path / "run")
    write(keeper, 1, "one")
    keeper.latest().rename(tmp_path / "away")  # type: ignore[union-attr]
    with pytest.raises(ArtifactError, match="start without --resume"):
        keeper.latest()


@pytest.mark.parametrize("latest", ["x" * 5_000, "..", "../step-1", "step-", "", None, ["step-1"]])
def test_a_pointer_to_no_checkpoint_is_refused(tmp_path: Path, latest: object) -> None:
    keeper = Checkpoints(tmp_path)
    (tmp_path / "latest.json").write_text(json.dumps({"latest": latest}))
    with pytest.raises(ArtifactError, match=r"latest\.json"):
        keeper.latest()


def test_a_damaged_bit_is_found_on_resume(tmp_path: Path) -> None:
    keeper = Checkpoints(tmp_path / "run")
    with keeper.write(7) as folder:
        write_json(folder / STATE, {"plan": {}})
        (folder / "weights").write_bytes(bytes(1000))
    latest = keeper.latest()
    assert latest is not None and read_state(latest, {}) == {"plan": {}}
    (latest / "weights").write_bytes(bytes(500) + b"\x01" + bytes(499))
    with pytest.raises(ArtifactError, match=r"step-7/weights .* checksum.*--resume"):
        read_state(latest, {})
