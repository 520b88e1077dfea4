"""Between model files of Facebook's program and vectors or model folders of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sememe.storage.folder import MANIFEST, read_json
from sememe.storage.tensors import read_tensors
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.composition import NGrams, Table
from sememe.vectors.formats.fasttext.model import FastTextArgs, FastTextFile, Loss, Model
from sememe.vectors.formats.fasttext.reading import is_fasttext, read_model
from sememe.vectors.quantized import QuantizedMatrix
from sememe.vectors.subword_folder import cut_table
from sememe.vectors.subwords import SubwordVectors
from sememe.vectors.wordvectors import WordVectors

# Our words for these options, and Facebook's.
_LOSSES: dict[object, Loss] = {"negative": "ns", "hierarchical": "hs", "softmax": "softmax"}
_ARCHITECTURES: dict[object, Model] = {"skipgram": "skipgram", "cbow": "cbow"}


def vectors_of(model: FastTextFile, limit: int | None = None) -> SubwordVectors:
    """The vectors of a model's words and of all other words; searches look at `limit` words."""
    args = model.args
    return SubwordVectors(
        model.words, model.input, minn=args.minn, maxn=args.maxn, bucket=args.bucket,
        pruned=model.pruned, spellings=model.spellings, limit=limit,
    )  # fmt: skip


def file_of(vectors: WordVectors) -> FastTextFile:
    """The model file of some vectors; what was not kept of their training is zero or left out."""
    if not isinstance(vectors, SubwordVectors) or not isinstance(vectors.subwords, NGrams):
        args = FastTextArgs(dim=vectors.dim, min_count=1, bucket=0, minn=0, maxn=0)
        return _unsupervised(args, vectors.vocabulary, vectors.vectors, None)
    scheme, num_words = vectors.subwords, len(vectors)
    table = cut_table(vectors.table, num_words, len(scheme.words))
    spellings = None if scheme.spellings is None else scheme.spellings.cut(num_words)
    args = FastTextArgs(
        dim=vectors.dim, min_count=1, bucket=scheme.bucket, minn=scheme.minn, maxn=scheme.maxn
    )
    return _unsupervised(args, vectors.vocabulary, table, None, scheme.pruned, spellings)


def _unsupervised(
    args: FastTextArgs,
    words: Vocabulary,
    input: Table,
    output: np.ndarray | None,
    pruned: np.ndarray | None = None,
    spellings: Vocabulary | None = None,
) -> FastTextFile:
    num_outputs = 0 if output is None else len(output)
    if output is None:
        output = np.broadcast_to(np.zeros((1, args.dim), np.float32), (len(words), args.dim))
    elif num_outputs < len(words):  # a tree has one node less than leaves
        padding = np.zeros((len(words) - num_outputs, args.dim), np.float32)
        output = np.concatenate([output, padding])
    if pruned is not None and not isinstance(input, QuantizedMatrix):
        input, pruned = _with_all_buckets(input, pruned, len(words), args.bucket), None
    # The program draws by count when it opens a file, so a word must have been seen.
    counts = np.maximum(np.asarray(words.counts, np.int64), 1)
    counted = Vocabulary(*words.to_arrays(), counts)
    return FastTextFile(
        args=args, words=counted, labels=Vocabulary.from_words([]), num_tokens=int(counts.sum()),
        pruned=pruned, input=input, output=output, spellings=spellings,
    )  # fmt: skip


def _with_all_buckets(
    input: np.ndarray, pruned: np.ndarray, num_words: int, bucket: int
) -> np.ndarray:
    """The table with a row for every bucket, as files that are not quantised must have.

    Rows that no n-gram of the text fell into are zero. The program counts them where it takes the
    mean of an unseen word, and we do not: such vectors are shorter there, their directions equal.
    """
    full = np.zeros((num_words + bucket, input.shape[1]), np.float32)
    full[:num_words] = input[:num_words]
    full[num_words + pruned[:, 0]] = input[num_words + pruned[:, 1]]
    return full


def _args_of(config: Mapping[str, Any], vectors: SubwordVectors) -> FastTextArgs:
    """Facebook's options for those of a fastText model of ours."""
    return FastTextArgs(
        dim=vectors.dim,
        ws=int(config.get("window", 5)),
        epoch=int(config.get("epochs", 5)),
        min_count=int(config.get("min_count", 1)),
        neg=int(config.get("negatives", 5)),
        loss=_LOSSES.get(config.get("loss"), "ns"),
        model=_ARCHITECTURES.get(config.get("architecture"), "skipgram"),
        t=float(config.get("sample", 1e-4)),
        **vectors.subwords.options(),
    )


def open_model(path: str | Path, limit: int | None = None) -> FastTextFile:
    """The model file that `path` is or that can be made of it: a .bin, a folder, any vectors."""
    from sememe.vectors.loading import load

    path = Path(path)
    if limit is None and path.is_file() and is_fasttext(path):
        return read_model(path)
    vectors = load(path, limit)
    if limit is None and path.is_dir():
        manifest = read_json(path / MANIFEST)
        tensors = read_tensors(path / "model.safetensors")
        # A compact table has no place in such a file: of it the words alone are written.
        if (
            manifest["kind"] == "fasttext"
            and isinstance(vectors, SubwordVectors)
            and isinstance(vectors.subwords, NGrams)
        ):
            args = _args_of(manifest["config"], vectors)
            return _unsupervised(
                args, vectors.vocabulary, vectors.table, tensors.get("output"),
                vectors.subwords.pruned,
            )  # fmt: skip
    return file_of(vectors)
