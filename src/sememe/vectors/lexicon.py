"""A growing list of the words of texts, over word vectors of any kind. D dimensions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import compress
from typing import Any

import numpy as np

from sememe.vectors.wordvectors import WordVectors

# One-hot rows times a learned matrix are rows of that matrix: it has this many columns.
ONE_HOT_WIDTH = 128


class Lexicon:
    """Words by id, over word vectors of any kind.

    If words are kept as written, for character-based models, spellings that differ in case are
    different words, whatever the vectors know, and there may be no vectors.
    """

    def __init__(
        self, vectors: WordVectors | None, words: Iterable[str] = (), *, is_written: bool = False
    ) -> None:
        self.vectors: WordVectors = vectors  # type: ignore[assignment]
        self.has_vectors, self.is_written = vectors is not None, is_written
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
        """Whether the vectors only identify the word."""
        return self.has_vectors and self.vectors.is_one_hot

    @property
    def dim(self) -> int:
        """Dimensions of a row; 0 without vectors."""
        if self.is_one_hot:
            return ONE_HOT_WIDTH
        return self.vectors.dim if self.has_vectors else 0

    def has_vector(self, word: str) -> bool:
        """Whether a word has a vector: it was seen, or has sub-words."""
        return self.has_vectors and self.vectors.has_vector(word)

    def has_own(self, word: str) -> bool:
        """Whether the vectors have this exact word."""
        return self.has_vectors and word in self.vectors

    def spelling(self, word: str) -> str:
        """The word as written if it is kept so; else its form in the vectors, or in lower case."""
        return word if self.is_written else self.vectors.spelling(word)

    def number(self, word: str) -> int:
        """The id of a word; new words get a new one."""
        found = self._numbers.setdefault(word, len(self.words))
        if found == len(self.words):
            self.words.append(word)
        return found

    def rows(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The vectors (…, D) of the words with these ids, and which of them have one.

        A word as written without a vector gets that of its lower-case form.
        """
        words = self.words[first:last]
        if self.is_written and self.has_vectors:
            words = [self.vectors.spelling(word) for word in words]
        is_known = np.array([self.has_vector(word) for word in words], np.bool_)
        rows = np.zeros((len(words), self.dim), np.float32)
        if not self.is_one_hot and is_known.any():
            rows[is_known] = self.vectors[list(compress(words, is_known))]
        return rows, is_known

    def fingerprint(self) -> str:
        """A hash of the words so far and of their vectors."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update("\n".join(self.words).encode("utf-8", "surrogatepass"))
        rows, is_known = self.rows(0, len(self))
        digest.update(rows.tobytes() + is_known.tobytes())
        return digest.hexdigest()
