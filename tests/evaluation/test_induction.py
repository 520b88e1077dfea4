"""Dictionary induction: by hand on a few words, and what is left out."""

import numpy as np
import pytest

import sememe
from sememe.errors import InputError, OptionError
from sememe.vectors import WordVectors

TARGETS = [f"en{index}" for index in range(12)]


@pytest.fixture
def sides():
    """Words on a circle; de0 is nearest to en0, de1 to en2, de2 to en3 and en2."""
    angles = np.linspace(0, np.pi, 12)
    target = np.stack([np.cos(angles), np.sin(angles)], 1)
    places = [0.05, 2.1, 2.6]
    source = np.array([[np.cos(a * angles[1]), np.sin(a * angles[1])] for a in places])
    return WordVectors(["de0", "de1", "de2"], source), WordVectors(TARGETS, target)


def test_precisions_by_hand(sides, tmp_path):
    data = tmp_path / "test.txt"
    data.write_text("de0 en0\nde1 en1\nde1 en3\nde2 en9\nde9 en0\nde0 nothing\nde2 none\n")
    found = sememe.evaluate_induction(*sides, data)
    assert (found.num_words, found.num_given, found.num_unknown_source) == (3, 4, 1)
    right = [found.precision("cosine", k).num_right for k in (1, 5, 10)]
    # de0: first; de1: en2 is first, en3 or en1 next; de2: en9 comes seventh or later.
    assert right == [1, 2, 3]
    low, high = found.precision("cosine", 5).interval
    assert 0 <= low < 2 / 3 < high <= 1
    assert found.precision("same spelling", 1).num_right == 0
    chance = found.precision("chance", 1).value
    assert chance == pytest.approx((1 + 2 + 1) / 12 / 3)
    none_of_two = (10 / 12) * (9 / 11) * (8 / 10) * (7 / 9) * (6 / 8)
    expected = 1 - (2 * 7 / 12 + none_of_two) / 3
    assert found.precision("chance", 5).value == pytest.approx(expected)
    assert "P@10" in str(found) and "1 without a vector" in str(found)
    assert found.to_dict()["scores"][0]["system"] == "csls"


def test_bad_input(sides, tmp_path):
    data = tmp_path / "test.txt"
    data.write_text("a b\n")
    with pytest.raises(InputError, match="none of its 1 words"):
        sememe.evaluate_induction(*sides, data)
    other = WordVectors(TARGETS, np.ones((12, 5)))
    with pytest.raises(OptionError, match="2 and 5"):
        sememe.evaluate_induction(sides[0], other, data)
    with pytest.raises(InputError, match="too few"):
        sememe.evaluate_induction(sides[0], sides[0], data)
