"""A rung's model during evaluation: vectors of words in their sentences.

Static models look words up; fastText composes unknown ones; one-hot gives sparse rows; networks
give hidden layers. `Uses` turns them into one vector per word: the mean over its uses in the
training text. N words, V distinct words, D dimensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from sememe.contract import Model
from sememe.examples.running_words import is_word, places_in, written
from sememe.ladder.results import Column, Rung
from sememe.ladder.text import LadderText
from sememe.models.registry import load
from sememe.progress import SILENT, Reporter
from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

Matrix = Any  # (N, D): a float32 array, or a sparse matrix of one-hot rows


class Words(NamedTuple):
    """One text with its words: their positions (characters), and their forms in the token store."""

    text: str
    starts: np.ndarray
    ends: np.ndarray
    words: list[str]


def cut(texts: Sequence[str], settings: TextSettings) -> list[Words]:
    """The words of texts, as in the token store of such text."""
    return list(_cut(tuple(texts), settings))


@lru_cache(maxsize=32)  # every rung reads the same texts
def _cut(texts: tuple[str, ...], settings: TextSettings) -> tuple[Words, ...]:
    found = []
    for text, places in zip(texts, places_in(texts, settings), strict=True):
        kept = [place for place in places if is_word(text[slice(*place)], settings)]
        places_W2 = np.array(kept, np.int64).reshape(-1, 2)
        words = [written(text[start:end], settings) for start, end in kept]
        found.append(Words(text, places_W2[:, 0], places_W2[:, 1], words))
    return tuple(found)


def given(words: Sequence[str], settings: TextSettings) -> Words:
    """Tokenized words as a text, joined by spaces, except for Chinese ones."""
    sizes = np.array([len(word) for word in words], np.int64)
    is_tight = settings.mode == "chinese"
    gaps = [
        "" if is_tight and not (before[-1:].isascii() and after[:1].isascii()) else " "
        for before, after in pairwise(words)
    ]
    ends = np.cumsum(sizes) + np.cumsum([0, *map(len, gaps)])[: len(words)]
    text = "".join(chain.from_iterable(zip_longest(words, gaps, fillvalue="")))
    return Words(text, ends - sizes, ends, [written(word, settings) for word in words])


# ---- a model that is read -----------------------------------------------------------------------


class Reader:
    """An opened model: one row per word of texts, in context if the model is contextual."""

    def __init__(self, model: Model) -> None:
        self._model = model
        widths = model.layer_widths
        self.is_contextual = len(widths) > 1  # whether a word's rows depend on its context
        # Concatenated: the input vectors, the middle layer and the last.
        self._layers = tuple(dict.fromkeys((0, len(widths) // 2, len(widths) - 1)))
        self.dim = sum(widths[layer] for layer in self._layers)
        self.last_dim = widths[-1]  # dimensions of the last layer, at the end of a row

    def read(self, texts: Sequence[Words]) -> Matrix:
        """One row per word of texts; zeros for unknown words."""
        if not self.is_contextual:
            return self._look_up([word for own in texts for word in own.words])
        spans = [np.stack([own.starts, own.ends], 1) for own in texts]
        found = self._model.embed_spans([own.text for own in texts], spans, layers=self._layers)
        return np.concatenate([np.empty((0, self.dim), np.float32), *(x.vectors_WD for x in found)])

    def _look_up(self, words: list[str]) -> Matrix:
        vectors = self._model.words
        if vectors.is_one_hot:
            return _one_hot(vectors, words)
        distinct = {word: index for index, word in enumerate(dict.fromkeys(words))}
        rows_VD = vectors.embed_words([list(distinct)])[0]
        return rows_VD[np.array([distinct[word] for word in words], np.int64)]


def _one_hot(vectors: WordVectors, words: list[str]) -> Matrix:
    ids_N = np.array([vectors.vocabulary.find(word) for word in words], np.int64)
    known_K = np.flatnonzero(ids_N >= 0)
    ones_K = np.ones(len(known_K), np.float32)
    shape = (len(ids_N), len(vectors.vocabulary))
    return csr_matrix((ones_K, (known_K, ids_N[known_K])), shape=shape)


# ---- one vector a word --------------------------------------------------------------------------

_AROUND = 12  # words on each side
CANDIDATES = 10_000
_FEWEST_USES = 2
_TEXTS_AT_ONCE = 512


class Uses:
    """Sentences with the target words, and the candidate answers."""

    def __init__(
        self, text: LadderText, asked: Iterable[str], *, num_each: int, num_frequent: int,
        min_count: int,
    ) -> None:  # fmt: skip
        """num_frequent: the number of frequent words that are always candidates."""
        self._text, self._num_each, self._num_frequent = text, num_each, num_frequent
        self._min_count = min_count
        self.asked = self._frequent(dict.fromkeys(asked))

    def _frequent(self, words: Iterable[str]) -> dict[str, int]:
        """The ids of the words that occur often enough in the text."""
        vocabulary = self._text.words.vocabulary
        found = {word: vocabulary.find(word) for word in words}
        counts, least = vocabulary.counts, self._min_count
        return {word: i for word, i in found.items() if i >= 0 and counts[i] >= least}

    @cached_property
    def sentences(self) -> list[Words]:
        """Some uses of each target word, cut from their sentences."""
        store, asked = self._text.words, set(self.asked.values())
        ids_N, ends = np.asarray(store.ids), np.asarray(store.sentence_ends)
        is_asked_V = np.zeros(len(store.vocabulary) + 1, bool)
        is_asked_V[list(asked)] = True
        is_asked_V[: min(self._num_frequent, len(store.vocabulary))] = True
        places_N = np.flatnonzero(is_asked_V[ids_N])
        places_N = places_N[np.argsort(ids_N[places_N], kind="stable")]
        starts = np.unique(ids_N[places_N], return_index=True)[1]
        windows = set()
        for first, last in zip(starts, [*starts[1:], len(places_N)], strict=True):
            most = self._num_each if int(ids_N[places_N[first]]) in asked else _FEWEST_USES
            chosen = np.linspace(first, last - 1, min(last - first, most)).astype(np.int64)
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
        """The target words and all other sufficiently frequent ones, most frequent first."""
        seen = Counter(word for own in self.sentences for word in own.words)
        ids = self._frequent(word for word, num in seen.items() if num >= _FEWEST_USES)
        kept = {word: i for word, i in ids.items() if i < CANDIDATES} | self.asked
        return sorted(kept, key=kept.__getitem__)

    def of_static(self, vectors: WordVectors) -> WordVectors:
        """The word vectors of the same words, as far as they are known."""
        known = [word for word in self.words if word in vectors]
        rows_VD = np.asarray(vectors[known]) if known else np.empty((0, vectors.dim), np.float32)
        return WordVectors(_vocabulary(self._text, known), rows_VD)

    def of_reader(self, reader: Reader) -> WordVectors:
        """The mean over the uses of each word, standardized in every dimension.

        A few dimensions of networks are so much larger than others that they would dominate the
        cosine.
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


# ---- questions ----------------------------------------------------------------------------------

NO_VECTORS = "It gives word probabilities, not vectors."
NO_SIMILARITY = "All words are equally far apart: it has no similarity."
NO_CHANCES = "It gives no word probabilities."


class RungAnswer(NamedTuple):
    """The scores of one rung on one task, one per seed, over `num` questions; or why none.

    `interval` is that of 95 % over the questions; of several seeds, the mean of their bounds.
    """

    scores: Sequence[float] = ()
    num: int = 0
    why: str = ""
    details: Mapping[str, Any] = MappingProxyType({})
    interval: Sequence[float] = ()


def percent_bounds(interval: Sequence[float]) -> list[float]:
    """The bounds of an interval in percent."""
    return [100 * bound for bound in interval]


class Question(Protocol):
    """A column of the table."""

    task: Column

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Evaluate a rung's model."""


@dataclass
class RungModel:
    """A rung's model, opened once for all tasks, with what several tasks need."""

    rung: Rung
    path: Any
    uses: Uses
    device: str = "auto"
    reporter: Reporter = SILENT

    @cached_property
    def model(self) -> Model:
        """The model, opened."""
        model: Model = load(self.path, device=self.device)
        return model

    def can(self, capability: str) -> bool:
        """Whether the model has a capability."""
        return capability in self.model.capabilities

    @cached_property
    def reader(self) -> Reader | None:
        """Reads words in their sentences; None if the model gives no word vectors."""
        return Reader(self.model) if self.can("embed_words") else None

    @property
    def is_contextual(self) -> bool:
        """Whether a word's vector depends on its sentence."""
        return self.reader is not None and self.reader.is_contextual

    @property
    def is_one_hot(self) -> bool:
        """Whether vectors only identify the word."""
        return self.reader is not None and not self.is_contextual and self.model.words.is_one_hot

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """One vector for each word that every rung is evaluated on; None if it has none."""
        if self.reader is None:
            return None
        return (
            self.uses.of_reader(self.reader)
            if self.is_contextual
            else self.uses.of_static(self.model.words)
        )
