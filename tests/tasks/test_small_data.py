"""The recipe for small sets: searched on training rows alone, several seeds, one ensemble."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from quick_tasks import QUICK, assert_same

from recorded_notes import Notes
from sememe import Classify, Pairs, Regress, Tag, fit_small_data
from sememe.errors import OptionError
from sememe.progress import SILENT
from sememe.tasks import small_data
from sememe.tasks.small_data import search

FEW = {**QUICK, "epochs": 0.0, "learning_rate": 0.0, "batch_size": 16}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(small_data, "EPOCHS", 1.0)
    monkeypatch.setattr(small_data, "LEAST_STEPS", 1)


def make(bert, **own):
    return lambda options: Classify(bert, **FEW | own | options)


def test_the_search_tries_rates_then_epochs_and_takes_the_best(bert, opinions):
    found = search(make(bert), opinions, reporter=SILENT)
    tried = [one["options"] for one in found.trials]
    rates = [one["learning_rate"] for one in tried if one["epochs"] == 1.0]
    assert rates[1:3] == [rates[0] / 2, rates[0] * 2]
    assert tried[-1]["epochs"] > 1.0 and {one["learning_rate"] for one in tried} == set(rates)
    chosen = {name: found.options[name] for name in ("learning_rate", "epochs")}
    best = max(found.trials, key=lambda one: (one["mean"], -one["loss"]))
    assert chosen == best["options"]
    assert found.num_held_out == 2 * 16 and all(len(one["values"]) == 2 for one in found.trials)
    assert found.options["layer_decay"] == 0.9 and found.options["keep_best"] is False


def test_options_that_are_given_win(bert, opinions):
    given = {"learning_rate": 0.003, "epochs": 2.0, "layer_decay": 1.0}
    found = search(make(bert, **given), opinions, reporter=SILENT)
    assert found.options == {"keep_best": False} and not found.trials
    found = search(make(bert, learning_rate=0.003), opinions, reporter=SILENT)
    assert [*found.trials[0]["options"]] == ["epochs"] and "learning_rate" not in found.options
    found = search(make(bert, steps=3), opinions, reporter=SILENT)
    assert {*found.trials[0]["options"]} == {"learning_rate"}


def test_dev_rows_choose_nothing(bert, opinions, tmp_path):
    given = {"learning_rate": 0.01, "epochs": 2.0}
    fitted = [
        fit_small_data(make(bert, **given), opinions, dev=dev, seeds=2)
        for dev in (opinions[:20], [(text, "good") for text, _ in opinions[:5]] + opinions[-5:])
    ]
    rows = opinions[::7]
    first, second = ([one.probability for one in task.predict(rows)] for task in fitted)
    # The dev score decides which member stands first, so the mean may differ in its last bit.
    assert first == pytest.approx(second, rel=1e-6)


def test_a_rare_label_does_not_stop_the_search(bert, opinions):
    rows = [*opinions, ("something else altogether", "rare")]
    given = {"learning_rate": 0.01}
    assert search(make(bert, **given), rows, reporter=SILENT).trials
    tags = [(["Rome", "shines"], ["B-LOC", "O"])] * 40 + [(["Bob", "sits"], ["B-PER", "O"])]
    options = {**FEW, **given}
    found = search(lambda own: Tag(bert, **options | own), tags, reporter=SILENT)
    assert found.trials and "f1" in Tag(bert).metric_names([])


def test_the_search_of_one_model_is_not_that_of_another(bert, opinions, golden):
    first, other = (
        search(make(own, learning_rate=0.01), opinions, reporter=SILENT)
        for own in (bert, golden / "bert-masks-only")
    )
    assert first.key != other.key
    again = search(make(bert, learning_rate=0.01), opinions, reporter=SILENT, kept=first.to_dict())
    assert again.key == first.key and again.options == first.options


def test_an_ensemble_without_dev_rows_is_refused_before_the_search(bert, opinions):
    with pytest.raises(OptionError, match="dev rows"):
        fit_small_data(make(bert), opinions, dev=False, seeds=2)


def test_a_saved_ensemble_says_what_was_chosen(bert, opinions, tmp_path):
    out = tmp_path / "task"
    task = fit_small_data(make(bert), opinions, seeds=2, out=out)
    assert len(task.others) == 1 and {*tmp_path.iterdir()} == {out}
    kept = json.loads((out / "sememe.json").read_text())["searched"]
    assert kept["recipe"] == "small-data" and kept == json.loads(json.dumps(task.searched))
    assert kept["options"]["epochs"] == task.config.epochs
    again = Classify.load(out)
    assert again.searched == task.searched
    notes = Notes()
    same = fit_small_data(make(bert), opinions, seeds=2, out=out, resume=True, progress=notes)
    assert "finished already" in notes and "Search:" not in notes
    assert_same(same, again)


def test_a_stopped_search_goes_on_where_it_was(bert, opinions, tmp_path):
    out, whole, calls = tmp_path / "task", tmp_path / "whole", []

    def failing(options):
        calls.append(options)
        if "learning_rate" in options and len(calls) > 7:
            raise KeyboardInterrupt
        return make(bert)(options)

    with pytest.raises(KeyboardInterrupt):
        fit_small_data(failing, opinions, seeds=2, out=out)
    kept = json.loads((tmp_path / "task.search.json").read_text())["runs"]
    notes = Notes()
    resumed = fit_small_data(make(bert), opinions, seeds=2, out=out, resume=True, progress=notes)
    expected = fit_small_data(make(bert), opinions, seeds=2, out=whole)
    assert kept and resumed.searched == expected.searched
    assert_same(resumed, expected)
    # Other rows are another search.
    other = fit_small_data(make(bert), opinions[4:], seeds=2, out=out, resume=True)
    assert other.searched["key"] != resumed.searched["key"]


def test_one_seed_is_one_model_and_patience_is_refused(bert, opinions):
    given = {"learning_rate": 0.01, "epochs": 1.0}
    assert not fit_small_data(make(bert, **given), opinions, seeds=1).others
    with pytest.raises(OptionError, match="patience"):
        fit_small_data(make(bert, patience=2), opinions)
    with pytest.raises(OptionError, match="too few"):
        fit_small_data(make(bert), [("a", "good"), ("b", "bad")], dev=opinions[:4])


def test_lora_and_frozen_networks_take_the_recipe(bert, opinions, tmp_path):
    found = search(make(bert, freeze=True, learning_rate=0.01), opinions, reporter=SILENT)
    assert "layer_decay" not in found.options


def test_a_fine_tuned_folder_starts_tasks_with_other_labels(bert, tmp_path):
    rows = [("a cat", "an animal", "yes"), ("a cat", "a stone", "no"), ("a cat", "old", "maybe")]
    first = Pairs(bert, **QUICK | {"epochs": 1.0}).fit(rows * 8, dev=rows, out=tmp_path / "nli")
    notes = Notes()
    two = [(a, b, "same" if label == "yes" else "other") for a, b, label in rows]
    options = {**QUICK, "epochs": 0.0, "steps": 1, "learning_rate": 1e-9}
    own = Pairs(tmp_path / "nli", **options).fit(two * 8, dev=two, progress=notes)
    assert "head is new" in notes and own.labels == ["other", "same"]
    scored = [(a, b, 1.0) for a, b, _ in rows[:2]] + [("a", "b", 0.0)]
    similar = Regress(tmp_path / "nli", **options).fit(scored * 8, dev=scored)
    for task in (own, similar):  # both start from the network that the first task trained
        weights = task.objective.encoder.network.state_dict()
        for name, before in first.objective.encoder.network.state_dict().items():
            assert weights[name].allclose(before, atol=1e-6), name
