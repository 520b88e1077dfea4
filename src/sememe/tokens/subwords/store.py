"""The sub-word store: a text as sub-word token ids, written once and read by every epoch.

The files of a token store, and word_starts.bin: uint8 for each id, 1 if a token starts a word. A
word is defined by WordPiece's ## and GPT-2's pattern; in Chinese text (language zh) by rjieba's
segmentation over the characters, which are BERT's tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.machine import available_cores
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import write_errors, write_folder
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.shards import Shard, shard_bytes
from sememe.text.stream import each_batch
from sememe.tokens import caching
from sememe.tokens.building import EndsFile, Labels, NumberFile, scratch_folder, write_labels
from sememe.tokens.store import MappedStore, is_held_out
from sememe.tokens.subwords.chunks import RULES_VERSION, Pieces, cutter
from sememe.tokens.subwords.tokenizer import DEFAULT_MEMORY, SubwordTokenizer


class SubwordStore(MappedStore):
    """A text as sub-word ids, with the starts of words and the ends of sentences and documents.

    `validation_share` of the documents, chosen by a hash of their index and `validation_seed`, are
    for validation.
    """

    kind = "subwords"
    format = 1
    noun = "sub-word store"
    file_names = MappedStore.file_names | {"word_starts.bin"}

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super().__init__(path, manifest, arrays)
        self.word_starts = arrays["word_starts.bin"]
        self.validation_share = 0.01
        self.validation_seed = 0

    def _sizes(self) -> dict[str, tuple[int, int]]:
        return {**super()._sizes(), "word starts": (len(self.word_starts), len(self.ids))}

    @property
    def language(self) -> str:
        """The language in the text's settings."""
        return str(self.manifest["language"])

    @property
    def num_documents(self) -> int:
        """How many documents there are."""
        return len(self.document_ends)

    @property
    def vocab_size(self) -> int:
        """The vocabulary size of the tokenizer."""
        return int(self.manifest["vocab_size"])

    def is_validation(self, documents: np.ndarray) -> np.ndarray:
        """Whether each of some documents is held out from training; the same in every run."""
        return is_held_out(documents, self.validation_share, self.validation_seed)

    def check_tokenizer(self, tokenizer: SubwordTokenizer) -> SubwordStore:
        """Return the store if it is intact and its ids are those of `tokenizer`."""
        if self.manifest["tokenizer"] != tokenizer.fingerprint:
            raise OptionError(
                f"The sub-word store {self.path} was made with another tokenizer; "
                "give its own, or the text itself."
            )
        return self.verified()

    def __repr__(self) -> str:
        return (
            f"SubwordStore({str(self.path)!r}: {self.num_tokens:,} tokens in "
            f"{self.num_documents:,} documents)"
        )


def open_or_build_subwords(
    corpus: Any,
    tokenizer: SubwordTokenizer,
    *,
    text: TextSettings | None = None,
    path: str | Path | None = None,
    workers: int = 0,
    memory: int = DEFAULT_MEMORY,
    progress: Reporter = SILENT,
) -> SubwordStore:
    """Open the store of `corpus` in `tokenizer`'s ids, or build it if none can be reused.

    `corpus` is any input of text.stream.read, or a store. Caching is as in
    tokens.caching.open_or_build.
    """
    if isinstance(corpus, SubwordStore):
        return corpus.check_tokenizer(tokenizer)
    # The tokenizer decides on case, so settings that differ only in case share a store.
    settings = replace(text or TextSettings(), lowercase=False)

    def make(place: Path, fingerprint: dict[str, Any] | None) -> None:
        _build(corpus, tokenizer, settings, place, workers, memory, fingerprint, progress)

    identity = {"tokenizer": tokenizer.fingerprint, "chunk_rules": RULES_VERSION}
    key = [settings.to_dict(), tokenizer.fingerprint]
    return caching.store_of(
        SubwordStore, corpus, settings, identity, key, path, lambda _: "", make, progress
    )


def _build(
    corpus: Any,
    tokenizer: SubwordTokenizer,
    settings: TextSettings,
    path: Path,
    workers: int,
    memory: int,
    fingerprint: dict[str, Any] | None,
    progress: Reporter,
) -> None:
    """Write the store of `corpus` to `path`, whose lock must be held."""
    if workers < 0 or memory < 1 << 20:
        raise OptionError(
            f"workers must be at least 0 and memory at least 1 MiB, not {workers} and {memory}."
        )
    workers = workers or available_cores()
    facts = {
        "language": settings.language,
        "vocab_size": tokenizer.vocab_size,
        "tokenizer": tokenizer.fingerprint,
        "fingerprint": fingerprint,
    }
    with (
        scratch_folder(path, SubwordStore) as scratch,
        caching.byte_progress(progress, stream.total_bytes(corpus)) as on_bytes,
        write_folder(path, checksums=False) as folder,
    ):
        if (own := caching.shards_of(corpus, settings, progress)) is not None:
            shards, executor = own
            each = executor.memory or memory // executor.num_tasks
            task = CutTask(tokenizer, settings, scratch, executor.cores, max(each, 1 << 20))
            parts = _read_parts(shards, executor.map(task, shards), on_bytes)
            files = _write(folder, parts, tokenizer)
        else:
            batches = stream.read(corpus, settings)
            with (
                cutter(tokenizer, settings, workers, memory) as cut,
                closing(each_batch(batches, cut, workers, on_bytes)) as parts,
            ):
                files = _write(folder, parts, tokenizer)
        SubwordStore.seal(folder, files, facts)


@dataclass(frozen=True)
class CutTask:
    """How each shard of a text is tokenized; its tokens go to a new file in `scratch`."""

    tokenizer: SubwordTokenizer
    settings: TextSettings
    scratch: Path
    cores: int
    memory: int

    def __call__(self, shard: Shard) -> tuple[Path, int]:
        """Tokenize a shard; the file of its batches, and their number."""
        batches, num_parts = stream.read_shard(self.settings, shard), 0
        # A task that is repeated must not meet what another one left, or still writes.
        with (
            write_errors(self.scratch),
            NamedTemporaryFile(prefix="shard", dir=self.scratch, delete=False) as file,
            cutter(self.tokenizer, self.settings, self.cores, self.memory) as cut,
            closing(each_batch(batches, cut, self.cores, None)) as parts,
        ):
            for part in parts:
                for array in part[:-1]:
                    np.save(file, array, allow_pickle=False)
                labels = json.dumps(part.labels).encode()
                np.save(file, np.frombuffer(labels, np.uint8), allow_pickle=False)
                num_parts += 1
        return Path(file.name), num_parts


def _read_parts(
    shards: list[Shard], files: Iterator[tuple[Path, int]], on_bytes: Callable[[int], None]
) -> Iterator[Pieces]:
    """The tokenized batches of all shards in order; a file that was read is removed."""
    for shard, (path, num_parts) in zip(shards, files, strict=True):
        with path.open("rb") as file:
            for _ in range(num_parts):
                ids, starts, sentences, documents, labels = (
                    np.load(file, allow_pickle=False) for _ in Pieces._fields
                )
                yield Pieces(ids, starts, sentences, documents, json.loads(labels.tobytes()))
        path.unlink()
        on_bytes(shard_bytes(shard))


def _write(folder: Path, parts: Any, tokenizer: SubwordTokenizer) -> dict[str, dict[str, Any]]:

    dtype = np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")
    labels, num_documents = Labels(), []
    with (
        NumberFile(folder / "ids.bin", dtype) as ids,
        NumberFile(folder / "word_starts.bin", np.dtype("u1")) as starts,
        EndsFile(folder / "sentence_ends.bin") as sentences,
        EndsFile(folder / "document_ends.bin") as documents,
    ):
        for part in parts:
            ids.add(part.ids)
            starts.add(part.starts)
            sentences.add(part.sentence_sizes)
            documents.add(part.document_sizes)
            labels.add(part.labels)
            num_documents.append(len(part.document_sizes))
    if not ids.entry()["size"]:
        raise InputError("The corpus has no text: it is empty, or blank.")
    files = {
        "ids.bin": ids.entry(),
        "word_starts.bin": starts.entry(),
        "sentence_ends.bin": sentences.entry(),
        "document_ends.bin": documents.entry(),
    }
    resolved = labels.resolve(num_documents)
    return files if resolved is None else files | write_labels(folder, *resolved)
