"""Artifacts appear whole or not at all, and what killed processes left goes with the next write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sememe
from sememe.errors import ArtifactError, WriteError
from sememe.storage import folder
from sememe.storage.folder import (
    CHECKSUMS,
    locked,
    read_json,
    read_manifest,
    verify,
    write_file,
    write_folder,
    write_json,
)
from sememe.storage.tensors import read_tensors, tensor_shapes


@pytest.fixture
def dead_mark() -> str:
    """The mark of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return folder.scratch_mark().replace(f"-{os.getpid()}-", f"-{process.pid}-")


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
        if ".new-" in self.name and not target.exists():
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(folder, "_swap", lambda *_: False)  # as on disks that cannot
        patch.setattr(Path, "rename", interrupted)
        save(tmp_path / "model", "new")
    assert (tmp_path / "model" / "content").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_killed_processes_left_goes(tmp_path: Path, dead_mark: str) -> None:
    alive, elsewhere = folder.scratch_mark(), f"00000000-{dead_mark.partition('-')[2]}"
    for mark in (dead_mark, alive, elsewhere):
        (tmp_path / f".model.new-{mark}").mkdir()
        (tmp_path / f".new-{mark}-map.png").touch()
    save(tmp_path / "model", "new")
    with write_file(tmp_path / "map.png") as scratch:
        scratch.write_text("picture")
    kept = [name for mark in (alive, elsewhere) for name in (f".model.new-{mark}",
            f".new-{mark}-map.png")]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["map.png", "model", *kept])


def test_a_scratch_folder_goes_though_a_lost_task_still_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[Path] = []
    remove = os.rmdir

    def rmdir(path: Any, **options: Any) -> None:
        if not late:  # the folder is empty, and about to go
            late.append(scratch / "late.txt")
            late[0].touch()
        remove(path, **options)

    with folder.scratch_folder(tmp_path, "own") as scratch:
        monkeypatch.setattr(os, "rmdir", rmdir)
    assert late
    assert not list(tmp_path.iterdir())


def test_a_folder_lost_between_two_renames_is_found_again(tmp_path: Path, dead_mark: str) -> None:
    save(tmp_path / "model", "old")
    (tmp_path / "model").rename(tmp_path / f".model.old-{dead_mark}")
    with pytest.raises(KeyboardInterrupt), write_folder(tmp_path / "model"):
        raise KeyboardInterrupt
    assert (tmp_path / "model" / "content").read_text() == "old"


def test_a_link_to_a_folder_is_written_through(tmp_path: Path) -> None:
    save(tmp_path / "disk" / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "disk" / "later")
    for name in ("link", "dangling"):
        save(tmp_path / name, "new")
        assert (tmp_path / name).is_symlink()
    for name in ("real", "later"):
        assert (tmp_path / "disk" / name / "content").read_text() == "new"
    assert sorted(path.name for path in (tmp_path / "disk").iterdir()) == ["later", "real"]
    (tmp_path / "picture").symlink_to(tmp_path / "disk" / "map.png")
    with write_file(tmp_path / "picture") as scratch:
        scratch.write_text("map")
    assert (tmp_path / "disk" / "map.png").read_text() == "map"
    assert (tmp_path / "picture").is_symlink()


def test_names_that_are_not_utf8_work(tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/mod\xe9l"))
    for text in ("old", "new"):
        save(place, text)
    write_json(place.with_suffix(".json"), {"path": str(place)})
    assert (place / "content").read_text() == "new" and verify(place) == 1
    assert read_json(place.with_suffix(".json")) == {"path": str(place)}
    with locked(place, print):
        pass
    with pytest.raises(ArtifactError, match="missing"):
        read_json(place / "nothing.json")


def test_a_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / ".model.lock").symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(WriteError, match=r"\.model\.lock"), locked(tmp_path / "model", print):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("write", [write_folder, write_file])
def test_a_full_disk_is_told_with_the_path(tmp_path: Path, write: Any) -> None:
    with (
        pytest.raises(WriteError, match=r"result.*disk is full"),
        write(tmp_path / "result"),
        Path("/dev/full").open("wb", buffering=0) as file,
    ):
        file.write(b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_may_not_grow_is_told_with_the_path(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys, numpy as np, sememe\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "vectors = sememe.WordVectors([str(n) for n in range(999)], np.ones((999, 50)))\n"
        "try:\n    vectors.save(sys.argv[1])\n"
        "except sememe.SememeError as error:\n    print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "vectors"], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    assert str(tmp_path / "vectors") in said.stdout and "too large" in said.stdout
    assert list(tmp_path.iterdir()) == []


def test_damage_is_told_by_checksums(tmp_path: Path) -> None:
    save(tmp_path / "model", "content")
    assert verify(tmp_path / "model") == 1
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--check", CHECKSUMS], cwd=tmp_path / "model", check=True)
    file = tmp_path / "model" / "content"
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    with pytest.raises(ArtifactError, match=r"model/content .* checksum"):
        verify(tmp_path / "model")
    file.unlink()
    with pytest.raises(ArtifactError, match="model/content is missing"):
        verify(tmp_path / "model")
    for size in (0, 1 << 40):
        os.truncate(tmp_path / "model" / CHECKSUMS, size)
        with pytest.raises(ArtifactError, match=CHECKSUMS):
            verify(tmp_path / "model")
    (tmp_path / "model" / CHECKSUMS).unlink()
    assert verify(tmp_path / "model") == 0  # as earlier versions wrote it


HOSTILE = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "digits": b'{"dim": ' + b"9" * 5_000 + b"}",
    "fewer digits": b'{"dim": ' + b"9" * 400 + b"}",  # Python takes these, and no array does
    "nan": b'{"dim": NaN}',
    "infinity": b'{"dim": -Infinity}',
    "exponent": b'{"dim": 1e999999}',
    "bytes": b'{"kind": "\xff"}',
    "cut": b'{"kind": "vec',
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_json_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "sememe.json").write_bytes(HOSTILE[name])
    with pytest.raises(ArtifactError, match=r"sememe\.json"):
        read_json(tmp_path / "sememe.json")


def test_whole_numbers_beyond_64_bits_are_read_as_floats(tmp_path: Path) -> None:
    # What transformers writes for "no limit" into tokenizer_config.json.
    (tmp_path / "a.json").write_text('{"model_max_length": 1000000000000000019884624838656}')
    found = read_json(tmp_path / "a.json")["model_max_length"]
    assert found == 1e30 and isinstance(found, float)  # 10**30 would be equal to it
    (tmp_path / "a.json").write_text("[-9223372036854775808, 18446744073709551615]")
    assert read_json(tmp_path / "a.json") == [-(2**63), 2**64 - 1]


@pytest.fixture
def little_memory() -> Iterator[None]:
    """One more gigabyte for this process, so that a reader without an end stops early."""
    resource = pytest.importorskip("resource")
    own, most = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), most))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (own, most))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory in use is not told")
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, little_memory: None) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("pipe", "endless", "folder", "sparse"):
        for read in (read_json, read_tensors, tensor_shapes):
            with pytest.raises(ArtifactError, match=name) as caught:
                read(tmp_path / name)
            # Refused for what it is, and not once the memory was full.
            assert not isinstance(caught.value.__cause__, MemoryError), (name, read)


@pytest.mark.parametrize("content", [7, [], "text", None, {"kind": 5}, {"kind": "x", "format": []}])
def test_a_manifest_of_wrong_types_is_refused(tmp_path: Path, content: object) -> None:
    write_json(tmp_path / "sememe.json", content)
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        read_manifest(tmp_path, 1)
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        sememe.load(tmp_path)
