"""Arranged cells on disk: every cell once, the same whatever the pieces, never half a file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import OptionError, WriteError
from sememe.examples.cooccurrence.counting import Cells
from sememe.models.glove import cells as arranged
from sememe.models.glove.cells import CellFile
from sememe.models.glove.kernels import COLUMN_BITS

CONTENT = {"content": "text", "words": 1300}


def make_cells(num_words: int = 1300, share: float = 0.05, seed: int = 0) -> Cells:
    random = np.random.default_rng(seed)
    rows, columns = np.nonzero(random.random((num_words, num_words)) < share)
    values = random.random(len(rows), np.float32) + np.float32(0.1)
    return Cells(rows.astype(np.int32), columns.astype(np.int32), values)


def pieces(cells: Cells, size: int) -> Iterator[Cells]:
    for start in range(0, len(cells.rows), size):
        yield Cells(*(array[start : start + size] for array in cells))


def all_of(file: CellFile) -> Cells:
    """Every cell of the file, in row order."""
    steps = [file.read(step) for step in range(file.num_steps)]
    rows = np.concatenate(
        [(keys >> COLUMN_BITS).astype(np.int64) + base for keys, _, base in steps]
    )
    columns = np.concatenate([keys & ((1 << COLUMN_BITS) - 1) for keys, _, _ in steps])
    values = np.exp(np.concatenate([logs for _, logs, _ in steps]))
    order = np.lexsort((columns, rows))
    return Cells(rows[order], columns[order], values[order])


@pytest.mark.parametrize("size", [1, 977, 10**9])
def test_every_cell_is_there_once(tmp_path, size, monkeypatch):
    monkeypatch.setattr(arranged, "BUFFER", 5000)
    monkeypatch.setattr(arranged, "STEP", 700)
    cells = make_cells(share=0.05 if size > 1 else 0.003)
    file = CellFile.write(tmp_path / "cells", pieces(cells, size), 1300, CONTENT)
    found = all_of(file)
    file.close()
    assert file.num_cells == len(cells.rows)
    assert np.array_equal(found.rows, cells.rows) and np.array_equal(found.columns, cells.columns)
    np.testing.assert_allclose(found.values, cells.values, rtol=1e-5)


def test_steps_are_small_and_of_few_columns(tmp_path):
    cells = make_cells(share=0.5)
    file = CellFile.write(tmp_path / "cells", [cells], 1300, CONTENT)
    for step in range(file.num_steps):
        keys, logs, _ = file.read(step)
        assert len(keys) == len(logs) <= arranged.STEP
        columns = keys & ((1 << COLUMN_BITS) - 1)
        assert len(np.unique(columns)) <= 2 * arranged.COLUMNS, "a step spans too many columns"
    file.close()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4000), st.integers(0, 3))
def test_the_arrangement_does_not_depend_on_the_pieces(tmp_path_factory, size, seed):
    folder, cells = tmp_path_factory.mktemp("cells"), make_cells(600, 0.02, seed)
    for name, parts in (("whole", [cells]), ("cut", pieces(cells, size))):
        CellFile.write(folder / name, parts, 600, CONTENT).close()
    whole, cut = ((folder / name / "cells.bin").read_bytes() for name in ("whole", "cut"))
    assert whole == cut


@pytest.mark.parametrize("name", ["cells.bin", "steps.safetensors", "sememe.json"])
def test_what_is_missing_cut_or_changed_is_not_used(tmp_path, name):
    path = tmp_path / "cells"
    CellFile.write(path, [make_cells(200)], 200, CONTENT).close()
    again = CellFile.open(path, CONTENT)
    assert again is not None
    again.close()
    assert CellFile.open(path, {**CONTENT, "words": 7}) is None
    whole = (path / name).read_bytes()
    for damaged in (whole[:-9], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], b""):
        (path / name).write_bytes(damaged)
        assert CellFile.open(path, CONTENT) is None
    (path / name).unlink()
    assert CellFile.open(path, CONTENT) is None
    assert CellFile.open(tmp_path / "nothing", CONTENT) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_stop_while_writing_leaves_nothing(tmp_path, error):
    def broken() -> Iterator[Cells]:
        yield make_cells(100)
        raise error

    with pytest.raises(WriteError if isinstance(error, OSError) else KeyboardInterrupt):
        CellFile.write(tmp_path / "cells", broken(), 100, CONTENT)
    assert not (tmp_path / "cells").exists()


def test_more_words_than_a_key_can_name_are_refused():
    arranged.check_size(1 << 23)
    with pytest.raises(OptionError, match="at most 8,388,608 words"):
        arranged.check_size((1 << 23) + 1)
