"""Automatic tuning: which options are tried, that the best is kept, and how it ends."""

from __future__ import annotations

import io
import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from labelled_texts import lines, rows

from sememe import FastTextClassifier, FastTextClassifierConfig
from sememe.errors import OptionError
from sememe.metrics import ClassScore, averages
from sememe.models.fasttext.classifier import tuning
from sememe.models.fasttext.classifier.prediction import LabelsResult
from sememe.models.fasttext.classifier.tuning import TuningMetric, free_options, propose
from sememe.progress import Reporter


@pytest.fixture(autouse=True)
def files(place: Path) -> None:
    (place / "train.txt").write_text(lines(120), encoding="utf-8")
    (place / "valid.txt").write_text(lines(60, seed=2), encoding="utf-8")


class Clock:
    """A clock that moves a second each time it is looked at."""

    def __init__(self) -> None:
        self.now = itertools.count()

    def monotonic(self) -> float:
        return float(next(self.now))


def test_metrics():
    by_label = [ClassScore("good", 4, 5, 8), ClassScore("bad one", 1, 2, 2)]
    result = LabelsResult(9, 0, 1, 0.0, by_label, averages(by_label))
    values = {"precision": 0.5, "recall@3": 5 / 7, "f1": 10 / 17, "f1:__label__good": 8 / 13,
              "f1:bad one": 0.5, "precision:good": 0.5, "macro_recall": 0.65,
              "macro_f1@2": (8 / 13 + 0.5) / 2, "weighted_recall": 5 / 7}  # fmt: skip
    for name, value in values.items():
        assert TuningMetric.parse(name).of(result, "__label__") == pytest.approx(value)
    assert TuningMetric.parse("recall@3").k == 3
    with pytest.raises(OptionError, match="good"):
        TuningMetric.parse("f1:none").of(result, "__label__")
    for wrong in ("accuracy", "f1@0", "f1@", "f1:", "macro_f1:good"):
        with pytest.raises(OptionError, match="metric"):
            TuningMetric.parse(wrong)


def test_trials_change_free_options_only_and_come_again():
    first = FastTextClassifierConfig(preset="fasttext", dim=20, loss="ova", min_count=2, epochs=7)
    assert free_options(first) == {"learning_rate", "word_ngrams", "minn", "maxn", "bucket"}
    assert propose(0, first, first) == first
    tried = [propose(trial, first, first) for trial in range(60)]
    assert tried == [propose(trial, first, first) for trial in range(60)]
    assert {(c.dim, c.loss, c.min_count, c.epochs) for c in tried} == {(20, "ova", 2, 7)}
    assert len({c.learning_rate for c in tried}) > 10
    assert len({c.word_ngrams for c in tried}) > 3 and len({c.maxn for c in tried}) == 3


def test_without_buckets_no_trial_asks_for_ngrams():
    first = FastTextClassifierConfig(preset="fasttext", bucket=0)
    assert not any(propose(trial, first, first).has_buckets for trial in range(20))


def test_the_best_model_is_kept_and_trials_are_told(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tuning, "time", Clock())
    said = io.StringIO()
    model = FastTextClassifier(preset="fasttext", dim=8, epochs=3, bucket=2_000, workers=1).fit(
        "train.txt",
        validation="valid.txt",
        autotune=60,
        out="model",
        progress=Reporter(stream=said),
    )
    trials = list(model.history)
    assert len(trials) >= 4
    best = max(trials, key=lambda trial: trial["score"])
    assert model.evaluate("valid.txt").f1 == pytest.approx(best["score"])
    assert best["learning_rate"] == model.config.learning_rate
    assert model.config.dim == 8 and model.config.epochs == 3
    assert FastTextClassifier.load("model").config == model.config
    assert "trial 1: learning_rate 0.1" in said.getvalue() and "(best)" in said.getvalue()
    again = FastTextClassifier(model.config).fit("train.txt")
    assert np.array_equal(again.weights.input, model.weights.input)


def test_little_time_still_gives_a_model(place: Path):
    model = FastTextClassifier(preset="fasttext", dim=8, workers=1)
    model.fit(rows(50))  # which may compile kernels
    begun_s = time.process_time()
    model.fit(rows(50), validation=rows(20, seed=2), autotune=1e-3)
    assert len(model.history) == 1 and model.labels
    assert time.process_time() - begun_s < 60


def test_stopping_keeps_the_best_so_far(place: Path, monkeypatch: pytest.MonkeyPatch):
    real, num_trials = tuning._TrialSearch._train, itertools.count(1)

    def train(search, trial, is_first):
        if next(num_trials) == 3:
            raise KeyboardInterrupt
        return real(search, trial, is_first)

    monkeypatch.setattr(tuning._TrialSearch, "_train", train)
    model = FastTextClassifier(preset="fasttext", dim=8, workers=1).fit(
        "train.txt", validation="valid.txt", autotune="1h", out="model"
    )
    assert len(model.history) == 2 and (place / "model" / "sememe.json").exists()


def test_what_does_not_go_with_tuning():
    model = FastTextClassifier(preset="fasttext", dim=8)
    with pytest.raises(OptionError, match="validation"):
        model.fit("train.txt", autotune="5m")
    with pytest.raises(OptionError, match="resumed"):
        model.fit("train.txt", validation="valid.txt", autotune="5m", out="model", resume=True)
    with pytest.raises(OptionError, match="autotune must be a time"):
        model.fit("train.txt", validation="valid.txt", autotune="soon")
    with pytest.raises(OptionError, match="metric"):
        model.fit("train.txt", validation="valid.txt", autotune="5m", metric="accuracy")
