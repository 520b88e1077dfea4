"""What tasks refuse, each with one sentence: options, rows, labels, folders, foreign heads."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from quick_tasks import QUICK

from recorded_notes import Notes
from sememe import Classify, Regress
from sememe.errors import ArtifactError, InputError, OptionError, WriteError


@pytest.mark.parametrize(
    ("options", "rows", "part"),
    [
        ({"length": 4_096}, None, "length"),
        ({"lm_weight": 0.5}, None, "needs a GPT"),
        ({"metric": "bleu"}, None, "metric must be one of accuracy"),
        ({"features": "concat-last-four"}, None, "four layers"),
        ({"nothing": 1}, None, "has no option nothing"),
        ({"patience": 2, "keep_best": False}, None, "patience"),
        ({"dropout": 2.0}, None, "dropout"),
        ({}, [("a film", "good")] * 20, "every row has the label"),
        ({}, [], "no rows"),
    ],
)
def test_bad_input_gets_one_sentence(bert, opinions, options, rows, part):
    with pytest.raises((OptionError, InputError), match=f"(?i){part}"):
        Classify(bert, **QUICK | options).fit(opinions if rows is None else rows)


def test_labels_may_be_given_and_others_are_refused(bert, opinions):
    labels = ["good", "bad", "neutral"]
    task = Classify(bert, labels=labels, **QUICK | {"epochs": 1.0}).fit(opinions)
    assert task.labels == labels
    with pytest.raises(InputError, match="great"):
        task.evaluate([("a film", "great")])
    with pytest.raises(InputError, match="bad"):
        Classify(bert, labels=["good", "other"], **QUICK).fit(opinions)
    with pytest.raises(OptionError, match="no labels"):
        Regress(bert, labels=["a"])


def test_models_and_folders_of_other_kinds_are_refused(bert, topics, tmp_path):
    _, folder = topics
    with pytest.raises(ArtifactError, match="nowhere"):
        Classify(tmp_path / "nowhere").fit([("a", "b")])
    with pytest.raises(ArtifactError, match="kind classify, not regress"):
        Regress.load(folder)
    with pytest.raises(ArtifactError, match=r"sememe\.json"):
        Classify.load(tmp_path)
    with pytest.raises(OptionError, match="call fit first"):
        Classify(bert).predict(["a film"])
    with pytest.raises(OptionError, match="not int"):
        Classify(17).fit([("a", "b"), ("c", "d")])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(WriteError, match="choose another name"):
        Classify(bert).fit([("a", "b"), ("c", "d")], out=tmp_path / "full")


def test_a_foreign_head_of_one_number_is_a_score(tmp_path):
    from sememe.models.huggingface.layout import finetuned_for

    config = {"architectures": ["BertForSequenceClassification"]}
    for more, name in (
        ({}, "classify"),
        ({"id2label": {"0": "LABEL_0"}}, "regress"),
        ({"id2label": {"0": "no", "1": "yes"}}, "classify"),
        ({"id2label": {"0": "no", "1": "yes"}, "problem_type": "regression"}, "regress"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | more))
        assert finetuned_for(tmp_path) == name


@pytest.mark.parametrize(("words", "is_told"), [("слово", True), ("film 电影很好看", False)])
def test_rows_that_a_model_cannot_read_are_told_of(bert, words, is_told):
    rows = [(f"{words} {words}", label) for label in ("good", "bad")] * 20
    heard = Notes()
    Classify(bert, **QUICK | {"epochs": 1.0}).fit(rows, progress=heard)
    assert ("unknown to this model" in heard) == is_told
