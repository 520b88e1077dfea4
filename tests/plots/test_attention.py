"""The picture of attention: its cells, labels and lines, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sememe.errors import OptionError
from sememe.plots import attention

TOKENS = ["[CLS]", "国王", "it", "[SEP]", "the", "##less", "[SEP]"]


def test_rows_look_at_columns(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(7), 7)
    segments = [0, 0, 0, 0, 1, 1, 1]
    path = tmp_path / "map.svg"
    figure = attention(TOKENS, weights, path, segments=segments, title="layer 1, head 2")
    axes = figure.axes[0]
    assert np.allclose(axes.collections[0].get_array(), weights)
    for labels in (axes.get_yticklabels(), axes.get_xticklabels()):
        assert [label.get_text() for label in labels] == TOKENS
    assert [label.get_rotation() for label in axes.get_xticklabels()] == [90.0] * 7
    assert axes.yaxis_inverted()  # the first token is the uppermost row
    assert [line.get_ydata()[0] for line in axes.lines if line.get_ydata()[0] == 4] == [4]
    assert len(axes.lines) == 2
    first = path.read_bytes()
    attention(TOKENS, weights, path, segments=segments, title="layer 1, head 2")
    assert path.read_bytes() == first


def test_one_token_and_what_cannot_be_drawn(tmp_path: Path) -> None:
    axes = attention(["猫"], np.ones((1, 1)), tmp_path / "one.png").axes[0]
    assert len(axes.lines) == 0
    assert axes.get_xticklabels()[0].get_rotation() == 0  # one character stands upright
    with pytest.raises(OptionError, match="each pair of its 7 tokens"):
        attention(TOKENS, np.ones((7, 6)), tmp_path / "bad.png")
    with pytest.raises(OptionError, match=r"\.png or \.svg"):
        attention(["a"], np.ones((1, 1)), tmp_path / "bad.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["one.png"]
