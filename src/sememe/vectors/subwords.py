"""SubwordVectors: vectors of words that were never seen, from their character n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.tokens.ngrams import FLORET_SEED, Marks, check_options
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.composition import (
    HashedWords,
    NGrams,
    Subwords,
    Table,
    compose_words,
    mean_row,
)
from sememe.vectors.quantized import QuantizedMatrix
from sememe.vectors.wordvectors import WordVectors


class SubwordVectors(WordVectors):
    """Words whose vectors are means of rows; every other word gets one from its n-grams.

    `table` has the rows of the words, then those of the buckets; it may be mapped from a file or
    quantised, and is never copied. `"word" in vectors` says whether a word was seen in training.
    Vectors of all words are made at the first search, on every core.
    """

    def __init__(
        self,
        words: Sequence[str] | Vocabulary,
        table: Table,
        *,
        minn: int = 3,
        maxn: int = 6,
        bucket: int | None = None,
        pruned: np.ndarray | None = None,
        spellings: Vocabulary | None = None,
        limit: int | None = None,
    ) -> None:
        """Take the rows of `words` and of `bucket` n-grams; searches look at `limit` words.

        `pruned` and `spellings` are those of a FastTextFile. Without `bucket` the rows after the
        words are counted.
        """
        vocabulary = Vocabulary.of(words)
        num_rows = len(table) - len(vocabulary)
        bucket = num_rows if bucket is None else bucket
        expected = bucket if pruned is None else len(pruned)
        if not len(vocabulary) or len(table.shape) != 2 or num_rows != expected:
            raise OptionError(
                f"{len(vocabulary):,} words and {expected:,} n-grams do not fit a table of shape "
                f"{tuple(table.shape)}."
            )
        check_options(len(vocabulary), minn, maxn, bucket)
        scheme = NGrams(vocabulary, minn, maxn, bucket, pruned, spellings)
        self._take(vocabulary, table, scheme, limit)

    @classmethod
    def hashed(
        cls,
        table: np.ndarray,
        *,
        minn: int,
        maxn: int,
        hash_count: int,
        seed: int = FLORET_SEED,
        marks: Marks = Marks(),
        words: Sequence[str] | Vocabulary = (),
        limit: int | None = None,
    ) -> SubwordVectors:
        """Take a compact table in the manner of floret: every word is hashed into its rows.

        `words` are those that searches look at; the table itself knows none.
        """
        vocabulary = Vocabulary.of(words)
        if table.ndim != 2 or 0 in table.shape:
            raise OptionError(f"A table of rows was expected, not one of shape {table.shape}.")
        scheme = HashedWords(vocabulary, minn, maxn, len(table), hash_count, seed, marks)
        scheme.rows_of("")  # refuses options that no table could serve
        vectors = cls.__new__(cls)
        vectors._take(vocabulary, table, scheme, limit)
        return vectors

    def with_words(self, words: Sequence[str] | Vocabulary) -> SubwordVectors:
        """The same compact table, searched among other words."""
        if not isinstance(self.subwords, HashedWords):
            raise OptionError("Words with rows of their own cannot be exchanged for others.")
        vocabulary = Vocabulary.of(words)
        vectors = type(self).__new__(type(self))
        vectors._take(vocabulary, self.table, replace(self.subwords, words=vocabulary), None)
        return vectors

    def _take(
        self, vocabulary: Vocabulary, table: Table, subwords: Subwords, limit: int | None
    ) -> None:
        if not isinstance(table, QuantizedMatrix) and table.dtype != np.float32:
            table = np.asarray(table, np.float32)
        self.vocabulary = vocabulary if limit is None else vocabulary.cut(limit)
        self.table, self.subwords = table, subwords
        self._composed: np.ndarray | None = None
        self._start()

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self.table.shape[1])

    @property
    def vectors(self) -> np.ndarray:
        """The vectors of all words (V, D), made when they are first needed."""
        if not len(self.vocabulary):
            raise OptionError("No words to search among: give some with `with_words`.")
        if self._composed is None:
            composed = compose_words(self.subwords, self.table, len(self.vocabulary))
            is_finite = np.isfinite(composed.sum(axis=1))
            if not is_finite.all():
                raise _not_finite(self.vocabulary[int(np.argmin(is_finite))])
            self._composed = composed
        return self._composed

    @property
    def has_subwords(self) -> bool:
        """Whether words outside the vocabulary have vectors."""
        return self.subwords.can_compose

    def __getitem__(self, words: str | Sequence[str]) -> np.ndarray:
        """The vector of a word (D,), or those of several (len, D); copies."""
        if isinstance(words, str):
            return self._vector(words)
        return np.array([self._vector(word) for word in words], np.float32).reshape(-1, self.dim)

    def _vector(self, word: str) -> np.ndarray:
        word_id = self.vocabulary.find(word)
        if word_id < 0 and not self.has_subwords:
            word_id = self.vocabulary.id(word)  # raises, with near spellings
        if word_id >= 0 and self._composed is not None:
            return np.array(self._composed[word_id])
        vector = mean_row(self.table, self.subwords.rows_of(word))
        if not np.isfinite(vector).all():
            raise _not_finite(word)
        return vector

    def __repr__(self) -> str:
        return "Subword" + super().__repr__().removeprefix("Word")


def _not_finite(word: str) -> ArtifactError:
    return ArtifactError(f"The vector of “{word}” has a number that is not finite.")
