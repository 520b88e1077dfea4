"""Readers beside writers see one saved model whole, whatever is being saved."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from sememe.errors import ArtifactError, MissingExtraError, OptionError, UnsupportedError
from sememe.storage import folder
from sememe.storage.folder import reads_artifact, write_folder

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from readers import measure


def save(place: Path, number: int) -> None:
    with write_folder(place) as scratch:
        for name in "abc":
            (scratch / name).write_text(str(number))


@reads_artifact
def load(place: Path) -> list[str]:
    return [(place / name).read_text() for name in "abc"]


def check_clean(found: dict) -> None:
    assert found["failures"] == [] and found["wrong"] == found["failed"] == 0
    assert set(found["exit_codes"]) == {0} and found["left"] == ["model", "vectors"]


def test_processes_and_threads_load_while_others_save() -> None:
    found = measure(400, 120, 1, 2)
    assert found["saves"] == 120
    check_clean(found)


@pytest.mark.slow
def test_many_loads_during_many_saves() -> None:
    check_clean(measure(10_000, 1_000, 2, 2))


@pytest.mark.parametrize("can_swap", [True, False])
def test_no_load_meets_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_swap: bool
) -> None:
    if not can_swap:
        monkeypatch.setattr(folder, "_swap", lambda *_: False)
    save(tmp_path / "model", 0)
    writer = threading.Thread(
        target=lambda: [save(tmp_path / "model", number) for number in range(1, 25)]
    )
    writer.start()
    while writer.is_alive():
        assert len(set(load(tmp_path / "model"))) == 1
    writer.join()
    assert load(tmp_path / "model") == ["24"] * 3


def test_the_name_of_a_folder_is_never_free_while_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "one", 1)
    save(tmp_path / "two", 2)
    if not folder._swap(tmp_path / "one", tmp_path / "two"):
        pytest.skip("this system cannot exchange two names")
    rename, is_there = Path.rename, []

    def watched(self: Path, target: Path) -> Path:
        try:
            return rename(self, target)
        finally:
            is_there.append((tmp_path / "one").exists())

    monkeypatch.setattr(Path, "rename", watched)
    save(tmp_path / "one", 3)
    assert is_there and all(is_there) and load(tmp_path / "one") == ["3"] * 3


def test_a_load_between_two_renames_waits_for_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "model", 1)
    rename, has_looked, found = Path.rename, threading.Event(), []

    @reads_artifact
    def watched(place: Path) -> list[str]:
        try:
            return [(place / name).read_text() for name in "abc"]
        finally:
            has_looked.set()

    reader = threading.Thread(target=lambda: found.append(watched(tmp_path / "model")))

    def slow(self: Path, target: Path) -> Path:
        if ".new-" in self.name and not target.exists():
            reader.start()
            assert has_looked.wait(600)
            reader.join(0.1)  # who does not wait has failed by now
        return rename(self, target)

    monkeypatch.setattr(folder, "_swap", lambda *_: False)  # as on disks that cannot
    monkeypatch.setattr(Path, "rename", slow)
    save(tmp_path / "model", 2)
    reader.join(600)
    assert found == [["2"] * 3]


def test_what_was_replaced_while_it_was_read_is_read_again(tmp_path: Path) -> None:
    save(tmp_path / "model", 1)
    turns = []

    @reads_artifact
    def overtaken(place: Path) -> list[str]:
        first = (place / "a").read_text()
        turns.append(first)
        if len(turns) == 1:
            save(place, 2)
        if len(turns) == 2:
            save(place, 3)
            raise ValueError("half of it was another's")
        return [first, (place / "b").read_text()]

    assert overtaken(tmp_path / "model") == ["3", "3"]
    assert turns == ["1", "2", "3"]


def test_what_is_replaced_all_the_time_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_MAX_READS", 5)

    @reads_artifact
    def overtaken(place: Path) -> None:
        save(place, 1)

    with pytest.raises(ArtifactError, match="replaced faster"):
        overtaken(tmp_path / "model")


def test_a_failure_of_a_folder_that_stays_is_raised_at_once(tmp_path: Path) -> None:
    save(tmp_path / "model", 1)
    turns = []

    @reads_artifact
    def damaged(place: Path) -> None:
        turns.append(place)
        raise IndexError("there is no word 7")

    with pytest.raises(ArtifactError, match="there is no word 7"):
        damaged(tmp_path / "model")
    assert len(turns) == 1


def test_what_is_no_damage_is_raised_as_it_is(tmp_path: Path) -> None:
    save(tmp_path / "model", 1)
    for error in (UnsupportedError("no"), OptionError("no"), MissingExtraError("no"), KeyError()):

        @reads_artifact
        def refusing(place: Path, error: Exception = error) -> None:
            raise error

        wanted = ArtifactError if isinstance(error, KeyError) else type(error)
        with pytest.raises(wanted) as caught:
            refusing(tmp_path / "model")
        assert type(caught.value) is wanted
