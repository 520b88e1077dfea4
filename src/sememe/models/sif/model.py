"""SIF: word vectors and a corpus in, word vectors out whose mean is the vector of a sentence.

Weighting the words and removing the common components are linear, so both are applied to the word
vectors once: what is saved are plain word vectors, and their mean over a text is its SIF vector.
Whatever takes word vectors therefore takes a SIF model. V words, D dimensions, S sentences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.models.fitting import Prepared, Request
from sememe.models.sif.config import SIFConfig
from sememe.models.static.model import StaticModel
from sememe.progress import History, Reporter
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors, load
from sememe.vectors.kernels import mean_rows

_SENTENCES = 16_384  # at once


def frequencies(counts_V: np.ndarray) -> np.ndarray:
    """The probability of each word; by Zipf's law from its rank if all counts are 0."""
    if not counts_V.any():
        counts_V = 1 / np.arange(1, len(counts_V) + 1)
    return counts_V / counts_V.sum(dtype=np.float64)


def usif_rate(chances_V: np.ndarray, mean_length: float) -> float:
    """uSIF's `a`: from the share of words that a sentence of mean length has by chance."""
    num_words = len(chances_V)
    threshold = 1 - (1 - 1 / num_words) ** mean_length
    alpha = max(int((chances_V > threshold).sum()), 1) / num_words
    return (1 - alpha) / (alpha * num_words / 2)


class Moments(NamedTuple):
    """What the sentences of a corpus say: products of their means, and how many they are."""

    gram_DD: np.ndarray
    num_sentences: int


class SIF(StaticModel):
    """Sentence vectors: weighted means of word vectors, without their common components.

    model = sememe.SIF("runs/skipgram").fit("corpus.txt")
    model.embed(["a text about kings"])
    """

    kind = "sif"
    config_class = SIFConfig
    config: SIFConfig

    def __init__(
        self,
        vectors: WordVectors | str | Path | None = None,
        config: SIFConfig | None = None,
        *,
        text: TextSettings | None = None,
        **options: Any,
    ) -> None:
        """`vectors` are word vectors, or the path of a model that has them."""
        super().__init__(config, text=text, **options)
        self.given = vectors

    def __repr__(self) -> str:
        return f"SIF({self.config.method}: {len(self.vocabulary):,} words)"

    def options(self) -> dict[str, Any]:
        """The options of the constructor, by name."""
        return {"vectors": self.given, **super().options()}

    def prepare(self, corpus: Any, request: Request) -> Prepared:
        """Open the vectors, and read the corpus as they were trained."""
        if request.start is not None or request.callbacks or request.phrases:
            raise OptionError("SIF is not trained: it takes no start, callbacks or phrases.")
        if self.given is None:
            raise OptionError('SIF needs word vectors: sememe.SIF("runs/skipgram").')
        base = self.given if isinstance(self.given, WordVectors) else load(self.given)
        if base.is_one_hot:
            raise OptionError("SIF needs vectors with dimensions, not one-hot vectors.")
        self.text = _text_for(base, self.text, request.reporter)
        tokens = self.open_text(corpus, 0, request.store, request.reporter)
        sum_of = hashlib.blake2b(
            np.ascontiguousarray(base.vectors).data, digest_size=16
        ).hexdigest()
        plan = self.plan_of(tokens, len(base)) | {"vectors": sum_of}

        def train() -> None:
            self._learn(base, tokens, request.reporter)

        return Prepared(plan, train, {**tokens.sizes, "base": {"kind": base.kind}})

    def _learn(self, base: WordVectors, tokens: TokenStore, reporter: Reporter) -> None:
        config, counts_V = self.config, np.asarray(base.vocabulary.counts)
        if not counts_V.any():
            reporter.note("The vectors have no word counts: Zipf's law gives them by rank.")
        chances_V = frequencies(counts_V)
        ids_of = _ids_in(tokens, base.vocabulary)
        is_sif, rate = config.method == "sif", config.a
        if not is_sif:
            rate = usif_rate(chances_V, _mean_length(tokens, ids_of))
        weights_V = rate / ((rate if is_sif else rate / 2) + chances_V)
        rows_VD = np.asarray(base.vectors * weights_V[:, None].astype(np.float32), np.float32)
        found = _moments(tokens, ids_of, rows_VD, reporter)
        squares, turned_DD = np.linalg.eigh(found.gram_DD)
        num = min(config.num_components, rows_VD.shape[1])
        components_CD = turned_DD.T[::-1][:num]
        largest = np.maximum(squares[::-1][:num], 0)
        shares_C = np.ones(num) if is_sif else largest / max(largest.sum(), 1e-30)
        common_DD = (components_CD.T * shares_C) @ components_CD
        rows_VD -= rows_VD @ common_DD.astype(np.float32)
        self.history = History([{"sentences": found.num_sentences, "a": rate}])
        self.adopt(
            base.vocabulary, vectors=rows_VD, weights=weights_V.astype(np.float32),
            components=components_CD.astype(np.float32),
        )  # fmt: skip

    def make_vectors(self) -> WordVectors:
        """The weighted words, without the common components."""
        return WordVectors(self.vocabulary, self.tensors["vectors"])

    def sizes(self) -> dict[str, Any]:
        """The sizes in sememe.json and `describe`."""
        return {"words": len(self.vocabulary), "dim": int(self.tensors["vectors"].shape[1])}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        size = len(self.vocabulary)
        width = self.tensors["vectors"].shape[-1] if "vectors" in self.tensors else 0
        num = min(self.config.num_components, width)
        return {"vectors": (size, width), "weights": (size,), "components": (num, width)}


def _text_for(base: WordVectors, text: TextSettings, reporter: Reporter) -> TextSettings:
    """The settings of a corpus, with the language and case of the vectors."""
    if base.has_text_settings:
        own = base.text
        return replace(
            text, language=own.language, lowercase=own.lowercase, dictionary=own.dictionary
        )
    if text.lowercase and not base.is_lower_case:
        reporter.note("The vectors have words in upper case: the corpus keeps its case.")
        return replace(text, lowercase=False)
    return text


def _ids_in(tokens: TokenStore, vocabulary: Vocabulary) -> np.ndarray:
    """From the ids of a store to those of the vectors, -1 for unknown words."""
    found = [vocabulary.find(word) for word in tokens.vocabulary[:]]
    if max(found, default=-1) < 0:
        raise InputError("The corpus has none of the words of the vectors.")
    return np.array([*found, -1], np.int32)


def _sentences(
    tokens: TokenStore, ids_of: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield (known ids, their ends by sentence, words read) of some sentences at a time."""
    start, dtype = 0, tokens.ids.dtype
    for first in range(0, len(tokens.sentence_ends), _SENTENCES):
        # Read, not memory-mapped: mapped pages would count as this process's memory.
        path = tokens.path / "sentence_ends.bin"
        ends = np.fromfile(path, np.int64, _SENTENCES, offset=8 * first)
        place = start * dtype.itemsize
        read = np.fromfile(tokens.path / "ids.bin", dtype, int(ends[-1]) - start, offset=place)
        ids = ids_of[read]
        is_known = ids >= 0
        known_before = np.concatenate([[0], np.cumsum(is_known)])
        yield ids[is_known], known_before[ends - start], int(ends[-1])
        start = int(ends[-1])


def _mean_length(tokens: TokenStore, ids_of: np.ndarray) -> float:
    """The mean number of known words of a sentence that has any."""
    num_known = num_sentences = 0
    for ids, ends, _ in _sentences(tokens, ids_of):
        num_known += len(ids)
        num_sentences += int((np.diff(ends, prepend=0) > 0).sum())
    return num_known / num_sentences


def _moments(
    tokens: TokenStore, ids_of: np.ndarray, rows_VD: np.ndarray, reporter: Reporter
) -> Moments:
    """Sum the products of the sentences' means; sentences without a known word do not count."""
    dim = rows_VD.shape[1]
    gram_DD, num_sentences = np.zeros((dim, dim)), 0
    with reporter.task("common components", tokens.num_tokens, "words") as task:
        for ids, ends, done in _sentences(tokens, ids_of):
            means_SD = np.zeros((len(ends), dim), np.float32)
            mean_rows(ends, ids, rows_VD.reshape(-1), dim, means_SD)
            gram_DD += means_SD.T @ means_SD
            num_sentences += int((np.diff(ends, prepend=0) > 0).sum())
            task.update(done)
    return Moments(gram_DD, num_sentences)
