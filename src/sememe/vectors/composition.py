"""Vectors of words as means of rows: which rows a word has, and their mean. V words, D numbers.

The mean is taken as Facebook's program takes it, in the order of the rows and in float32, so
that vectors of its models are equal to its own to the bit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sememe.cores import available_cores
from sememe.tokens.ngrams import (
    FLORET_SEED,
    Marks,
    floret_rows,
    floret_rows_of_all,
    keep_ngrams,
    ngram_rows,
    ngram_rows_of,
)
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.quantized import QuantizedMatrix

Table = np.ndarray | QuantizedMatrix

_BLOCK_WORDS = 2_048


class Subwords(Protocol):
    """A way from a word to rows of a table."""

    @property
    def can_compose(self) -> bool:
        """Whether a word outside the vocabulary has rows at all."""

    def rows_of(self, word: str) -> np.ndarray:
        """The rows of any word, known or not."""

    def rows_between(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows of each word of the vocabulary from `first` to `last` end, and all."""

    def options(self) -> dict[str, Any]:
        """What must be known to go this way again, for manifests."""


@dataclass(frozen=True)
class NGrams:
    """fastText's way: the word's own row, then a row for each of its n-grams.

    `words` are those that have rows of their own; `spellings` their bytes where those are not
    UTF-8; `pruned` (N, 2) the buckets that have a row and which, None where all of them have.
    """

    words: Vocabulary
    minn: int
    maxn: int
    bucket: int
    pruned: np.ndarray | None = None
    spellings: Vocabulary | None = None

    def __post_init__(self) -> None:
        if self.pruned is not None:
            order = np.argsort(self.pruned[:, 0], kind="stable")
            object.__setattr__(self, "pruned", self.pruned[order])

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
    """floret's way: `hash_count` rows for the word in its marks, and as many for each n-gram.

    No word has a row of its own; `words` are only those that a search looks at.
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


def mean_row(table: Table, rows: np.ndarray) -> np.ndarray:
    """The mean (D,) of some rows of a table; zero where there are none."""
    if isinstance(table, QuantizedMatrix):
        total = table.sum(rows)
    else:
        total = np.zeros(table.shape[1], np.float32)
        for row in rows.tolist():
            total += table[row]
    return total * np.float32(1.0 / len(rows)) if len(rows) else total


def compose_words(subwords: Subwords, table: Table, num_words: int) -> np.ndarray:
    """The vectors (V, D) of the first words of the vocabulary, on every core."""
    vectors_VD = np.empty((num_words, table.shape[1]), np.float32)

    def compose(first: int) -> None:
        last = min(first + _BLOCK_WORDS, num_words)
        _mean_rows(table, *subwords.rows_between(first, last), vectors_VD[first:last])

    with ThreadPoolExecutor(available_cores()) as pool:
        list(pool.map(compose, range(0, num_words, _BLOCK_WORDS)))
    return vectors_VD


def _mean_rows(table: Table, ends: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    from sememe.vectors.composition_kernels import mean_quantized, mean_rows

    if isinstance(table, QuantizedMatrix):
        quantizer, norms = table.quantizer, np.ones(1, np.float32)
        norm_codes = table.norm_codes
        if table.norm_quantizer is not None:
            norms = table.norm_quantizer.centroids
        if norm_codes is None:
            norm_codes = np.broadcast_to(np.zeros(1, np.uint8), len(table)).copy()
        mean_quantized(
            ends, rows, _frozen(table.codes.reshape(-1)), _frozen(norm_codes),
            _frozen(quantizer.centroids), _frozen(norms), quantizer.num_parts,
            quantizer.part_size, out,
        )  # fmt: skip
    else:
        flat, step = _flattened(table)
        mean_rows(ends, rows, flat, step, out)


def _frozen(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written: kernels are compiled once more for those that can."""
    view = np.asarray(array)[:]
    view.flags.writeable = False
    return view


def _flattened(table: np.ndarray) -> tuple[np.ndarray, int]:
    """A matrix, perhaps with padded rows, as one row of floats; and how far its rows are apart."""
    if table.strides[1] != 4 or table.strides[0] < 4 * table.shape[1]:
        table = np.ascontiguousarray(table)
    step = table.strides[0] // 4
    size = step * (len(table) - 1) + table.shape[1]
    flat = np.lib.stride_tricks.as_strided(np.asarray(table), (size,), (4,), writeable=False)
    return flat, step
