"""Rows that grow: blocks of words and vectors in, WordVectors out; of equal words the first."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from sememe.errors import ArtifactError
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.wordvectors import WordVectors

Errors = Literal["strict", "replace"]
# Where a row of a block is in the file, for messages.
Place = Callable[[int], str]


class Rows:
    """A table of at most `limit` rows; damage is an error, or mended when `errors` is replace."""

    def __init__(
        self, path: Path, dim: int, capacity: int, limit: int | None, errors: Errors
    ) -> None:
        self.path, self.dim, self.limit, self.errors = path, dim, limit, errors
        self._matrix = np.empty((max(1, min(capacity, limit or capacity)), dim), np.float32)
        self._ids: dict[bytes, int] = {}
        self.num_read = 0

    @property
    def is_full(self) -> bool:
        """Whether `limit` words are there."""
        return self.limit is not None and len(self._ids) >= self.limit

    def complain(self, message: str) -> None:
        """Stop at damage, or go on with a warning."""
        if self.errors == "strict":
            raise ArtifactError(
                f"{self.path}: {message}; errors=replace reads what can be read "
                "(`sememe convert FROM TO --errors replace`)."
            )
        warnings.warn(f"{self.path}: {message}.", stacklevel=2)

    def add(self, words: list[bytes], rows_BD: np.ndarray, place: Place) -> None:
        """Append a block of rows, except words that are there already."""
        self.num_read += len(words)
        words = self._checked_words(words, place)
        self._check_numbers(words, rows_BD, place)
        kept: list[int] = []
        first = len(self._ids)
        for index, word in enumerate(words):
            next_id = first + len(kept)
            if self._ids.setdefault(word, next_id) == next_id:
                kept.append(index)
                if self.is_full:
                    break
        end = first + len(kept)
        self._reserve(end)
        self._matrix[first:end] = rows_BD if len(kept) == len(rows_BD) else rows_BD[kept]

    def _reserve(self, num_rows: int) -> None:
        if num_rows > len(self._matrix):
            # The operating system moves pages instead of copying them, so this needs no second
            # table; nothing else refers to the first.
            grown = max(num_rows, len(self._matrix) * 5 // 4)
            self._matrix.resize((grown, self.dim), refcheck=False)

    def _checked_words(self, words: list[bytes], place: Place) -> list[bytes]:
        try:
            # No character goes across a line end, so one look at all words is enough.
            b"\n".join(words).decode()
        except UnicodeDecodeError:
            return [self._checked_word(word, index, place) for index, word in enumerate(words)]
        return words

    def _checked_word(self, word: bytes, index: int, place: Place) -> bytes:
        try:
            word.decode()
        except UnicodeDecodeError as error:
            self.complain(f"{place(index)}: the word {word[:40]!r} is not UTF-8 ({error.reason})")
            return word.decode("utf-8", "replace").encode()
        return word

    def _check_numbers(self, words: list[bytes], rows_BD: np.ndarray, place: Place) -> None:
        is_finite_BD = np.isfinite(rows_BD)
        if is_finite_BD.all():
            return
        index = int(np.argmin(is_finite_BD.all(axis=1)))
        word = words[index][:40].decode("utf-8", "replace")
        self.complain(f"{place(index)}: the vector of “{word}” has a number that is not finite")
        rows_BD[~is_finite_BD] = 0

    def finish(self) -> WordVectors:
        """The words and vectors read."""
        if not self._ids:
            raise ArtifactError(f"{self.path} holds no vectors.")
        self._matrix.resize((len(self._ids), self.dim), refcheck=False)
        ends = np.cumsum([len(word) for word in self._ids], dtype=np.int64)
        word_bytes = np.frombuffer(b"".join(self._ids), np.uint8)
        vocabulary = Vocabulary(word_bytes, ends, np.zeros(len(ends), np.int64))
        return WordVectors(vocabulary, self._matrix)
