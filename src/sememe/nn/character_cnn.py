"""Words by their characters: UTF-8 bytes in, one vector per word out (Kim et al. 2016).

U distinct words, C positions of a word, K dimensions of a character, F filters in total, D width.
The ids are those of the released ELMo: bytes, then the special characters below. A word is between
its special characters and padded; a sentence begins and ends with a word of one such character.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sememe.examples.word_rows import NUM_MARKS
from sememe.nn.layers import Linear
from sememe.tokens.vocabulary import Vocabulary

SENTENCE_BEGIN, SENTENCE_END, WORD_BEGIN, WORD_END, PADDING = range(256, 261)
NUM_CHARACTERS = 261

BEGIN, END, UNKNOWN = "<S>", "</S>", "<UNK>"
MARKS = (BEGIN, END, UNKNOWN)

# Rows of all words at once would take the memory of many batches.
_WORDS_AT_ONCE = 8_192


def spelled(word_bytes: np.ndarray, ends: np.ndarray, sizes: np.ndarray, places: int) -> np.ndarray:
    """The characters of words that end at `ends` of the bytes, (U, C) int64.

    Only the first `places` - 2 bytes of a word fit between its special characters.
    """
    kept = np.minimum(sizes, places - 2)
    columns_C = np.arange(places)
    source_UC = (ends - sizes)[:, None] + columns_C - 1
    is_byte_UC = (columns_C >= 1) & (columns_C <= kept[:, None])
    found_UC = np.full((len(ends), places), PADDING, np.int64)
    if len(word_bytes):
        in_range_UC = np.clip(source_UC, 0, len(word_bytes) - 1)
        found_UC = np.where(is_byte_UC, np.asarray(word_bytes)[in_range_UC], found_UC)
    found_UC[:, 0] = WORD_BEGIN
    found_UC[np.arange(len(ends)), kept + 1] = WORD_END
    return found_UC


def spell_words(words: Sequence[str], places: int = 50) -> np.ndarray:
    """The characters of words, (U, C); the marks of a sentence have one character each."""
    encoded = [word.encode("utf-8", "ignore") for word in words]
    sizes = np.array([len(word) for word in encoded], np.int64)
    found_UC = spelled(np.frombuffer(b"".join(encoded), np.uint8), sizes.cumsum(), sizes, places)
    for index, word in enumerate(words):
        if word in (BEGIN, END):
            found_UC[index] = _sentence_mark(word, places)
    return found_UC


def spell_ids(ids_U: np.ndarray, vocabulary: Vocabulary, places: int = 50) -> np.ndarray:
    """The characters of words by id, (U, C): the marks, then the words of a vocabulary."""
    word_bytes, word_ends = vocabulary.to_arrays()
    is_word_U = ids_U >= NUM_MARKS
    numbers = np.where(is_word_U, ids_U - NUM_MARKS, 0)
    if len(word_ends):
        ends = word_ends[numbers]
        sizes = ends - np.where(numbers > 0, word_ends[numbers - 1], 0)
    else:
        ends = sizes = np.zeros(len(ids_U), np.int64)
    found_UC = spelled(word_bytes, ends, sizes, places)
    for index in np.flatnonzero(~is_word_U):
        found_UC[index] = spell_words([MARKS[ids_U[index]]], places)[0]
    return found_UC


def _sentence_mark(word: str, places: int) -> np.ndarray:
    row_C = np.full(places, PADDING, np.int64)
    row_C[:3] = WORD_BEGIN, SENTENCE_BEGIN if word == BEGIN else SENTENCE_END, WORD_END
    return row_C


def trimmed(chars_UC: np.ndarray, widest: int) -> np.ndarray:
    """The same words without padding that no filter needs.

    The maximum over a word needs one window of only padding if there was one; more of them do not
    change it.
    """
    longest = int((chars_UC != PADDING).sum(1).max(initial=0))
    return chars_UC[:, : min(chars_UC.shape[1], longest + widest)]


class Highway(nn.Module):
    """g ⊙ relu(W x + b) + (1 - g) ⊙ x, where g is a gate of x (Srivastava et al. 2015)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.transform = Linear(width, width), Linear(width, width)

    def initialise(self, generator: torch.Generator) -> None:
        """Initialize the weights; the gates start nearly closed, so that x passes."""
        for part in (self.gate, self.transform):
            std = 1 / math.sqrt(part.in_features)
            nn.init.normal_(part.weight, std=std, generator=generator)
        nn.init.constant_(self.gate.bias, -2.0)
        nn.init.zeros_(self.transform.bias)

    def forward(self, x_UF: Tensor) -> Tensor:
        """Map vectors to vectors of the same width."""
        gate_UF = self.gate(x_UF).sigmoid()
        return gate_UF * self.transform(x_UF).relu() + (1 - gate_UF) * x_UF


class CharacterCNN(nn.Module):
    """Filters over the characters of a word with max pooling; highways; a projection."""

    def __init__(
        self,
        filters: Sequence[tuple[int, int]],
        width: int,
        *,
        char_width: int = 16,
        num_highways: int = 2,
        activation: str = "relu",
    ) -> None:
        """`filters` are pairs: width in characters, and number of filters."""
        super().__init__()
        self.activation = activation
        self.widest = max(size for size, _ in filters)
        self.characters = nn.Embedding(NUM_CHARACTERS, char_width)
        self.filters: Any = nn.ModuleList(Linear(size * char_width, num) for size, num in filters)
        self.sizes = [size for size, _ in filters]
        num_outputs = sum(num for _, num in filters)
        self.highways: Any = nn.ModuleList(Highway(num_outputs) for _ in range(num_highways))
        self.projection = Linear(num_outputs, width) if num_outputs != width else None

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the initial weights as the released program does."""
        nn.init.uniform_(self.characters.weight, -1.0, 1.0, generator=generator)
        for part in self.filters:
            if self.activation == "relu":
                nn.init.uniform_(part.weight, -0.05, 0.05, generator=generator)
            else:
                std = 1 / math.sqrt(part.in_features)
                nn.init.normal_(part.weight, std=std, generator=generator)
            nn.init.zeros_(part.bias)
        for highway in self.highways:
            highway.initialise(generator)
        if self.projection is not None:
            std = 1 / math.sqrt(self.projection.in_features)
            nn.init.normal_(self.projection.weight, std=std, generator=generator)
            nn.init.zeros_(self.projection.bias)

    def forward(self, chars_UC: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """A vector for each word, (U, D), in that precision."""
        parts = [self._forward(own, dtype) for own in chars_UC.split(_WORDS_AT_ONCE)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _forward(self, chars_UC: Tensor, dtype: torch.dtype) -> Tensor:
        seen_UCK = self.characters(chars_UC).to(dtype)
        found = [
            # (U, windows, K, size) laid out as the filters' weights are.
            part(seen_UCK.unfold(1, size, 1).flatten(2)).amax(1)
            for part, size in zip(self.filters, self.sizes, strict=True)
        ]
        x_UF = torch.cat(found, 1)
        x_UF = x_UF.relu() if self.activation == "relu" else x_UF.tanh()
        for highway in self.highways:
            x_UF = highway(x_UF)
        return x_UF if self.projection is None else self.projection(x_UF)
