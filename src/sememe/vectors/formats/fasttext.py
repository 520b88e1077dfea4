"""Facebook's .bin and .ftz files: a path in, a FastTextFile out whose matrices stay in the file.

V words, D dimensions. The dictionary has words and labels with counts, and the kept n-grams.
"""

import mmap
import struct
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.storage.folder import open_regular, write_file
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.subwords import NUM_CENTROIDS, ProductQuantizer, QuantizedMatrix, Table

# The first eight bytes of a file: this number and the version, which has been 12 since 2017.
MAGIC, VERSION = 793712314, 12

Loss = Literal["hs", "ns", "softmax", "ova"]
Model = Literal["cbow", "skipgram", "supervised"]
# The numbers of these names in a file start at 1.
LOSSES: tuple[Loss, ...] = ("hs", "ns", "softmax", "ova")
MODELS: tuple[Model, ...] = ("cbow", "skipgram", "supervised")


@dataclass(frozen=True, kw_only=True)
class FastTextArgs:
    """The options of the program in a file, in its order and with its names."""

    dim: int = 100
    ws: int = 5
    epoch: int = 5
    min_count: int = 5
    neg: int = 5
    word_ngrams: int = 1
    loss: Loss = "ns"
    model: Model = "skipgram"
    bucket: int = 2_000_000
    minn: int = 3
    maxn: int = 6
    lr_update_rate: int = 100
    t: float = 1e-4


@dataclass(kw_only=True)
class FastTextFile:
    """A model as stored in the file: words and labels with counts, and two matrices.

    `input` has a row for each word, then one for each bucket, or for each n-gram that a pruned
    model kept; `pruned` (N, 2) maps buckets to those rows, None means that all are there. `output`
    has a row for each word, node of the tree or label. `spellings` are the original bytes of words
    if some are not UTF-8; n-grams are taken from these bytes.
    """

    args: FastTextArgs
    words: Vocabulary
    labels: Vocabulary
    num_tokens: int
    pruned: np.ndarray | None
    input: Table
    output: Table
    spellings: Vocabulary | None = None


class Cursor:
    """Reads the fields of a file in order, and checks every size against the file's."""

    def __init__(self, path: Path) -> None:
        self.path, self.position = path, 0
        try:
            with open_regular(path) as file:
                self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ArtifactError(f"{path} cannot be read: {reason}.") from error
        self.data = np.frombuffer(self.content, np.uint8)

    @property
    def num_left(self) -> int:
        """Bytes from here to the end of the file."""
        return len(self.data) - self.position

    def fail(self, message: str) -> NoReturn:
        """Raise an error with the position in the file."""
        raise ArtifactError(f"{self.path} is damaged near byte {self.position:,}: {message}.")

    def take(self, num_bytes: int, what: str) -> np.ndarray:
        """The next bytes, memory-mapped."""
        if not 0 <= num_bytes <= self.num_left:
            raise ArtifactError(
                f"{self.path} is truncated: {what} would need {num_bytes:,} bytes from byte "
                f"{self.position:,} on, but the file ends after {len(self.data):,}."
            )
        self.position += num_bytes
        return self.data[self.position - num_bytes : self.position]

    def numbers(self, format: str, what: str) -> tuple:
        """The next fields as `struct` names them, little-endian and without padding."""
        layout = struct.Struct("<" + format)
        return layout.unpack(self.take(layout.size, what).tobytes())

    def flag(self, what: str) -> bool:
        """A byte that must be 0 or 1."""
        (value,) = self.numbers("B", what)
        if value > 1:
            self.fail(f"{what} must be 0 or 1, not {value}")
        return bool(value)

    def floats(self, num_rows: int, num_columns: int, what: str) -> np.ndarray:
        """The next float32 values as a memory-mapped table; it need not be aligned."""
        block = self.take(4 * num_rows * num_columns, what)
        return block.view("<f4").reshape(num_rows, num_columns)


SMALLEST_ENTRY = 10  # an empty word, its zero byte, an int64 and a byte
LONGEST_WORD = 1 << 16
_NOT_PRUNED = -1


def _read_dictionary(
    cursor: Cursor, bucket: int
) -> tuple[Vocabulary, Vocabulary | None, Vocabulary, int, np.ndarray | None]:
    """Read words, their spellings, labels, the number of tokens and the kept n-grams."""
    sizes = cursor.numbers("iiiqq", "the sizes of the dictionary")
    size, num_words, num_labels, num_tokens, num_pruned = sizes
    if min(num_words, num_labels, num_tokens) < 0 or size != num_words + num_labels:
        cursor.fail(
            f"it states {size:,} entries, {num_words:,} words, {num_labels:,} labels and "
            f"{num_tokens:,} tokens"
        )
    if num_words == 0:
        cursor.fail("it holds no words")
    if size * SMALLEST_ENTRY > cursor.num_left:
        cursor.fail(f"it states {size:,} words and labels, more than the file can hold")
    words, spellings = _read_entries(cursor, num_words, type_id=0)
    labels, _ = _read_entries(cursor, num_labels, type_id=1)
    return words, spellings, labels, num_tokens, _read_pruned(cursor, num_pruned, bucket)


def _read_entries(cursor: Cursor, num: int, type_id: int) -> tuple[Vocabulary, Vocabulary | None]:
    """Words or labels, and their bytes if some are not UTF-8.

    A zero byte ends a word; its count, eight bytes, and its type follow.
    """
    starts, ends = [], []
    for index in range(num):
        # Not past the longest word, so that a file without any end is not read whole.
        end = cursor.content.find(b"\0", cursor.position, cursor.position + LONGEST_WORD + 1)
        if end < 0 or end + SMALLEST_ENTRY > len(cursor.data):
            cursor.fail(
                f"word {index:,} of {num:,} has no end within {LONGEST_WORD:,} bytes, or the file "
                "ends there"
            )
        starts.append(cursor.position)
        ends.append(end)
        cursor.position = end + SMALLEST_ENTRY
    places = np.array(ends, np.int64)
    behind = cursor.data[places[:, None] + np.arange(1, SMALLEST_ENTRY)]
    if np.any(behind[:, 8] != type_id):
        cursor.fail("its words do not come before its labels")
    counts = np.ascontiguousarray(behind[:, :8]).view("<i8")[:, 0]
    if np.any(counts < 0) or counts.sum(dtype=np.float64) > 2.0**62:
        cursor.fail("a word has a negative count, or one too large for its sum")
    word_bytes = b"".join(map(cursor.content.__getitem__, map(slice, starts, ends)))
    word_ends = np.cumsum(places - np.array(starts, np.int64))
    words, spellings = readable(Vocabulary(np.frombuffer(word_bytes, np.uint8), word_ends, counts))
    if spellings is not None:
        warnings.warn(
            f"{cursor.path}: {sum('�' in word for word in words):,} words are not UTF-8 (the "
            "program that made the file split text at any byte); they are shown with “�”.",
            stacklevel=2,
        )
    return words, spellings


def readable(found: Vocabulary) -> tuple[Vocabulary, Vocabulary | None]:
    """The words as text, and their bytes if some are not UTF-8."""
    try:
        found.to_records().tobytes().decode("utf-8", "surrogatepass")
        return found, None
    except UnicodeDecodeError:
        words = [_fixed_bytes(found._word_bytes(word_id)) for word_id in range(len(found))]
    return Vocabulary.from_words(words, found.counts), found


def _fixed_bytes(word: bytes) -> str:
    try:
        return word.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return word.decode("utf-8", "replace")


def _read_pruned(cursor: Cursor, num_pruned: int, bucket: int) -> np.ndarray | None:
    """The pairs (bucket, row) of the n-grams that pruning kept; None if nothing was pruned."""
    if num_pruned == _NOT_PRUNED:
        return None
    if num_pruned < 0:
        cursor.fail(f"it states {num_pruned:,} n-grams that were kept")
    pairs = np.array(cursor.take(8 * num_pruned, "the list of kept n-grams")).view("<i4")
    pairs = pairs.reshape(-1, 2).astype(np.int32)
    buckets, rows = pairs[:, 0], pairs[:, 1]
    if num_pruned and (
        pairs.min() < 0
        or buckets.max() >= bucket
        or rows.max() >= num_pruned
        or len(np.unique(buckets)) < num_pruned
    ):
        cursor.fail("its list of kept n-grams names a bucket or a row that is not there")
    return pairs


MAGIC_BYTES = struct.pack("<i", MAGIC)
# Far above any published vectors; a larger number means a damaged header.
MAX_DIM = 1_000_000
# Longer n-grams are not used in practice, and would take quadratic memory for a long word.
_LONGEST_NGRAM = 1_000
# Up to this size checking every value is cheap; a larger matrix is checked in use.
_CHECKED_SIZE = 1 << 26


def is_fasttext(path: Path) -> bool:
    """Whether a file starts like a fastText model."""
    with open_regular(path) as file:
        return file.read(4) == MAGIC_BYTES


def read_model(path: str | Path) -> FastTextFile:
    """Open a model of Facebook's program, quantised or not, as the program itself would.

    Matrices are memory-mapped; their rows may start at any byte. A supervised model of version 11
    has no character n-grams, whatever it says.
    """
    cursor = Cursor(Path(path))
    args = _read_args(cursor)
    words, spellings, labels, num_tokens, pruned = _read_dictionary(cursor, args.bucket)
    is_quantized = cursor.flag("the mark of a quantised input")
    if pruned is not None and not is_quantized:
        cursor.fail("it is pruned but not quantised; make it again with a newer program")
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


def _read_args(cursor: Cursor) -> FastTextArgs:
    """The options, after the number and the version that every file starts with."""
    magic, version = cursor.numbers("ii", "the start of the file")
    if magic != MAGIC:
        raise ArtifactError(f"{cursor.path} is not a fastText model: it starts with other bytes.")
    if not 11 <= version <= VERSION:
        raise ArtifactError(
            f"{cursor.path} is a fastText model of version {version}; 11 and 12 can be read."
        )
    names = (field.name for field in fields(FastTextArgs))
    found = dict(zip(names, cursor.numbers("12id", "the options"), strict=True))
    loss, model, dim, maxn = (found[name] for name in ("loss", "model", "dim", "maxn"))
    if not 1 <= loss <= len(LOSSES) or not 1 <= model <= len(MODELS):
        cursor.fail(f"loss {loss} or kind of model {model} is unknown")
    if not 1 <= dim <= MAX_DIM:
        cursor.fail(f"it states {dim:,} dimensions")
    if found["bucket"] < 0 or found["minn"] < 0 or not 0 <= maxn <= _LONGEST_NGRAM:
        cursor.fail(
            f"it states {found['bucket']:,} buckets and n-grams of {found['minn']:,} to {maxn:,} "
            "characters"
        )
    found |= {"loss": LOSSES[loss - 1], "model": MODELS[model - 1]}
    if version == 11 and found["model"] == "supervised":
        found["maxn"] = 0
    return FastTextArgs(**found)


def _read_matrix(cursor: Cursor, dim: int, num_rows: int, is_quantized: bool, what: str) -> Table:
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
    *stated, code_size = cursor.numbers("qqi", f"the size of {what}")
    _check_shape(cursor, tuple(stated), (num_rows, dim), what)
    num_parts = code_size // max(1, num_rows)
    if not 1 <= num_parts <= dim or num_parts * num_rows != code_size:
        cursor.fail(f"{what} has {code_size:,} codes for {num_rows:,} rows of {dim:,} numbers")
    codes = cursor.take(code_size, f"the codes of {what}").reshape(num_rows, num_parts)
    quantizer = _read_quantizer(cursor, dim, num_parts, what)
    if not has_norms:
        return QuantizedMatrix(codes, quantizer)
    norm_codes = cursor.take(num_rows, f"the quantised lengths of {what}")
    return QuantizedMatrix(codes, quantizer, norm_codes, _read_quantizer(cursor, 1, 1, what))


def _read_quantizer(cursor: Cursor, dim: int, num_parts: int, what: str) -> ProductQuantizer:
    sizes = cursor.numbers("4i", f"the quantiser of {what}")
    part_size = sizes[2]
    last_part_size = dim - (num_parts - 1) * part_size
    is_sound = part_size >= 1 and 1 <= last_part_size <= part_size
    if not is_sound or sizes != (dim, num_parts, part_size, last_part_size):
        cursor.fail(f"the quantiser of {what} has the sizes {sizes}, which do not fit it")
    centroids = cursor.floats(NUM_CENTROIDS, dim, f"the centroids of {what}").reshape(-1)
    _check_finite(cursor, centroids, f"the quantiser of {what}")
    return ProductQuantizer(part_size, np.array(centroids, np.float32))


_BLOCK_SIZE = 1 << 24
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
    """Raise an error for what Facebook's program could not open."""
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
    names = {"loss": LOSSES.index(args.loss) + 1, "model": MODELS.index(args.model) + 1}
    return struct.pack("<12id", *{**vars(args), **names}.values())


def _entries(words: Vocabulary, counts: np.ndarray, type_id: int) -> bytes:
    """Words with their counts in the format of a file's dictionary."""
    word_bytes, ends = words.to_arrays()
    blob, starts = word_bytes.tobytes(), [0, *ends[:-1].tolist()]
    return b"".join(
        blob[start:end] + struct.pack("<xqB", count, type_id)
        for start, end, count in zip(starts, ends.tolist(), counts.tolist(), strict=False)
    )


def _write_matrix(file: BinaryIO, matrix: Table) -> None:
    if isinstance(matrix, np.ndarray):
        file.write(struct.pack("<qq", *matrix.shape))
        num_rows = max(1, _BLOCK_SIZE // (4 * matrix.shape[1]))
        for start in range(0, len(matrix), num_rows):
            file.write(np.ascontiguousarray(matrix[start : start + num_rows], "<f4").tobytes())
        return
    has_norms = matrix.norm_codes is not None
    file.write(struct.pack("<?qqi", has_norms, *matrix.shape, matrix.codes.size))
    parts = [(matrix.codes, matrix.quantizer), (matrix.norm_codes, matrix.norm_quantizer)]
    for codes, own in parts[: 1 + has_norms]:
        assert codes is not None and own is not None
        file.write(np.ascontiguousarray(codes, np.uint8).tobytes())
        file.write(struct.pack("<4i", own.dim, own.num_parts, own.part_size, own.last_part_size))
        file.write(np.ascontiguousarray(own.centroids, "<f4").tobytes())
