"""Retrieval metrics: by hand, and equal to ir-measures on random runs and on BM25's."""

import math
import random

import numpy as np
import pytest

from sememe.metrics.retrieval import (
    average_precision,
    ndcg,
    recall,
    reciprocal_rank,
    retrieval_scores,
)

JUDGED = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"d": 1}, "q3": {"e": 0}, "q4": {"f": 1}}
RUN = {"q1": {"c": 3.0, "b": 2.0, "x": 1.0, "a": 0.5}, "q2": {"d": 1.0}, "q3": {"e": 1.0}}


def test_scores_by_hand():
    ideal = 2 + 1 / math.log2(3)
    assert ndcg(RUN, JUDGED) == pytest.approx(
        [(1 / math.log2(3) + 2 / math.log2(5)) / ideal, 1, 0, 0]
    )
    assert ndcg(RUN, JUDGED, k=2)[0] == pytest.approx((1 / math.log2(3)) / ideal)
    assert recall(RUN, JUDGED, k=2).tolist() == [0.5, 1, 0, 0]
    assert reciprocal_rank(RUN, JUDGED).tolist() == [0.5, 1, 0, 0]
    assert reciprocal_rank(RUN, JUDGED, k=1).tolist() == [0, 1, 0, 0]
    assert average_precision(RUN, JUDGED).tolist() == [(1 / 2 + 2 / 4) / 2, 1, 0, 0]
    with pytest.raises(ValueError, match="at least 1"):
        ndcg(RUN, JUDGED, k=0)
    assert all(len(scores) == 0 for scores in retrieval_scores({}, {}).values())


def test_equal_scores_are_ordered_by_descending_id():
    run = {"q": {"a": 1.0, "b": 1.0, "c": 1.0 + 1e-12}}
    assert reciprocal_rank(run, {"q": {"c": 1}}).tolist() == [1]
    assert reciprocal_rank(run, {"q": {"b": 1}}).tolist() == [0.5]
    assert reciprocal_rank(run, {"q": {"a": 1}})[0] == pytest.approx(1 / 3)


def drawn(seed: int) -> tuple[dict, dict]:
    """Judgments of several grades and a run with ties, missing queries and unknown documents."""
    rng = random.Random(seed)
    documents = [f"d{number}" for number in range(rng.choice([5, 40, 400]))]
    judged, run = {}, {}
    for number in range(30):
        chosen = rng.sample(documents, rng.randint(1, min(15, len(documents))))
        judged[f"q{number}"] = {document: rng.choice([-1, 0, 1, 1, 2, 3]) for document in chosen}
        if rng.random() < 0.8:
            found = rng.sample(documents, rng.randint(1, len(documents)))
            steps = rng.choice([3, 10, 10**9])  # few different scores: many ties
            run[f"q{number}"] = {own: rng.randrange(steps) / 7 - 1.0 for own in found}
    run["unknown"] = {"d1": 1.0}
    return run, judged


def assert_equal_to_ir_measures(run: dict, judged: dict) -> None:
    peer = pytest.importorskip("ir_measures")
    own = retrieval_scores(run, judged)
    places = {query: place for place, query in enumerate(judged)}
    names = {peer.nDCG @ 10: "nDCG@10", peer.R @ 100: "Recall@100", peer.AP: "MAP"}
    num_compared = 0
    for found in peer.iter_calc([*names, peer.RR], judged, run):
        # RR@10 of ir-measures is MS MARCO's, which orders ties the other way than all the rest;
        # its RR without a cut is trec_eval's.
        expected = found.value
        if found.measure == peer.RR:
            expected = expected if expected > 0.0999 else 0.0
        mine = own[names.get(found.measure, "MRR@10")][places[found.query_id]]
        assert mine == pytest.approx(expected, abs=1e-6), found
        num_compared += 1
    assert num_compared >= 4 * len(run.keys() & judged.keys())
    for measure, name in names.items():
        total = peer.calc_aggregate([measure], judged, run)[measure]
        assert np.mean(own[name]) == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_scores_equal_those_of_ir_measures(seed):
    assert_equal_to_ir_measures(*drawn(seed))


def test_mrr_at_10_equals_ir_measures_without_ties():
    peer = pytest.importorskip("ir_measures")
    run, judged = drawn(3)
    rng = random.Random(1)
    run = {query: {own: rng.random() for own in found} for query, found in run.items()}
    total = peer.calc_aggregate([peer.RR @ 10], judged, run)[peer.RR @ 10]
    assert reciprocal_rank(run, judged).mean() == pytest.approx(total, abs=1e-6)
