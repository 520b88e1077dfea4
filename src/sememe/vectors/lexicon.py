"""The words that texts were found to hold, numbered as they come, with their vectors. D numbers.

It grows and never shrinks: a word keeps its number. A word without a vector has one too, so that
it can be told from others and learn one; its row is zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from sememe.vectors.onehot import OneHotVectors
from sememe.vectors.subwords import SubwordVectors
from sememe.vectors.wordvectors import WordVectors

# One-hot rows times a matrix that is learned are rows of that matrix: it has so many columns.
ONE_HOT_WIDTH = 128


class Lexicon:
    """Words by number, over word vectors of any kind."""

    def __init__(self, vectors: WordVectors, words: Iterable[str] = ()) -> None:
        self.vectors = vectors
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}
        for word in words:
            self.number(word)

    def __len__(self) -> int:
        return len(self.words)

    def __deepcopy__(self, memo: Any) -> Lexicon:
        """Itself: copies of a network share their words."""
        return self

    @property
    def is_one_hot(self) -> bool:
        """Whether the vectors say nothing but which word it is."""
        return isinstance(self.vectors, OneHotVectors)

    @property
    def dim(self) -> int:
        """Numbers in a row."""
        return ONE_HOT_WIDTH if self.is_one_hot else self.vectors.dim

    def has_vector(self, word: str) -> bool:
        """Whether a word has a vector: it was seen, or has sub-words."""
        if word in self.vectors:
            return True
        return isinstance(self.vectors, SubwordVectors) and self.vectors.has_subwords

    def has_own(self, word: str) -> bool:
        """Whether the vectors were made with this very word."""
        return word in self.vectors

    def spelling(self, word: str) -> str:
        """The word as the vectors know it: as it is written, or else in lower case."""
        if word in self.vectors or word.lower() not in self.vectors:
            return word
        return word.lower()

    def number(self, word: str) -> int:
        """The number of a word, a new one if it is new."""
        found = self._numbers.get(word)
        if found is None:
            found = self._numbers[word] = len(self.words)
            self.words.append(word)
        return found

    def rows(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The vectors (…, D) of the words of these numbers, and which of them have one."""
        words = self.words[first:last]
        is_known = np.array([self.has_vector(word) for word in words], np.bool_)
        rows = np.zeros((len(words), self.dim), np.float32)
        if not self.is_one_hot and is_known.any():
            rows[is_known] = self.vectors[
                [word for word, known in zip(words, is_known, strict=True) if known]
            ]
        return rows, is_known

    def fingerprint(self) -> str:
        """A hash of the words so far and of their vectors."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update("\n".join(self.words).encode("utf-8", "surrogatepass"))
        rows, is_known = self.rows(0, len(self))
        digest.update(rows.tobytes() + is_known.tobytes())
        return digest.hexdigest()


class WrittenLexicon(Lexicon):
    """Words as they are written, for what reads their characters; vectors may stand beside.

    Words that differ in case are two words here, whatever the vectors know of them.
    """

    def __init__(self, vectors: WordVectors | None, words: Iterable[str] = ()) -> None:
        self.has_vectors = vectors is not None
        super().__init__(vectors, words)  # type: ignore[arg-type]

    @property
    def dim(self) -> int:
        """Numbers in a row; none where no vectors are given."""
        return super().dim if self.has_vectors else 0

    def spelling(self, word: str) -> str:
        """The word itself."""
        return word

    def has_own(self, word: str) -> bool:
        """Whether there are vectors that were made with this very word."""
        return self.has_vectors and super().has_own(word)

    def rows(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The vectors (…, D) of the words of these numbers, and which of them have one.

        A word that has none in its own case has that of the same word in lower case.
        """
        words = self.words[first:last]
        if not self.has_vectors:
            return np.zeros((len(words), 0), np.float32), np.zeros(len(words), np.bool_)
        known = Lexicon(self.vectors)
        numbers = [known.number(known.spelling(word)) for word in words]
        rows, is_known = known.rows(0, len(known))
        return rows[numbers], is_known[numbers]
