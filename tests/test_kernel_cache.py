"""Compiled kernels are kept privately, and compiled again where their files are damaged."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sememe import machine

SOURCE = """
def doubled(number):
    return 2 * number + 1
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Callable[[int], int]]:
    """Compile one small kernel with a cache of its own; each call is a new process's."""
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "small_kernel.py"
    source.write_text(SOURCE)

    def compile_() -> Callable[[int], int]:
        spec = importlib.util.spec_from_file_location(source.stem, source)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, source.stem, module)
        spec.loader.exec_module(module)
        return machine.kernel(module.doubled)

    yield compile_
    machine._is_private.cache_clear()
    machine._warn_damaged.cache_clear()


def files(tmp_path: Path, ending: str) -> list[Path]:
    return sorted((tmp_path / "cache").rglob(f"*.{ending}"))


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["flip", "empty", "cut", "folder", "fifo", "endless", "sparse"])
def test_a_damaged_file_is_compiled_again(compiled, tmp_path: Path, ending: str, damage: str):
    assert compiled()(20) == 41
    (path,) = files(tmp_path, ending)
    data = bytearray(path.read_bytes())
    path.unlink()
    match damage:
        case "flip":
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        case "empty":
            path.touch()
        case "cut":
            path.write_bytes(data[:-40])
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case "sparse":
            path.touch()
            os.truncate(path, 1 << 40)
    with pytest.warns(UserWarning, match="damaged"):
        assert compiled()(20) == 41


def test_many_damaged_files_are_warned_of_once(compiled, tmp_path: Path):
    assert compiled()(20) == 41
    with pytest.warns(UserWarning, match="damaged") as heard:
        for ending in ("nbi", "nbc", "nbi"):
            (path,) = files(tmp_path, ending)
            path.write_bytes(b"")
            assert compiled()(20) == 41
    assert len(heard) == 1


def test_whole_files_are_used_and_belong_to_the_user_alone(compiled, tmp_path: Path, recwarn):
    assert compiled()(20) == 41
    before = {path: path.stat().st_mtime_ns for path in files(tmp_path, "nb?")}
    assert len(before) == 2
    assert compiled()(20) == 41
    assert before == {path: path.stat().st_mtime_ns for path in files(tmp_path, "nb?")}
    for folder in (machine._kernels_dir(), machine._kernels_dir().parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not recwarn


def test_a_folder_of_another_user_is_not_used(compiled, tmp_path: Path, monkeypatch):
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.warns(UserWarning, match="another user"):
        assert compiled()(20) == 41
    assert not files(tmp_path, "nb?")
