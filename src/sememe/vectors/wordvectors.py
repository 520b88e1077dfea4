"""WordVectors: words with their vectors; look-up, neighbors, analogies. V words, D numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import search
from sememe.vectors.index import ApproximateIndex, nearest_approximately, open_or_build
from sememe.vectors.queries import Query, Terms, as_terms, make_query

Method = Literal["add", "mul"]


class Neighbor(NamedTuple):
    """A word and how near it is."""

    word: str
    score: float


def _check_num(num: int, name: str = "num") -> None:
    if isinstance(num, bool) or not isinstance(num, int | np.integer) or num < 1:
        raise OptionError(f"{name} must be a whole number of at least 1, not {num!r}.")


class WordVectors:
    """Words with one vector each; a memory map stays a memory map."""

    def __init__(
        self,
        words: Sequence[str] | Vocabulary,
        vectors: np.ndarray,
        counts: Iterable[int] | None = None,
    ) -> None:
        vectors = np.ascontiguousarray(np.asarray(vectors), np.float32)
        if vectors.ndim != 2 or 0 in vectors.shape:
            raise OptionError(
                f"Vectors must be a table of at least one row and column, not {vectors.shape}."
            )
        self.vocabulary = Vocabulary.of(words, counts)
        if not len(self.vocabulary) == len(vectors) == len(self.vocabulary.counts):
            raise OptionError(
                f"Each word needs one vector and one count: {len(self.vocabulary):,} words, "
                f"{len(vectors):,} vectors and {len(self.vocabulary.counts):,} counts were given."
            )
        self._table = vectors
        self._start()

    def _start(self) -> None:
        """Nothing has been searched yet."""
        self._inverse_norms: np.ndarray | None = None
        self._index: ApproximateIndex | None = None
        # The folder that these vectors are mapped from; their index is kept there.
        self._folder: Path | None = None

    @property
    def vectors(self) -> np.ndarray:
        """The vectors of all words in the order of their ids, (V, D)."""
        return self._table

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __iter__(self) -> Iterator[str]:
        return iter(self.vocabulary)

    def __getitem__(self, words: str | Sequence[str]) -> np.ndarray:
        """The vector of a word (D,), or those of several (len, D); copies."""
        if isinstance(words, str):
            return np.array(self.vectors[self.vocabulary.id(words)])
        return np.array(self.vectors[self.vocabulary.ids(words)]).reshape(-1, self.dim)

    def count(self, word: str) -> int:
        """How often `word` was seen in training; 0 where the file did not say."""
        return int(self.vocabulary.counts[self.vocabulary.id(word)])

    def __repr__(self) -> str:
        first = ", ".join(self.vocabulary[:3]) + (", …" if len(self) > 3 else "")
        return f"WordVectors({len(self):,} words × {self.dim} numbers: {first})"

    def _inverse(self) -> np.ndarray:
        # Once for all searches: 400,000 × 100 take about 0.1 s.
        if self._inverse_norms is None:
            self._inverse_norms = search.inverse_norms(self.vectors)
        return self._inverse_norms

    def _rows(self, restrict_vocab: int | None) -> tuple[np.ndarray, np.ndarray]:
        if restrict_vocab is None:
            return self.vectors, self._inverse()
        _check_num(restrict_vocab, "restrict_vocab")
        return self.vectors[:restrict_vocab], self._inverse()[:restrict_vocab]

    def _named(
        self, ids: np.ndarray, scores: np.ndarray, hidden: Iterable[int], num: int
    ) -> list[Neighbor]:
        hidden = set(hidden)
        pairs = zip(ids.tolist(), scores.tolist(), strict=True)
        kept = [(word_id, score) for word_id, score in pairs if word_id not in hidden][:num]
        return [Neighbor(self.vocabulary[word_id], score) for word_id, score in kept]

    def neighbors(
        self,
        word: Terms | None = None,
        *,
        positive: Terms | None = None,
        negative: Terms | None = None,
        num: int = 10,
        restrict_vocab: int | None = None,
        include_inputs: bool = False,
        normalize: bool = True,
        approximate: bool = False,
    ) -> list[Neighbor]:
        """Find the words of largest cosine with a word, a vector, or a sum of several.

        `positive` terms are added and `negative` ones subtracted; a term is a word, a vector, or a
        pair of either with a weight. Words enter the sum at length 1, as gensim does it, or as
        they are with `normalize=False`. `restrict_vocab` looks among that many first words only;
        `approximate` asks the index instead of looking at every word.
        """
        added = as_terms(word) + as_terms(positive)
        query = make_query(self, added, negative, normalize=normalize)
        return self._search([query], num, restrict_vocab, include_inputs, approximate)[0]

    def neighbors_of_many(
        self,
        words: Sequence[Terms] | np.ndarray,
        num: int = 10,
        *,
        restrict_vocab: int | None = None,
        include_inputs: bool = False,
        approximate: bool = False,
    ) -> list[list[Neighbor]]:
        """Find the neighbors of each word or vector; faster than one call for each."""
        if isinstance(words, str):
            raise OptionError("neighbors_of_many expects a list of words, not one string.")
        queries = [make_query(self, word, None, normalize=True) for word in words]
        return self._search(queries, num, restrict_vocab, include_inputs, approximate)

    def _search(
        self,
        queries: list[Query],
        num: int,
        restrict_vocab: int | None,
        include_inputs: bool,
        approximate: bool = False,
    ) -> list[list[Neighbor]]:
        _check_num(num)
        if not queries:
            raise OptionError("Give at least one word or vector to search with.")
        hidden = [[] if include_inputs else query.ids for query in queries]
        wanted = num + max(len(ids) for ids in hidden)
        units_QD = np.array([query.direction for query in queries])
        if approximate:
            if restrict_vocab is not None:
                raise OptionError("The index holds every word: restrict_vocab needs exact search.")
            found = nearest_approximately(self.index(), self.vectors, units_QD, wanted)
        else:
            found = search.nearest(*self._rows(restrict_vocab), units_QD, wanted)
        return [self._named(*best, ids, num) for best, ids in zip(found, hidden, strict=True)]

    def analogy(
        self,
        a: str | np.ndarray,
        b: str | np.ndarray,
        c: str | np.ndarray,
        num: int = 1,
        *,
        method: Method = "add",
        restrict_vocab: int | None = None,
        include_inputs: bool = False,
        normalize: bool = True,
    ) -> list[Neighbor]:
        """Answer “a is to b as c is to ?” by 3CosAdd (`add`) or 3CosMul (`mul`)."""
        if method == "add":
            query = make_query(self, [b, c], [a], normalize=normalize)
            return self._search([query], num, restrict_vocab, include_inputs)[0]
        if method != "mul":
            raise OptionError(f"method must be add or mul, not {method!r}.")
        return self.neighbors_by_product(
            [b, c], [a], num=num, restrict_vocab=restrict_vocab, include_inputs=include_inputs
        )

    def analogies(
        self,
        questions: Sequence[tuple[str, str, str]],
        num: int = 1,
        *,
        method: Method = "add",
        restrict_vocab: int | None = None,
        include_inputs: bool = False,
    ) -> list[list[Neighbor]]:
        """Answer many questions (a, b, c) together; faster than one call for each."""
        options = {"restrict_vocab": restrict_vocab, "include_inputs": include_inputs}
        if method != "add":
            return [self.analogy(a, b, c, num, method=method, **options) for a, b, c in questions]  # type: ignore[arg-type]
        queries = [make_query(self, [b, c], [a], normalize=True) for a, b, c in questions]
        return self._search(queries, num, **options)  # type: ignore[arg-type]

    def neighbors_by_product(
        self,
        positive: Terms,
        negative: Terms | None = None,
        *,
        num: int = 10,
        restrict_vocab: int | None = None,
        include_inputs: bool = False,
    ) -> list[Neighbor]:
        """Find the words of largest 3CosMul: a product of cosines instead of a sum."""
        _check_num(num)
        query = make_query(self, positive, negative, normalize=True)
        if not np.isin(query.weights, (-1.0, 1.0)).all():
            raise OptionError("3CosMul takes no weights.")
        rows, inverse = self._rows(restrict_vocab)
        hidden = [] if include_inputs else query.ids
        found = search.nearest_by_product(
            rows, inverse, search.unit_rows(query.terms), query.weights > 0, num + len(hidden)
        )
        return self._named(*found, hidden, num)

    def similarity(self, a: str | np.ndarray, b: str | np.ndarray) -> float:
        """The cosine of two words or vectors; 0 where one of them is a zero vector."""
        units = [make_query(self, [term], None, normalize=True).direction for term in (a, b)]
        return float(units[0] @ units[1])

    def similarities(
        self, word: str | np.ndarray, others: Sequence[str] | None = None
    ) -> np.ndarray:
        """The cosines of `word` with the words `others`, or with every word in the order of ids."""
        unit_D = make_query(self, [word], None, normalize=True).direction
        rows_ND = self.vectors if others is None else self[others]
        return search.cosines(rows_ND, np.arange(len(rows_ND)), unit_D[None])[:, 0]

    def odd_one_out(self, words: Sequence[str]) -> str:
        """The word furthest from the mean of the unit vectors of all of them."""
        if isinstance(words, str) or len(words) < 3:
            raise OptionError(f"Give at least three words to find the odd one, not {words!r}.")
        units = search.unit_rows(self[words])
        scores = units @ search.unit(units.mean(axis=0))
        return min(zip(scores.tolist(), words, strict=True))[1]

    def subset(self, words: Iterable[str]) -> WordVectors:
        """The vectors of these words alone, in this order; a word given twice is kept once."""
        if isinstance(words, str):
            raise OptionError("subset expects a list of words, not one string.")
        kept = list(dict.fromkeys(words))
        if not kept:
            raise OptionError("Give at least one word to keep.")
        rows_ND = self[kept]
        counts = [self.count(word) if word in self else 0 for word in kept]
        return WordVectors(kept, rows_ND, counts)

    def normalized(self) -> WordVectors:
        """The same words with vectors of length 1; zero vectors stay zero."""
        unit_rows = np.empty(self.vectors.shape, np.float32)
        for start in range(0, len(self), 8_192):
            unit_rows[start : start + 8_192] = search.unit_rows(self.vectors[start : start + 8_192])
        return WordVectors(self.vocabulary, unit_rows)

    def index(self) -> ApproximateIndex:
        """The approximate index: opened or built once, kept beside vectors that have a folder."""
        if self._index is None:
            self._index = open_or_build(self, self._folder)
        return self._index

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load` maps back without reading it."""
        from sememe.vectors.folder import save_folder

        save_folder(self, Path(folder))

    @classmethod
    def load(cls, path: str | Path, limit: int | None = None) -> WordVectors:
        """Open a folder of ours or a vector file of any known format, the first `limit` words."""
        from sememe.vectors.loading import load

        return load(path, limit)
