"""Vectors of texts from vectors of words: words in, their rows or one row for all of them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sememe.vectors.subwords import SubwordVectors
from sememe.vectors.wordvectors import WordVectors

Pool = Literal["mean", "max"]


def known_words(vectors: WordVectors, words: Sequence[str]) -> list[str]:
    """The words that have a vector; with sub-words every word has one."""
    if isinstance(vectors, SubwordVectors) and vectors.has_subwords:
        return list(words)
    return [word for word in words if word in vectors]


def embed_words(vectors: WordVectors, words: Sequence[str], pool: Pool = "mean") -> np.ndarray:
    """One vector for a text, the mean or maximum over its known words; zeros if there is none."""
    rows_ND = vectors[known_words(vectors, words)]
    if not len(rows_ND):
        return np.zeros(vectors.dim, np.float32)
    return rows_ND.mean(0) if pool == "mean" else rows_ND.max(0)
