"""Find out what is at a path: a folder or file in, its kind and its model out.

`load` opens anything that sememe can use; `recognise` names its kind without opening it; `describe`
reads its metadata without PyTorch; `convert` writes it in another format.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sememe.contract import KINDS, Model, unsupported
from sememe.errors import ArtifactError, OptionError, UnsupportedError, WriteError
from sememe.machine import imported
from sememe.models.huggingface.layout import (
    CONFIG,
    GRAPH,
    TENSORS,
    find_bilm,
    finetuned_for,
    is_adapter,
    is_pickled,
    network_config,
    network_kind,
)
from sememe.models.sentence.layout import is_sentence_folder
from sememe.models.word2vec.config import START_RATES
from sememe.progress import SILENT, Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import (
    CARD,
    CHECKSUMS,
    MANIFEST,
    OTHER_CARD,
    keep_card,
    manifest_in,
    read_json,
    reads_artifact,
    verify,
    write_errors,
    write_file,
    write_folder,
    write_json,
)
from sememe.storage.remote import here
from sememe.storage.tensors import num_weights, tensor_shapes
from sememe.vectors import WordVectors, convert as convert_vectors, load as load_vectors
from sememe.vectors.formats.fasttext import is_fasttext, read_model
from sememe.vectors.formats.files import STREAM_ERRORS, open_for_reading
from sememe.vectors.subwords import QuantizedMatrix

Source = Literal[
    "sememe", "transformers", "sentence-transformers", "fasttext", "bilm", "arpa", "vectors"
]

# Kinds that `load` does not open, and what opens them.
_NOT_MODELS = {
    "tokens": "a text as ids (sememe.TokenStore opens it), and no model",
    "subwords": "a text as ids, and no model",
    "tokenizer": "a tokenizer (sememe.SubwordTokenizer opens it), and no model",
    "ladder": "a ladder; its models are in the folder models",
    "search": "a search index (sememe.Search opens it), and no model",
    "checkpoints": "the checkpoints of a training, which its command with --resume continues",
}


class Found(NamedTuple):
    """What is at a path: its kind, and the program that wrote it."""

    kind: str
    source: Source

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of a fine-tuned model, its own first; empty for other models.

        A classification head of transformers does not say whether it takes one text or two.
        """
        if self == ("classify", "transformers"):
            return ("classify", "pairs")
        is_task = self.kind in KINDS and KINDS[self.kind].home.startswith("sememe.tasks.")
        return (self.kind,) if is_task else ()


def recognise(path: str | Path) -> Found:
    """Identify what is at a path by its files, without reading weights."""
    path = here(path)
    if not path.exists():
        begun = Path(f"{path}.checkpoints")
        why = f"its training was stopped, and {begun} waits for --resume" if begun.is_dir() else ""
        raise ArtifactError(f"There is no model at {path}: {why or 'it does not exist'}.")
    if path.is_dir():
        return _recognise_folder(path)
    if find_bilm(path) is not None:
        return Found("elmo", "bilm")
    if is_fasttext(path):
        has_labels = read_model(path).labels
        return Found("fasttext-classifier" if len(has_labels) else "vectors", "fasttext")
    return Found("ngram", "arpa") if _is_arpa(path) else Found("vectors", "vectors")


def _recognise_folder(folder: Path) -> Found:
    manifest = manifest_in(folder)
    kind = manifest.get("task") if manifest.get("kind") == "task" else manifest.get("kind")
    if isinstance(kind, str):
        if kind not in KINDS and kind not in _NOT_MODELS:
            raise ArtifactError(f"{folder} is of kind {kind!r}, which this version does not know.")
        return Found(kind, "sememe")
    if (folder / MANIFEST).exists():
        raise ArtifactError(f"{folder / MANIFEST} does not say what kind of model this is.")
    if is_sentence_folder(folder):
        return Found("sentence", "sentence-transformers")
    if (kind := finetuned_for(folder) or network_kind(folder)) is not None:
        return Found(kind, "transformers")
    if find_bilm(folder) is not None:
        return Found("elmo", "bilm")
    if Checkpoints(folder).has_one:
        return Found("checkpoints", "sememe")
    if (folder / CONFIG).is_file():  # names the network, and the known ones
        network_config(folder)
    raise ArtifactError(
        f"{folder} cannot be opened: it has neither {MANIFEST} nor the files of a Hugging Face "
        "BERT or GPT-2, or of a released ELMo."
    )


def _is_arpa(path: Path) -> bool:
    """Whether a file, compressed or not, starts like an ARPA file."""
    try:
        with open_for_reading(path) as file:
            return b"\\data\\" in file.read(4_096)
    except STREAM_ERRORS:  # the file's reader reports what is wrong with it
        return False


@reads_artifact
def load(
    path: str | Path,
    limit: int | None = None,
    *,
    errors: Literal["strict", "replace"] = "strict",
    device: str = "cpu",
    able: str = "",
    columns: Mapping[str, Any] | None = None,
) -> Any:
    """Open any model: a sememe or Hugging Face folder, a vector file, an ARPA file, ELMo files.

    The result is a `sememe.contract.Model`: see its `kind`, `capabilities` and `describe()`.
    A URL (`s3://bucket/model`) is downloaded to the cache first. `limit` reads only the first words
    of word vectors; `errors="replace"` reads what it can of a
    damaged vector file; `device` (cpu, cuda, auto) is where a network computes. `able` names a
    capability that the model must have: a fine-tuned network without it is opened as the model it
    was fine-tuned from, with its present weights. `columns` names the columns of the rows to
    predict, because files of transformers do not say whether a label is of one text or two.
    """
    path = here(path)
    kind, source = recognise(path)
    if (kind, source) == ("classify", "transformers") and "second" in (columns or {}):
        kind = "pairs"
    if kind in _NOT_MODELS:
        raise ArtifactError(f"{path} is {_NOT_MODELS[kind]}.")
    if able and able not in KINDS[kind].capabilities:
        kind = network_kind(path) or kind
        if able not in KINDS[kind].capabilities:
            raise UnsupportedError(f"{path}: {unsupported(kind, able)}")
    if KINDS[kind].has_mapped_words:
        vectors = load_vectors(path, limit, errors=errors)
        vectors.path, vectors.opened_with = path, {"limit": limit}
        return vectors
    model: Model = KINDS[kind].cls().load(path)
    model.is_pretrained = not model.is_classifier
    if able:
        model.require(able)
    model.path, model.opened_with = path, {"able": able}
    return model.to(device)


@reads_artifact
def load_words(path: str | Path, limit: int | None = None) -> WordVectors:
    """Open the word vectors of any model that has them; `limit` reads only the first words."""
    path = here(path)
    found = recognise(path)
    is_mapped = found.kind in KINDS and KINDS[found.kind].has_mapped_words
    # An NNLM's folder has them in a form that needs no PyTorch.
    if is_mapped or found.kind == "nnlm" or found.source == "fasttext":
        return load_vectors(path, limit)
    words: WordVectors = load(path, able="words").words
    return words if limit is None else words.subset(words.vocabulary[:limit])


def opened(model: Any, *, limit: int | None = None, device: str = "cpu", able: str = "") -> Any:
    """Return a model that is already open, or open the one at a path; see `load` for `able`."""
    if isinstance(model, Model):
        if able:
            model.require(able)
        return model
    if not isinstance(model, str | Path):
        raise OptionError(f"A model or its path is needed, not {type(model).__name__}.")
    return load(model, limit, device=device, able=able)


@reads_artifact
def describe(path: str | Path) -> dict[str, Any]:
    """Describe what is at a path in JSON values: kind, sizes, options, origin.

    This includes token stores, tokenizers and ladders, and never needs PyTorch.
    """
    path = here(path)
    kind, source = recognise(path)
    if source in _FILES:
        told, facts = _FILES[source]
        return {"kind": told, "path": str(path), **_size(path), **facts(path)}
    if kind in _STORES:
        return {"kind": kind, "path": str(path), **_STORES[kind](path), **_size(path)}
    manifest = manifest_in(path)
    sizes = _sizes(path, kind)
    more = {name: manifest[name] for name in manifest if name not in ("kind", "plan", *sizes)}
    if network_kind(path):
        more["config"] = network_config(path).to_dict()
    config = more.get("config") or {}
    if config.get("learning_rate") == 0 and config.get("architecture") in START_RATES:
        # A word2vec whose learning rate is the default of its architecture.
        more["config"] = config | {"learning_rate": START_RATES[config["architecture"]]}
    # Earlier versions wrote the key `figures`.
    if isinstance(metrics := more.pop("figures", more.get("metrics")), dict):
        # The learning rate of the last step is mostly 0; the chosen rate is among the options.
        more["metrics"] = {name: metrics[name] for name in metrics if name != "learning_rate"}
    told = manifest.get("kind", kind)  # a task's manifest names the kind of task
    return {"kind": told, "path": str(path), **sizes, **_size(path), **more}


def compare_checksums(path: str | Path) -> int:
    """Compare the files at a path with their saved checksums; return the number of files.

    Token stores have theirs in sememe.json; a ladder has those of its models; the checkpoints of a
    stopped training count as part of the model.
    """
    path = here(path)
    kind = recognise(path).kind
    if kind in _STORE_CLASSES:
        return len(imported(*_STORE_CLASSES[kind]).open(path, verify=True).manifest["files"])
    beside = Path(f"{path}.checkpoints").rglob(CHECKSUMS)
    compared = sum(verify(sums.parent) for sums in (*path.rglob(CHECKSUMS), *beside))
    if not compared:
        raise ArtifactError(
            f"{path} has no checksums: an earlier version or another program has written it."
        )
    return compared


def content_hash(path: str | Path) -> str:
    """A hash of the files of a model, without its cards and checksums."""
    path = Path(path)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        if file.name in (CARD, OTHER_CARD, CHECKSUMS):
            continue
        with file.open("rb") as content:
            name = file.relative_to(path).as_posix()
            digest.update(name.encode() + hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _size(path: Path) -> dict[str, int]:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {"size": sum(file.stat().st_size for file in files)}


def _sizes(folder: Path, kind: str) -> dict[str, Any]:
    """The number of words or weights of a model, from its tensors."""
    if network_kind(folder):
        files = sorted(folder.glob("*.safetensors"))
        return {"parameters": num_weights(*files) if files else None}  # None: pickles
    if kind in ("elmo", "ulmfit"):  # their words are in a separate file
        return {"parameters": num_weights(folder / TENSORS)}
    is_mapped = kind in KINDS and KINDS[kind].has_mapped_words
    if not is_mapped and kind != "nnlm":
        return {}
    vectors = load_vectors(folder)
    num_tokens = int(vectors.vocabulary.counts.sum())
    return {"words": len(vectors), "dim": vectors.dim, "occurrences": num_tokens}


def _bilm_facts(path: Path) -> dict[str, Any]:
    options, weights = find_bilm(path) or (path, path)
    return {"path": str(weights), **_size(weights), **read_json(options)}


def _arpa_facts(path: Path) -> dict[str, Any]:
    with open_for_reading(path) as file:
        counts = re.findall(rb"^ngram \d+=(\d+)", file.read(4_096), re.MULTILINE)
    return {"ngrams": [*map(int, counts)]}


def _fasttext_facts(path: Path) -> dict[str, Any]:
    model = read_model(path)
    return {
        "words": len(model.words),
        "labels": len(model.labels),
        "occurrences": model.num_tokens,
        "quantized": isinstance(model.input, QuantizedMatrix),
        "output_quantized": isinstance(model.output, QuantizedMatrix),
        **({} if model.pruned is None else {"kept_ngrams": len(model.pruned)}),
        "options": vars(model.args),
    }


def _vector_facts(path: Path) -> dict[str, Any]:
    vectors = load_vectors(path)
    return {"words": len(vectors), "dim": vectors.dim}


def _token_store(path: Path) -> dict[str, Any]:
    store = imported(*_STORE_CLASSES["tokens"]).open(path)
    return {
        "words": len(store.vocabulary),
        "tokens": store.num_tokens,
        "sentences": len(store.sentence_ends),
        "documents": len(store.document_ends),
        "min_count": store.min_count,
        "fingerprint": store.fingerprint,
    }


def _subword_store(path: Path) -> dict[str, Any]:
    store = imported(*_STORE_CLASSES["subwords"]).open(path)
    return {
        "vocab_size": store.vocab_size,
        "tokens": store.num_tokens,
        "words": int(store.word_starts.sum(dtype="int64")),
        "sentences": len(store.sentence_ends),
        "documents": store.num_documents,
        "language": store.language,
        "fingerprint": store.fingerprint,
    }


def _ladder(path: Path) -> dict[str, Any]:
    results = read_json(path / "results.json")
    try:
        told = {name: results[name] for name in ("corpus", "budget", "started", "seconds")}
        return told | {"rungs": {rung["name"]: rung["state"] for rung in results["rungs"]}}
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{path} does not hold the results of a ladder.") from error


# Files of other programs, and what is not a model, have their own readers.
_FILES = {
    "bilm": ("released ELMo", _bilm_facts), "arpa": ("ARPA file", _arpa_facts),
    "fasttext": ("fastText model", _fasttext_facts), "vectors": ("vector file", _vector_facts),
}  # fmt: skip
_STORE_CLASSES = {
    "tokens": ("sememe.tokens.store", "TokenStore"),
    "subwords": ("sememe.tokens.subwords.store", "SubwordStore"),
}
_STORES = {
    "tokens": _token_store, "subwords": _subword_store, "ladder": _ladder,
    "checkpoints": lambda path: {"latest": str(Checkpoints(path).latest())},
}  # fmt: skip


class Converted(NamedTuple):
    """What was written: its format, its sizes for JSON, and a sentence for people."""

    format: str
    sizes: dict[str, Any]
    told: str


_FORMATS = ("word2vec", "word2vec-binary", "glove", "fasttext", "floret", "arpa", "onnx", "folder")
_ENDINGS = {
    ".txt": "word2vec", ".vec": "word2vec", ".w2v": "word2vec", ".bin": "word2vec-binary",
    ".ftz": "fasttext", ".floret": "floret", ".arpa": "arpa",
    ".onnx": "onnx",
}  # fmt: skip
_PACKINGS = (".gz", ".bz2", ".xz", ".zst")


def convert(
    source: str | Path,
    target: str | Path,
    format: str | None = None,
    *,
    limit: int | None = None,
    errors: Literal["strict", "replace"] = "strict",
    space: str | None = None,
    int8: bool = False,
    overwrite: bool = False,
    progress: Reporter = SILENT,
) -> Converted:
    """Write what is at `source` in another format: a sememe folder, or a file of another tool.

    Without a format, the ending of `target` decides. `limit`, `errors` and `space` (the character
    that replaces spaces inside words) apply to vectors, `int8` to ONNX. `overwrite` replaces what
    is at `target`.
    """
    source, target = Path(source), str(target)
    if not overwrite and (Path(target).is_file() or any(Path(target).glob("*"))):
        raise WriteError(f"{target} exists; choose another name, or replace it with --overwrite.")
    if (format or _format_of(target)) == "onnx":
        return _convert_onnx(source, target, int8, progress)
    if int8:
        raise OptionError("int8 is a precision of ONNX: convert to a name that ends in .onnx.")
    written = _write_as(source, target, format, limit, errors, space, progress)
    if written.format == "folder" and source.is_dir():
        with write_errors(Path(target)):
            keep_card(source, Path(target))
    return written


def _write_as(
    source: Path,
    target: str,
    format: str | None,
    limit: int | None,
    errors: Literal["strict", "replace"],
    space: str | None,
    progress: Reporter,
) -> Converted:
    chosen: Any = format or _format_of(target)
    if network_kind(source):
        return _convert_network(source, target, chosen)
    kind = recognise(source).kind
    if kind == "ngram":
        return _convert_ngrams(source, target, chosen, progress)
    if kind == "fasttext-classifier" and source.is_dir():
        return _convert_classifier(source, target, format, chosen)
    is_whole = not _has_rows(source) or (chosen == "folder" and limit is None)
    if kind in KINDS and not KINDS[kind].has_mapped_words and is_whole:
        return _convert_network(source, target, chosen)
    if chosen == "arpa":
        raise OptionError(f"{source} is no n-gram model: it cannot become an ARPA file.")
    vectors = convert_vectors(source, target, chosen, limit=limit, errors=errors, space=space)
    sizes = {"words": len(vectors), "dim": vectors.dim}
    return Converted(chosen, sizes, f"{len(vectors):,} words × {vectors.dim}")


def _has_rows(source: Path) -> bool:
    """Whether a model has one vector per word, which a vector file may take from it."""
    if source.is_file():
        return is_fasttext(source)
    tensors = source / TENSORS
    return tensors.is_file() and bool({"vectors", "input"} & tensor_shapes(tensors).keys())


def _format_of(target: str) -> str:
    """Guess the format from the ending of a file name; a name without one is a folder."""
    path = Path(target.lower())
    is_packed = path.suffix in _PACKINGS
    ending = path.with_suffix("").suffix if is_packed else path.suffix
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    # Digits after a dot belong to the name, as in bert-1.2 or glove.6B.50d.
    is_folder = target.endswith(("/", os.sep)) or Path(target).is_dir()
    if is_folder or not (is_packed or ending[1:].isalpha()):
        return "folder"
    raise OptionError(
        f"The ending of {target} tells no format: take {', '.join(_ENDINGS)}, leave it out to "
        f"write a folder, or give --format {'|'.join(_FORMATS)}."
    )


def _convert_classifier(source: Path, target: str, asked: str | None, format: str) -> Converted:
    """Write a classifier as a file of Facebook's program, or as a folder."""
    is_file = Path(target).suffix.lower() in (".bin", ".ftz")
    if asked not in (None, "fasttext") if is_file else format != "folder":
        raise OptionError(
            f"{source} is a classifier: it can become a folder, or a .bin or .ftz file of "
            f"fastText, not {target}{f' of format {asked}' if asked else ''}."
        )
    model = load(source)
    model.save(target)
    sizes = {"labels": len(model.labels), "words": len(model.words)}
    told = f"{sizes['labels']:,} labels, {sizes['words']:,} words"
    return Converted("fasttext" if is_file else "folder", sizes, told)


def _convert_ngrams(source: Path, target: str, format: str, progress: Reporter) -> Converted:
    """Write an n-gram model as an ARPA file, or as a folder."""
    if format not in ("arpa", "folder"):
        raise OptionError(f"{source} is an n-gram model: it can become an ARPA file or a folder.")
    model = load(source)
    if format == "arpa":
        model.write_arpa(target, progress=progress)
    else:
        model.save(target)
    sizes = model.trie.sizes
    return Converted(format, {"ngrams": sizes}, f"{sum(sizes):,} n-grams")


def _convert_network(source: Path, target: str, format: str) -> Converted:
    """Write a network or a task as a folder: pickles become safetensors, shards one file."""
    if format != "folder":
        raise OptionError(f"{source} is a network: it can become a folder, not {target}.")
    if is_pickled(source):
        imported("sememe.models.huggingface.folder", "convert_pickles")(source, target)
    else:
        _whole(source).save(target)
    num_tensors = sum(len(tensor_shapes(file)) for file in Path(target).glob("*.safetensors"))
    return Converted(format, {"tensors": num_tensors}, f"{num_tensors:,} tensors")


def _whole(source: Path) -> Any:
    """The model at a path; an adapter is merged with its base."""
    model = load(source)
    return model.merge() if is_adapter(source) else model


def _convert_onnx(source: Path, target: str, int8: bool, progress: Reporter) -> Converted:
    """Write a BERT, or what is built on one, for onnxruntime: a graph, or a folder that has one."""
    if network_kind(source) != "bert":
        raise OptionError(f"{source} is not a BERT or built on one: it cannot become ONNX.")
    name = "int8" if int8 else "float32"
    write = imported("sememe.models.huggingface.onnx", "write_graph")
    load_network = imported("sememe.models.huggingface.folder", "load_network")
    if Path(target).suffix == ".onnx":
        with write_file(target) as scratch:
            write(load_network(source), scratch, int8=int8)
        size = Path(target).stat().st_size
        return Converted("onnx", {"precision": name, "size": size}, f"a graph in {name}")
    plain, facts = _whole(source), {"precision": name}
    with tempfile.TemporaryDirectory() as place, write_folder(target) as scratch:
        plain.save(Path(place) / "model")
        shutil.copytree(Path(place) / "model", scratch, dirs_exist_ok=True)
        write(load_network(scratch), scratch / GRAPH, int8=int8)
        manifest = manifest_in(scratch)
        write_json(scratch / MANIFEST, manifest | {"onnx": facts})
        if "embed" in plain.capabilities:
            progress.note("Comparing vectors and speed with those of the original.")
            compare = imported("sememe.models.huggingface.onnx", "compare")
            facts |= compare(plain, load(scratch))
            write_json(scratch / MANIFEST, manifest | {"onnx": facts})
    told = f"an ONNX graph in {name}"
    if "rank_correlation" in facts:
        told += (
            f" (cosine to the original {facts['cosine']:.4f}, rank correlation of similarities "
            f"{facts['rank_correlation']:.4f}, {facts['speed_ratio']:.2f} times as fast)"
        )
    return Converted("onnx", facts, told)
