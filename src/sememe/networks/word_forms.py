"""How words come into a language model: by characters, a vector each, or by sub-words.

U distinct words, D width. Forms are made on the host, by the thread that prepares batches: arrays
that say what a word looks like. A module of the same kind turns them into vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sememe.examples.word_rows import NUM_MARKS, UNKNOWN_ID
from sememe.networks.characters import (
    MARKS,
    CharacterCNN,
    spell_ids,
    spell_words,
    trimmed,
)
from sememe.networks.elmo_config import ELMoConfig
from sememe.tokens.vocabulary import Vocabulary

MINN, MAXN = 3, 6  # characters of a sub-word, as in fastText

Form = tuple[Tensor, ...]


class Forms(Protocol):
    """Gives the forms of words."""

    def of_ids(self, ids_U: np.ndarray) -> Form:
        """The forms of the marks and words with these ids."""

    def of_words(self, words: Sequence[str]) -> Form:
        """The forms of words as they are written, known or not."""


class CharacterForms:
    """The characters of words, (U, C)."""

    def __init__(self, vocabulary: Vocabulary, config: ELMoConfig) -> None:
        self.vocabulary, self.places = vocabulary, config.max_characters
        self.widest = max(size for size, _ in config.filter_sizes)

    def of_ids(self, ids_U: np.ndarray) -> Form:
        """Spell the words with these ids."""
        return self._form(spell_ids(ids_U, self.vocabulary, self.places))

    def of_words(self, words: Sequence[str]) -> Form:
        """Spell words."""
        return self._form(spell_words(words, self.places))

    def _form(self, chars_UC: np.ndarray) -> Form:
        return (torch.from_numpy(np.ascontiguousarray(trimmed(chars_UC, self.widest))),)


class WordForms:
    """The ids of words, (U,); those that are not predicted are one unknown word."""

    def __init__(self, vocabulary: Vocabulary, config: ELMoConfig) -> None:
        self.vocabulary, self.vocab_size = vocabulary, config.vocab_size

    def of_ids(self, ids_U: np.ndarray) -> Form:
        """The ids as they are."""
        ids_U = np.where(ids_U < self.vocab_size, ids_U, UNKNOWN_ID)
        return (torch.from_numpy(ids_U.astype(np.int64)),)

    def of_words(self, words: Sequence[str]) -> Form:
        """Look words up."""
        return self.of_ids(np.array([word_id(word, self.vocabulary) for word in words], np.int64))


class SubwordForms:
    """The rows of words and of their n-grams laid end to end, and where each word's start."""

    def __init__(self, vocabulary: Vocabulary, config: ELMoConfig) -> None:
        self.vocab_size, self.bucket = config.vocab_size, config.bucket
        self.vocabulary = vocabulary
        self._kept: dict[str, np.ndarray] = {}

    def of_ids(self, ids_U: np.ndarray) -> Form:
        """The rows of the words with these ids."""
        return self.of_words(
            [MARKS[i] if i < NUM_MARKS else self.vocabulary[i - NUM_MARKS] for i in ids_U.tolist()]
        )

    def of_words(self, words: Sequence[str]) -> Form:
        """The rows of words; an unknown one has those of its n-grams."""
        rows = [self._rows(word) for word in words]
        starts_U = np.cumsum([0, *(len(own) for own in rows)])[:-1]
        return torch.from_numpy(np.concatenate(rows)), torch.from_numpy(starts_U)

    def _rows(self, word: str) -> np.ndarray:
        from sememe.tokens.ngrams import ngram_rows_of

        if word not in self._kept:
            own_id = word_id(word, self.vocabulary)
            own_id = own_id if own_id < self.vocab_size else UNKNOWN_ID
            rows: Any = []
            if word not in MARKS:
                rows = ngram_rows_of(word, self.vocab_size, MINN, MAXN, self.bucket)
            self._kept[word] = np.concatenate([[own_id], rows]).astype(np.int64)
        return self._kept[word]


def word_id(word: str, vocabulary: Vocabulary) -> int:
    """The id of a word or mark; that of the unknown word where it is none."""
    if word in MARKS:
        return MARKS.index(word)
    found = vocabulary.find(word)
    return UNKNOWN_ID if found < 0 else NUM_MARKS + found


_FORMS: dict[str, Any] = {
    "characters": CharacterForms, "words": WordForms, "subwords": SubwordForms,
}  # fmt: skip


def forms_of(vocabulary: Vocabulary, config: ELMoConfig) -> Forms:
    """What gives the forms that a network of these sizes takes."""
    return _FORMS[config.input](vocabulary, config)


class RowTable(nn.Module):
    """A vector for each row; a word of several rows is their mean."""

    def __init__(self, num_rows: int, width: int) -> None:
        super().__init__()
        self.rows = nn.EmbeddingBag(num_rows, width, mode="mean")

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the first weights."""
        nn.init.normal_(self.rows.weight, std=0.5, generator=generator)

    def forward(
        self, rows: Tensor, starts_U: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """A vector for each word, (U, D)."""
        if starts_U is None:
            starts_U = torch.arange(len(rows), device=rows.device)
        return self.rows(rows, starts_U).to(dtype)


def input_layer(config: ELMoConfig) -> CharacterCNN | RowTable:
    """The module that turns forms into vectors."""
    if config.input == "characters":
        return CharacterCNN(
            config.filter_sizes, config.width, char_width=config.char_width,
            num_highways=config.num_highways, activation=config.activation,
        )  # fmt: skip
    num_rows = config.vocab_size + (config.bucket if config.input == "subwords" else 0)
    return RowTable(num_rows, config.width)
