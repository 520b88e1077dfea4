"""Scaling of scores and thresholds of labels, against what made the data and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.metrics import averages, label_set_scores
from sememe.metrics.decisions import (
    Scaling,
    best_thresholds,
    decide,
    default_thresholds,
    fit_scaling,
    probabilities,
)

RANDOM = np.random.default_rng(7)


def one_label(num: int = 3_000, size: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose softmax is the true distribution, and labels drawn from it."""
    scores = 2 * RANDOM.normal(size=(num, size)) + np.linspace(0, 2, size)
    chances = probabilities(scores[None], Scaling(), is_one=True)
    drawn = (chances.cumsum(1) > RANDOM.random((num, 1))).argmax(1)
    return scores, drawn[:, None] == np.arange(size)


def several_labels(num: int = 3_000, size: int = 3) -> tuple[np.ndarray, np.ndarray]:
    scores = 2 * RANDOM.normal(size=(num, size)) - 1
    chances = probabilities(scores[None], Scaling(), is_one=False)
    return scores, RANDOM.random((num, size)) < chances


def test_the_temperature_that_spoiled_the_scores_is_found() -> None:
    scores, is_true = one_label()
    for temperature in (0.4, 1.0, 3.0):
        found = fit_scaling((scores * temperature)[None], is_true, is_one=True)
        assert 1 / found.scale == pytest.approx(temperature, rel=0.1) and found.bias == 0
    found = fit_scaling(np.stack([scores * 3, scores * 3]), is_true, is_one=True)
    assert 1 / found.scale == pytest.approx(3, rel=0.1)


def test_platts_scale_and_shift_are_found() -> None:
    scores, is_true = several_labels()
    found = fit_scaling((3 * scores + 2)[None], is_true, is_one=False, has_bias=True)
    assert found.scale == pytest.approx(1 / 3, rel=0.1)
    assert found.bias == pytest.approx(-2 / 3, abs=0.15)
    found = fit_scaling((3 * scores)[None], is_true, is_one=False)
    assert found.scale == pytest.approx(1 / 3, rel=0.1) and found.bias == 0


def test_rows_without_a_mistake_do_not_ask_for_certainty() -> None:
    is_true = np.eye(3, dtype=bool)[RANDOM.integers(3, size=30)]
    scores = 2.0 * is_true
    for is_one in (True, False):
        found = fit_scaling(scores[None], is_true, is_one=is_one, has_bias=not is_one)
        chances = probabilities(scores[None], found, is_one=is_one)
        assert np.isfinite(found).all() and 0.9 < chances[is_true].min() < 0.9999


def test_thresholds_of_label_sets_have_the_best_f1() -> None:
    scores, is_true = several_labels(400)
    chances = probabilities(scores[None], Scaling(), is_one=False)
    found = best_thresholds(chances, is_true, is_one=False)
    for label, threshold in enumerate(found):
        f1s = {
            cut: label_set_scores(is_true[:, [label]], chances[:, [label]] >= cut, ["x"])[0].f1
            for cut in [*np.unique(chances[:, label]), threshold]
        }
        assert f1s[threshold] == pytest.approx(max(f1s.values()))
    assert found.mean() < 0.45  # the best F1 wants more than the likely ones


def test_a_threshold_stays_where_nothing_speaks_for_another() -> None:
    is_true = np.array([[True, False], [True, False], [True, True], [False, False]] * 2)
    chances = np.where(is_true, 0.9, 0.1)
    found = best_thresholds(chances, is_true, is_one=False)
    assert found.tolist() == [0.5, 0.5]  # separable; the second has two true rows only
    np.testing.assert_array_equal(decide(chances, found, is_one=False), is_true)
    everything = best_thresholds(np.full((9, 1), 0.7), np.ones((9, 1), bool), is_one=False)
    assert 0 < everything[0] <= 0.7


def test_thresholds_of_one_label_raise_the_macro_f1() -> None:
    scores, is_true = one_label()
    scores[:, 3] += 3  # a common label, by which the others are overlooked
    chances = probabilities(scores[None], Scaling(), is_one=True)
    plain = default_thresholds(4, is_one=True)
    found = best_thresholds(chances, is_true, is_one=True)
    assert found.sum() == pytest.approx(1) and found[3] > 0.25
    f1s = [
        averages(label_set_scores(is_true, decide(chances, own, is_one=True), range(4)))["macro"]
        for own in (plain, found)
    ]
    assert f1s[1]["f1"] > f1s[0]["f1"] + 0.02
    assert (decide(chances, plain, is_one=True).argmax(1) == chances.argmax(1)).all()
    assert (decide(chances, found, is_one=True).sum(1) == 1).all()


def test_of_two_labels_the_threshold_is_that_of_the_probability() -> None:
    chances = np.array([[0.85, 0.15], [0.75, 0.25], [0.5, 0.5]])
    said = decide(chances, np.array([0.8, 0.2]), is_one=True)
    assert said.argmax(1).tolist() == [0, 1, 1]
