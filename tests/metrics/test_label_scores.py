"""Scores of labels against scikit-learn, on rows with ties, one class, and none at all."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.metrics import (
    Reliability,
    accuracy,
    averages,
    binary_f1,
    calibration_text,
    class_scores,
    class_table,
    confusion_matrix,
    f1,
    label_set_scores,
    matthews,
    pearson,
    spearman,
)

sklearn = pytest.importorskip("sklearn.metrics")

LABELS = st.sampled_from(["neutral", "好", "1", "entailment"])
ROWS = st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=40)
METRICS = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))


@settings(deadline=None)
@given(ROWS)
def test_scores_equal_scikit_learns(rows: list[tuple[str, str]]) -> None:
    gold, predicted = (list(column) for column in zip(*rows, strict=True))
    assert accuracy(gold, predicted) == pytest.approx(sklearn.accuracy_score(gold, predicted))
    confusion = confusion_matrix(gold, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of classes that were not predicted
        np.testing.assert_array_equal(confusion.counts, sklearn.confusion_matrix(gold, predicted))
        for average in ("macro", "micro", "weighted"):
            theirs = sklearn.f1_score(gold, predicted, average=average, zero_division=0)
            assert f1(gold, predicted, average) == pytest.approx(theirs)
        for positive in {*gold, *predicted}:
            theirs = sklearn.f1_score(
                [g == positive for g in gold], [p == positive for p in predicted], zero_division=0
            )
            assert binary_f1(gold, predicted, positive) == pytest.approx(theirs)
        assert matthews(gold, predicted) == pytest.approx(
            sklearn.matthews_corrcoef(gold, predicted)
        )
        theirs = sklearn.precision_recall_fscore_support(gold, predicted, zero_division=0)
        ours = [
            (one.precision, one.recall, one.f1, one.num_true) for one in class_scores(confusion)
        ]
        means = averages(class_scores(confusion))
        for average, own in means.items():
            theirs_of = sklearn.precision_recall_fscore_support(
                gold, predicted, average=average, zero_division=0
            )
            assert [*own.values()] == pytest.approx(theirs_of[:3])
    np.testing.assert_allclose(np.array(ours).T, theirs)


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_scores_of_label_sets_equal_scikit_learns(num: int, size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    gold, predicted = random.random((2, num, size)) < random.choice([0.1, 0.5])
    names = [f"标签{index}" for index in range(size)]
    scores = label_set_scores(gold, predicted, names)
    occurs = np.flatnonzero((gold | predicted).any(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn.precision_recall_fscore_support(gold, predicted, zero_division=0)
        for average, own in averages(scores).items():
            wanted = sklearn.precision_recall_fscore_support(
                gold, predicted, labels=occurs, average=average, zero_division=0
            )
            assert [*own.values()] == pytest.approx(wanted[:3] if len(occurs) else (0, 0, 0))
    ours = [(one.precision, one.recall, one.f1, one.num_true) for one in scores]
    np.testing.assert_allclose(np.array(ours).T, theirs)
    headings, rows = class_table([one.to_dict() for one in scores], averages(scores))
    assert len(rows) == size + 3 and {len(row) for row in rows} == {len(headings)}


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_brier_score_and_log_loss_equal_scikit_learns(num: int, size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    chances, true = random.dirichlet(np.ones(size), num), random.integers(size, size=num)
    is_true = true[:, None] == np.arange(size)
    whole, parts = Reliability(), Reliability()
    whole.add(chances, is_true, is_one=True)
    for own in np.array_split(np.arange(num), 3):
        parts.add(chances[own], is_true[own], is_one=True)
    found = whole.to_dict()
    assert found == pytest.approx(parts.to_dict())
    assert found["log_loss"] == pytest.approx(sklearn.log_loss(true, chances, labels=range(size)))
    assert found["brier"] == pytest.approx(((chances - is_true) ** 2).sum(1).mean())
    binary = Reliability()
    binary.add(chances[:, :1], is_true[:, :1], is_one=False)
    theirs = sklearn.brier_score_loss(is_true[:, 0], chances[:, 0], pos_label=True)
    assert binary.to_dict()["brier"] == pytest.approx(theirs)
    theirs = sklearn.log_loss(is_true[:, 0], chances[:, 0], labels=[False, True])
    assert binary.to_dict()["log_loss"] == pytest.approx(theirs)


def test_calibration_error_by_hand() -> None:
    """Ten rows said with 0.9 of which six are right, ten with 0.6 of which all are."""
    chances = np.array([[0.9, 0.1]] * 10 + [[0.4, 0.6]] * 10)
    is_true = np.array([[n < 6, n >= 6] for n in range(10)] + [[False, True]] * 10)
    found = Reliability()
    found.add(chances, is_true, is_one=True)
    assert found.to_dict()["ece"] == pytest.approx(0.5 * 0.3 + 0.5 * 0.4)
    perfect = Reliability()
    perfect.add(np.eye(3), np.eye(3, dtype=bool), is_one=True)
    assert perfect.to_dict() == {"ece": 0.0, "brier": 0.0, "log_loss": 0.0}
    assert calibration_text(perfect.to_dict()).startswith("calibration error 0.0000, Brier")


@settings(deadline=None)
@given(st.lists(st.tuples(METRICS, METRICS), min_size=2, max_size=30))
def test_correlations_equal_scipys(rows: list[tuple[float, float]]) -> None:
    from scipy import stats

    x, y = np.array(rows).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(pearson(x, y)) and math.isnan(spearman(x, y))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-9)
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-9)


def test_one_class_on_either_side_has_no_correlation() -> None:
    assert matthews(["a"] * 5, ["a"] * 5) == 0
    assert matthews(["a", "b"], ["a", "a"]) == 0
    assert matthews([0, 1, 1], [0, 1, 1]) == pytest.approx(1)
    assert matthews([0, 1], [1, 0]) == pytest.approx(-1)


def test_no_rows_have_no_score() -> None:
    for score in (accuracy, f1, matthews):
        assert math.isnan(score([], []))
    assert math.isnan(binary_f1([], [], "1"))


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_label_is_refused(missing: object) -> None:
    for score in (accuracy, f1, matthews):
        with pytest.raises(ValueError, match="label 1 is missing"):
            score(["a", "b"], ["a", missing])


def test_columns_of_other_lengths_and_unlisted_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="2 gold labels and 1"):
        accuracy(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="not listed"):
        confusion_matrix(["a"], ["b"], labels=["a"])
    with pytest.raises(ValueError, match="twice"):
        confusion_matrix(["a"], ["a"], labels=["a", "a"])
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="NaN or infinite"):
            spearman([1.0, 2.0, value], [1.0, 2.0, 3.0])


def test_the_order_of_labels_can_be_given() -> None:
    confusion = confusion_matrix(["yes", "no"], ["yes", "yes"], labels=["yes", "no", "maybe"])
    assert confusion.counts.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
