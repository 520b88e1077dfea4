"""What an artifact is: kind, sizes, options, where it came from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from sememe.cli.options import Json
from sememe.cli.screen import examples, print_json, print_table

EXAMPLES = examples(
    "sememe info runs/ladder/models/skipgram",
    "sememe info GoogleNews-vectors.bin.gz",
    "sememe info bert-base-uncased",
    "sememe info runs/ladder/models/skipgram --json",
)

# Kinds whose manifest says all that is to be told.
# Tasks over a network of Hugging Face's layout are told as such a network.
_WHOLE_MANIFESTS = (
    "fasttext-classifier", "ngram", "seq2seq", "task", "tokenizer", "transformer",
)  # fmt: skip


def info(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model folder, ours or Hugging Face's, token store or vector file.",
        ),
    ],
    json: Json = False,
) -> None:
    """Tell what a model folder, a token store or a vector file is and how it was made."""
    content = describe(model)
    if json:
        print_json(content)
    else:
        print_table(("", ""), _flatten(content))


def describe(path: Path) -> dict[str, Any]:
    """Everything that can be said of the artifact at `path`, for JSON."""
    content = _described(path)
    if isinstance(figures := content.get("figures"), dict):
        # That of the last step, mostly 0; the rate that was chosen is among the options.
        content["figures"] = {name: figures[name] for name in figures if name != "learning_rate"}
    return content


def _described(path: Path) -> dict[str, Any]:
    from sememe.errors import ArtifactError
    from sememe.networks.interchange.layout import find_bilm, network_kind
    from sememe.storage.folder import MANIFEST, read_json

    if not path.exists():
        raise ArtifactError(f"{path} does not exist.")
    if network_kind(path):
        return _network(path)
    if (found := find_bilm(path)) is not None:
        options, weights = found
        size = _size(weights)
        return {"kind": "released ELMo", "path": str(weights), "size": size, **read_json(options)}
    if not path.is_dir():
        return _vector_file(path)
    manifest = read_json(path / MANIFEST)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("kind"), str):
        raise ArtifactError(f"{path / MANIFEST} is not a manifest of ours.")
    if manifest["kind"] in ("elmo", "ulmfit"):
        sizes = {"parameters": _num_weights(path), "size": _size(path)}
        more = {key: value for key, value in manifest.items() if key != "plan"}
        return {"kind": manifest["kind"], "path": str(path), **sizes, **more}
    if manifest["kind"] == "ladder":
        return _ladder(path)
    if manifest["kind"] == "tokens":
        return _token_store(path)
    if manifest["kind"] == "subwords":
        return _subword_store(path)
    if manifest["kind"] in _WHOLE_MANIFESTS:
        more = {key: value for key, value in manifest.items() if key != "plan"}
        return {"kind": manifest["kind"], "path": str(path), "size": _size(path), **more}
    return _model(path, manifest)


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def _ladder(path: Path) -> dict[str, Any]:
    from sememe.ladder.results import Results

    results = Results.load(path)
    return {
        "kind": "ladder",
        "path": str(path),
        "size": _size(path),
        "corpus": results.corpus.to_dict(),
        "budget": results.budget.to_dict(),
        "started": results.started,
        "seconds": results.seconds,
        "rungs": {rung.name: rung.state for rung in results.rungs},
    }


def _model(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    from sememe.vectors import load

    vectors = load(path)
    known = ("kind", "words", "dim", "plan")
    more = {key: value for key, value in manifest.items() if key not in known}
    if manifest["kind"] == "word2vec" and isinstance(config := more.get("config"), dict):
        more["config"] = config | _start_rate(config)
    counts = vectors.vocabulary.counts
    return {
        "kind": manifest["kind"],
        "path": str(path),
        "words": len(vectors),
        "dim": vectors.dim,
        "occurrences": int(counts.sum()),
        "size": _size(path),
        **more,
    }


def _start_rate(config: dict[str, Any]) -> dict[str, Any]:
    """The learning rate of a word2vec that was left to the architecture."""
    from sememe.static.word2vec.config import START_RATES

    rate = START_RATES.get(config.get("architecture", ""))
    return {} if config.get("learning_rate") or rate is None else {"learning_rate": rate}


def _network(path: Path) -> dict[str, Any]:
    """What is known of a BERT or GPT without PyTorch: its config, its tensors, its manifest."""
    from sememe.networks.interchange.configs import from_huggingface
    from sememe.networks.interchange.layout import CONFIG, network_kind
    from sememe.storage.folder import manifest_in, read_json

    config = from_huggingface(read_json(path / CONFIG), str(path / CONFIG))
    manifest = manifest_in(path)
    more = {key: manifest[key] for key in manifest if key not in ("kind", "config", "plan")}
    return {
        "kind": "task" if manifest.get("kind") == "task" else network_kind(path),
        "path": str(path),
        "parameters": _num_parameters(path),
        "size": _size(path),
        "config": config.to_dict(),
        **more,
    }


def _num_parameters(folder: Path) -> int | None:
    """How many numbers the tensor files of a folder hold; None where they are pickles."""
    from sememe.storage.tensors import tensor_shapes

    files = sorted(folder.glob("*.safetensors"))
    shapes = [shape for file in files for shape in tensor_shapes(file).values()]
    return sum(math.prod(shape) for shape in shapes) if files else None


def _num_weights(folder: Path) -> int:
    """How many numbers the weights of an LSTM model are; its words have a file of their own."""
    from sememe.storage.tensors import tensor_shapes

    return sum(math.prod(shape) for shape in tensor_shapes(folder / "model.safetensors").values())


def _token_store(path: Path) -> dict[str, Any]:
    from sememe.tokens.store import TokenStore

    store = TokenStore.open(path)
    return {
        "kind": "tokens",
        "path": str(path),
        "words": len(store.vocabulary),
        "tokens": store.num_tokens,
        "sentences": len(store.sentence_ends),
        "documents": len(store.document_ends),
        "min_count": store.min_count,
        "size": _size(path),
        "fingerprint": store.fingerprint,
    }


def _subword_store(path: Path) -> dict[str, Any]:
    from sememe.tokens.subword_store import SubwordStore

    store = SubwordStore.open(path)
    return {
        "kind": store.kind,
        "path": str(path),
        "vocab_size": store.vocab_size,
        "tokens": store.num_tokens,
        "words": int(store.word_starts.sum(dtype="int64")),
        "sentences": len(store.sentence_ends),
        "documents": store.num_documents,
        "language": store.language,
        "size": _size(path),
        "fingerprint": store.fingerprint,
    }


def _vector_file(path: Path) -> dict[str, Any]:
    from sememe.vectors import load
    from sememe.vectors.formats.fasttext import is_fasttext

    if is_fasttext(path):
        return _fasttext_file(path)
    vectors = load(path)
    return {
        "kind": "vector file",
        "path": str(path),
        "words": len(vectors),
        "dim": vectors.dim,
        "size": _size(path),
    }


def _fasttext_file(path: Path) -> dict[str, Any]:
    from sememe.vectors.formats.fasttext import QuantizedMatrix, read_model

    model = read_model(path)
    return {
        "kind": "fastText model",
        "path": str(path),
        "words": len(model.words),
        "labels": len(model.labels),
        "occurrences": model.num_tokens,
        "size": _size(path),
        "quantized": isinstance(model.input, QuantizedMatrix),
        "output_quantized": isinstance(model.output, QuantizedMatrix),
        **({} if model.pruned is None else {"kept_ngrams": len(model.pruned)}),
        "options": vars(model.args),
    }


def _flatten(content: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in content.items():
        label = f"{prefix}{name}"
        if isinstance(value, dict):
            rows += _flatten(value, f"{label}.")
        elif name == "size":
            from sememe.progress.figures import format_count

            rows.append((label, format_count(value, "B")))
        else:
            shown = (
                f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
            )
            rows.append((label, str(shown)))
    return rows
