"""Axes of the report's charts: every value inside, ticks that can be read."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from sememe.ladder.report.charts import elapsed_scale, linear, ratio_scale, size_scale, time_scale

costs = st.lists(st.floats(0.01, 1e5), min_size=1, max_size=12)


@given(values=costs, kind=st.sampled_from([time_scale, size_scale]))
def test_costs_keep_their_order_inside_the_axis(values, kind):
    scale = kind(values, 38.0, 292.0)
    places = [scale(value) for value in sorted(values)]
    assert places == sorted(places) and all(38 <= place <= 292 for place in places)
    assert len(scale.ticks) >= 1
    ticks = [scale(tick) for tick, _ in scale.ticks]
    assert all(second - first >= 20 for first, second in pairwise(ticks))


@pytest.mark.parametrize(
    "values", [[25.0, 25.4], [1.3, 2.3], [0.4, 9.3, 30.0], [1.0, 7200.0], [600.0, 620.0]]
)
def test_times_have_two_ticks_or_more(values):
    texts = [text for _, text in time_scale(values, 38.0, 292.0).ticks]
    assert 2 <= len(texts) <= 8 and len(set(texts)) == len(texts)


def test_what_is_below_the_floor_is_said():
    assert time_scale([0.01, 30.0], 0.0, 300.0).ticks[0] == (0.1, "≤ 0.1 s")


@given(values=st.lists(st.floats(-50, 100), min_size=1, max_size=12))
def test_scores_lie_inside_and_ticks_between_them(values):
    scale = linear(values, 230.0, 48.0)
    assert all(48 <= scale(value) <= 230 for value in values)
    assert 1 <= len(scale.ticks) <= 6
    assert len({text for _, text in scale.ticks}) == len(scale.ticks)
    assert "−0" not in [text for _, text in scale.ticks]


def test_perplexities_go_by_ratio():
    scale = ratio_scale([100.0, 1000.0, 10000.0], 230.0, 48.0)
    first, second, third = (scale(value) for value in (100.0, 1000.0, 10000.0))
    assert first - second == pytest.approx(second - third)
    assert [text for _, text in scale.ticks] == ["100", "1,000", "10,000"]


@pytest.mark.parametrize(
    ("high", "texts"),
    [(30.0, ["0", "10 s", "20 s", "30 s"]), (0.0, ["0", "1 ms"]),
     (7200.0, ["0", "30 min", "1 h", "1 h 30 min", "2 h"])],
)  # fmt: skip
def test_time_of_training_begins_at_zero(high, texts):
    assert [text for _, text in elapsed_scale(high, 0.0, 200.0).ticks] == texts
