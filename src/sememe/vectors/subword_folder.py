"""Sub-words in our own folder: tensors and a part of the manifest in, SubwordVectors out.

`input` holds the rows of the words and of the n-grams; a quantised table is `codes`, `centroids`
and perhaps `norm_codes` and `norm_centroids`. A folder of a trained fastText model has the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.tokens.ngrams import Marks
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.composition import NGrams, Table
from sememe.vectors.quantized import NUM_CENTROIDS, ProductQuantizer, QuantizedMatrix
from sememe.vectors.subwords import SubwordVectors

_OPTIONS = ("minn", "maxn", "bucket")


def subword_options(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """How a folder's words are composed, or None where its vectors are whole ones."""
    options = manifest.get("subwords")
    if options is None and manifest.get("kind") == "fasttext":
        options = manifest.get("config")
    if not isinstance(options, dict):
        return None
    return options


def to_tensors(vectors: SubwordVectors) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The options and the tensors of `vectors`; of words that a limit left out, nothing is kept."""
    scheme, options, tensors = vectors.subwords, vectors.subwords.options(), {}
    if not isinstance(scheme, NGrams):
        return options, {"input": np.asarray(vectors.table)}
    num_words = len(vectors.vocabulary)
    table = cut_table(vectors.table, num_words, len(scheme.words))
    if isinstance(table, QuantizedMatrix):
        options["part_size"] = table.quantizer.part_size
        tensors["codes"] = table.codes
        tensors["centroids"] = table.quantizer.centroids
        if table.norm_codes is not None and table.norm_quantizer is not None:
            tensors["norm_codes"] = table.norm_codes
            tensors["norm_centroids"] = table.norm_quantizer.centroids
    else:
        tensors["input"] = table
    if scheme.pruned is not None:
        tensors["pruned"] = scheme.pruned
    if scheme.spellings is not None:
        spelled = scheme.spellings.cut(num_words)
        tensors["spelling_bytes"], tensors["spelling_ends"] = spelled.to_arrays()
    return options, tensors


def cut_table(table: Table, num_words: int, num_all: int) -> Table:
    """The rows of the first `num_words` of `num_all` words, and those of the n-grams."""
    if num_words == num_all:
        return table

    def cut(rows: np.ndarray) -> np.ndarray:
        return np.concatenate([rows[:num_words], rows[num_all:]])

    if not isinstance(table, QuantizedMatrix):
        return cut(table)
    norm_codes = None if table.norm_codes is None else cut(table.norm_codes)
    codes = cut(table.codes)
    return replace(table, codes=codes, shape=(len(codes), table.shape[1]), norm_codes=norm_codes)


def from_tensors(
    folder: Path,
    options: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    vocabulary: Vocabulary,
    limit: int | None,
) -> SubwordVectors:
    """The vectors that `to_tensors` or a trained model kept, checked for fit."""
    try:
        if "hash_count" in options:
            return _hashed(options, tensors, vocabulary, limit)
        minn, maxn, bucket = (int(options[name]) for name in _OPTIONS)
        table = _table(options, tensors)
        if maxn == 0:  # a model of whole words, with rows for n-grams of words at most
            bucket = len(table) - len(vocabulary)
        pruned, spellings = tensors.get("pruned"), None
        if pruned is not None:
            _check_pruned(pruned)
        if "spelling_bytes" in tensors:
            spellings = Vocabulary(
                tensors["spelling_bytes"], tensors["spelling_ends"], vocabulary.counts
            )
            if len(spellings) != len(vocabulary):
                raise ValueError("its spellings do not fit its words")
        return SubwordVectors(
            vocabulary, table, minn=minn, maxn=maxn, bucket=bucket,
            pruned=pruned, spellings=spellings, limit=limit,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, OptionError) as error:
        raise ArtifactError(f"{folder} is damaged: its sub-words do not fit ({error}).") from error


def _hashed(
    options: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    vocabulary: Vocabulary,
    limit: int | None,
) -> SubwordVectors:
    table = _table(options, tensors)
    if not isinstance(table, np.ndarray) or len(table) != options["bucket"]:
        raise ValueError("its table has another number of rows")
    return SubwordVectors.hashed(
        table, minn=int(options["minn"]), maxn=int(options["maxn"]),
        hash_count=int(options["hash_count"]), seed=int(options["hash_seed"]),
        marks=Marks(options["before"].encode(), options["after"].encode()), words=vocabulary,
        limit=limit,
    )  # fmt: skip


def _check_pruned(pruned: np.ndarray) -> None:
    is_pairs = pruned.ndim == 2 and pruned.shape[1] == 2
    if not is_pairs or (len(pruned) and (pruned.min() < 0 or pruned[:, 1].max() >= len(pruned))):
        raise ValueError("its list of kept n-grams names rows that are not there")


def _table(options: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Table:
    if "codes" not in tensors:
        table = tensors["input"]
        if table.ndim != 2 or table.dtype.kind != "f" or not table.size:
            raise ValueError(f"its table has the shape {table.shape}")
        return table
    codes, centroids = tensors["codes"], tensors["centroids"]
    part_size, num_parts = int(options["part_size"]), codes.shape[1]
    dim = len(centroids) // NUM_CENTROIDS
    last_part_size = dim - (num_parts - 1) * part_size
    if dim * NUM_CENTROIDS != len(centroids) or not 1 <= last_part_size <= part_size:
        raise ValueError("its centroids do not fit its codes")
    norm_codes, norm_quantizer = tensors.get("norm_codes"), None
    if norm_codes is not None:
        norm_quantizer = _quantizer(1, 1, 1, 1, tensors["norm_centroids"])
        if len(norm_codes) != len(codes) or len(norm_quantizer.centroids) != NUM_CENTROIDS:
            raise ValueError("its lengths do not fit its codes")
    return QuantizedMatrix(
        codes=codes, quantizer=_quantizer(dim, num_parts, part_size, last_part_size, centroids),
        shape=(len(codes), dim), norm_codes=norm_codes, norm_quantizer=norm_quantizer,
    )  # fmt: skip


def _quantizer(
    dim: int, num_parts: int, part_size: int, last_part_size: int, centroids: np.ndarray
) -> ProductQuantizer:
    return ProductQuantizer(
        dim=dim, num_parts=num_parts, part_size=part_size, last_part_size=last_part_size,
        centroids=np.asarray(centroids),
    )  # fmt: skip
