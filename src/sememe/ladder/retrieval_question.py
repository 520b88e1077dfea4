"""Retrieval: is the body of a text found by its summary? Mean vectors of words, compared by cosine.

In the built-in corpus queries are the summaries of held-out docstrings and documents their bodies;
in other texts they are the first sentences of held-out documents and what follows. N texts, D
dimensions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import diags

from sememe.errors import InputError
from sememe.examples.docstring_tasks import docstring_pairs
from sememe.ladder import heads
from sememe.ladder.reading import (
    NO_VECTORS,
    Reader,
    RungAnswer,
    RungModel,
    cut,
    percent_bounds,
)
from sememe.ladder.results import Column
from sememe.ladder.sentence_questions import read_words, sizes_of
from sememe.ladder.text import LadderText
from sememe.metrics import mean_interval
from sememe.metrics.retrieval import ndcg
from sememe.search.lexical import BM25

_FEWEST = 24  # pairs
_MOST_CHARACTERS = 400  # of a body, so that this task takes no longer than the others
_MOST_SENTENCES = 5


class RetrievalQuestion:
    """Finds the body of each summary among those of all, without training."""

    def __init__(self, text: LadderText, pairs: Sequence[tuple[str, str]]) -> None:
        self._settings = text.settings
        self.queries, self.bodies = [own for own, _ in pairs], [own for _, own in pairs]
        found = BM25.build(self.bodies, text.settings).search(self.queries, len(pairs))
        by_words = [dict(zip(ids.tolist(), scores.tolist(), strict=True)) for ids, scores in found]
        self.task = Column(
            name="retrieval", title="retrieval", group="sentences",
            what="Which text belongs to this summary, among all of them?"
            if text.is_built_in
            else "Which text continues this sentence, among all of them?",
            metric="nDCG@10",
            baselines={
                "chance": round(100 * _chance(len(pairs)), 1),
                "BM25": round(100 * float(self._scores(by_words).mean()), 1),
            },
            num_test=len(pairs), how="cosine of mean vectors of words, no training",
        )  # fmt: skip

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Rank all bodies by the cosine with each summary."""
        if rung.reader is None:
            return RungAnswer(why=NO_VECTORS)
        queries_ND, bodies_ND = (self._vectors(rung.reader, own) for own in self._texts)
        cosines_NN = queries_ND @ bodies_ND.T
        if not isinstance(cosines_NN, np.ndarray):
            cosines_NN = cosines_NN.toarray()
        scores = self._scores([dict(enumerate(own)) for own in cosines_NN.tolist()])
        interval = percent_bounds(mean_interval(scores))
        return RungAnswer([100 * float(scores.mean())], len(scores), interval=interval)

    @property
    def _texts(self) -> tuple[list[str], list[str]]:
        return self.queries, self.bodies

    def _vectors(self, reader: Reader, texts: Sequence[str]) -> Any:
        """A unit vector for each text; contextual ones are standardized first, as for words."""
        words = cut(texts, self._settings)
        rows_ND = heads.pooled(read_words(reader, words), sizes_of(words))
        if reader.is_contextual:
            spread_D = rows_ND.std(0)
            rows_ND = (rows_ND - rows_ND.mean(0)) / np.where(spread_D > 1e-9, spread_D, 1.0)
        if isinstance(rows_ND, np.ndarray):
            return rows_ND / np.maximum(np.linalg.norm(rows_ND, axis=1, keepdims=True), 1e-9)
        norms = np.sqrt(np.asarray(rows_ND.multiply(rows_ND).sum(axis=1)).ravel())
        return diags(1 / np.maximum(norms, 1e-9)) @ rows_ND

    def _scores(self, found: Sequence[dict[int, float]]) -> np.ndarray:
        # The same summary twice has two right bodies.
        right = {query: set[int]() for query in self.queries}
        for number, query in enumerate(self.queries):
            right[query].add(number)
        run = {
            str(number): {str(own): score for own, score in scores.items()}
            for number, scores in enumerate(found)
        }
        judged = {
            str(number): {str(own): 1 for own in right[query]}
            for number, query in enumerate(self.queries)
        }
        return ndcg(run, judged, 10)


def _chance(num: int) -> float:
    """The expected nDCG@10 of a random order with one relevant text."""
    return float((1 / np.log2(np.arange(2, 2 + min(10, num)))).sum()) / num


def retrieval_pairs(
    text: LadderText, documents: Sequence[Sequence[str]], num: int
) -> list[tuple[str, str]]:
    """Up to `num` pairs of a query and its text; none if there are too few.

    `documents` are the sentences of held-out documents, for texts other than the built-in one.
    """
    if text.is_built_in:
        try:
            rows = docstring_pairs("test", packages=text.packages, limit=num)
        except InputError:  # no test module of these packages has one
            return []
        pairs = [(row.text, (row.second or "")[:_MOST_CHARACTERS]) for row in rows]
    else:
        whole = [own for own in documents if len(own) > 2]
        pairs = [(own[0], " ".join(own[1 : 1 + _MOST_SENTENCES])) for own in whole]
        pairs = [
            (query, body[:_MOST_CHARACTERS])
            for query, body in dict(pairs).items()
            if query not in body
        ][:num]
    return pairs if len(pairs) >= _FEWEST else []
