"""The search of a learning rate: what is tried, what it suggests, and that it leaves nothing."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.errors import InputError, OptionError
from sememe.plots import descent
from sememe.training import TrainingConfig
from sememe.training.loop import Loop
from sememe.training.optimizers import RateGroup
from sememe.training.rate_search import RateCurve, RateSearch, find_rate, find_rate_of
from sememe.training.run import TrainingRun

sys.path.insert(0, str(Path(__file__).parent))
from toys import ToyObjective, ToySource, assert_equal, weights


def begin(objective: Any, source: Any = None, groups: Any = None, **options: Any) -> Any:
    own = {"batch_size": 16, "learning_rate": 0.02, "device": "cpu", "workers": 1, "steps": 30}
    config = TrainingConfig(**own | options)
    run = TrainingRun(source=source or ToySource(), config=config, rate_groups=groups)
    return Loop(objective, run).train()


def search(objective: Any, source: Any = None, groups: Any = None, **options: Any) -> RateCurve:
    own = {name: options.pop(name) for name in RateSearch.__dataclass_fields__ if name in options}
    return find_rate_of(lambda: begin(objective, source, groups, **options), RateSearch(**own))


def test_rates_grow_by_a_factor_and_the_loss_falls_until_it_is_lost():
    curve = search(ToyObjective(), highest=100.0, num_steps=200)
    factors = np.diff(np.log(curve.rates))
    assert curve.rates[0] == 1e-5 and factors == pytest.approx(math.log(1e7) / 199)
    assert curve.has_diverged and len(curve.rates) < 200 and curve.rates[-1] < 100
    assert curve.present == 0.02
    # The loss starts as that of the first weights, and a rate that is known to teach is suggested.
    assert curve.smoothed[0] == pytest.approx(curve.losses[0], rel=0.01)
    assert min(curve.smoothed) < 0.6 * curve.losses[0]
    assert 1e-3 < curve.steepest < curve.minimum < 0.5 and curve.tenth == curve.minimum / 10


def test_the_weights_are_afterwards_what_they_were_and_a_training_is_the_same():
    searched, fresh = ToyObjective(), ToyObjective()
    before = weights(searched)
    torch.manual_seed(3)
    first = search(searched, num_steps=20)
    drawn = torch.rand(1)
    for name, value in weights(searched).items():
        np.testing.assert_array_equal(value, before[name])
    assert drawn == torch.rand(1, generator=torch.Generator().manual_seed(3))
    begin(searched)
    begin(fresh)
    assert_equal(searched, fresh)
    assert search(ToyObjective(), num_steps=20).losses == first.losses


def test_rows_of_other_difficulty_make_no_waves():
    class Uneven(ToySource):
        def batch(self, step: int) -> Any:
            self.scale = 1.0 + step % 2
            return super().batch(step)

    curve = search(ToyObjective(), Uneven(), lowest=1e-9, highest=1e-8, num_steps=20)
    assert np.ptp(curve.losses) < 1e-5
    assert curve.steepest is None and curve.tenth is None and curve.minimum is None


def test_parts_of_a_step_change_nothing():
    whole, parts = (
        search(ToyObjective(dropout=0), accumulate=n, num_steps=30, highest=0.01) for n in (1, 2)
    )
    assert parts.losses == pytest.approx(whole.losses, abs=1e-4)


def test_layers_that_would_begin_later_learn_here_too():
    objective = ToyObjective()
    curve = search(
        objective, num_steps=60,
        groups=lambda num_steps: [
            RateGroup(list(objective.parameters()), lambda step: float(step >= 10_000))
        ],
    )  # fmt: skip
    assert curve.steepest is not None


def test_a_loss_that_is_no_number_ends_the_search():
    class Breaks(ToyObjective):
        def forward(self, batch: Any, counts: Any) -> Any:
            loss, metrics = super().forward(batch, counts)
            broken = loss * (math.nan if self.second.weight.abs().max() > 1.5 else 1.0)
            return broken, {**metrics, "class_loss": metrics["class_loss"] * broken / loss}

    curve = search(Breaks())
    assert curve.has_diverged and 10 < len(curve.rates) < 150 and np.isfinite(curve.losses).all()


def test_suggestions_of_a_curve_that_is_known(tmp_path):
    rates = np.logspace(-5, 0, 101)
    # A smooth step down in the middle of 1e-3, its floor at 1e-1, then a rise.
    logs = np.log10(rates)
    fallen = 3 / (1 + np.exp(-4 * (logs + 3))) + 0.2 * (logs + 5)
    losses = 5 - fallen + np.where(logs > -1, 3 * (logs + 1), 0)
    curve = RateCurve(rates.tolist(), losses.tolist(), True, 1e-4)
    assert curve.steepest == pytest.approx(1e-3, rel=0.2)
    assert 0.003 < curve.tenth <= 0.01
    kept = curve.to_dict()
    assert kept["steepest"] == curve.steepest and len(kept["smoothed"]) == 101
    figure = descent(
        curve.rates, curve.losses, kept["smoothed"], tmp_path / "rates.svg",
        marks={"steepest": curve.steepest, "最低的十分之一": curve.tenth},
    )  # fmt: skip
    (axes,) = figure.axes
    assert axes.get_xscale() == "log" and axes.get_ylim()[1] < 10
    shown = [text.get_text() for text in axes.get_legend().get_texts()]
    assert shown == [f"steepest: {curve.steepest:.1e}", f"最低的十分之一: {curve.tenth:.1e}"]


def test_what_cannot_be_searched_or_drawn(tmp_path):
    with pytest.raises(OptionError, match="highest"):
        RateSearch(lowest=0.1, highest=0.1)
    with pytest.raises(OptionError, match="num_steps"):
        RateSearch(num_steps=3)
    with pytest.raises(OptionError, match="nothing was trained"):
        find_rate_of(lambda: None, RateSearch())
    with pytest.raises(InputError, match="two rates"):
        descent([0.1], [1.0], [1.0], tmp_path / "rates.svg")


def test_a_model_is_left_untrained(own_cache):
    from sememe import NNLM

    model = NNLM(steps=5, dim=8, num_hidden=8, batch_size=4, length=12, min_count=1, workers=1)
    text = [["红", "色", "的", "猫"], ["the", "red", "cat"]] * 20
    curve = find_rate(model, text, num_steps=40, highest=10.0)
    assert model.network is None and len(curve.rates) > 10 and curve.steepest is not None
    model.fit(text)
    assert len(model.history)
