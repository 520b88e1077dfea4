"""History: columns, smoothing, and the way to disk and back."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sememe.errors import ArtifactError, OptionError
from sememe.progress import History

FINITE = st.floats(-1e6, 1e6)


@given(st.lists(FINITE, min_size=1, max_size=30), st.floats(0.1, 50))
def test_smoothing_is_the_normalised_exponential_mean(losses: list[float], half: float) -> None:
    history = History({"loss": loss} for loss in losses)
    for index, value in enumerate(history.smooth("loss", half)):
        weights = 0.5 ** (np.arange(index, -1, -1) / half)
        expected = np.average(losses[: index + 1], weights=weights)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_smoothing_passes_over_gaps() -> None:
    history = History([{"loss": math.nan}, {"loss": 2.0}, {}, {"loss": 2.0}])
    smoothed = history.smooth("loss")
    assert math.isnan(smoothed[0])
    assert smoothed[1:].tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(OptionError):
        history.smooth("loss", 0)


def test_records_survive_the_disk(tmp_path: Path) -> None:
    history = History()
    history.append({"words": 10, "loss": np.float32(0.5)})
    history.append({"words": np.int64(20), "loss": math.inf})
    history.save(tmp_path / "history.json")
    again = History.load(tmp_path / "history.json")
    assert again == [{"words": 10, "loss": 0.5}, {"words": 20, "loss": None}]
    assert math.isnan(again.column("loss")[1])


def test_something_else_is_not_a_history(tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text('{"loss": 1}')
    with pytest.raises(ArtifactError, match="not a history"):
        History.load(tmp_path / "history.json")


def test_the_last_metrics_come_from_several_records() -> None:
    history = History([{"words": 1, "loss": 2.0}, {"words": 3, "score": float("nan")}])
    assert history.last() == {"words": 3, "loss": 2.0, "score": None}
    assert History().last() == {}


def test_notebooks_show_the_newest_records_escaped() -> None:
    history = History({"words": number, "note <b>": "<i>"} for number in range(30))
    history.append({"words": 30, "loss": 0.123456, "rate": float("nan")})
    page = history._repr_html_()
    assert "<i>" not in page and "<b>" not in page and "&lt;i&gt;" in page
    assert page.count("<tr>") == 21 and "the last 20 of 31 records" in page
    assert "<td>0.1235</td>" in page and "<td>nan</td>" in page and "<td>10</td>" not in page
    assert "<caption>" not in History()._repr_html_()
