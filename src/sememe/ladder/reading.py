"""Vectors of words in their sentences, from every model by one protocol: texts in, rows out.

Static vectors look words up; fastText composes those it does not know; one-hot gives sparse rows;
networks give hidden layers, sub-words joined to words. N words of all texts end to end, D numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.examples.running_words import is_word, places_in, written
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.vectors import WordVectors

Rows = Any  # (N, D): a float32 array, or a sparse matrix of one-hot rows


class Words(NamedTuple):
    """One text with its words: where they lie in it (characters), and how the store writes them."""

    text: str
    starts: np.ndarray
    ends: np.ndarray
    words: list[str]


class Reader(NamedTuple):
    """A model that was opened: one row for each word of texts, in context where it has any."""

    dim: int
    read: Callable[[Sequence[Words]], Rows]
    num_layers: int = 0  # of a network, side by side in a row; 0: words have no context

    @property
    def is_contextual(self) -> bool:
        """Whether the same word has another row in another sentence."""
        return self.num_layers > 0


def cut(texts: Sequence[str], settings: TextSettings) -> list[Words]:
    """The words of texts, as the token store of such text would have them."""
    return list(_cut(tuple(texts), settings))


@lru_cache(maxsize=32)  # every rung is asked the same texts
def _cut(texts: tuple[str, ...], settings: TextSettings) -> tuple[Words, ...]:
    found = []
    for text, places in zip(texts, places_in(texts, settings), strict=True):
        kept = [place for place in places if is_word(text[slice(*place)], settings)]
        places_W2 = np.array(kept, np.int64).reshape(-1, 2)
        words = [written(text[start:end], settings) for start, end in kept]
        found.append(Words(text, places_W2[:, 0], places_W2[:, 1], words))
    return tuple(found)


def given(words: Sequence[str], settings: TextSettings) -> Words:
    """Words that are cut already, as a text; spaces stand between them, but for Chinese ones."""
    sizes = np.array([len(word) for word in words], np.int64)
    gaps = [" " if _parts(before, after, settings) else "" for before, after in pairwise(words)]
    ends = np.cumsum(sizes) + np.cumsum([0, *map(len, gaps)])[: len(words)]
    text = "".join(chain.from_iterable(zip_longest(words, gaps, fillvalue="")))
    return Words(text, ends - sizes, ends, [written(word, settings) for word in words])


def _parts(before: str, after: str, settings: TextSettings) -> bool:
    """Whether a space stands between two words; Chinese is written without."""
    if settings.mode != "chinese":
        return True
    return before[-1:].isascii() and after[:1].isascii()


def num_words(texts: Sequence[Words]) -> int:
    """Words of all texts together."""
    return sum(len(own.words) for own in texts)


# ---- word vectors -------------------------------------------------------------------------------


def static_reader(vectors: WordVectors) -> Reader:
    """How word vectors read; words without one are zeros."""
    from sememe.vectors.lexicon import Lexicon
    from sememe.vectors.onehot import OneHotVectors

    if isinstance(vectors, OneHotVectors):
        return Reader(len(vectors.vocabulary), lambda texts: _one_hot(vectors, texts))

    def read(texts: Sequence[Words]) -> np.ndarray:
        lexicon = Lexicon(vectors)
        numbers = [lexicon.number(lexicon.spelling(word)) for own in texts for word in own.words]
        rows_WD, _ = lexicon.rows(0, len(lexicon))
        return rows_WD[numbers] if numbers else np.empty((0, vectors.dim), np.float32)

    return Reader(vectors.dim, read)


def _one_hot(vectors: WordVectors, texts: Sequence[Words]) -> Any:
    from scipy.sparse import csr_matrix

    ids = [vectors.vocabulary.find(word) for own in texts for word in own.words]
    ids_N = np.array(ids, np.int64)
    known_K = np.flatnonzero(ids_N >= 0)
    ones_K = np.ones(len(known_K), np.float32)
    shape = (len(ids_N), len(vectors.vocabulary))
    return csr_matrix((ones_K, (known_K, ids_N[known_K])), shape=shape)


# ---- networks -----------------------------------------------------------------------------------


def chosen_layers(num_layers: int) -> tuple[int, ...]:
    """Which layers stand side by side: the words themselves, the middle and the last."""
    return tuple(dict.fromkeys((0, num_layers // 2, num_layers - 1)))


def subword_reader(network: Any, tokenizer: Any, layers: tuple[int, ...] | None = None) -> Reader:
    """How a BERT or a GPT reads: the mean over the pieces of each word."""
    from sememe.networks.features import token_vectors

    own = layers or chosen_layers(network.config.num_layers + 1)
    dim = network.config.width * len(own)

    def read(texts: Sequence[Words]) -> np.ndarray:
        found = token_vectors(network, tokenizer, [words.text for words in texts], layers=own)
        rows = [
            _joined(words, piece.encoding.starts, piece.encoding.ends, piece.vectors_TD)
            for words, piece in zip(texts, found, strict=True)
        ]
        return np.concatenate(rows) if rows else np.empty((0, dim), np.float32)

    return Reader(dim, read, len(own))


def _joined(
    words: Words, starts_T: np.ndarray, ends_T: np.ndarray, vectors_TD: np.ndarray
) -> np.ndarray:
    """The mean over the pieces of each word; zeros for one that has none."""
    num, width = len(words.words), vectors_TD.shape[1]
    rows_WD, counts_W = np.zeros((num, width), np.float32), np.zeros(num, np.float32)
    pieces_P, owners_P = overlaps(starts_T, ends_T, words.starts, words.ends)
    np.add.at(rows_WD, owners_P, vectors_TD[pieces_P])
    np.add.at(counts_W, owners_P, 1)
    return rows_WD / np.maximum(counts_W, 1)[:, None]


def overlaps(
    starts_T: np.ndarray, ends_T: np.ndarray, starts_W: np.ndarray, ends_W: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which pieces and words share characters, as pairs of indices (P,).

    Where no spaces are written, as in Chinese, a piece may reach over several words.
    """
    firsts_T = np.searchsorted(ends_W, starts_T, "right")
    nums_T = np.maximum(np.searchsorted(starts_W, ends_T, "left") - firsts_T, 0)
    pieces_P = np.repeat(np.arange(len(nums_T)), nums_T)
    within_P = np.arange(len(pieces_P)) - np.repeat(np.cumsum(nums_T) - nums_T, nums_T)
    return pieces_P, firsts_T[pieces_P] + within_P


def elmo_reader(model: Any, layers: tuple[int, ...] | None = None) -> Reader:
    """How an ELMo reads: both directions of each word."""
    from sememe.networks.elmo_reading import embed_sentences

    opened = model.opened
    config = opened.network.config
    own = layers or chosen_layers(config.num_layers + 1)
    dim = 2 * config.width * len(own)

    def read(texts: Sequence[Words]) -> np.ndarray:
        known = [words.words for words in texts if words.words]
        found = embed_sentences(opened, known, own) if known else []
        return np.concatenate(found) if found else np.empty((0, dim), np.float32)

    return Reader(dim, read, len(own))


# ---- opening ------------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A rung opened for its questions; what it does not have is None."""

    kind: str
    model: Any
    vectors: WordVectors | None
    reader: Reader | None
    network: Any = None
    tokenizer: Any = None


def open_rung(path: Path, device: str = "auto") -> Opened:
    """Open a model folder or a vector file of any kind."""
    from sememe.networks.interchange.layout import CONFIG, find_bilm
    from sememe.storage.folder import MANIFEST, read_json

    manifest = read_json(path / MANIFEST) if (path / MANIFEST).is_file() else {}
    kind = str(manifest.get("kind", "")) if isinstance(manifest, dict) else ""
    if (path / CONFIG).is_file():
        return _open_network(path, kind, device)
    if kind == "elmo" or find_bilm(path):
        from sememe.networks.elmo_model import ELMo
        from sememe.training.precision import choose_device

        elmo = ELMo.load(path)
        elmo.network.to(choose_device(device))
        return Opened("elmo", elmo, None, elmo_reader(elmo), elmo.network)
    if kind == "ngram":
        from sememe.static.ngram.model import NGram

        return Opened(kind, NGram.load(path), None, None)
    if kind == "nnlm":
        from sememe.networks.nnlm_model import NNLM
        from sememe.training.precision import choose_device

        model = NNLM.load(path)
        vectors = model.vectors
        model.network.to(choose_device(device))
        return Opened(kind, model, vectors, static_reader(vectors), model.network)
    from sememe.vectors import load

    vectors = load(path)
    return Opened(kind or "vectors", vectors, vectors, static_reader(vectors))


def _open_network(path: Path, kind: str, device: str) -> Opened:
    from sememe.networks.installed import need_torch
    from sememe.networks.interchange.huggingface import kind_of, load_folder
    from sememe.training.precision import choose_device

    need_torch()
    network, tokenizer = load_folder(path)
    network = network.to(choose_device(device)).eval()
    reader = subword_reader(network, tokenizer)
    return Opened(kind or kind_of(network), None, None, reader, network, tokenizer)
