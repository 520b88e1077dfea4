"""One vector a word from models that read words in context: the mean over its uses.

Uses are sentences of the training text that hold the words that will be asked for, so that every
rung answers for the same words. V words, D numbers, N places.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from sememe.ladder.reading import Reader, Words, given
from sememe.ladder.text import LadderText
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

_AROUND = 12  # words on each side
_CANDIDATES = 10_000
_FEWEST_USES = 2
_TEXTS_AT_ONCE = 512


class Uses:
    """Sentences with the words that will be asked, and the words that can be answers."""

    def __init__(
        self, text: LadderText, asked: Iterable[str], *, num_each: int, num_frequent: int,
        min_count: int,
    ) -> None:  # fmt: skip
        """num_frequent: the first words, which can be answers although nobody asks for them."""
        self._text, self._num_each, self._num_frequent = text, num_each, num_frequent
        vocabulary = text.words.vocabulary
        found = {word: vocabulary.find(word) for word in dict.fromkeys(asked)}
        counts = vocabulary.counts
        self.asked = {
            word: word_id
            for word, word_id in found.items()
            if word_id >= 0 and counts[word_id] >= min_count
        }
        self._min_count = min_count

    @cached_property
    def sentences(self) -> list[Words]:
        """Some uses of each asked word, cut from their sentences."""
        store, asked = self._text.words, set(self.asked.values())
        ids_N, ends = np.asarray(store.ids), np.asarray(store.sentence_ends)
        is_asked_V = np.zeros(len(store.vocabulary) + 1, bool)
        is_asked_V[list(asked)] = True
        is_asked_V[: min(self._num_frequent, len(store.vocabulary))] = True
        places_N = np.flatnonzero(is_asked_V[ids_N])
        order = np.argsort(ids_N[places_N], kind="stable")
        places_N = places_N[order]
        starts = np.unique(ids_N[places_N], return_index=True)[1]
        windows = set()
        for first, last in zip(starts, [*starts[1:], len(places_N)], strict=True):
            num = last - first
            most = self._num_each if int(ids_N[places_N[first]]) in asked else _FEWEST_USES
            chosen = np.linspace(first, last - 1, min(num, most)).astype(np.int64)
            for place in places_N[chosen].tolist():
                index = int(np.searchsorted(ends, place, "right"))
                begin = int(ends[index - 1]) if index else 0
                windows.add(
                    (max(begin, place - _AROUND), min(int(ends[index]), place + _AROUND + 1))
                )
        vocabulary, settings = store.vocabulary, self._text.settings
        return [
            given([vocabulary[word_id] for word_id in ids_N[first:last].tolist()], settings)
            for first, last in sorted(windows)
        ]

    @cached_property
    def words(self) -> list[str]:
        """The asked words and all that stand often enough beside them, most frequent first."""
        vocabulary = self._text.words.vocabulary
        seen: dict[str, int] = {}
        for own in self.sentences:
            for word in own.words:
                seen[word] = seen.get(word, 0) + 1
        ids = {word: vocabulary.find(word) for word, num in seen.items() if num >= _FEWEST_USES}
        kept = {word: word_id for word, word_id in ids.items() if 0 <= word_id < _CANDIDATES}
        kept = {w: i for w, i in kept.items() if vocabulary.counts[i] >= self._min_count}
        return sorted(kept | self.asked, key=(kept | self.asked).__getitem__)

    def of_static(self, vectors: WordVectors) -> WordVectors:
        """The same words of word vectors, as far as they know them."""
        known = [word for word in self.words if word in vectors]
        rows_VD = np.asarray(vectors[known]) if known else np.empty((0, vectors.dim), np.float32)
        return WordVectors(_vocabulary(self._text, known), rows_VD)

    def of_reader(self, reader: Reader) -> WordVectors:
        """The mean over the uses of each word, every dimension with mean 0 and spread 1.

        A few dimensions of networks are so much larger than others that cosines would see nothing
        but those.
        """
        numbers = {word: index for index, word in enumerate(self.words)}
        sums_VD = np.zeros((len(numbers), reader.dim), np.float64)
        counts_V = np.zeros(len(numbers))
        for first in range(0, len(self.sentences), _TEXTS_AT_ONCE):
            part = self.sentences[first : first + _TEXTS_AT_ONCE]
            owners_N = np.array([numbers.get(word, -1) for own in part for word in own.words])
            is_own_N = owners_N >= 0
            rows_ND = reader.read(part)
            np.add.at(sums_VD, owners_N[is_own_N], rows_ND[is_own_N])
            np.add.at(counts_V, owners_N[is_own_N], 1)
        means_VD = sums_VD / np.maximum(counts_V, 1)[:, None]
        spread_D = means_VD.std(0)
        scaled_VD = (means_VD - means_VD.mean(0)) / np.where(spread_D > 1e-9, spread_D, 1.0)
        return WordVectors(_vocabulary(self._text, self.words), scaled_VD.astype(np.float32))


def _vocabulary(text: LadderText, words: list[str]) -> Vocabulary:
    own = text.words.vocabulary
    return Vocabulary.from_words(words, [int(own.counts[own.id(word)]) for word in words])
