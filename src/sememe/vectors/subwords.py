"""Words whose vectors are means of rows, plain or quantised. V words, D dimensions.

An unseen word gets the mean of the rows of its character n-grams, computed as in Facebook's
program: in the order of the rows and in float32. A quantised row (Jégou et al. 2011; Joulin et al.
2016) has one byte per part.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.machine import available_cores
from sememe.tokens.ngrams import (
    FLORET_SEED,
    Marks,
    check_options,
    floret_rows,
    floret_rows_of_all,
    keep_ngrams,
    ngram_rows,
    ngram_rows_of,
)
from sememe.tokens.vocabulary import Vocabulary, read_only
from sememe.vectors.wordvectors import WordVectors

NUM_CENTROIDS = 256


@dataclass(frozen=True)
class ProductQuantizer:
    """Centroids of each part: flat float32, 256 rows for the first part, then for the next.

    Every part has `part_size` dimensions, except for a shorter last one.
    """

    part_size: int
    centroids: np.ndarray

    @property
    def dim(self) -> int:
        """Dimensions of a row."""
        return len(self.centroids) // NUM_CENTROIDS

    @property
    def num_parts(self) -> int:
        """The bytes of a row."""
        return -(-self.dim // self.part_size)

    @property
    def last_part_size(self) -> int:
        """Dimensions of the last part."""
        return self.dim - (self.num_parts - 1) * self.part_size

    def part(self, index: int) -> np.ndarray:
        """The centroids of a part, (256, size of the part)."""
        start, end = (NUM_CENTROIDS * self.part_size * at for at in (index, index + 1))
        return self.centroids[start:end].reshape(NUM_CENTROIDS, -1)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The rows (N, dim) for codes (N, num_parts)."""
        parts = [self.part(index)[codes[:, index]] for index in range(self.num_parts)]
        return np.concatenate(parts, axis=1, dtype=np.float32)


@dataclass(frozen=True)
class QuantizedMatrix:
    """A matrix as codes (rows, num_parts), with or without quantised norms."""

    codes: np.ndarray
    quantizer: ProductQuantizer
    norm_codes: np.ndarray | None = None
    norm_quantizer: ProductQuantizer | None = None

    def __post_init__(self) -> None:
        """Raise an error for what no kernel could read."""
        num_rows = len(self.codes)
        checked: list[Any] = [(self.codes, self.quantizer, (num_rows, self.quantizer.num_parts))]
        if self.norm_codes is not None and self.norm_quantizer is not None:
            checked.append((self.norm_codes, self.norm_quantizer, (num_rows,)))
        for codes, quantizer, shape in checked:
            centroids = quantizer.centroids
            if (
                (codes.dtype, codes.shape, centroids.dtype) != (np.uint8, shape, np.float32)
                or centroids.shape != (NUM_CENTROIDS * quantizer.dim,)
                or not 1 <= quantizer.part_size <= quantizer.dim
            ):
                raise ValueError(
                    f"codes of shape {codes.shape} and {centroids.size:,} centroids in parts of "
                    f"{quantizer.part_size} do not fit each other"
                )

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and their dimensions."""
        return len(self.codes), self.quantizer.dim

    @property
    def nbytes(self) -> int:
        """The bytes that the codes and centroids take."""
        arrays = [self.codes, self.quantizer.centroids]
        if self.norm_codes is not None and self.norm_quantizer is not None:
            arrays += [self.norm_codes, self.norm_quantizer.centroids]
        return sum(array.nbytes for array in arrays)

    def directions(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """The rows `ids` from the centroids, before they are scaled by their norms."""
        return self.quantizer.decode(self.codes[np.asarray(ids, np.int64)])

    def norms(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """The quantised norms of the rows `ids` in float32; 1 if there are none."""
        ids = np.asarray(ids, np.int64)
        if self.norm_codes is None or self.norm_quantizer is None:
            return np.ones(len(ids), np.float32)
        return self.norm_quantizer.centroids[self.norm_codes[ids]].astype(np.float32)

    def rows(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """The rows `ids` in float32, (len(ids), dim)."""
        return self.norms(ids)[:, None] * self.directions(ids)

    def sum(self, ids: np.ndarray | Sequence[int]) -> np.ndarray:
        """Add up the rows `ids` in this order, rounding like Facebook's program, (dim,).

        Compilers fuse the multiplication of a norm and a centroid with the addition; float64 holds
        that product exactly.
        """
        total = np.zeros(self.shape[1], np.float32)
        norms = self.norms(ids).astype(np.float64)
        for norm, direction in zip(norms, self.directions(ids), strict=True):
            total = (total + norm * direction).astype(np.float32)
        return total


Table = np.ndarray | QuantizedMatrix

_BLOCK_WORDS = 2_048


@dataclass(frozen=True)
class NGrams:
    """fastText's scheme: the word's own row, then a row for each of its n-grams.

    `words` are those with their own rows; `spellings` their bytes if some are not UTF-8; `pruned`
    (N, 2) maps buckets to rows, None if all buckets have one.
    """

    words: Vocabulary
    minn: int
    maxn: int
    bucket: int
    pruned: np.ndarray | None = None
    spellings: Vocabulary | None = None

    def __post_init__(self) -> None:
        pruned = self.pruned
        if pruned is not None:
            if (
                pruned.dtype.kind not in "iu"
                or pruned.shape[1:] != (2,)
                or np.any((pruned < 0) | (pruned >= (self.bucket, len(pruned))))
            ):
                raise OptionError("The list of kept n-grams names buckets or rows out of range.")
            order = np.argsort(pruned[:, 0], kind="stable")
            object.__setattr__(self, "pruned", pruned[order].astype(np.int32))

    @property
    def can_compose(self) -> bool:
        """Whether there are n-grams."""
        has_rows = self.bucket > 0 if self.pruned is None else len(self.pruned) > 0
        return has_rows and self.maxn >= max(1, self.minn)

    def rows_of(self, word: str) -> np.ndarray:
        """The word's own row, if it has one, and those of its n-grams."""
        word_id = self.words.find(word)
        if word_id >= 0 and self.spellings is not None:
            return self.rows_between(word_id, word_id + 1)[1]
        own = np.array([word_id] if word_id >= 0 else [], np.int32)
        found = ngram_rows_of(word, len(self.words), self.minn, self.maxn, self.bucket)
        rows = np.concatenate([own, found])
        if self.pruned is None:
            return rows
        return keep_ngrams(np.array([len(rows)]), rows, len(self.words), self.pruned)[1]

    def rows_between(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of some words, by compiled code."""
        words = self.words if self.spellings is None else self.spellings
        ends, rows = ngram_rows(words, self.minn, self.maxn, self.bucket, first=first, last=last)
        if self.pruned is None:
            return ends, rows
        return keep_ngrams(ends, rows, len(self.words), self.pruned)

    def options(self) -> dict[str, Any]:
        """The sizes of n-grams and the buckets they are hashed into."""
        return {"minn": self.minn, "maxn": self.maxn, "bucket": self.bucket}


@dataclass(frozen=True)
class HashedWords:
    """floret's scheme: `hash_count` rows for the word, and as many for each n-gram.

    No word has its own row; `words` are only those that a search considers.
    """

    words: Vocabulary
    minn: int
    maxn: int
    bucket: int
    hash_count: int
    seed: int = FLORET_SEED
    marks: Marks = field(default_factory=Marks)

    @property
    def can_compose(self) -> bool:
        """Every word has a vector."""
        return True

    def rows_of(self, word: str) -> np.ndarray:
        """The rows of the word and its n-grams."""
        return floret_rows(
            word, self.minn, self.maxn, self.bucket, self.hash_count, seed=self.seed,
            marks=self.marks,
        )  # fmt: skip

    def rows_between(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of some words, by compiled code."""
        return floret_rows_of_all(
            self.words, self.minn, self.maxn, self.bucket, self.hash_count, seed=self.seed,
            marks=self.marks, first=first, last=last,
        )  # fmt: skip

    def options(self) -> dict[str, Any]:
        """The sizes of n-grams, the buckets, and how words are hashed into them."""
        before, after = (mark.decode("utf-8", "surrogatepass") for mark in self.marks)
        return {
            "minn": self.minn, "maxn": self.maxn, "bucket": self.bucket,
            "hash_count": self.hash_count, "hash_seed": self.seed, "before": before,
            "after": after,
        }  # fmt: skip


# Two ways from a word to rows of a table.
Subwords = NGrams | HashedWords


def mean_row(table: Table, rows: np.ndarray) -> np.ndarray:
    """The mean (D,) of some rows of a table; zero without rows."""
    if isinstance(table, QuantizedMatrix):
        total = table.sum(rows)
    else:
        total = np.zeros(table.shape[1], np.float32)
        for row in rows.tolist():
            total += table[row]
    return total * np.float32(1.0 / len(rows)) if len(rows) else total


def compose_words(subwords: Subwords, table: Table, num_words: int) -> np.ndarray:
    """The vectors (V, D) of the first words of the vocabulary, on all cores."""
    vectors_VD = np.empty((num_words, table.shape[1]), np.float32)

    def compose(first: int) -> None:
        last = min(first + _BLOCK_WORDS, num_words)
        _mean_rows(table, *subwords.rows_between(first, last), vectors_VD[first:last])

    with ThreadPoolExecutor(available_cores()) as pool:
        list(pool.map(compose, range(0, num_words, _BLOCK_WORDS)))
    return vectors_VD


def _mean_rows(table: Table, ends: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    from sememe.vectors.kernels import mean_quantized, mean_rows

    if isinstance(table, QuantizedMatrix):
        quantizer, norms, norm_codes = table.quantizer, np.ones(1, np.float32), table.norm_codes
        if table.norm_quantizer is not None:
            norms = table.norm_quantizer.centroids
        if norm_codes is None:
            norm_codes = np.zeros(len(table), np.uint8)
        mean_quantized(
            ends, rows, read_only(table.codes.reshape(-1)), read_only(norm_codes),
            read_only(quantizer.centroids), read_only(norms), quantizer.num_parts,
            quantizer.part_size, out,
        )  # fmt: skip
    else:
        flat, step = _flattened(table)
        mean_rows(ends, rows, flat, step, out)


def _flattened(table: np.ndarray) -> tuple[np.ndarray, int]:
    """A matrix, perhaps with padded rows, as a flat array; and the distance of its rows."""
    if table.strides[1] != 4 or table.strides[0] < 4 * table.shape[1]:
        table = np.ascontiguousarray(table)
    step = table.strides[0] // 4
    size = step * (len(table) - 1) + table.shape[1]
    return np.lib.stride_tricks.as_strided(np.asarray(table), (size,), (4,), writeable=False), step


def cut_table(table: Table, num_words: int, num_all: int) -> Table:
    """The rows of the first `num_words` of `num_all` words, and those of the n-grams."""
    if num_words == num_all:
        return table

    def cut(rows: np.ndarray) -> np.ndarray:
        return np.concatenate([rows[:num_words], rows[num_all:]])

    if not isinstance(table, QuantizedMatrix):
        return cut(table)
    norm_codes = None if table.norm_codes is None else cut(table.norm_codes)
    return replace(table, codes=cut(table.codes), norm_codes=norm_codes)


class SubwordVectors(WordVectors):
    """Words whose vectors are means of rows; other words get theirs from n-grams.

    `table` has the rows of the words, then those of the buckets; it may be memory-mapped or
    quantised, and is never copied. `"word" in vectors` says whether a word was seen in training.
    The vectors of all words are computed at the first search, on all cores.
    """

    def __init__(
        self,
        words: Sequence[str] | Vocabulary,
        table: Table,
        *,
        minn: int = 3,
        maxn: int = 6,
        bucket: int | None = None,
        pruned: np.ndarray | None = None,
        spellings: Vocabulary | None = None,
        limit: int | None = None,
    ) -> None:
        """Take the rows of `words` and of `bucket` n-grams; searches use `limit` words.

        `pruned` and `spellings` are those of a FastTextFile. Without `bucket` the rows after the
        words are counted.
        """
        vocabulary = Vocabulary.of(words)
        num_rows = len(table) - len(vocabulary)
        bucket = num_rows if bucket is None else bucket
        expected = bucket if pruned is None else len(pruned)
        if not len(vocabulary) or len(table.shape) != 2 or num_rows != expected:
            raise OptionError(
                f"{len(vocabulary):,} words and {expected:,} n-grams do not fit a table of shape "
                f"{tuple(table.shape)}."
            )
        check_options(len(vocabulary), minn, maxn, bucket)
        scheme = NGrams(vocabulary, minn, maxn, bucket, pruned, spellings)
        self._take(vocabulary, table, scheme, limit)

    @classmethod
    def hashed(
        cls,
        table: np.ndarray,
        *,
        minn: int,
        maxn: int,
        hash_count: int,
        seed: int = FLORET_SEED,
        marks: Marks = Marks(),
        words: Sequence[str] | Vocabulary = (),
        limit: int | None = None,
    ) -> SubwordVectors:
        """Take a compact table as in floret: every word is hashed into its rows.

        `words` are those that searches consider; the table itself has none.
        """
        vocabulary = Vocabulary.of(words)
        if table.ndim != 2 or 0 in table.shape:
            raise OptionError(f"A table of rows was expected, not one of shape {table.shape}.")
        scheme = HashedWords(vocabulary, minn, maxn, len(table), hash_count, seed, marks)
        scheme.rows_of("")  # refuses options that no table could serve
        vectors = cls.__new__(cls)
        vectors._take(vocabulary, table, scheme, limit)
        return vectors

    def with_words(self, words: Sequence[str] | Vocabulary) -> SubwordVectors:
        """The same compact table, searched among other words."""
        if not isinstance(self.subwords, HashedWords):
            raise OptionError("Words with rows of their own cannot be exchanged for others.")
        vocabulary = Vocabulary.of(words)
        vectors = type(self).__new__(type(self))
        vectors._take(vocabulary, self.table, replace(self.subwords, words=vocabulary), None)
        return vectors

    def _take(
        self, vocabulary: Vocabulary, table: Table, subwords: Subwords, limit: int | None
    ) -> None:
        if not isinstance(table, QuantizedMatrix) and table.dtype != np.float32:
            table = np.asarray(table, np.float32)
        self.vocabulary = vocabulary if limit is None else vocabulary.cut(limit)
        self.table, self.subwords = table, subwords
        self._composed: np.ndarray | None = None
        self._start()

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.table.shape[1])

    @property
    def vectors(self) -> np.ndarray:
        """The vectors of all words (V, D), computed when first needed."""
        if not len(self.vocabulary):
            raise OptionError("No words to search among: give some with `with_words`.")
        if self._composed is None:
            composed = compose_words(self.subwords, self.table, len(self.vocabulary))
            is_finite = np.isfinite(composed.sum(axis=1))
            if not is_finite.all():
                raise _not_finite(self.vocabulary[int(np.argmin(is_finite))])
            self._composed = composed
        return self._composed

    @property
    def has_subwords(self) -> bool:  # type: ignore[override]
        """Whether words outside the vocabulary have vectors."""
        return self.subwords.can_compose

    def __getitem__(self, words: str | Sequence[str]) -> np.ndarray:
        """The vector of a word (D,), or those of several (len, D); copies."""
        if isinstance(words, str):
            return self._vector(words)
        return np.array([self._vector(word) for word in words], np.float32).reshape(-1, self.dim)

    def _vector(self, word: str) -> np.ndarray:
        word_id = self.vocabulary.find(word)
        if word_id < 0 and not self.has_subwords:
            word_id = self.vocabulary.id(word)  # raises, with near spellings
        if word_id >= 0 and self._composed is not None:
            return np.array(self._composed[word_id])
        vector = mean_row(self.table, self.subwords.rows_of(word))
        if not np.isfinite(vector).all():
            raise _not_finite(word)
        return vector

    def __repr__(self) -> str:
        return "Subword" + super().__repr__().removeprefix("Word")


def _not_finite(word: str) -> ArtifactError:
    return ArtifactError(f"The vector of “{word}” has a number that is not finite.")
