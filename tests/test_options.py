"""What the options of every model share."""

from __future__ import annotations

import pytest

from sememe.errors import OptionError
from sememe.models.word2vec.config import Word2VecConfig
from sememe.options import parse_duration


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("20m", 1200), ("1h30m", 5400), ("45 s", 45), ("1.5d", 129_600), ("3min", 180), (0.5, 0.5)],
)
def test_durations(duration, seconds):
    assert parse_duration(duration, "budget") == seconds


@pytest.mark.parametrize("duration", ["", "soon", "-1m", "0s", "90", "5 weeks", "m", 0, -3.0])
def test_wrong_durations(duration):
    with pytest.raises(OptionError, match="budget must be a time"):
        parse_duration(duration, "budget")


@pytest.mark.parametrize("duration", ["4000d", "1000000000000000000h", "9" * 400 + "h", 1e18])
def test_durations_that_nobody_waits_for(duration):
    with pytest.raises(OptionError, match="budget must be"):
        parse_duration(duration, "budget")


@pytest.mark.parametrize(
    ("name", "value"),
    [("dim", "eight"), ("dim", True), ("dim", [8]), ("dim", None), ("loss", 5), ("min_count", {})],
)
def test_values_of_another_type_are_refused(name, value):
    """As a damaged sememe.json may have them."""
    with pytest.raises(OptionError, match=name):
        Word2VecConfig(**{name: value})
