"""The weights of the classifier, and their files: our folder, or Facebook's .bin and .ftz."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig, Loss
from sememe.models.static.loop import TENSORS
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.vocabulary import Vocabulary, check_words
from sememe.vectors.formats.fasttext import FastTextArgs, FastTextFile
from sememe.vectors.subwords import ProductQuantizer, QuantizedMatrix, Table


@dataclass(frozen=True, kw_only=True)
class ClassifierWeights:
    """The rows of `input` are those of the words, then those of the n-grams in `buckets`.

    `buckets` None: every bucket has a row, in order. Other buckets are ignored by a pruned model;
    an unpruned one treats them as zero.
    """

    words: Vocabulary
    labels: Vocabulary  # with their prefix
    num_tokens: int
    input: Table
    output: Table
    buckets: np.ndarray | None = None
    is_pruned: bool = False

    @property
    def num_rows(self) -> int:
        """Rows of the input matrix."""
        return int(self.input.shape[0])

    @property
    def nbytes(self) -> int:
        """The bytes that the matrices take."""
        return int(self.input.nbytes + self.output.nbytes)

    def places(self, bucket: int) -> np.ndarray:
        """The row of each bucket; negative if it is dropped, `num_rows` for zeros."""
        if self.buckets is None:
            return np.empty(0, np.int32)
        places = np.full(bucket, -1 if self.is_pruned else self.num_rows, np.int32)
        places[self.buckets] = len(self.words) + np.arange(len(self.buckets), dtype=np.int32)
        return places

    def kept(self) -> np.ndarray:
        """Pairs (bucket, row after the words) of the n-grams with a row, sorted by bucket."""
        buckets = np.empty(0, np.int32) if self.buckets is None else np.asarray(self.buckets)
        order = np.argsort(buckets, kind="stable")
        return np.stack([buckets[order], order], axis=1).astype(np.int32)


def dense(matrix: Table) -> np.ndarray:
    """The rows of a matrix as float32."""
    if isinstance(matrix, QuantizedMatrix):
        return matrix.rows(np.arange(matrix.shape[0]))
    return np.ascontiguousarray(matrix, np.float32)


ENDINGS = (".bin", ".ftz")
_LOSSES: tuple[tuple[Loss, Any], ...] = (
    ("softmax", "softmax"), ("hierarchical", "hs"), ("ova", "ova"), ("negative", "ns"),
)  # fmt: skip
_QUANTIZER = ("dim", "num_parts", "part_size", "last_part_size")


def is_file_name(path: Path) -> bool:
    """Whether a name implies a file of Facebook's program rather than a folder."""
    return path.suffix.lower() in ENDINGS


def to_file(weights: ClassifierWeights, config: FastTextClassifierConfig) -> FastTextFile:
    """The model in Facebook's file format; buckets without a row become zero rows."""
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
) -> tuple[FastTextClassifierConfig, ClassifierWeights]:
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
        maxn=args.maxn, label_prefix=label_prefix, preset="fasttext", word_rates="equal",
    )  # fmt: skip
    buckets = None
    if file.pruned is not None:
        buckets = np.empty(len(file.pruned), np.int32)
        buckets[file.pruned[:, 1]] = file.pruned[:, 0]
    return config, ClassifierWeights(
        words=file.words if file.spellings is None else file.spellings, labels=file.labels,
        num_tokens=file.num_tokens, input=file.input, output=file.output, buckets=buckets,
        is_pruned=file.pruned is not None,
    )  # fmt: skip


def write_weights(folder: Path, weights: ClassifierWeights) -> dict[str, Any]:
    """Write the tensors into a scratch folder; return their manifest entries."""
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


def _quantizers(weights: ClassifierWeights) -> list[tuple[str, ProductQuantizer]]:
    found = []
    for name, matrix in (("input", weights.input), ("output", weights.output)):
        if isinstance(matrix, QuantizedMatrix):
            found.append((name, matrix.quantizer))
            if matrix.norm_quantizer is not None:
                found.append((f"{name}.norm", matrix.norm_quantizer))
    return found


def _matrix_tensors(name: str, matrix: Table) -> dict[str, np.ndarray]:
    if isinstance(matrix, np.ndarray):
        return {f"{name}.rows": np.ascontiguousarray(matrix)}
    tensors = {f"{name}.codes": matrix.codes, f"{name}.centroids": matrix.quantizer.centroids}
    if matrix.norm_codes is not None and matrix.norm_quantizer is not None:
        tensors[f"{name}.norm_codes"] = matrix.norm_codes
        tensors[f"{name}.norm.centroids"] = matrix.norm_quantizer.centroids
    return tensors


def read_weights(
    folder: Path, manifest: dict[str, Any], config: FastTextClassifierConfig
) -> ClassifierWeights:
    """Memory-map what `write_weights` wrote, after validation."""
    path = folder / TENSORS
    tensors = read_tensors(path)
    try:
        words, labels = (_vocabulary(tensors, name, path) for name in ("words", "labels"))
        weights = ClassifierWeights(
            words=words, labels=labels, num_tokens=int(manifest["tokens"]),
            input=_matrix("input", tensors, manifest), output=_matrix("output", tensors, manifest),
            buckets=tensors.get("buckets"), is_pruned=bool(manifest["pruned"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(f"{folder} is damaged: {error!r} is missing or wrong.") from error
    buckets, num_rows = weights.buckets, len(words)
    if config.has_buckets:
        num_rows += config.bucket if buckets is None else len(buckets)
    shapes = (weights.input.shape, weights.output.shape)
    is_sound = buckets is None or (
        buckets.dtype == np.int32
        and buckets.ndim == 1
        and not np.any((buckets < 0) | (buckets >= config.bucket))
    )
    if not is_sound or shapes != ((num_rows, config.dim), (len(labels), config.dim)):
        raise ArtifactError(f"{folder / TENSORS} does not hold the rows that {folder} names.")
    return weights


def _vocabulary(tensors: dict[str, np.ndarray], name: str, path: Path) -> Vocabulary:
    """Words, which in Facebook's files need not be UTF-8, or labels."""
    parts = ("word_bytes", "word_ends", "word_counts", "word_order")
    own = [tensors[f"{name}.{part}"] for part in parts]
    check_words(*own, where=f"{path} ({name})", is_text=name == "labels")
    return Vocabulary(*own)


def _matrix(name: str, tensors: dict[str, np.ndarray], manifest: dict[str, Any]) -> Table:
    if f"{name}.rows" in tensors:
        if tensors[f"{name}.rows"].dtype != np.float32:
            raise ValueError(f"{name}.rows")
        return tensors[f"{name}.rows"]
    parts: list[Any] = []
    for part, codes in ((name, f"{name}.codes"), (f"{name}.norm", f"{name}.norm_codes")):
        if settings := manifest["quantizers"].get(part):
            centroids = tensors[f"{part}.centroids"]
            parts += [tensors[codes], ProductQuantizer(int(settings["part_size"]), centroids)]
    return QuantizedMatrix(*parts)
