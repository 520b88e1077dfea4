"""Scores of rankings: a run (query: document: score) and judgments (query: document: relevance).

Every function returns one score per query of the judgments, in their order; the score of a system
is the mean. As in trec_eval and ir-measures, a query that the run lacks scores 0, documents without
a judgment are irrelevant, and results of equal score are ordered by descending id.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

Run = Mapping[str, Mapping[str, float]]
Judgments = Mapping[str, Mapping[str, int]]


class Ranking(NamedTuple):
    """The relevance of a query's results from the first on, and of all its relevant documents."""

    relevances: np.ndarray
    ideal: np.ndarray  # descending, all above 0


def _rankings(run: Run, judgments: Judgments) -> Iterator[Ranking]:
    for query, judged in judgments.items():
        found = run.get(query, {})
        # trec_eval reads scores in single precision: what is equal there is a tie.
        scores = dict(zip(found, np.fromiter(found.values(), np.float32).tolist(), strict=True))
        order = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
        relevances = np.array([max(0, judged.get(document, 0)) for document in order], np.float64)
        ideal = sorted((one for one in judged.values() if one > 0), reverse=True)
        yield Ranking(relevances, np.array(ideal, np.float64))


def _gain(relevances: np.ndarray, k: int) -> float:
    own = relevances[:k]
    return float((own / np.log2(np.arange(2, len(own) + 2))).sum())


def _ndcg(ranking: Ranking, k: int) -> float:
    best = _gain(ranking.ideal, k)
    return _gain(ranking.relevances, k) / best if best else 0.0


def _recall(ranking: Ranking, k: int) -> float:
    num_relevant = len(ranking.ideal)
    return float((ranking.relevances[:k] > 0).sum()) / num_relevant if num_relevant else 0.0


def _reciprocal_rank(ranking: Ranking, k: int) -> float:
    ranks = np.flatnonzero(ranking.relevances[:k] > 0)
    return 1.0 / float(ranks[0] + 1) if len(ranks) else 0.0


def _average_precision(ranking: Ranking, _: int = 0) -> float:
    ranks = np.flatnonzero(ranking.relevances > 0) + 1
    precisions = np.arange(1, len(ranks) + 1) / ranks
    return float(precisions.sum()) / len(ranking.ideal) if len(ranking.ideal) else 0.0


def _each(
    run: Run, judgments: Judgments, score: Callable[[Ranking, int], float], k: int
) -> np.ndarray:
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    return np.array([score(ranking, k) for ranking in _rankings(run, judgments)])


def ndcg(run: Run, judgments: Judgments, k: int = 10) -> np.ndarray:
    """Normalized discounted cumulative gain of the first k results; the gain is the relevance."""
    return _each(run, judgments, _ndcg, k)


def recall(run: Run, judgments: Judgments, k: int = 100) -> np.ndarray:
    """Fraction of the relevant documents among the first k results."""
    return _each(run, judgments, _recall, k)


def reciprocal_rank(run: Run, judgments: Judgments, k: int = 10) -> np.ndarray:
    """One divided by the rank of the first relevant result; 0 if none is among the first k."""
    return _each(run, judgments, _reciprocal_rank, k)


def average_precision(run: Run, judgments: Judgments) -> np.ndarray:
    """Mean precision at the ranks of all relevant documents; those not found count 0."""
    return _each(run, judgments, _average_precision, 1)


# The metrics that the field reports, with their names.
_REPORTED: dict[str, tuple[Callable[[Ranking, int], float], int]] = {
    "nDCG@10": (_ndcg, 10),
    "Recall@100": (_recall, 100),
    "MRR@10": (_reciprocal_rank, 10),
    "MAP": (_average_precision, 1),
}


def score_rankings(rankings: Iterable[Ranking]) -> dict[str, np.ndarray]:
    """nDCG@10, Recall@100, MRR@10 and MAP of every ranking."""
    rows = [[score(ranking, k) for score, k in _REPORTED.values()] for ranking in rankings]
    columns = np.array(rows, np.float64).reshape(-1, len(_REPORTED)).T
    return dict(zip(_REPORTED, columns, strict=True))


def retrieval_scores(run: Run, judgments: Judgments) -> dict[str, np.ndarray]:
    """nDCG@10, Recall@100, MRR@10 and MAP of every query."""
    return score_rankings(_rankings(run, judgments))
