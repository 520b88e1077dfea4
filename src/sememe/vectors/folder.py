"""Vectors in our own folder: sememe.json and model.safetensors, opened as memory maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, WriteError
from sememe.storage.folder import MANIFEST, check_format, read_json, write_folder, write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.index import ApproximateIndex
from sememe.vectors.onehot import KIND as ONE_HOT
from sememe.vectors.onehot import OneHotVectors
from sememe.vectors.subword_folder import from_tensors, subword_options, to_tensors
from sememe.vectors.subwords import SubwordVectors
from sememe.vectors.wordvectors import WordVectors

KIND, FORMAT = "vectors", 1
TENSORS = "model.safetensors"


def _check_replaceable(folder: Path) -> None:
    """Refuse to replace what is not a folder of plain vectors."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not (folder / MANIFEST).is_file():
        raise WriteError(f"{folder} exists and is not a folder of vectors; choose another name.")
    if (kind := _manifest(folder).get("kind")) != KIND:
        raise WriteError(f"{folder} holds a {kind} model; choose another name for the vectors.")


def save_folder(vectors: WordVectors, folder: Path) -> None:
    """Write `vectors` to `folder`, which appears whole or not at all."""
    _check_replaceable(folder)
    manifest: dict[str, Any] = {"kind": KIND, "format": FORMAT}
    manifest |= {"words": len(vectors), "dim": vectors.dim}
    if isinstance(vectors, SubwordVectors):
        manifest["subwords"], tensors = to_tensors(vectors)
    elif isinstance(vectors, OneHotVectors):
        manifest[ONE_HOT], tensors = True, {}  # the words say all
    else:
        tensors = {"vectors": vectors.vectors}
    tensors |= vectors.vocabulary.to_tensors()
    with write_folder(folder) as scratch:
        write_tensors(scratch / TENSORS, tensors)
        write_json(scratch / MANIFEST, manifest)
        if vectors._index is not None:
            vectors._index.save(ApproximateIndex.path_in(scratch, vectors))


def _manifest(folder: Path) -> dict[str, Any]:
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict):
        raise ArtifactError(f"{folder / MANIFEST} is not a manifest of ours.")
    return manifest


def _combine(folder: Path, tensors: dict[str, np.ndarray], choice: object) -> np.ndarray:
    """The vectors that a trained model keeps: input, output, their sum or concatenation."""
    if choice not in ("input", "output", "sum", "concat"):
        raise ArtifactError(f"{folder / MANIFEST}: unknown choice of vectors {choice!r}.")
    inputs = tensors["input"]
    if choice == "input":
        return inputs
    outputs = tensors.get("output")
    if outputs is None or outputs.shape != inputs.shape:
        raise ArtifactError(
            f"{folder} has no output vector for each word (hierarchical softmax keeps one for each "
            f"node of its tree), so its vectors cannot be “{choice}”; use “input”."
        )
    if choice == "output":
        return outputs
    return inputs + outputs if choice == "sum" else np.concatenate([inputs, outputs], axis=1)


def _check_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Refuse a vocabulary whose arrays were damaged; takes about 20 ms for a million words."""
    if not len(vocabulary):
        return
    arrays = vocabulary.to_tensors()
    word_bytes, ends, order = (arrays[name] for name in ("word_bytes", "word_ends", "word_order"))
    is_sound = bool(np.all(np.diff(ends, prepend=0) >= 0)) and int(order.max()) < len(ends)
    if is_sound:
        starts = ends[:-1][ends[:-1] < len(word_bytes)]
        # A word that starts inside a character has bytes of the form 10xxxxxx first.
        is_sound = not np.any(word_bytes[starts] & 0xC0 == 0x80)
    try:
        word_bytes.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        is_sound = False
    if not is_sound:
        raise ArtifactError(f"{folder / TENSORS} is damaged: its words cannot be read.")


def load_folder(folder: Path, limit: int | None = None) -> WordVectors:
    """Map the vectors of a folder of ours, plain ones or those of a trained model."""
    manifest = _manifest(folder)
    check_format(folder, manifest, FORMAT)
    tensors = read_tensors(folder / TENSORS)
    if (options := subword_options(manifest)) is not None:
        vocabulary = Vocabulary.from_tensors(tensors)
        _check_vocabulary(folder, vocabulary)
        composed = from_tensors(folder, options, tensors, vocabulary, limit)
        composed._folder = folder
        return composed
    if ONE_HOT in (manifest.get("kind"), *manifest):
        vocabulary = Vocabulary.from_tensors(tensors)
        _check_vocabulary(folder, vocabulary)
        return OneHotVectors(vocabulary if limit is None else vocabulary.cut(limit))
    if "vectors" in tensors:
        vectors = tensors["vectors"]
    elif "input" in tensors:
        config = manifest.get("config")
        choice = config.get("vectors", "input") if isinstance(config, dict) else "input"
        vectors = _combine(folder, tensors, choice)
    else:
        raise ArtifactError(f"{folder} is of kind {manifest.get('kind')!r}: no word vectors in it.")
    vocabulary = Vocabulary.from_tensors(tensors)
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(vocabulary):
        raise ArtifactError(
            f"{folder} is damaged: {len(vocabulary):,} words but vectors of shape {vectors.shape}."
        )
    if not vectors.size:
        raise ArtifactError(f"{folder} holds no vectors.")
    _check_vocabulary(folder, vocabulary)
    if limit is not None:
        vectors, vocabulary = vectors[:limit], vocabulary.cut(limit)
    loaded = WordVectors(vocabulary, vectors)
    loaded._folder = folder
    return loaded
