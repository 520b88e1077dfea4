"""The picture of positions."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.errors import OptionError
from sememe.plots import positions


def test_a_row_for_each_position(tmp_path):
    table = np.sin(np.arange(40)[:, None] / 10_000 ** (np.arange(16) / 16))
    figure = positions(table, [tmp_path / "p.png", tmp_path / "p.svg"], title="sine waves 正弦")
    mesh = figure.axes[0].collections[0]
    np.testing.assert_allclose(mesh.get_array(), table)
    largest = np.abs(table).max()
    assert figure.axes[0].yaxis_inverted() and mesh.get_clim() == (-largest, largest)
    assert (tmp_path / "p.svg").stat().st_size > 1_000
    with pytest.raises(OptionError, match="table of rows"):
        positions(np.zeros(3), tmp_path / "bad.png")
