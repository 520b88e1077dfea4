"""Intervals of scores over rows: the fast way draws what the plain one draws."""

import numpy as np
import pytest

from sememe.metrics import proportion_interval, spearman_interval
from sememe.metrics.by_name import METRICS, interval_of, score_all


def _plain(metric, gold, said, positive="1", num_resamples=400):
    """Draw the rows again and score them, the slow and obvious way."""
    random = np.random.default_rng(5)
    scores = []
    for _ in range(num_resamples):
        picks = random.integers(0, len(gold), len(gold))
        own = [gold[pick] for pick in picks], [said[pick] for pick in picks]
        scores.append(METRICS[metric].score(*own, positive))
    return np.nanpercentile(scores, [2.5, 97.5])


def _labels(num=300):
    random = np.random.default_rng(3)
    gold = [str(label) for label in random.integers(0, 3, num)]
    said = [own if random.random() < 0.7 else str(random.integers(0, 3)) for own in gold]
    return gold, said


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "weighted_f1", "binary_f1", "matthews"])
def test_intervals_of_labels_equal_plain_resampling(metric):
    gold, said = _labels()
    found = interval_of(metric, gold, said)
    np.testing.assert_allclose(found, _plain(metric, gold, said), atol=0.02)
    assert found.low < score_all([metric], gold, said, "1")[metric] < found.high
    assert interval_of(metric, gold, said) == found


def test_intervals_of_label_sets_tags_answers_and_numbers():
    gold, said = _labels(200)
    sets = [[own, "x"] if own == "0" else [own] for own in gold]
    said_sets = [[own] for own in said]
    tags = [["B-A" if own == "0" else "O", f"S-{own}"] for own in gold]
    said_tags = [["B-A" if own == "0" else "O", f"S-{own}"] for own in said]
    answers = [[f"the {own}"] for own in gold]
    for metric, own, other in (
        ("micro_f1", sets, said_sets), ("macro_f1", sets, said_sets), ("tag_f1", tags, said_tags),
        ("entity_f1", tags, said_tags), ("squad2_f1", answers, said),
    ):  # fmt: skip
        found = interval_of(metric, own, other)
        np.testing.assert_allclose(found, _plain(metric, own, other), atol=0.03)
    random = np.random.default_rng(1)
    x = random.normal(size=300)
    y = x + random.normal(size=300)
    np.testing.assert_allclose(interval_of("spearman", x, y), spearman_interval(x, y), atol=0.02)


def test_the_interval_of_an_accuracy_is_binomial():
    gold, said = _labels(1_000)
    num_right = sum(own == other for own, other in zip(gold, said, strict=True))
    np.testing.assert_allclose(
        interval_of("accuracy", gold, said), proportion_interval(num_right, 1_000), atol=0.003
    )


def test_what_has_no_interval():
    assert not np.isfinite(interval_of("accuracy", ["a"], ["a"])).any()
    assert not np.isfinite(interval_of("cmrc_f1", [["好"], []], ["好", "好"])).any()
    assert not np.isfinite(interval_of("pearson", [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])).any()
