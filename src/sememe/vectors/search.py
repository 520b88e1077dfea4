"""Cosine search, exact or by an index: words, vectors and weights in, (ids, scores) out.

Q queries, V words, D dimensions. The matrix is scanned in float32 by BLAS on all cores. A sum is
written like `king - man + woman`. The approximate index (HNSW, by usearch; Malkov & Yashunin 2018)
visits only a few rows. It is saved next to the vectors under a name with their fingerprint, so that
an index of other vectors is never used.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.errors import ArtifactError, MissingExtraError, OptionError, WriteError
from sememe.machine import available_cores
from sememe.storage.folder import write_file

if TYPE_CHECKING:
    from sememe.vectors.wordvectors import WordVectors

# Scores held at one time: 64 MB of float32.
_NUM_SCORES = 1 << 24
_NUM_QUERIES = 64
_BLOCK_SIZE = 8_192
# Vectors shorter than this count as zero: their inverse would not fit a float32.
_SHORTEST = 1e-37
# Keeps a quotient finite (Levy & Goldberg 2014, equation 4, as released and as gensim has it).
_COSMUL_EPSILON = 1e-6

Found = tuple[np.ndarray, np.ndarray]


def inverse_norms(vectors_VD: np.ndarray) -> np.ndarray:
    """One over each row's length in float32; 0 for rows that are zero or not finite."""
    inverse = np.zeros(len(vectors_VD), np.float32)
    for start in range(0, len(vectors_VD), _BLOCK_SIZE):
        block = vectors_VD[start : start + _BLOCK_SIZE].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        usable = np.isfinite(norms) & (norms > _SHORTEST)
        np.divide(1.0, norms, out=inverse[start : start + _BLOCK_SIZE], where=usable,
                  casting="unsafe")  # fmt: skip
    return inverse


def unit(vector: np.ndarray) -> np.ndarray:
    """`vector` in float64 at length 1; a zero vector stays zero."""
    vector = np.asarray(vector, np.float64)
    norm = math.sqrt(float(vector @ vector))
    return vector / norm if math.isfinite(norm) and norm > _SHORTEST else np.zeros_like(vector)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Every row in float64 at length 1; zero rows stay zero."""
    vectors = np.asarray(vectors, np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    usable = np.isfinite(norms) & (norms > _SHORTEST)
    units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=usable)
    return np.nan_to_num(units, copy=False, nan=0.0)


def kth_bound(scores: np.ndarray, num: int) -> float:
    """A value that at least `num` of the scores reach, close to the `num`-th largest.

    The maxima of separate blocks are `num` different scores, and take a twentieth of the time of a
    partition.
    """
    if num >= len(scores):
        return -math.inf
    block_size = min(512, len(scores) // (4 * num))
    if block_size < 8:
        return float(np.partition(scores, -num)[-num])
    whole = len(scores) // block_size * block_size
    maxima = scores[:whole].reshape(-1, block_size).max(axis=1)
    return float(np.partition(maxima, -num)[-num])


def best(ids: np.ndarray, scores: np.ndarray, num: int) -> Found:
    """The `num` largest scores, ties by id."""
    order = np.lexsort((ids, -scores))[:num]
    return ids[order], scores[order]


def cosines(vectors_VD: np.ndarray, ids: np.ndarray, units_QD: np.ndarray) -> np.ndarray:
    """Cosines in float64 of the rows `ids` with the unit rows Q: shape (ids, Q)."""
    cosines_NQ = np.empty((len(ids), len(units_QD)))
    for start in range(0, len(ids), _BLOCK_SIZE):
        rows_ND = unit_rows(vectors_VD[ids[start : start + _BLOCK_SIZE]])
        # einsum adds in one order whatever the number of rows; BLAS does not.
        cosines_NQ[start : start + _BLOCK_SIZE] = np.einsum("nd,qd->nq", rows_ND, units_QD)
    return cosines_NQ


def _scan(vectors_VD: np.ndarray, inverse_V: np.ndarray, units_QD: np.ndarray) -> np.ndarray:
    """Approximate cosines (Q, V) in float32; rows that are not finite score 0."""
    if vectors_VD.dtype == np.int8:
        scores_QV = _int8_products(vectors_VD, units_QD.astype(np.float32))
    elif len(units_QD) == 1:
        scores_QV = (vectors_VD @ units_QD[0].astype(np.float32))[None]
    else:
        scores_QV = units_QD.astype(np.float32) @ vectors_VD.T
    with np.errstate(invalid="ignore"):
        scores_QV *= inverse_V
    if not math.isfinite(float(scores_QV.sum())):
        np.nan_to_num(scores_QV, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
    return scores_QV


def _int8_products(vectors_VD: np.ndarray, queries_QD: np.ndarray) -> np.ndarray:
    """The products of int8 rows with queries, (Q, V), on all cores."""
    from sememe.vectors.kernels import int8_dots

    products_QV = np.empty((len(queries_QD), len(vectors_VD)), np.float32)
    in_blocks(len(vectors_VD), lambda own: int8_dots(
        vectors_VD[own], queries_QD, products_QV[:, own]
    ))  # fmt: skip
    return products_QV


def in_blocks(num_rows: int, work: Callable[[slice], Any]) -> None:
    """Call `work` for consecutive blocks of rows, on all cores if there are many rows."""
    num_blocks = min(available_cores(), num_rows // _BLOCK_SIZE) or 1
    bounds = np.linspace(0, num_rows, num_blocks + 1).astype(int).tolist()
    blocks = [slice(start, stop) for start, stop in pairwise(bounds)]
    if num_blocks == 1:
        work(blocks[0])
        return
    with ThreadPoolExecutor(num_blocks) as pool:
        list(pool.map(work, blocks))


def _error_bound(dim: int) -> float:
    """The maximum error of a float32 cosine of `dim` products."""
    return (dim + 8) * 2.0**-24


def nearest(
    vectors_VD: np.ndarray,
    inverse_V: np.ndarray,
    units_QD: np.ndarray,
    num: int,
    is_allowed_V: np.ndarray | None = None,
) -> list[Found]:
    """For each unit query the `num` rows of largest cosine, perhaps among the allowed ones only."""
    found: list[Found] = []
    for start in range(0, len(units_QD), _NUM_QUERIES):
        few_QD = units_QD[start : start + _NUM_QUERIES]
        found += _nearest_few(vectors_VD, inverse_V, few_QD, num, is_allowed_V)
    return found


def _nearest_few(
    vectors_VD: np.ndarray,
    inverse_V: np.ndarray,
    units_QD: np.ndarray,
    num: int,
    is_allowed_V: np.ndarray | None,
) -> list[Found]:
    num_rows, num_queries = len(vectors_VD), len(units_QD)
    margin = 2 * _error_bound(vectors_VD.shape[1])
    parts: list[list[Found]] = [[] for _ in range(num_queries)]
    block_size = _NUM_SCORES // num_queries
    for start in range(0, num_rows, block_size):
        rows = slice(start, start + block_size)
        scores_QV = _scan(vectors_VD[rows], inverse_V[rows], units_QD)
        if is_allowed_V is not None:
            scores_QV[:, ~is_allowed_V[rows]] = -math.inf
        for query, scores in enumerate(scores_QV):
            # No cosine is below -1; a row that is not allowed is.
            bound = max(kth_bound(scores, num) - margin, -2.0)
            ids = start + np.flatnonzero(scores >= bound)
            exact = cosines(vectors_VD, ids, units_QD[query : query + 1])[:, 0]
            parts[query].append(best(ids, exact, num))
    return [_join(part, num) for part in parts]


def _join(parts: list[Found], num: int) -> Found:
    if len(parts) == 1:
        return parts[0]
    return best(np.concatenate([ids for ids, _ in parts]),
                 np.concatenate([scores for _, scores in parts]), num)  # fmt: skip


def multiply(shifted_TV: np.ndarray, is_positive_T: np.ndarray, slack: float = 0.0) -> np.ndarray:
    """3CosMul of cosines shifted to [0, 1]; `slack` raises every factor."""
    positive = np.minimum(shifted_TV[is_positive_T] + slack, 1.0).clip(0.0)
    negative = np.maximum(shifted_TV[~is_positive_T] - slack, 0.0).clip(None, 1.0)
    return positive.prod(axis=0) / (negative.prod(axis=0) + _COSMUL_EPSILON)


def nearest_by_product(
    vectors_VD: np.ndarray,
    inverse_V: np.ndarray,
    units_TD: np.ndarray,
    is_positive_T: np.ndarray,
    num: int,
) -> Found:
    """The `num` rows of largest 3CosMul (Levy & Goldberg 2014, 6) for the unit terms T."""
    slack = _error_bound(vectors_VD.shape[1])
    # What the products and the quotient add to that by their own rounding in float32.
    rounding = 1 - (len(units_TD) + 4) * 2.0**-22
    parts: list[Found] = []
    block_size = _NUM_SCORES // (4 * len(units_TD))
    for start in range(0, len(vectors_VD), block_size):
        rows = slice(start, start + block_size)
        shifted_TV = _scan(vectors_VD[rows], inverse_V[rows], units_TD)
        shifted_TV += 1
        shifted_TV /= 2
        bound = kth_bound(multiply(shifted_TV, is_positive_T, -slack), num) * rounding
        ids = start + np.flatnonzero(multiply(shifted_TV, is_positive_T, slack) >= bound)
        exact_TN = (1 + cosines(vectors_VD, ids, units_TD).T) / 2
        parts.append(best(ids, multiply(exact_TN, is_positive_T), num))
    return _join(parts, num)


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
        """The weighted sum of the terms at unit length."""
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


def _vector(vectors: WordVectors, term: object, is_unit: bool) -> tuple[np.ndarray, list[int]]:
    if isinstance(term, str):
        row, words = vectors.query_vector(term)
        row = row.astype(np.float64)
        ids = filter(lambda word_id: word_id >= 0, map(vectors.vocabulary.find, words))
        return (unit(row) if is_unit else row), [*ids]
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
    return given, []


def make_query(
    vectors: WordVectors, positive: Terms | None, negative: Terms | None, *, normalize: bool
) -> Query:
    """Look up every term; negative ones get a negative weight."""
    signed = [(term, 1.0) for term in as_terms(positive)]
    signed += [(term, -1.0) for term in as_terms(negative)]
    if not signed:
        raise OptionError("Give at least one word or vector to search with.")
    terms, weights, ids = [], [], list[int]()
    for term, sign in signed:
        weight = 1.0
        if _is_weighted(term):
            term, weight = term[0], float(term[1])
        if not np.isfinite(weight):
            raise OptionError(f"The weight of a word must be a finite number, not {weight}.")
        vector, own_ids = _vector(vectors, term, normalize)
        terms.append(vector)
        weights.append(sign * weight)
        ids += own_ids
    return Query(np.array(terms), np.array(weights), ids)


_SIGNS = {"+": 1, "-": -1, "−": -1}


def parse_sum(text: str) -> list[tuple[int, str]]:
    """Parse `king - man + woman` as signed words; signs are separate, so `t-shirt` is a word."""
    parts = text.split()
    if parts and parts[0] not in _SIGNS:
        parts = ["+", *parts]
    signs, words = parts[::2], parts[1::2]
    is_right = all(sign in _SIGNS for sign in signs) and not any(word in _SIGNS for word in words)
    if not words or len(signs) != len(words) or not is_right:
        raise OptionError(
            f"“{text}” is not a sum of words; write it as king - man + woman, with spaces."
        )
    return [(_SIGNS[sign], word) for sign, word in zip(signs, words, strict=True)]


def looks_like_sum(text: str) -> bool:
    """Whether a sign is between words; one alone may be a word of the vectors."""
    parts = text.split()
    return len(parts) > 2 and any(part in _SIGNS for part in parts)


# Candidates looked at while adding and while searching: recall against time.
MAX_NEIGHBORS = 10_000  # of one approximate search
_EXPANSION_ADD, _EXPANSION_SEARCH, _CONNECTIVITY = 128, 128, 16


def _usearch() -> Any:
    try:
        from usearch import index
    except ImportError:
        raise MissingExtraError(
            "The approximate index needs usearch; install it with: pip install 'sememe[index]'"
        ) from None
    return index


def _fingerprint(vectors_VD: np.ndarray) -> str:
    """A name for these vectors: their shape and a thousand rows spread over all of them."""
    step = max(1, len(vectors_VD) // 1_000)
    digest = hashlib.blake2b(repr(vectors_VD.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(vectors_VD[::step]).tobytes())
    return digest.hexdigest()


_CHECKSUM_SIZE = 16


def _checksum(content: Any) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_SIZE).digest()


class ApproximateIndex:
    """Approximate nearest rows of unit vectors (recall is usually above 0.95)."""

    _content: np.ndarray | None = None

    def __init__(self, usearch_index: Any) -> None:
        self._index = usearch_index

    def __len__(self) -> int:
        return len(self._index)

    @staticmethod
    def path_in(folder: Path, vectors_VD: np.ndarray) -> Path:
        """The path of the index of these vectors in a folder."""
        return folder / f"index-{_fingerprint(vectors_VD)}.usearch"

    @classmethod
    def build(cls, vectors_VD: np.ndarray, dtype: str = "f32") -> ApproximateIndex:
        """Add every vector, as f32 or i8, which is several times as fast; uses all cores."""
        index = _usearch().Index(
            ndim=vectors_VD.shape[1],
            metric="cos",
            dtype=dtype,
            connectivity=_CONNECTIVITY,
            expansion_add=_EXPANSION_ADD,
            expansion_search=_EXPANSION_SEARCH,
        )
        index.add(np.arange(len(vectors_VD), dtype=np.uint64), np.asarray(vectors_VD))
        return cls(index)

    def save(self, path: Path) -> None:
        """Write the index and its checksum, atomically."""
        with write_file(path) as scratch:
            self._index.save(str(scratch))
            content = scratch.read_bytes()
            scratch.write_bytes(content + _checksum(content))

    @classmethod
    def open(cls, path: Path, vectors_VD: np.ndarray) -> ApproximateIndex:
        """Map an index that `save` wrote; the library would follow damaged links anywhere."""
        try:
            content = np.memmap(path, np.uint8, "r")
            if _checksum(content[:-_CHECKSUM_SIZE]) != content[-_CHECKSUM_SIZE:].tobytes():
                raise ValueError("its checksum is another one")
            index = _usearch().Index.restore(content.data, view=True)
        except (RuntimeError, ValueError, OSError) as error:
            raise ArtifactError(f"{path} is not a readable index ({error}).") from error
        if index is None or (len(index), index.ndim) != vectors_VD.shape:
            raise ArtifactError(f"{path} does not fit the vectors.")
        found = cls(index)
        found._content = content  # the index looks into it
        return found

    def nearest(self, units_QD: np.ndarray, num: int) -> list[np.ndarray]:
        """For each query the ids of about `num` nearest rows, unordered."""
        if num > MAX_NEIGHBORS:
            raise OptionError(f"The index gives at most {MAX_NEIGHBORS:,} neighbors, not {num:,}.")
        self._index.expansion_search = max(_EXPANSION_SEARCH, 2 * num)
        found = self._index.search(np.asarray(units_QD, np.float32), min(num, len(self)))
        if len(units_QD) == 1:  # usearch drops the axis of the queries
            return [found.keys.astype(np.int64)]
        counted = zip(found.keys, found.counts, strict=True)
        return [keys[:count].astype(np.int64) for keys, count in counted]


def open_or_build(
    vectors_VD: np.ndarray, folder: Path | None, dtype: str = "f32"
) -> ApproximateIndex:
    """The saved index in `folder` if it belongs to these vectors; else a new one, saved there."""
    _usearch()
    if folder is None:
        return ApproximateIndex.build(vectors_VD, dtype)
    path = ApproximateIndex.path_in(folder, vectors_VD)
    if path.is_file():
        try:
            return ApproximateIndex.open(path, vectors_VD)
        except ArtifactError as error:
            warnings.warn(f"{error} It is built again.", stacklevel=3)
    index = ApproximateIndex.build(vectors_VD, dtype)
    try:
        index.save(path)
    except WriteError as error:  # a read-only place: the index serves this process
        warnings.warn(f"The index could not be saved: {error}", stacklevel=3)
    return index


def nearest_approximately(
    index: ApproximateIndex, vectors_VD: np.ndarray, units_QD: np.ndarray, num: int
) -> list[Found]:
    """Like `nearest`, among the rows that the index proposes; their scores are exact."""
    return [
        best(ids, cosines(vectors_VD, ids, unit_D[None])[:, 0], num)
        for unit_D, ids in zip(units_QD, index.nearest(units_QD, num), strict=True)
    ]
