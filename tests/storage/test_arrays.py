"""NumPy files that grow row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sememe.errors import WriteError
from sememe.storage.tensors import write_rows


@pytest.mark.parametrize("sizes", [[1], [3, 0, 5], [1] * 1_200])
def test_blocks_become_one_array(tmp_path: Path, sizes: list[int]) -> None:
    blocks = [np.random.default_rng(i).normal(size=(n, 7)) for i, n in enumerate(sizes)]
    with write_rows(tmp_path / "rows.npy") as rows:
        for block in blocks:
            rows.add(block)
    assert (rows.num_rows, rows.dim) == (sum(sizes), 7)
    expected = np.concatenate(blocks).astype("f4")
    assert np.array_equal(np.load(tmp_path / "rows.npy"), expected)
    assert np.array_equal(np.load(tmp_path / "rows.npy", mmap_mode="r"), expected)


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((2, 2), "f4"))
    with pytest.raises(ValueError, match="width 3 among rows of 2"), write_rows(path) as rows:
        rows.add(np.zeros((4, 2)))
        rows.add(np.zeros((4, 3)))
    assert np.load(path).sum() == 4 and [own.name for own in tmp_path.iterdir()] == ["rows.npy"]
    with pytest.raises(WriteError), write_rows(path / "inside.npy") as rows:
        rows.add(np.zeros((1, 2)))
