"""Bars: what stands in them, and what is refused."""

from __future__ import annotations

import math

import pytest

from sememe.errors import InputError, OptionError
from sememe.plots import bars


def test_bars_carry_their_metrics_and_the_reference_is_a_line(tmp_path) -> None:
    figure = bars(
        ["embeddings", "last layer", "sum"],
        [91.0, 95.6, math.nan],
        [tmp_path / "bars.png", tmp_path / "bars.svg"],
        errors=[0.2, math.nan, math.nan],
        reference=("fine-tuned", 96.4),
        title="Layers",
    )
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["91.0 ± 0.2", "95.6", "fine-tuned 96.4"]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "embeddings",
        "last layer",
        "sum",
    ]
    low, high = axes.get_xlim()
    assert low < 91.0 and high > 96.4
    ends = [patch.get_x() + patch.get_width() for patch in axes.patches]
    assert ends[:2] == pytest.approx([91.0, 95.6])
    # The first stands on top.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert b"<svg" in (tmp_path / "bars.svg").read_bytes()


def test_equal_metrics_have_bars_of_some_length(tmp_path) -> None:
    figure = bars(["a", "b"], [50.0, 50.0], tmp_path / "bars.svg")
    assert all(patch.get_width() > 0 for patch in figure.axes[0].patches)


def test_what_cannot_be_drawn_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="at least one value"):
        bars(["a"], [math.nan], tmp_path / "bars.svg")
    with pytest.raises(InputError, match="a name for each"):
        bars(["a"], [1.0, 2.0], tmp_path / "bars.svg")
    with pytest.raises(OptionError, match="must end in"):
        bars(["a"], [1.0], tmp_path / "bars.gif")
