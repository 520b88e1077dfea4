"""One-hot vectors: a single 1 per word, without storing a V × V matrix.

The baseline that cannot express similarity: two words have the cosine 0, a word and itself 1.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from sememe.errors import OptionError
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import search
from sememe.vectors.search import ApproximateIndex, Found, make_query
from sememe.vectors.wordvectors import WordVectors

KIND = "onehot"
_SEPARATORS = re.compile(r"[\s,;|]+")
# Enough of the most frequent words to fill every list of neighbors that an evaluation needs.
_NUM_FIRST = 100


class OneHotVectors(WordVectors):
    """Words that are all equally far from each other; ties are in the order of ids."""

    is_one_hot = True

    def __init__(self, words: Sequence[str] | Vocabulary) -> None:
        self.vocabulary = words if isinstance(words, Vocabulary) else Vocabulary.from_words(words)
        if not len(self.vocabulary):
            raise OptionError("One-hot vectors need at least one word.")
        self._start()

    @property
    def dim(self) -> int:
        """Dimensions of a vector: as many as there are words."""
        return len(self.vocabulary)

    @property
    def vectors(self) -> np.ndarray:
        """The identity matrix, (V, V), read-only: all rows are views of one array of 2 V floats."""
        size = len(self.vocabulary)
        line = np.zeros(2 * size - 1, np.float32)
        line[size - 1] = 1.0
        # Row i is the line seen from place V - 1 - i on: its 1 comes at place i.
        return np.lib.stride_tricks.sliding_window_view(line, size)[::-1]

    def _nearest(self, units_QD: np.ndarray, num: int, restrict_vocab: int | None) -> list[Found]:
        # The identity times a vector is the vector: its numbers are the cosines.
        scores_QV = units_QD[:, :restrict_vocab]
        return [search.best(np.arange(len(scores)), scores, num) for scores in scores_QV]

    def _nearest_by_product(
        self, units_TD: np.ndarray, is_positive: np.ndarray, num: int, restrict_vocab: int | None
    ) -> Found:
        scores = search.multiply((1 + units_TD[:, :restrict_vocab]) / 2, is_positive)
        return search.best(np.arange(len(scores)), scores, num)

    def similarities(
        self, word: str | np.ndarray, others: Sequence[str] | None = None
    ) -> np.ndarray:
        """The cosines of `word` with the words `others`, or with every word in the order of ids."""
        unit_V = make_query(self, [word], None, normalize=True).direction
        return unit_V if others is None else unit_V[np.array(self.vocabulary.ids(others), np.int64)]

    def subset(self, words: Iterable[str]) -> WordVectors:
        """Only these words, in this order, in as many dimensions; their cosines are the same."""
        if isinstance(words, str):
            raise OptionError("subset expects a list of words, not one string.")
        kept = list(dict.fromkeys(words))
        ids = self.vocabulary.ids(kept)
        return OneHotVectors(Vocabulary.from_words(kept, self.vocabulary.counts[ids]))

    def normalized(self) -> WordVectors:
        """The same vectors, which already have unit length."""
        return self

    def index(self) -> ApproximateIndex:
        """Raise an error: one-hot vectors have no near neighbors."""
        raise OptionError("One-hot vectors have no index: all words are equally far apart.")

    def condensed(self, texts: Iterable[str], limit: int | None = None) -> WordVectors:
        """A smaller set of vectors with the same results for the words of `texts`.

        It has those words in every spelling of case, and the most frequent ones, which win ties.
        `limit` drops all words after that many first ones.
        """
        asked = {part.upper() for text in texts for part in _SEPARATORS.split(text)}
        kept = [
            word_id
            for word_id, word in enumerate(self.vocabulary[: min(len(self), limit or len(self))])
            if word_id < _NUM_FIRST or word.upper() in asked
        ]
        words = [self.vocabulary[word_id] for word_id in kept]
        rows = np.eye(len(words), dtype=np.float32)
        return WordVectors(words, rows, self.vocabulary.counts[kept])
