"""WordVectors: words with their vectors; look-up, neighbors, analogies. V words, D dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from sememe.contract import KINDS, Model, Token, WordsInContext, checked_finite
from sememe.errors import LookupNote, OptionError, UnknownWordError
from sememe.examples.running_words import is_word, places_in, written
from sememe.notebook import html_table
from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import search
from sememe.vectors.lookup import Match, find_match
from sememe.vectors.search import ApproximateIndex, Found, Query, Terms, as_terms, make_query

Method = Literal["add", "mul"]
_DEFAULT_TEXT = TextSettings()
_NUM_SPELLED = 10_000  # words that show whether all are in lower case


class Neighbor(NamedTuple):
    """A word and its similarity."""

    word: str
    score: float


class Neighbors(list[Neighbor]):
    """Words with their scores, nearest first; a table in notebooks."""

    def _repr_html_(self) -> str:
        return html_table(Neighbor._fields, self)


def _check_num(num: int, restrict_vocab: int | None) -> None:
    for name, given in (
        ("num", num),
        ("restrict_vocab", 1 if restrict_vocab is None else restrict_vocab),
    ):
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
            raise OptionError(f"{name} must be a whole number of at least 1, not {given!r}.")


def _check_layers(layers: Any) -> None:
    if layers != "last":
        raise OptionError(f"Word vectors have no layers, so layers must be last, not {layers!r}.")


class WordVectors(Model):
    """Words with one vector each; a memory map stays a memory map.

    As a model it reads texts by `text` (language, lower case) and gives one vector per text.
    """

    has_subwords = False  # whether words outside the vocabulary have vectors too
    is_pretrained = True  # in a pipeline they are used as they are
    embed_options: Mapping[str, Any] = {"pool": "mean"}
    is_one_hot = False  # whether vectors say only which word it is
    # Given by vectors/opening.py, which builds on this class.
    _load: ClassVar[Callable[..., WordVectors]]
    _save: ClassVar[Callable[[WordVectors, Path], None]]

    def __init__(
        self,
        words: Sequence[str] | Vocabulary,
        vectors: np.ndarray,
        counts: Iterable[int] | None = None,
        *,
        text: TextSettings | None = None,
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
        self._start(text)

    def _start(self, text: TextSettings | None = None) -> None:
        """Initialize the state: no metadata, no cached searches."""
        self.kind = "vectors"
        self._text = text
        # The metadata of the folder or file.
        self.about: dict[str, Any] = {}
        self._inverse_norms: np.ndarray | None = None
        self._index: ApproximateIndex | None = None
        # The folder that these vectors are mapped from; their index is saved there.
        self._folder: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not the index, which is built again."""
        return {**vars(self), "_index": None}

    @property
    def words(self) -> WordVectors:
        """These vectors themselves."""
        return self

    @property
    def vectors(self) -> np.ndarray:
        """The vectors of all words in the order of their ids, (V, D)."""
        return self._table

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
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
            found = np.array(self.vectors[self.vocabulary.id(words)])
        else:
            found = np.array(self.vectors[self.vocabulary.ids(words)]).reshape(-1, self.dim)
        return checked_finite(KINDS[self.kind].title, found)

    def count(self, word: str) -> int:
        """How often `word` occurred in training; 0 if the file does not say."""
        return int(self.vocabulary.counts[self.vocabulary.id(word)])

    def __repr__(self) -> str:
        first = ", ".join(self.vocabulary[:3]) + (", …" if len(self) > 3 else "")
        return f"WordVectors({len(self):,} words × {self.dim} dimensions: {first})"

    def describe(self) -> dict[str, Any]:
        """The kind, sizes and text settings, and the metadata of the folder or file."""
        known = ("kind", "words", "dim", "text", "plan")
        return {
            **super().describe(),
            "words": len(self),
            "dim": self.dim,
            "occurrences": int(self.vocabulary.counts.sum()),
            "text": self.text.to_dict(),
            **{name: value for name, value in self.about.items() if name not in known},
        }

    # ---- queries ---------------------------------------------------------------------------------

    @property
    def text(self) -> TextSettings:
        """How texts are split into words; by default as for English."""
        return self._text or _DEFAULT_TEXT

    @text.setter
    def text(self, text: TextSettings) -> None:
        self._text = text

    @property
    def has_text_settings(self) -> bool:
        """Whether it is known how the corpus was prepared; files of other programs do not say."""
        return self._text is not None

    @cached_property
    def is_lower_case(self) -> bool:
        """Whether the most frequent words are all in lower case, as in many vector files."""
        words = self.vocabulary[: min(len(self), _NUM_SPELLED)]
        return any(word != word.upper() for word in words) and all(
            word == word.lower() for word in words
        )

    def look_up(self, word: str) -> Match:
        """Find the words that answer a query: itself, else as the corpus was prepared.

        `Germany` finds germany in a lower-case model, `New York` the phrase new_york. A query that
        the tokenizer splits into known words is answered by their mean vector. `vectors[word]` and
        `word in vectors` take the exact word instead.
        """
        return find_match(self, word)

    def query_vector(self, word: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """The vector (D,) of a query by `look_up`, and its words; a note if they differ from it."""
        found = self.look_up(word)
        if found.note:
            warnings.warn(found.note, LookupNote, stacklevel=5)  # who called neighbors
        return self[found.words].mean(0), found.words

    def query_vectors(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of queries by `look_up`, (words, D); one error names all unknown ones."""
        rows, unknown = [], []
        for word in words:
            try:
                rows.append(self.query_vector(word)[0])
            except UnknownWordError:
                unknown.append(word)
        if len(unknown) > 1:
            self.vocabulary.ids(unknown)  # raises
        elif unknown:
            self.look_up(*unknown)
        return np.array(rows, np.float32).reshape(-1, self.dim)

    # ---- texts and sentences --------------------------------------------------------------------

    def has_vector(self, word: str) -> bool:
        """Whether a word has a vector: it was seen in training, or has sub-words."""
        return self.has_subwords or word in self

    def spelling(self, word: str) -> str:
        """The word as the vectors know it: as written, or else in lower case."""
        return word if word in self or word.lower() not in self else word.lower()

    def _segment(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text that have a vector, tokenized by `text`."""
        from sememe.text.stream import cut_texts

        self.check_list(texts)
        return [
            [word for sentence in sentences for word in sentence if self.has_vector(word)]
            for sentences in cut_texts(texts, self.text)
        ]

    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """The mean or maximum over the known words of each text, (texts, D); zeros without one."""
        if pool not in ("mean", "max"):
            raise OptionError(f"Word vectors are pooled by mean or max, not by {pool!r}.")
        _check_layers(layers)
        if pool == "mean" and self.embeds_ids:
            return self._mean_rows(self.token_ids(texts))
        found_ND = np.zeros((len(texts), self.dim), np.float32)
        for row_D, words in zip(found_ND, self._segment(texts), strict=True):
            if words:
                row_D[:] = self[words].mean(0) if pool == "mean" else self[words].max(0)
        return found_ND

    @property
    def embeds_ids(self) -> bool:
        """Whether the ids of its words determine the vector of a text."""
        return not self.has_subwords and not self.is_one_hot

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of the words of each text; -1 for unknown words."""
        from sememe.text.stream import cut_texts

        self.check_list(texts)
        find = self.vocabulary.find
        return [
            [find(word) for sentence in sentences for word in sentence]
            for sentences in cut_texts(texts, self.text)
        ]

    def embed_token_ids(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """The mean over the known words of each text given as ids; -1 is an unknown word."""
        if not self.embeds_ids:
            raise OptionError("These vectors take texts, not token ids.")
        num = len(self)
        for own in ids:
            if len(own) and not (min(own) >= -1 and max(own) < num):
                word_id = next(one for one in own if not -1 <= one < num)
                raise OptionError(
                    f"Token id {word_id} does not exist: ids are 0 to {num - 1:,}, "
                    "and -1 for an unknown word."
                )
        return self._mean_rows(ids)

    def _mean_rows(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        from sememe.vectors.kernels import mean_rows

        found_ND = np.zeros((len(ids), self.dim), np.float32)
        known = [[word_id for word_id in own if word_id >= 0] for own in ids]
        ends = np.fromiter(accumulate(map(len, known)), np.int64, len(known))
        rows = np.fromiter(chain.from_iterable(known), np.int32, ends[-1] if len(ends) else 0)
        mean_rows(ends, rows, self.vectors.reshape(-1), self.dim, found_ND)
        return found_ND

    def tokenize(self, texts: Sequence[str]) -> list[list[Token]]:
        """The words of each text, known or not, with their places."""
        self.check_list(texts)
        return [
            [
                Token(
                    self.vocabulary.find(written(text[start:end], self.text)),
                    text[start:end],
                    start,
                    end,
                )
                for start, end in places
                if is_word(text[start:end], self.text)
            ]
            for text, places in zip(texts, places_in(texts, self.text), strict=True)
        ]

    def embed_words(
        self, sentences: Sequence[Sequence[str]] | Sequence[str], *, layers: Any = "last"
    ) -> list[np.ndarray]:
        """The vectors of the words of each sentence, (words, D), independent of context.

        A list of words gets a row for each, in lower case if only that is known, zeros if unknown;
        a text gets rows for its known words.
        """
        self.check_list(sentences, (str, Iterable))
        _check_layers(layers)
        cut = iter(self._segment([one for one in sentences if isinstance(one, str)]))
        return [self._rows_of(next(cut) if isinstance(one, str) else one) for one in sentences]

    def _rows_of(self, words: Sequence[str]) -> np.ndarray:
        rows_WD = np.zeros((len(words), self.dim), np.float32)
        spelled = [self.spelling(word) for word in words]
        known = [index for index, word in enumerate(spelled) if self.has_vector(word)]
        if known:
            rows_WD[known] = self[[spelled[index] for index in known]]
        return rows_WD

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """One layer: the vectors do not depend on context."""
        return (self.dim,)

    def embed_spans(
        self,
        texts: Sequence[str],
        spans: Sequence[np.ndarray] | None = None,
        *,
        layers: Any = "last",
    ) -> Iterator[WordsInContext]:
        """The words of each text, known or not, with their positions and vectors."""
        self.check_list(texts)
        _check_layers(layers)
        cut: Iterable[Any] = places_in(texts, self.text) if spans is None else spans
        for text, places in zip(texts, cut, strict=True):
            if spans is None:
                places = [place for place in places if is_word(text[slice(*place)], self.text)]
            starts, ends = np.array(places, np.int64).reshape(-1, 2).T
            words = [written(text[start:end], self.text) for start, end in places]
            is_known_W = [self.has_vector(self.spelling(word)) for word in words]
            yield WordsInContext(
                words, starts, ends, self._rows_of(words), np.array(is_known_W, np.bool_)
            )

    # ---- search ---------------------------------------------------------------------------------

    def _inverse(self) -> np.ndarray:
        # Once for all searches: 400,000 × 100 take about 0.1 s.
        if self._inverse_norms is None:
            self._inverse_norms = search.inverse_norms(self.vectors)
        return self._inverse_norms

    def _nearest(self, units_QD: np.ndarray, num: int, restrict_vocab: int | None) -> list[Found]:
        """The ids and scores of the words of largest cosine among the first ones."""
        rows = slice(restrict_vocab)
        return search.nearest(self.vectors[rows], self._inverse()[rows], units_QD, num)

    def _nearest_by_product(
        self, units_TD: np.ndarray, is_positive: np.ndarray, num: int, restrict_vocab: int | None
    ) -> Found:
        """The ids and scores of the words of largest 3CosMul among the first ones."""
        rows, inverse = self.vectors[:restrict_vocab], self._inverse()[:restrict_vocab]
        return search.nearest_by_product(rows, inverse, units_TD, is_positive, num)

    def _named(
        self, ids: np.ndarray, scores: np.ndarray, hidden: Iterable[int], num: int
    ) -> list[Neighbor]:
        hidden = set(hidden)
        pairs = zip(ids.tolist(), scores.tolist(), strict=True)
        kept = [(word_id, score) for word_id, score in pairs if word_id not in hidden][:num]
        return Neighbors(Neighbor(self.vocabulary[word_id], score) for word_id, score in kept)

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
        """Find the words with the largest cosine to a word, a vector, or a sum of several.

        `positive` terms are added and `negative` ones subtracted; a term is a word, a vector, or a
        pair of either with a weight. Words are normalized before they are added, as in gensim,
        unless `normalize=False`. `restrict_vocab` searches only that many first words;
        `approximate` uses the index instead of scanning every word.
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
        """Find the neighbors of each word or vector; faster than separate calls."""
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
        _check_num(num, restrict_vocab)
        if not queries:
            raise OptionError("Give at least one word or vector to search with.")
        hidden = [[] if include_inputs else query.ids for query in queries]
        wanted = num + max(len(ids) for ids in hidden)
        units_QD = np.array([query.direction for query in queries])
        if approximate:
            if restrict_vocab is not None:
                raise OptionError("The index holds every word: restrict_vocab needs exact search.")
            found = search.nearest_approximately(self.index(), self.vectors, units_QD, wanted)
        else:
            found = self._nearest(units_QD, wanted, restrict_vocab)
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
        """Answer many questions (a, b, c) together; faster than separate calls."""
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
        """Find the words with the largest 3CosMul: a product of cosines instead of a sum."""
        _check_num(num, restrict_vocab)
        query = make_query(self, positive, negative, normalize=True)
        if not np.isin(query.weights, (-1.0, 1.0)).all():
            raise OptionError("3CosMul takes no weights.")
        hidden = [] if include_inputs else query.ids
        units_TD, wanted = search.unit_rows(query.terms), num + len(hidden)
        found = self._nearest_by_product(units_TD, query.weights > 0, wanted, restrict_vocab)
        return self._named(*found, hidden, num)

    def similarity(self, a: str | np.ndarray, b: str | np.ndarray) -> float:
        """The cosine of two words or vectors; 0 if one of them is a zero vector."""
        units = [make_query(self, [term], None, normalize=True).direction for term in (a, b)]
        return float(units[0] @ units[1])

    def similarities(
        self, word: str | np.ndarray, others: Sequence[str] | None = None
    ) -> np.ndarray:
        """The cosines of `word` with the words `others`, or with every word in the order of ids."""
        unit_D = make_query(self, [word], None, normalize=True).direction
        rows_ND = self.vectors if others is None else self.query_vectors(others)
        return search.cosines(rows_ND, np.arange(len(rows_ND)), unit_D[None])[:, 0]

    def odd_one_out(self, words: Sequence[str]) -> str:
        """The word furthest from the mean of the unit vectors of all of them."""
        if isinstance(words, str) or len(words) < 3:
            raise OptionError(f"Give at least three words to find the odd one, not {words!r}.")
        units = search.unit_rows(self.query_vectors(words))
        scores = units @ search.unit(units.mean(axis=0))
        return min(zip(scores.tolist(), words, strict=True))[1]

    def subset(self, words: Iterable[str]) -> WordVectors:
        """The vectors of these words, in this order; duplicates are dropped."""
        if isinstance(words, str):
            raise OptionError("subset expects a list of words, not one string.")
        kept = list(dict.fromkeys(words))
        if not kept:
            raise OptionError("Give at least one word to keep.")
        rows_ND = self[kept]
        counts = [self.count(word) if word in self else 0 for word in kept]
        return WordVectors(kept, rows_ND, counts, text=self._text)

    def normalized(self) -> WordVectors:
        """The same words with vectors of length 1; zero vectors stay zero."""
        units = np.empty(self.vectors.shape, np.float32)
        for start in range(0, len(self), 8_192):
            units[start : start + 8_192] = search.unit_rows(self.vectors[start : start + 8_192])
        return WordVectors(self.vocabulary, units, text=self._text)

    def condensed(self, texts: Iterable[str], limit: int | None = None) -> WordVectors:
        """These vectors; one-hot ones are reduced to what questions about `texts` need."""
        return self

    def index(self) -> ApproximateIndex:
        """The approximate index: opened or built once, saved next to vectors that have a folder."""
        if self._index is None:
            self._index = search.open_or_build(self.vectors, self._folder)
        return self._index

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load` memory-maps without reading it."""
        type(self)._save(self, Path(folder))

    @classmethod
    def load(cls, path: str | Path, limit: int | None = None) -> WordVectors:
        """Open a folder of sememe or a vector file of any known format, the first `limit` words."""
        return cls._load(path, limit)
