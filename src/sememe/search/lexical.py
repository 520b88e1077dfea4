"""BM25 over texts: rows and queries are split into words as everywhere, and bm25s scores them.

Chinese is segmented by rjieba, and the shorter words inside a long one count as well: 足球 finds
足球比赛. Words are lower-cased as the text settings say; nothing is stemmed.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from sememe.errors import ArtifactError
from sememe.search.ranking import top_scores
from sememe.storage.folder import open_regular, read_errors
from sememe.storage.tensors import map_array
from sememe.text.characters import is_han
from sememe.text.documents import DocumentBatch
from sememe.text.settings import TextSettings
from sememe.text.stream import segmenter
from sememe.vectors.search import Found

_TEXTS_AT_ONCE = 4_096
_VOCABULARY = "vocab.index.json"
_SMALL_SIZE, _BYTES_PER_WORD = 1 << 20, 512
_SHORTEST = 3  # characters of a Chinese word that may hold shorter ones


def words_of_texts(texts: Iterable[str], settings: TextSettings) -> Iterator[list[str]]:
    """The words of each text; a text without any gives an empty list."""
    texts = iter(texts)
    with segmenter(settings, 1) as cut:
        while part := list(islice(texts, _TEXTS_AT_ONCE)):
            data = [text.encode("utf-8", "replace") for text in part]
            ends = np.cumsum([len(own) for own in data], dtype=np.int64)
            # A batch drops texts without words: their numbers are kept as labels.
            numbers = list(map(str, range(len(part))))
            records = cut(DocumentBatch(b"".join(data), ends, numbers))
            documents = records.data.decode("utf-8", "surrogatepass").split("\x1d")[:-1]
            words: list[list[str]] = [[] for _ in part]
            for number, document in zip(records.labels or [], documents, strict=True):
                words[int(number)] = document.replace("\x1e", "").split("\x1f")[:-1]
            if settings.mode == "chinese":
                words = [[part for word in own for part in _parts(word)] for own in words]
            yield from words


@lru_cache(maxsize=1 << 18)  # the words of a text come repeatedly
def _parts(word: str) -> tuple[str, ...]:
    """A word, and the Chinese words inside it."""
    if len(word) < _SHORTEST or not is_han(word[0]):
        return (word,)
    import rjieba

    return tuple(rjieba.cut_for_search(word))


class BM25:
    """Ranks texts by the words they share with a query (Robertson & Zaragoza 2009; Lucene's form).

    Rare words count more; repeated words and long texts count less.
    """

    def __init__(self, engine: Any, num_texts: int, settings: TextSettings) -> None:
        """`engine` is an index of bm25s; None if no text has a word."""
        self._engine, self._num_texts, self.settings = engine, num_texts, settings

    def __len__(self) -> int:
        return self._num_texts

    @classmethod
    def build(
        cls,
        texts: Iterable[str],
        settings: TextSettings | None = None,
        *,
        k1: float = 1.5,
        b: float = 0.75,
    ) -> Self:
        """Index the words of texts; `k1` bounds repeated words, `b` weights the text's length."""
        import bm25s

        settings = settings or TextSettings()
        ids: dict[str, int] = {}
        rows = [
            array("i", [ids.setdefault(word, len(ids)) for word in words])
            for words in words_of_texts(texts, settings)
        ]
        if not ids:
            return cls(None, len(rows), settings)
        engine = bm25s.BM25(k1=k1, b=b, csc_backend="scipy")
        engine.index((rows, ids), create_empty_token=False, show_progress=False)
        return cls(engine, len(rows), settings)

    def scores(self, query: str) -> np.ndarray:
        """The score of every text for a query; 0 where they share no word."""
        (words,) = words_of_texts([query], self.settings)
        ids = [] if self._engine is None else self._engine.get_tokens_ids(words)
        if not ids:
            return np.zeros(self._num_texts, np.float32)
        found: np.ndarray = self._engine.get_scores_from_ids(ids)
        if not np.isfinite(found).all():
            raise ArtifactError("The BM25 scores of the index are damaged: build it again.")
        return found

    def search(
        self, queries: Sequence[str], num: int, *, is_allowed_N: np.ndarray | None = None
    ) -> list[Found]:
        """For each query the ids and scores of the `num` best texts that share a word with it."""
        return [top_scores(self.scores(query), num, is_allowed_N) for query in queries]

    def save(self, folder: Path) -> None:
        """Write the index into a folder; the caller chooses an atomic location."""
        folder.mkdir(parents=True, exist_ok=True)
        if self._engine is not None:
            self._engine.save(folder, show_progress=False)

    @classmethod
    def load(cls, folder: Path, num_texts: int, settings: TextSettings) -> Self:
        """Map what `save` wrote; the words and the settings are those of `build`."""
        import bm25s

        if not any(folder.iterdir()):
            return cls(None, num_texts, settings)
        with read_errors(folder):
            engine = bm25s.BM25()
            engine.scores = {
                name: map_array(folder / f"{name}.csc.index.npy", 1)
                for name in ("data", "indices", "indptr")
            } | {"num_docs": num_texts}
            engine.vocab_dict = _vocabulary(folder, len(engine.scores["indptr"]))
            engine.nonoccurrence_array = None
            _check(engine, num_texts)
        return cls(engine, num_texts, settings)


def _vocabulary(folder: Path, num_words: int) -> dict[str, int]:
    """The words and their ids, unless the file is far too large."""
    with open_regular(folder / _VOCABULARY) as file:
        content = file.read(limit := max(_SMALL_SIZE, _BYTES_PER_WORD * num_words))
    if len(content) == limit:
        raise ValueError("it has too many words")
    found: dict[str, int] = json.loads(content)
    return found


def _check(engine: Any, num_texts: int) -> None:
    """Raise ValueError for damaged files, before they lead outside their arrays."""
    data, indices, indptr = (engine.scores[name] for name in ("data", "indices", "indptr"))
    is_typed = data.dtype == np.float32 and indices.dtype.kind == indptr.dtype.kind == "i"
    is_flat = data.ndim == indices.ndim == indptr.ndim == 1 and len(data) == len(indices)
    if not (is_typed and is_flat and len(indptr) > 1 and len(data)):
        raise ValueError("its arrays are not those of an index")
    is_inside = indices.min() >= 0 and indices.max() < num_texts
    is_rising = indptr[0] == 0 and indptr[-1] == len(data) and (np.diff(indptr) >= 0).all()
    ids = {*engine.vocab_dict.values()}
    is_known = {*map(type, ids)} == {int} and 0 <= min(ids) <= max(ids) < len(indptr) - 1
    if not (is_inside and is_rising and is_known):
        raise ValueError("it is damaged, or the index of other texts")
