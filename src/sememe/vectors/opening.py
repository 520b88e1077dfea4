"""Open, save and convert vectors: our folders as memory maps, any vector file by its content.

A folder has sememe.json and model.safetensors. With sub-words, `input` holds the rows of words and
n-grams; a quantised table is `codes`, `centroids` and optional norms.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from sememe.card import part_of, write_manifest
from sememe.contract import KINDS
from sememe.errors import ArtifactError, OptionError
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    read_manifest,
    reads_artifact,
    write_folder,
)
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.ngrams import Marks
from sememe.tokens.vocabulary import Vocabulary, check_words
from sememe.vectors.formats.fasttext import (
    FastTextArgs,
    FastTextFile,
    Loss,
    is_fasttext,
    read_model,
    write_model,
)
from sememe.vectors.formats.files import (
    check_reading_options,
    file_of,
    read_vectors,
    unsupervised,
    vectors_of,
    write_vectors,
)
from sememe.vectors.formats.rows import Errors, FileFormat
from sememe.vectors.onehot import KIND as ONE_HOT, OneHotVectors
from sememe.vectors.search import ApproximateIndex
from sememe.vectors.subwords import (
    NGrams,
    ProductQuantizer,
    QuantizedMatrix,
    SubwordVectors,
    Table,
    cut_table,
)
from sememe.vectors.wordvectors import WordVectors


def table_of(manifest: Mapping[str, Any]) -> str:
    """What the folder of a kind maps: rows, ngrams or onehot."""
    kind = manifest.get("kind")
    return KINDS[kind].table if isinstance(kind, str) and kind in KINDS else "rows"


def subword_options(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """How a folder's words are composed of n-grams, or None if its vectors are complete."""
    options = manifest.get("subwords")
    if options is None and table_of(manifest) == "ngrams":
        options = manifest.get("config")
    return options if isinstance(options, dict) else None


def to_tensors(vectors: SubwordVectors) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The options and the tensors of `vectors`, without the words beyond a limit."""
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


def from_tensors(
    folder: Path,
    options: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    vocabulary: Vocabulary,
    limit: int | None,
) -> SubwordVectors:
    """The vectors saved by `to_tensors` or a trained model, after validation."""
    try:
        if "hash_count" in options:
            return _hashed(options, tensors, vocabulary, limit)
        minn, maxn, bucket = (int(options[name]) for name in ("minn", "maxn", "bucket"))
        table = _table(options, tensors)
        pruned, spellings = tensors.get("pruned"), None
        if maxn == 0 and pruned is None:  # whole words, with rows for n-grams of words at most
            bucket = len(table) - len(vocabulary)
        if "spelling_bytes" in tensors:
            spelled = tensors["spelling_bytes"], tensors["spelling_ends"], vocabulary.counts
            check_words(*spelled, where=folder / TENSORS, is_text=False)
            spellings = Vocabulary(*spelled)
        return SubwordVectors(
            vocabulary, table, minn=minn, maxn=maxn, bucket=bucket,
            pruned=pruned, spellings=spellings, limit=limit,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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


def _table(options: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Table:
    if "codes" in tensors:
        norm_codes = tensors.get("norm_codes")
        norms = None if norm_codes is None else ProductQuantizer(1, tensors["norm_centroids"])
        quantizer = ProductQuantizer(int(options["part_size"]), tensors["centroids"])
        return QuantizedMatrix(tensors["codes"], quantizer, norm_codes, norms)
    table = tensors["input"]
    if table.ndim != 2 or table.dtype.kind != "f" or not table.size:
        raise ValueError(f"its table has the shape {table.shape}")
    return table


KIND, FORMAT = "vectors", 1
TENSORS = "model.safetensors"


def save_folder(
    vectors: WordVectors,
    folder: Path,
    *,
    about: Mapping[str, Any] | None = None,
    more: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write `vectors` to `folder` atomically, with more metadata and tensors if given."""
    check_replaceable(folder, KIND)
    manifest: dict[str, Any] = {"kind": KIND, "format": FORMAT}
    manifest |= {"words": len(vectors), "dim": vectors.dim, **(about or {})}
    if vectors.has_text_settings:
        manifest["text"] = vectors.text.to_dict()
    if isinstance(vectors, SubwordVectors):
        manifest["subwords"], tensors = to_tensors(vectors)
    elif isinstance(vectors, OneHotVectors):
        manifest[ONE_HOT], tensors = True, {}  # the words say all
    else:
        tensors = {"vectors": vectors.vectors}
    if vectors.data:
        manifest["data"] = {**vectors.data, "base": {"kind": vectors.kind}}
    tensors |= vectors.vocabulary.to_tensors()
    with write_folder(folder) as scratch:
        write_tensors(scratch / TENSORS, {**tensors, **(more or {})})
        write_manifest(scratch, manifest)
        if vectors._index is not None:
            vectors._index.save(ApproximateIndex.path_in(scratch, vectors.vectors))


def chosen_rows(choice: str, input: np.ndarray, output: np.ndarray) -> np.ndarray:
    """Input, output, their sum or their concatenation."""
    if choice in ("input", "output"):
        return input if choice == "input" else output
    return input + output if choice == "sum" else np.concatenate([input, output], axis=1)


@reads_artifact
def load_folder(folder: Path, limit: int | None = None) -> WordVectors:
    """Memory-map the vectors of a sememe folder, plain ones or those of a trained model."""
    manifest = read_manifest(folder, FORMAT)
    vectors = _map_vectors(folder, manifest, limit)
    vectors._folder, vectors.about = folder, manifest
    vectors.data = part_of(manifest, "data")
    kind = manifest.get("kind")
    if isinstance(kind, str) and kind in KINDS and KINDS[kind].has_mapped_words:
        vectors.kind = kind
    if isinstance(text := manifest.get("text"), dict):
        vectors.text = TextSettings.from_dict(text)
    return vectors


def _map_vectors(folder: Path, manifest: dict[str, Any], limit: int | None) -> WordVectors:
    tensors = read_tensors(folder / TENSORS)
    options, is_one_hot = subword_options(manifest), ONE_HOT in (table_of(manifest), *manifest)
    if options is not None or is_one_hot:
        vocabulary = Vocabulary.from_tensors(tensors, folder / TENSORS)
        if options is not None:
            return from_tensors(folder, options, tensors, vocabulary, limit)
        return OneHotVectors(vocabulary if limit is None else vocabulary.cut(limit))
    if "vectors" in tensors:
        vectors = tensors["vectors"]
    elif "input" in tensors:
        config = manifest.get("config")
        choice = config.get("vectors", "input") if isinstance(config, dict) else "input"
        inputs, outputs = tensors["input"], tensors.get("output")
        if choice not in ("input", "output", "sum", "concat"):
            raise ArtifactError(f"{folder / MANIFEST}: unknown choice of vectors {choice!r}.")
        if choice != "input" and (outputs is None or outputs.shape != inputs.shape):
            raise ArtifactError(
                f"{folder} has no output vector for each word (hierarchical softmax keeps one for "
                f"each node of its tree), so its vectors cannot be “{choice}”; use “input”."
            )
        vectors = inputs if outputs is None else chosen_rows(choice, inputs, outputs)
    else:
        raise ArtifactError(f"{folder} is of kind {manifest.get('kind')!r}: no word vectors in it.")
    vocabulary = Vocabulary.from_tensors(tensors, folder / TENSORS)
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(vocabulary):
        raise ArtifactError(
            f"{folder} is damaged: {len(vocabulary):,} words but vectors of shape {vectors.shape}."
        )
    if not vectors.size:
        raise ArtifactError(f"{folder} holds no vectors.")
    if limit is not None:
        vectors, vocabulary = vectors[:limit], vocabulary.cut(limit)
    return WordVectors(vocabulary, vectors)


# Our words for these options, and Facebook's.
_LOSSES: dict[object, Loss] = {"negative": "ns", "hierarchical": "hs", "softmax": "softmax"}
TargetFormat = Literal[FileFormat, "folder"]
FORMATS: tuple[TargetFormat, ...] = get_args(TargetFormat)


def load(
    path: str | Path, limit: int | None = None, *, errors: Literal["strict", "replace"] = "strict"
) -> WordVectors:
    """Open a folder of sememe or a vector file of any known format, the first `limit` words.

    `errors="replace"` reads what can be read of a damaged file, with warnings.
    """
    path = Path(path)
    check_reading_options(limit, errors)
    if not path.exists():
        raise ArtifactError(f"{path} does not exist.")
    if path.is_dir():
        return load_folder(path, limit)
    return read_vectors(path, limit=limit, errors=errors)


def convert(
    source: str | Path,
    target: str | Path,
    format: TargetFormat = "folder",
    *,
    limit: int | None = None,
    errors: Errors = "strict",
    space: str | None = None,
    newline: bool = True,
) -> WordVectors:
    """Write the vectors of `source`, in any format, to `target`; return the vectors."""
    if format not in FORMATS:
        raise OptionError(f"format must be one of {', '.join(FORMATS)}, not {format!r}.")
    if format == "fasttext":
        # The model itself rather than its vectors, because it also has options and an output.
        model = open_model(source, limit)
        write_model(target, model)
        return vectors_of(model)
    vectors = load(source, limit, errors=errors)
    if format == "folder":
        vectors.save(target)
    elif not len(vectors) and format != "floret":
        raise OptionError(f"{source} is a compact table without words: there is nothing to write.")
    else:
        write_vectors(vectors, target, format, space=space, newline=newline)
    return vectors


def _args_of(config: Mapping[str, Any], vectors: SubwordVectors) -> FastTextArgs:
    """Facebook's options for those of a fastText model of sememe."""
    return FastTextArgs(
        dim=vectors.dim,
        ws=int(config.get("window", 5)),
        epoch=int(config.get("epochs", 5)),
        min_count=int(config.get("min_count", 1)),
        neg=int(config.get("negatives", 5)),
        loss=_LOSSES.get(config.get("loss"), "ns"),
        model="cbow" if config.get("architecture") == "cbow" else "skipgram",
        t=float(config.get("sample", 1e-4)),
        **vectors.subwords.options(),
    )


def open_model(path: str | Path, limit: int | None = None) -> FastTextFile:
    """The model file at `path`, or one built from a .bin, a folder or any vectors."""

    path = Path(path)
    if limit is None and path.is_file() and is_fasttext(path):
        return read_model(path)
    vectors = load(path, limit)
    # A compact table has no place in such a file: of it the words alone are written.
    if (
        limit is None
        and table_of(vectors.about) == "ngrams"
        and isinstance(vectors, SubwordVectors)
        and isinstance(vectors.subwords, NGrams)
    ):
        return unsupervised(
            _args_of(vectors.about["config"], vectors), vectors.vocabulary, vectors.table,
            read_tensors(path / TENSORS).get("output"), vectors.subwords.pruned,
        )  # fmt: skip
    return file_of(vectors)


# The class cannot import the modules that build on it, so they set its `load` and `save`.
WordVectors._load, WordVectors._save = load, save_folder
