"""One-hot vectors: a 1 in a place of its own for each word, without a matrix of V × V numbers.

The baseline that cannot express similarity: two words have the cosine 0, a word and itself 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from sememe.errors import OptionError
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import search
from sememe.vectors.index import ApproximateIndex
from sememe.vectors.queries import Query, Terms, make_query
from sememe.vectors.wordvectors import Neighbor, WordVectors, _check_num

KIND = "onehot"
_SEPARATORS = re.compile(r"[\s,;|]+")
# Enough of the most frequent words to fill every list of neighbors that an evaluation asks for.
_NUM_FIRST = 100


class OneHotVectors(WordVectors):
    """Words that are all equally far from each other; equal scores come in the order of ids."""

    def __init__(self, words: Sequence[str] | Vocabulary) -> None:
        self.vocabulary = words if isinstance(words, Vocabulary) else Vocabulary.from_words(words)
        if not len(self.vocabulary):
            raise OptionError("One-hot vectors need at least one word.")
        self._start()

    @property
    def dim(self) -> int:
        """Numbers in a vector: as many as there are words."""
        return len(self.vocabulary)

    @property
    def vectors(self) -> np.ndarray:
        """The identity matrix, (V, V), read-only: all rows share one line of 2 V numbers."""
        size = len(self.vocabulary)
        line = np.zeros(2 * size - 1, np.float32)
        line[size - 1] = 1.0
        # Row i is the line seen from place V - 1 - i on: its 1 comes at place i.
        return np.lib.stride_tricks.sliding_window_view(line, size)[::-1]

    def _inverse(self) -> np.ndarray:
        return np.ones(len(self), np.float32)

    def _best(
        self, scores_V: np.ndarray, hidden: Iterable[int], num: int, restrict_vocab: int | None
    ) -> list[Neighbor]:
        _check_num(num)
        if restrict_vocab is not None:
            _check_num(restrict_vocab, "restrict_vocab")
        hidden, scores = list(hidden), scores_V[:restrict_vocab]
        found = search.best(np.arange(len(scores)), scores, num + len(hidden))
        return self._named(*found, hidden, num)

    def _search(
        self,
        queries: list[Query],
        num: int,
        restrict_vocab: int | None,
        include_inputs: bool,
        approximate: bool = False,
    ) -> list[list[Neighbor]]:
        if not queries:
            raise OptionError("Give at least one word or vector to search with.")
        # The identity times a vector is the vector: its numbers are the cosines.
        return [
            self._best(query.direction, () if include_inputs else query.ids, num, restrict_vocab)
            for query in queries
        ]

    def neighbors_by_product(
        self,
        positive: Terms,
        negative: Terms | None = None,
        *,
        num: int = 10,
        restrict_vocab: int | None = None,
        include_inputs: bool = False,
    ) -> list[Neighbor]:
        """Find the words of largest 3CosMul: a product of cosines instead of a sum."""
        query = make_query(self, positive, negative, normalize=True)
        if not np.isin(query.weights, (-1.0, 1.0)).all():
            raise OptionError("3CosMul takes no weights.")
        shifted_TV = (1 + search.unit_rows(query.terms)) / 2
        scores_V = search.multiply(shifted_TV, query.weights > 0)
        return self._best(scores_V, () if include_inputs else query.ids, num, restrict_vocab)

    def similarities(
        self, word: str | np.ndarray, others: Sequence[str] | None = None
    ) -> np.ndarray:
        """The cosines of `word` with the words `others`, or with every word in the order of ids."""
        unit_V = make_query(self, [word], None, normalize=True).direction
        if others is None:
            return unit_V
        return unit_V[np.array(self.vocabulary.ids(others), np.int64)]

    def subset(self, words: Iterable[str]) -> WordVectors:
        """These words alone, in this order, in as many dimensions; their cosines are the same."""
        if isinstance(words, str):
            raise OptionError("subset expects a list of words, not one string.")
        kept = list(dict.fromkeys(words))
        ids = self.vocabulary.ids(kept)
        return OneHotVectors(Vocabulary.from_words(kept, self.vocabulary.counts[ids]))

    def normalized(self) -> WordVectors:
        """The same vectors: their length is 1 already."""
        return self

    def index(self) -> ApproximateIndex:
        """Refuse: there is nothing near anything."""
        raise OptionError("One-hot vectors have no index: all words are equally far apart.")

    def condensed(self, texts: Iterable[str], limit: int | None = None) -> WordVectors:
        """Vectors of few words that answer every question about the words of `texts` the same.

        Kept are those words in every spelling of case, and the most frequent ones, which win
        where all others are alike. `limit` leaves out all words behind that many first ones.
        """
        asked = {part.upper() for text in texts for part in _SEPARATORS.split(text)}
        first = min(len(self), limit or len(self))
        kept = [
            word_id
            for word_id, word in enumerate(self.vocabulary[:first])
            if word_id < _NUM_FIRST or word.upper() in asked
        ]
        words = [self.vocabulary[word_id] for word_id in kept]
        rows = np.eye(len(words), dtype=np.float32)
        return WordVectors(words, rows, self.vocabulary.counts[kept])
