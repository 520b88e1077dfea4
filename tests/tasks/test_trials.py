"""Several runs of one task: seeds, ensembles, grids; stopped ones go on, finished ones stay."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from quick_tasks import QUICK, assert_same

from recorded_notes import Notes
from sememe import Classify
from sememe.tasks.config import grid
from sememe.tasks.scores import Scores
from sememe.tasks.trials import fit_trials, settings_of


def test_several_seeds_and_their_ensemble(bert, opinions, tmp_path):
    def make(options):
        return Classify(bert, **QUICK | {"epochs": 2.0} | options)

    out = tmp_path / "best"
    best = fit_trials(make, grid(3, 5), opinions, out=out)
    values = [trial["scores"]["metrics"]["accuracy"] for trial in best.trials]
    assert [trial["options"] for trial in best.trials] == [{"seed": seed} for seed in (5, 6, 7)]
    assert best.scores.value == max(values) and best.config.seed == 5 + int(np.argmax(values))
    assert not list(tmp_path.glob("*.trials"))
    all_of_them = fit_trials(make, grid(3, 5), opinions, out=tmp_path / "all", ensemble=True)
    assert len(all_of_them.others) == 2
    again = Classify.load(tmp_path / "all")
    members = [make({"seed": seed}).fit(opinions) for seed in (5, 6, 7)]
    mean = np.mean([m.predict(opinions)[0].probabilities["good"] for m in members])
    assert again.predict(opinions)[0].probabilities["good"] == pytest.approx(mean, abs=1e-5)


def test_tensorboard_shows_each_run_in_a_folder_of_its_own(bert, opinions, tensorboard):
    def make(options):
        return Classify(bert, **QUICK | {"steps": 2, "epochs": 0.0} | options, tensorboard="events")

    fit_trials(make, grid(2), opinions)
    assert list(tensorboard) == ["events/seed-1", "events/seed-2"]
    for written in tensorboard.values():
        assert written["loss"][-1] == written["validation_accuracy"][-1] == 2


def test_stopped_seeds_go_on(bert, opinions, tmp_path):
    def make(options):
        return Classify(bert, **QUICK | {"epochs": 1.0} | options)

    def fail(options):
        if options["seed"] == 2:
            raise KeyboardInterrupt
        return make(options)

    with pytest.raises(KeyboardInterrupt):
        fit_trials(fail, grid(2), opinions, out=tmp_path / "task")
    notes = Notes()
    resumed = fit_trials(
        make, grid(2), opinions, out=tmp_path / "task", resume=True, progress=notes
    )
    assert sum("finished already" in line for line in notes.lines) == 1
    assert_same(resumed, fit_trials(make, grid(2), opinions))


@pytest.mark.parametrize("ensemble", [False, True])
def test_finished_seeds_are_not_learned_again(bert, opinions, tmp_path, monkeypatch, ensemble):
    def make(options):
        return Classify(bert, **QUICK | {"steps": 2, "epochs": 0.0} | options)

    out = {"out": tmp_path / "task", "resume": True, "ensemble": ensemble}
    first = fit_trials(make, grid(2), opinions, **out)
    monkeypatch.setattr(Classify, "fit", None)
    notes = Notes()
    again = fit_trials(make, grid(2), opinions, progress=notes, **out)
    assert_same(again, first)
    assert again.trials == first.trials and "task is finished already." in notes
    others = [(opinions, grid(3)), (opinions[:-2], grid(2)), (opinions, grid(2, 2))]
    for rows, trials in others:
        with pytest.raises(TypeError):  # what is asked for is to be learned
            fit_trials(make, trials, rows, **out)
    with pytest.raises(TypeError):
        fit_trials(make, grid(2), opinions, **out | {"ensemble": not ensemble})


def test_a_grid_is_searched_by_the_mean_over_seeds(bert, opinions):
    trials = grid(2, learning_rate=(1e-9, 3e-3))
    assert len(trials) == 4

    def make(options):
        return Classify(bert, **QUICK | {"epochs": 4.0} | options)

    task = fit_trials(make, trials, opinions)
    assert task.config.learning_rate == 3e-3

    def scores(value):
        return Scores(metrics={"f1": value}, main_metric="f1", num_rows=9).to_dict()

    found = settings_of([
        {"options": {"epochs": e, "seed": s}, "scores": scores(v)}
        for e, s, v in ((2, 1, 0.5), (2, 2, 0.7), (3, 1, 0.9), (3, 2, float("nan")))
    ])  # fmt: skip
    assert [s.options for s in found] == [{"epochs": 2}, {"epochs": 3}]
    assert found[0].mean == pytest.approx(0.6) and np.isnan(found[1].mean)
