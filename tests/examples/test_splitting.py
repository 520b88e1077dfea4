"""Rows held out by label: shares of each, also where rows have several labels or none."""

from __future__ import annotations

from collections import Counter

import pytest

from sememe.errors import InputError
from sememe.examples.labelled.splitting import HoldOut


@pytest.mark.parametrize("is_sorted", [True, False])
def test_every_label_has_its_share_of_the_held_out_rows(is_sorted: bool) -> None:
    rows: list[tuple[str, ...]] = [("常见",)] * 600 + [("rare",)] * 40 + [("rare", "常见")] * 20
    rows += [()] * 200 + [("single",)]
    if not is_sorted:
        rows = [rows[n * 337 % len(rows)] for n in range(len(rows))]
    first, again = HoldOut(0.25), HoldOut(0.25)
    held = [row for row in rows if first.takes(row)]
    assert held == [row for row in rows if again.takes(row)]
    found = Counter(label for labels in held for label in labels or ("none",))
    assert found["rare"] == pytest.approx(15, abs=2) and found["none"] == pytest.approx(50, abs=1)
    assert found["常见"] == pytest.approx(155, abs=3) and not found["single"]
    first.check(len(held))
    with pytest.raises(InputError, match=r"9 of 861.*calibration-share"):
        first.check(9)


def test_held_out_rows_are_not_the_same_places_of_every_label() -> None:
    chosen = HoldOut(0.1)
    places: dict[str, list[int]] = {}
    for number in range(1_000):
        for label in ("a", "b", "c"):
            if chosen.takes([label]):
                places.setdefault(label, []).append(number)
    assert all(len(own) in (99, 100) for own in places.values())
    assert len({place % 10 for place in places["a"]}) > 5
    assert len({tuple(own) for own in places.values()}) == 3
