"""Calibrated probabilities and thresholds: chosen on held-out training rows, saved and used."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from quick_tasks import LABEL_SETS as ROWS, QUICK, assert_same, weights

from recorded_notes import Notes
from sememe import Classify
from sememe.errors import InputError
from sememe.tasks.config import grid
from sememe.tasks.trials import fit_trials

BOTH = {"calibrate": True, "thresholds": "f1", "calibration_share": 0.3}


def test_probabilities_of_one_label_are_calibrated_without_changing_labels(
    bert, opinions, tmp_path
):
    noisy = [(text, label if n % 7 else "bad") for n, (text, label) in enumerate(opinions * 3)]
    options = QUICK | {"epochs": 10.0}
    notes = Notes()
    plain = Classify(bert, **options, thresholds="f1", calibration_share=0.3)
    plain.fit(noisy, dev=opinions)  # on the same rows
    task = Classify(bert, **options, calibrate=True, calibration_share=0.3)
    task.fit(noisy, dev=opinions, out=tmp_path / "task", progress=notes)
    told = task.learned["calibration"]
    assert told["measured_on"] == "dev" and told["num_rows"] > 50 and told["bias"] == 0
    assert f"temperature {told['temperature']:.3g}" in notes and "before: calibration" in notes
    assert told["after"] == pytest.approx(task.scores.calibration, rel=1e-4)
    texts = [text for text, _ in opinions]
    for one, other in zip(plain.predict(texts), task.predict(texts), strict=True):
        ratio = np.log(one.probabilities["good"] / one.probabilities["bad"])
        own = np.log(other.probabilities["good"] / other.probabilities["bad"])
        assert own * told["temperature"] == pytest.approx(ratio, rel=1e-3, abs=1e-3)
    again = Classify.load(tmp_path / "task")
    assert again.predict(texts) == task.predict(texts) and again.learned == task.learned


def test_held_out_rows_are_training_rows_that_are_not_trained_on(bert, opinions, monkeypatch):
    seen = {}
    original = Classify.encode

    def encode(self, rows):
        seen.setdefault("parts", []).append({row.text for row in rows})
        return original(self, rows)

    monkeypatch.setattr(Classify, "encode", encode)
    rows = [(f"{text} {number}", label) for number, (text, label) in enumerate(opinions)]
    options = QUICK | {"steps": 1, "epochs": 0.0}
    Classify(bert, **options, **BOTH).fit(rows[10:], dev=rows[:10])
    train, dev, held = seen["parts"]
    assert (len(train), len(dev), len(held)) == (49, 10, 21)
    assert not train & held and not dev & held and train | held == {text for text, _ in rows[10:]}
    seen.clear()
    task = Classify(bert, **options, **BOTH).fit(rows)  # dev rows are held out first
    train, dev, held = seen["parts"]
    assert (len(train), len(dev), len(held)) == (51, 8, 21) and "held" in task.plan["content"]
    assert not (train & held or dev & held or train & dev)
    with pytest.raises(InputError, match="calibration-share"):
        Classify(bert, **options, calibrate=True).fit(rows[:50])


def test_label_sets_are_calibrated_and_have_thresholds_of_their_own(bert, gpt, tmp_path):
    notes = Notes()
    rows = [(text, labels if n % 9 else ["story"]) for n, (text, labels) in enumerate(ROWS * 2)]
    task = Classify(bert, **QUICK | {"epochs": 8.0}, **BOTH)
    task.fit(rows, dev=ROWS, out=tmp_path / "task", progress=notes)
    told = task.learned
    assert told["calibration"]["bias"] != 0 and "bias" in notes
    assert told["calibration"]["after"] == pytest.approx(task.scores.calibration, rel=1e-4)
    assert told["thresholds"].keys() == {*task.labels} and "Thresholds by F1 on" in notes
    again = Classify.load(tmp_path / "task")
    for one in again.predict([text for text, _ in ROWS]):
        said = {label for label, p in one.probabilities.items() if p >= told["thresholds"][label]}
        assert {*one.labels} == said
    assert json.loads((tmp_path / "task" / "sememe.json").read_text("utf-8"))["learned"] == told
    card = (tmp_path / "task" / "README.md").read_text("utf-8")
    assert "all labels that reach their thresholds" in card and "calibrated on held-out" in card
    other = Classify(gpt, **QUICK | {"epochs": 2.0}, **BOTH).fit(rows, dev=False)
    assert other.learned["calibration"]["bias"] == 0  # its head has none
    assert other.learned["calibration"]["measured_on"] == "held-out training"


def test_thresholds_of_one_label_favor_the_rare_one(bert, opinions):
    rows = [*opinions[:40] * 2, *opinions[40::3]] * 2  # 160 good, 28 bad
    task = Classify(bert, **QUICK | {"epochs": 0.5, "learning_rate": 1e-3}, **BOTH)
    task.fit(rows, dev=False)
    chosen = task.learned["thresholds"]
    assert sum(chosen.values()) == pytest.approx(1) and chosen["bad"] < 0.5
    for one in task.predict([text for text, _ in opinions]):
        wanted = "bad" if one.probabilities["bad"] >= chosen["bad"] else "good"
        assert one.label == wanted and one.probability == one.probabilities[wanted]


def test_stopped_runs_and_ensembles_are_adjusted_once_at_the_end(bert, tmp_path, monkeypatch):
    def make(options):
        return Classify(bert, **QUICK | {"epochs": 2.0} | BOTH | options)

    whole = make({}).fit(ROWS, out=tmp_path / "whole")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Classify, "adjust", stop)
        make({}).fit(ROWS, out=tmp_path / "task")
    resumed = make({}).fit(ROWS, out=tmp_path / "task", resume=True)
    assert_same(resumed, whole)
    assert resumed.learned == whole.learned
    finished = make({}).fit(ROWS, out=tmp_path / "task", resume=True)
    assert finished.learned == whole.learned

    both = fit_trials(make, grid(2, 1), ROWS, ensemble=True, out=tmp_path / "two")
    again = Classify.load(tmp_path / "two")
    texts = [text for text, _ in ROWS]
    assert again.predict(texts) == both.predict(texts) and again.learned == both.learned
    members = [make({"seed": seed}).fit(ROWS) for seed in (1, 2)]
    told = both.learned["calibration"]
    own = [weights(one)["head.linear.weight"] for one in members]
    found = [one.head.linear.weight.detach().numpy() for one in (both.objective, *both.others)]
    for wanted in own:  # each member was calibrated, then all together
        assert any(np.allclose(wanted / told["temperature"], one, rtol=1e-4) for one in found)
