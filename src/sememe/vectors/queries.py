"""What a search is asked: words, vectors and weights in, one query vector and known ids out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.vectors.search import unit

if TYPE_CHECKING:
    from sememe.vectors.wordvectors import WordVectors

# A word, a vector, or either with a weight.
Term = str | np.ndarray | tuple[str | np.ndarray, float]
Terms = Term | Sequence[Term]


class Query(NamedTuple):
    """Terms as vectors (T, D) with weights (T); `ids` are the words among them."""

    terms: np.ndarray
    weights: np.ndarray
    ids: list[int]

    @property
    def direction(self) -> np.ndarray:
        """The weighted sum of the terms at length 1."""
        return unit(self.weights @ self.terms)


def as_terms(terms: Terms | None) -> list[Term]:
    """One term or several as a list; a tuple of a term and a number is one term."""
    if terms is None:
        return []
    if isinstance(terms, str) or _is_weighted(terms):
        return [terms]  # type: ignore[list-item]
    if isinstance(terms, np.ndarray):
        return [terms] if terms.ndim == 1 and terms.dtype.kind not in "UO" else list(terms)
    if not isinstance(terms, Iterable):
        raise OptionError(f"A word or a vector was expected, not {terms!r}.")
    return list(terms)  # type: ignore[arg-type]


def _is_weighted(term: object) -> bool:
    return (
        isinstance(term, tuple)
        and len(term) == 2
        and isinstance(term[1], int | float | np.number)
        and not isinstance(term[0], int | float | np.number)
    )


def _vector(vectors: WordVectors, term: object, is_unit: bool) -> tuple[np.ndarray, int | None]:
    if isinstance(term, str):
        row = vectors[term].astype(np.float64)
        word_id = vectors.vocabulary.find(term)
        return (unit(row) if is_unit else row), word_id if word_id >= 0 else None
    try:
        given = np.asarray(term, np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"A word or a vector was expected, not {term!r}.") from None
    if given.shape != (vectors.dim,):
        raise OptionError(
            f"A vector of {vectors.dim} numbers was expected, not one of shape {given.shape}."
        )
    if not np.isfinite(given).all():
        raise OptionError("The vector holds a number that is not finite.")
    # As in gensim, a vector that is given is taken as it is; only words come at length 1.
    return given, None


def make_query(
    vectors: WordVectors, positive: Terms | None, negative: Terms | None, *, normalize: bool
) -> Query:
    """Look up every term; negative ones get their weight's sign turned."""
    signed = [(term, 1.0) for term in as_terms(positive)]
    signed += [(term, -1.0) for term in as_terms(negative)]
    if not signed:
        raise OptionError("Give at least one word or vector to search with.")
    terms, weights, ids = [], [], []
    for term, sign in signed:
        weight = 1.0
        if _is_weighted(term):
            term, weight = term[0], float(term[1])
        if not np.isfinite(weight):
            raise OptionError(f"The weight of a word must be a finite number, not {weight}.")
        vector, word_id = _vector(vectors, term, normalize)
        terms.append(vector)
        weights.append(sign * weight)
        if word_id is not None:
            ids.append(word_id)
    return Query(np.array(terms), np.array(weights), ids)
