"""Writing .bin and .ftz files: a FastTextFile in, the bytes of Facebook's program out."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from sememe.errors import OptionError
from sememe.storage.folder import write_file
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.fasttext.model import (
    LOSSES,
    MAGIC,
    MODELS,
    VERSION,
    FastTextArgs,
    FastTextFile,
)
from sememe.vectors.quantized import ProductQuantizer, QuantizedMatrix

_BLOCK_SIZE = 1 << 24
_FEW_ENTRIES = 20_000
# Facebook's program reads the words of a text up to these bytes, and so never looks for others.
_SEPARATORS = b" \n\r\t\v\f\0"


def write_model(path: str | Path, model: FastTextFile) -> None:
    """Write a model that Facebook's program opens, atomically."""
    _check(model)
    path = Path(path)
    if path.is_dir():
        raise OptionError(f"{path} is a folder; a fastText model needs the name of a file.")
    words = model.words if model.spellings is None else model.spellings
    is_quantized = isinstance(model.input, QuantizedMatrix)
    is_output_quantized = isinstance(model.output, QuantizedMatrix)
    num_pruned = -1 if model.pruned is None else len(model.pruned)
    num_words, num_labels = len(model.words), len(model.labels)
    with write_file(path) as scratch, scratch.open("wb") as file:
        file.write(struct.pack("<ii", MAGIC, VERSION) + _packed(model.args))
        sizes = (num_words + num_labels, num_words, num_labels, model.num_tokens, num_pruned)
        file.write(struct.pack("<iiiqq", *sizes))
        file.write(_entries(words, model.words.counts, 0))
        file.write(_entries(model.labels, model.labels.counts, 1))
        if model.pruned is not None:
            file.write(np.ascontiguousarray(model.pruned, "<i4").tobytes())
        file.write(struct.pack("<?", is_quantized))
        _write_matrix(file, model.input)
        file.write(struct.pack("<?", is_output_quantized))
        _write_matrix(file, model.output)


def _check(model: FastTextFile) -> None:
    """Refuse what Facebook's program could not open again."""
    args, num_words = model.args, len(model.words)
    num_rows = num_words + (args.bucket if model.pruned is None else len(model.pruned))
    num_targets = len(model.labels) if args.model == "supervised" else num_words
    for name, matrix, expected in (
        ("input", model.input, num_rows),
        ("output", model.output, num_targets),
    ):
        if tuple(matrix.shape) != (expected, args.dim):
            raise OptionError(
                f"The {name} matrix has the shape {tuple(matrix.shape)}; its file needs "
                f"{(expected, args.dim)}."
            )
    is_quantized = isinstance(model.input, QuantizedMatrix)
    if not is_quantized and (model.pruned is not None or isinstance(model.output, QuantizedMatrix)):
        raise OptionError("Only a model whose input is quantised can be pruned or quantised more.")
    for vocabulary in (model.words, model.labels):
        word_bytes, _ = vocabulary.to_arrays()
        if np.isin(word_bytes, np.frombuffer(_SEPARATORS, np.uint8)).any():
            separators = set(_SEPARATORS.decode())
            word = next(word for word in vocabulary if separators & set(word))
            raise OptionError(f"The word {word!r} holds white space, which fastText cannot keep.")


def _packed(args: FastTextArgs) -> bytes:
    return struct.pack(
        "<12id", args.dim, args.ws, args.epoch, args.min_count, args.neg, args.word_ngrams,
        LOSSES.index(args.loss) + 1, MODELS.index(args.model) + 1, args.bucket, args.minn,
        args.maxn, args.lr_update_rate, args.t,
    )  # fmt: skip


def _entries(words: Vocabulary, counts: np.ndarray, type_id: int) -> bytes:
    """Words with their counts as the dictionary of a file has them."""
    word_bytes, ends = words.to_arrays()
    if len(words) < _FEW_ENTRIES:
        starts = [0, *ends[:-1].tolist()]
        blob = word_bytes.tobytes()
        return b"".join(
            blob[start:end] + struct.pack("<xqB", count, type_id)
            for start, end, count in zip(starts, ends.tolist(), counts.tolist(), strict=False)
        )
    from sememe.vectors.formats.fasttext.kernels import write_entries

    out = np.empty(len(word_bytes) + 10 * len(words), np.uint8)
    write_entries(word_bytes, ends, np.array(counts, np.int64), type_id, out)
    return out.tobytes()


def _write_matrix(file: BinaryIO, matrix: np.ndarray | QuantizedMatrix) -> None:
    if isinstance(matrix, QuantizedMatrix):
        _write_quantized(file, matrix)
        return
    file.write(struct.pack("<qq", *matrix.shape))
    num_rows = max(1, _BLOCK_SIZE // (4 * matrix.shape[1]))
    for start in range(0, len(matrix), num_rows):
        file.write(np.ascontiguousarray(matrix[start : start + num_rows], "<f4").tobytes())


def _write_quantized(file: BinaryIO, matrix: QuantizedMatrix) -> None:
    has_norms = matrix.norm_codes is not None
    file.write(struct.pack("<?qqi", has_norms, *matrix.shape, matrix.codes.size))
    file.write(np.ascontiguousarray(matrix.codes, np.uint8).tobytes())
    _write_quantizer(file, matrix.quantizer)
    if matrix.norm_codes is not None and matrix.norm_quantizer is not None:
        file.write(np.ascontiguousarray(matrix.norm_codes, np.uint8).tobytes())
        _write_quantizer(file, matrix.norm_quantizer)


def _write_quantizer(file: BinaryIO, quantizer: ProductQuantizer) -> None:
    sizes = (quantizer.dim, quantizer.num_parts, quantizer.part_size, quantizer.last_part_size)
    file.write(struct.pack("<4i", *sizes))
    file.write(np.ascontiguousarray(quantizer.centroids, "<f4").tobytes())
