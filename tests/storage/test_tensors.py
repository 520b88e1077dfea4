"""Tensor files: the safetensors package reads what we write, and the reverse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sememe.errors import ArtifactError
from sememe.storage import tensors
from sememe.storage.folder import write_file
from sememe.storage.tensors import read_tensors, write_tensors

TENSORS = {
    "input": np.arange(12, dtype=np.float32).reshape(3, 4),
    "词": np.array([1, 2**40], np.int64),
    "bytes": np.frombuffer("né 猫".encode(), np.uint8),
    "nothing": np.empty((0, 4), np.float32),
}


def assert_same(found: dict[str, np.ndarray]) -> None:
    assert set(found) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype and np.array_equal(found[name], tensor)


def test_the_safetensors_package_reads_ours(tmp_path: Path) -> None:
    write_tensors(tmp_path / "ours.safetensors", TENSORS)
    assert_same(load_file(tmp_path / "ours.safetensors"))
    assert_same(read_tensors(tmp_path / "ours.safetensors"))


def test_we_read_what_the_safetensors_package_wrote(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "theirs.safetensors", metadata={"made": "elsewhere"})
    assert_same(read_tensors(tmp_path / "theirs.safetensors"))


def test_tensors_are_mapped_and_cannot_be_changed(tmp_path: Path) -> None:
    write_tensors(tmp_path / "ours.safetensors", TENSORS)
    mapped = read_tensors(tmp_path / "ours.safetensors")["input"]
    assert isinstance(mapped, np.memmap) and not mapped.flags.writeable


@pytest.mark.parametrize("size", [0, 4, 40, -1])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.safetensors"
    write_tensors(path, TENSORS)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ArtifactError, match=r"cut\.safetensors"):
        read_tensors(path)


def test_a_file_that_is_replaced_meanwhile_is_read_as_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.safetensors"
    write_tensors(path, TENSORS)
    entries = tensors._entries

    def overtaken(file: Any) -> Any:
        found = entries(file)
        with write_file(path) as scratch:
            write_tensors(scratch, {name: np.zeros_like(own) for name, own in TENSORS.items()})
        return found

    monkeypatch.setattr(tensors, "_entries", overtaken)
    assert_same(read_tensors(path))
