"""Scores from fewer than 30 questions are marked wherever `sememe evaluate` shows them."""

from __future__ import annotations

import pytest

from sememe.evaluation.senses.results import SenseScore, SensesResult, WordScore
from sememe.metrics import Interval, averages
from sememe.models.fasttext.classifier.prediction import LabelsResult
from sememe.tasks.scores import Scores


@pytest.mark.parametrize(("num", "is_few"), [(29, True), (30, False)])
def test_scores_of_labels_say_that_their_rows_are_few(num: int, is_few: bool) -> None:
    task = Scores(metrics={"accuracy": 0.5}, main_metric="accuracy", num_rows=num, num_skipped=2)
    labels = LabelsResult(num, 0, 1, 0.0, [], averages([]))
    for remark in (task.remark, labels.remark):
        assert (f"only {num} rows" in remark) == is_few
    assert "2 bad rows were left out." in task.remark
    assert labels.remark or not is_few


@pytest.mark.parametrize(("num", "is_few"), [(29, True), (30, False)])
def test_scores_of_senses_are_marked(num: int, is_few: bool) -> None:
    score = SenseScore(
        set="mine", name="layer 1", role="layer", is_last=True, nearest=0.75,
        interval=Interval(0.5, 1.0), chance=0.5, auc=0.6, num_words=2, num_occurrences=40,
        words=[WordScore("bank", 0.5, 0.5, 0.5, 10), WordScore("bat", 1.0, 0.5, 0.7, num - 10)],
    )  # fmt: skip
    result = SensesResult(model="m", kind="bert", scores=[score], seed=1)
    assert ("*75.0" in str(result)) == ("fewer than 30" in str(result)) == is_few
    assert result.to_dict()["scores"][0]["few_questions"] == is_few
