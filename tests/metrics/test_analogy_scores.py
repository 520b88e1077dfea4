"""Analogy totals in Google's form."""

from __future__ import annotations

import math

from sememe.metrics import is_syntactic, score_sections, total_score


def test_sections_and_totals() -> None:
    scores = score_sections(
        ["capital", "capital", "gram1-adverb", "capital"],
        [True, True, True, False],
        [True, False, True, False],
    )
    assert scores == [("capital", 1, 2, 3), ("gram1-adverb", 1, 1, 1)]
    assert [is_syntactic(score.name) for score in scores] == [False, True]
    total = total_score("total", scores)
    assert (total.accuracy, total.coverage) == (2 / 3, 3 / 4)


def test_a_section_that_cannot_be_asked_has_no_accuracy() -> None:
    (score,) = score_sections(["x"], [False], [True])
    assert math.isnan(score.accuracy) and score.coverage == 0
    assert math.isnan(total_score("total", []).coverage)
