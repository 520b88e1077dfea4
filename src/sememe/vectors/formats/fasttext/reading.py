"""Reading .bin and .ftz files: a path in, a FastTextFile out whose matrices stay in the file."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from sememe.errors import ArtifactError
from sememe.vectors.formats.fasttext.cursor import Cursor
from sememe.vectors.formats.fasttext.dictionary import read_dictionary
from sememe.vectors.formats.fasttext.model import (
    LOSSES,
    MAGIC,
    MODELS,
    VERSION,
    FastTextArgs,
    FastTextFile,
)
from sememe.vectors.formats.layout import MAX_DIM
from sememe.vectors.quantized import (
    NUM_CENTROIDS,
    ProductQuantizer,
    QuantizedMatrix,
)

MAGIC_BYTES = struct.pack("<i", MAGIC)
# Longer n-grams are not made by anybody, and would take a long word's square in memory.
_LONGEST_NGRAM = 1_000
# Up to here looking at every number costs nothing; a larger matrix is looked at in use.
_CHECKED_SIZE = 1 << 26


def is_fasttext(path: Path) -> bool:
    """Whether a file starts as a fastText model does."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC_BYTES


def read_model(path: str | Path) -> FastTextFile:
    """Open a model of Facebook's program, quantised or not, as the program itself would.

    Matrices are mapped, not read; their rows may start at any byte. A supervised model of version
    11 has no character n-grams, whatever it states.
    """
    cursor = Cursor(Path(path))
    version = _read_start(cursor)
    args = _read_args(cursor)
    if version == 11 and args.model == "supervised":
        args = FastTextArgs(**{**vars(args), "maxn": 0})
    words, spellings, labels, num_tokens, pruned = read_dictionary(cursor, args.bucket)
    is_quantized = cursor.flag("the mark of a quantised input")
    if pruned is not None and not is_quantized:
        cursor.fail("it is pruned but not quantised; make it anew with a newer program")
    num_rows = len(words) + (args.bucket if pruned is None else len(pruned))
    input = _read_matrix(cursor, args.dim, num_rows, is_quantized, "the input matrix")
    is_output_quantized = cursor.flag("the mark of a quantised output")
    num_targets = len(labels) if args.model == "supervised" else len(words)
    output = _read_matrix(
        cursor, args.dim, num_targets, is_quantized and is_output_quantized, "the output matrix"
    )
    if cursor.num_left:
        cursor.fail(f"{cursor.num_left:,} bytes follow the end of the model")
    return FastTextFile(
        args=args, words=words, labels=labels, num_tokens=num_tokens, pruned=pruned,
        input=input, output=output, spellings=spellings,
    )  # fmt: skip


def _read_start(cursor: Cursor) -> int:
    magic, version = cursor.numbers("ii", "the start of the file")
    if magic != MAGIC:
        raise ArtifactError(f"{cursor.path} is not a fastText model: it starts with other bytes.")
    if not 11 <= version <= VERSION:
        raise ArtifactError(
            f"{cursor.path} is a fastText model of version {version}; 11 and 12 can be read."
        )
    return version


def _read_args(cursor: Cursor) -> FastTextArgs:
    fields = cursor.numbers("12id", "the options")
    dim, ws, epoch, min_count, neg, word_ngrams, loss, model, bucket, minn, maxn, rate, t = fields
    if not 1 <= loss <= len(LOSSES) or not 1 <= model <= len(MODELS):
        cursor.fail(f"loss {loss} or kind of model {model} is unknown")
    if not 1 <= dim <= MAX_DIM:
        cursor.fail(f"it states {dim:,} numbers in a vector")
    if bucket < 0 or minn < 0 or not 0 <= maxn <= _LONGEST_NGRAM:
        cursor.fail(f"it states {bucket:,} buckets and n-grams of {minn:,} to {maxn:,} characters")
    return FastTextArgs(
        dim=dim, ws=ws, epoch=epoch, min_count=min_count, neg=neg, word_ngrams=word_ngrams,
        loss=LOSSES[loss - 1], model=MODELS[model - 1], bucket=bucket, minn=minn, maxn=maxn,
        lr_update_rate=rate, t=t,
    )  # fmt: skip


def _read_matrix(
    cursor: Cursor, dim: int, num_rows: int, is_quantized: bool, what: str
) -> np.ndarray | QuantizedMatrix:
    if is_quantized:
        return _read_quantized(cursor, dim, num_rows, what)
    _check_shape(cursor, cursor.numbers("qq", f"the size of {what}"), (num_rows, dim), what)
    matrix = cursor.floats(num_rows, dim, what)
    _check_finite(cursor, matrix, what)
    return matrix


def _check_shape(
    cursor: Cursor, stated: tuple[int, ...], expected: tuple[int, ...], what: str
) -> None:
    if stated != expected:
        cursor.fail(f"{what} has the sizes {stated}, but {expected} would fit the rest of the file")


def _check_finite(cursor: Cursor, numbers: np.ndarray, what: str) -> None:
    if numbers.nbytes <= _CHECKED_SIZE and not np.isfinite(numbers).all():
        cursor.fail(f"{what} holds a number that is not finite")


def _read_quantized(cursor: Cursor, dim: int, num_rows: int, what: str) -> QuantizedMatrix:
    has_norms = cursor.flag(f"the mark of quantised lengths of {what}")
    stated = cursor.numbers("qqi", f"the size of {what}")
    _check_shape(cursor, stated[:2], (num_rows, dim), what)
    code_size = stated[2]
    num_parts = code_size // max(1, num_rows)
    if not 1 <= num_parts <= dim or num_parts * num_rows != code_size:
        cursor.fail(f"{what} has {code_size:,} codes for {num_rows:,} rows of {dim:,} numbers")
    codes = cursor.take(code_size, f"the codes of {what}").reshape(num_rows, num_parts)
    quantizer = _read_quantizer(cursor, dim, num_parts, what)
    norm_codes, norm_quantizer = None, None
    if has_norms:
        norm_codes = cursor.take(num_rows, f"the quantised lengths of {what}")
        norm_quantizer = _read_quantizer(cursor, 1, 1, what)
    return QuantizedMatrix(
        codes=codes, quantizer=quantizer, shape=(num_rows, dim), norm_codes=norm_codes,
        norm_quantizer=norm_quantizer,
    )  # fmt: skip


def _read_quantizer(cursor: Cursor, dim: int, num_parts: int, what: str) -> ProductQuantizer:
    sizes = cursor.numbers("4i", f"the quantiser of {what}")
    part_size = sizes[2]
    last_part_size = dim - (num_parts - 1) * part_size
    is_sound = part_size >= 1 and 1 <= last_part_size <= part_size
    if not is_sound or sizes != (dim, num_parts, part_size, last_part_size):
        cursor.fail(f"the quantiser of {what} has the sizes {sizes}, which do not fit it")
    centroids = cursor.floats(NUM_CENTROIDS, dim, f"the centroids of {what}").reshape(-1)
    _check_finite(cursor, centroids, f"the quantiser of {what}")
    return ProductQuantizer(
        dim=dim, num_parts=num_parts, part_size=part_size, last_part_size=last_part_size,
        centroids=np.array(centroids, np.float32),
    )  # fmt: skip
