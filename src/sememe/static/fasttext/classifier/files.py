"""Keeping a classifier: our model folder, or a .bin or .ftz file of Facebook's program."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import ArtifactError
from sememe.progress import History
from sememe.static.fasttext.classifier.config import FastTextClassifierConfig, Loss
from sememe.static.fasttext.classifier.weights import Matrix, Weights
from sememe.static.model import FORMAT
from sememe.storage.folder import (
    MANIFEST,
    check_format,
    check_replaceable,
    read_json,
    write_folder,
    write_json,
)
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.fasttext import (
    FastTextArgs,
    FastTextFile,
    ProductQuantizer,
    QuantizedMatrix,
)

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.model import FastTextClassifier

TENSORS, HISTORY = "model.safetensors", "history.json"
ENDINGS = (".bin", ".ftz")
_LOSSES: tuple[tuple[Loss, Any], ...] = (
    ("softmax", "softmax"), ("hierarchical", "hs"), ("ova", "ova"), ("negative", "ns"),
)  # fmt: skip
_QUANTIZER = ("dim", "num_parts", "part_size", "last_part_size")


def is_file_name(path: Path) -> bool:
    """Whether a name asks for a file of Facebook's program rather than a folder."""
    return path.suffix.lower() in ENDINGS


def to_file(weights: Weights, config: FastTextClassifierConfig) -> FastTextFile:
    """The model as Facebook's file has it; buckets without a row become rows of zeros."""
    num_words = len(weights.words)
    input, pruned, bucket = weights.input, None, weights.num_rows - num_words
    if weights.is_pruned and weights.buckets is not None:
        rows = np.arange(len(weights.buckets), dtype=np.int32)
        pruned = np.stack([weights.buckets.astype(np.int32), rows], axis=1)
        bucket = config.bucket
    elif weights.buckets is not None and config.has_buckets and isinstance(input, np.ndarray):
        bucket = config.bucket
        # Pages of zeros that nobody writes to take no memory.
        full = np.zeros((num_words + bucket, config.dim), np.float32)
        full[:num_words] = input[:num_words]
        full[num_words + weights.buckets] = input[num_words:]
        input = full
    args = FastTextArgs(
        dim=config.dim, epoch=config.epochs, min_count=min(config.min_count, 2**31 - 1),
        neg=config.negatives, word_ngrams=config.word_ngrams, loss=dict(_LOSSES)[config.loss],
        model="supervised", bucket=bucket, minn=config.minn, maxn=config.maxn,
    )  # fmt: skip
    return FastTextFile(
        args=args, words=weights.words, labels=weights.labels, num_tokens=weights.num_tokens,
        pruned=pruned, input=input, output=weights.output,
    )  # fmt: skip


def from_file(
    file: FastTextFile, path: Path, label_prefix: str
) -> tuple[FastTextClassifierConfig, Weights]:
    """The options and weights in a file of Facebook's program."""
    args = file.args
    if args.model != "supervised" or not len(file.labels):
        raise ArtifactError(
            f"{path} holds word vectors and no classifier ({args.model}); sememe.load opens it."
        )
    losses = {theirs: ours for ours, theirs in _LOSSES}
    config = FastTextClassifierConfig(
        dim=args.dim, epochs=max(1, args.epoch), min_count=max(1, args.min_count),
        negatives=max(1, args.neg), word_ngrams=max(1, args.word_ngrams), loss=losses[args.loss],
        bucket=max(args.bucket, int(args.word_ngrams > 1 or args.maxn > 0)), minn=args.minn,
        maxn=args.maxn, label_prefix=label_prefix,
    )  # fmt: skip
    buckets = None
    if file.pruned is not None:
        buckets = np.empty(len(file.pruned), np.int32)
        buckets[file.pruned[:, 1]] = file.pruned[:, 0]
    return config, Weights(
        words=file.words if file.spellings is None else file.spellings, labels=file.labels,
        num_tokens=file.num_tokens, input=file.input, output=file.output, buckets=buckets,
        is_pruned=file.pruned is not None,
    )  # fmt: skip


def save_folder(model: FastTextClassifier, folder: Path) -> None:
    """Write a model to `folder`, which appears whole or not at all."""
    check_replaceable(folder, model.kind)
    weights = model.weights
    with write_folder(folder) as scratch:
        details = write_weights(scratch, weights)
        model.history.save(scratch / HISTORY)
        write_json(
            scratch / MANIFEST,
            {
                "kind": model.kind,
                "format": FORMAT,
                "words": len(weights.words),
                "labels": len(weights.labels),
                "dim": model.config.dim,
                "config": model.config.to_dict(),
                "text": model.text.to_dict(),
                **details,
                "plan": model.plan,
                "provenance": provenance(),
            },
        )


def load_folder(folder: Path, kind: type[FastTextClassifier]) -> FastTextClassifier:
    """Open a model folder; its tensors are memory-mapped."""
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") != kind.kind:
        found = manifest.get("kind") if isinstance(manifest, dict) else None
        raise ArtifactError(
            f"{folder} is of kind {found}, which gives no labels; sememe finetune and "
            "sememe train fasttext --supervised make models that do."
        )
    check_format(folder, manifest, FORMAT)
    try:
        model = kind(FastTextClassifierConfig(**manifest["config"]))
        model.text = TextSettings(**manifest["text"])
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
    model.adopt(read_weights(folder, manifest, model.config))
    model.history = History.load(folder / HISTORY)
    model.plan = manifest.get("plan", {})
    return model


def write_weights(folder: Path, weights: Weights) -> dict[str, Any]:
    """Write the tensors into a scratch folder; returns what the manifest must say of them."""
    tensors = {
        **_matrix_tensors("input", weights.input),
        **_matrix_tensors("output", weights.output),
        **{f"words.{name}": array for name, array in weights.words.to_tensors().items()},
        **{f"labels.{name}": array for name, array in weights.labels.to_tensors().items()},
    }
    if weights.buckets is not None:
        tensors["buckets"] = weights.buckets
    write_tensors(folder / TENSORS, tensors)
    return {
        "tokens": weights.num_tokens,
        "pruned": weights.is_pruned,
        "quantizers": {
            name: {key: getattr(quantizer, key) for key in _QUANTIZER}
            for name, quantizer in _quantizers(weights)
        },
    }


def _quantizers(weights: Weights) -> list[tuple[str, ProductQuantizer]]:
    found = []
    for name, matrix in (("input", weights.input), ("output", weights.output)):
        if isinstance(matrix, QuantizedMatrix):
            found.append((name, matrix.quantizer))
            if matrix.norm_quantizer is not None:
                found.append((f"{name}.norm", matrix.norm_quantizer))
    return found


def _matrix_tensors(name: str, matrix: Matrix) -> dict[str, np.ndarray]:
    if isinstance(matrix, np.ndarray):
        return {f"{name}.rows": np.ascontiguousarray(matrix)}
    tensors = {f"{name}.codes": matrix.codes, f"{name}.centroids": matrix.quantizer.centroids}
    if matrix.norm_codes is not None and matrix.norm_quantizer is not None:
        tensors[f"{name}.norm_codes"] = matrix.norm_codes
        tensors[f"{name}.norm.centroids"] = matrix.norm_quantizer.centroids
    return tensors


def read_weights(
    folder: Path, manifest: dict[str, Any], config: FastTextClassifierConfig
) -> Weights:
    """Open what `write_weights` wrote, as memory maps, checked for fit."""
    tensors = read_tensors(folder / TENSORS)
    try:
        words, labels = (_vocabulary(tensors, name) for name in ("words", "labels"))
        weights = Weights(
            words=words, labels=labels, num_tokens=int(manifest["tokens"]),
            input=_matrix("input", tensors, manifest), output=_matrix("output", tensors, manifest),
            buckets=tensors.get("buckets"), is_pruned=bool(manifest["pruned"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(f"{folder} is damaged: {error!r} is missing or wrong.") from error
    num_rows = len(words) + (config.bucket if weights.buckets is None else len(weights.buckets))
    if not config.has_buckets:
        num_rows = len(words)
    shapes = (weights.input.shape, weights.output.shape)
    if shapes != ((num_rows, config.dim), (len(labels), config.dim)):
        raise ArtifactError(f"{folder / TENSORS} does not hold the rows that {folder} names.")
    return weights


def _vocabulary(tensors: dict[str, np.ndarray], name: str) -> Vocabulary:
    own = {key.removeprefix(f"{name}."): tensors[key] for key in tensors if key.startswith(name)}
    return Vocabulary.from_tensors(own)


def _matrix(name: str, tensors: dict[str, np.ndarray], manifest: dict[str, Any]) -> Matrix:
    if f"{name}.rows" in tensors:
        return tensors[f"{name}.rows"]
    settings = manifest["quantizers"]
    codes = tensors[f"{name}.codes"]
    quantizer = _quantizer(settings[name], tensors[f"{name}.centroids"])
    has_norms = f"{name}.norm" in settings
    return QuantizedMatrix(
        codes=codes, quantizer=quantizer, shape=(len(codes), quantizer.dim),
        norm_codes=tensors[f"{name}.norm_codes"] if has_norms else None,
        norm_quantizer=_quantizer(settings[f"{name}.norm"], tensors[f"{name}.norm.centroids"])
        if has_norms else None,
    )  # fmt: skip


def _quantizer(settings: dict[str, int], centroids: np.ndarray) -> ProductQuantizer:
    known = {field.name for field in fields(ProductQuantizer)}
    return ProductQuantizer(
        centroids=centroids, **{key: int(settings[key]) for key in _QUANTIZER if key in known}
    )
