"""BM25 over texts: rows and queries are split into words as everywhere, and bm25s scores them.

Chinese is segmented by rjieba, and the shorter words inside a long one count as well: 足球 finds
足球比赛. Words are lower-cased as the text settings say; nothing is stemmed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from sememe.search.ranking import top_scores
from sememe.storage.folder import read_errors
from sememe.text.characters import is_han
from sememe.text.documents import DocumentBatch
from sememe.text.settings import TextSettings
from sememe.text.stream import segmenter
from sememe.vectors.search import Found

_TEXTS_AT_ONCE = 4_096
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
            engine = bm25s.BM25.load(folder, mmap=True)
            if engine.scores["num_docs"] != num_texts:
                raise ValueError("it is the index of other texts")
        return cls(engine, num_texts, settings)
