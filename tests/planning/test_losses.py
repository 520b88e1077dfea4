"""Expected losses: the committed coefficients, ranges, and what makes a prediction uncertain."""

import json
from importlib.resources import files

import numpy as np
import pytest

from sememe.planning import losses
from sememe.planning.losses import LossModel, Setting, fitted, loss_model

KEPT = json.loads((files("sememe.planning") / "losses.json").read_text(encoding="utf-8"))
USUAL = Setting("bert", 1_000, 1_770.0, 1_552_898, 6.8)


def test_the_committed_coefficients_are_those_of_the_committed_runs():
    refitted = fitted(KEPT["runs"])
    assert refitted["kinds"] == KEPT["coefficients"]["kinds"]
    for name in ("mean", "covariance", "noise"):
        np.testing.assert_allclose(refitted[name], KEPT["coefficients"][name], atol=1e-4)


def test_the_fit_finds_coefficients_that_made_the_losses():
    def ratio(steps: float, tokens: float, weights: float) -> float:
        place = 2.0 - 0.7 * np.log(steps / 500) - 0.3 * np.log(tokens / 2e3)
        return losses.HIGHEST / (1 + np.exp(-place + 0.05 * np.log(weights / 1.5e6)))

    runs = [
        {"kind": "bert", "steps": steps, "tokens_per_step": tokens, "weights": weights,
         "by_frequency": 7.0, "loss": 7.0 * ratio(steps, tokens, weights), "language": "en"}
        for steps in (100, 1_000, 10_000) for tokens in (1_000, 8_000)
        for weights in (1_500_000, 6_000_000)
    ]  # fmt: skip
    model = LossModel(runs, fitted(runs))
    found = model.expected(Setting("bert", 3_000, 2_000.0, 3_000_000, 7.0))
    assert found is not None and found.is_certain
    assert found.loss == pytest.approx(7.0 * ratio(3_000, 2_000.0, 3_000_000), rel=0.01)
    assert found.low < found.loss < found.high


def test_measured_losses_lie_in_their_ranges():
    model = loss_model()
    inside = 0
    for run in KEPT["runs"]:
        names = {name: run[name] for name in Setting._fields if name in run}
        found = model.expected(Setting(**names))
        assert found is not None
        inside += found.low <= run["loss"] <= found.high
    assert inside >= 0.85 * len(KEPT["runs"])


def test_more_steps_are_expected_to_help():
    expected = [loss_model().expected(USUAL._replace(steps=steps)) for steps in (300, 1_000, 9_000)]
    found = [own.loss for own in expected if own is not None]
    assert len(found) == 3 and found == sorted(found, reverse=True)
    assert all(own is not None and own.low < own.loss < own.high for own in expected)


def test_the_next_sentence_adds_what_guessing_costs():
    alone, both = (loss_model().expected(USUAL._replace(has_next=has)) for has in (False, True))
    assert alone is not None and both is not None
    assert both.loss - alone.loss == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"language": "sw"}, "sw"),
        ({"steps": 10_000_000}, "steps"),
        ({"weights": 10**12}, "weights"),
        ({"by_frequency": 2.0}, "tokens"),
    ],
)
def test_what_was_never_measured_is_only_a_range(change, says):
    found = loss_model().expected(USUAL._replace(**change))
    assert found is not None and not found.is_certain
    assert any(says in doubt for doubt in found.doubts)
    assert "loss" not in found.to_dict() and found.to_dict()["low"] < found.to_dict()["high"]


def test_a_kind_that_was_never_measured_has_no_loss():
    assert loss_model().expected(USUAL._replace(kind="seq2seq")) is None
