"""The sub-word store: a text as ids of word pieces, written once and read by every epoch.

The files of mapped.py, and word_starts.bin: uint8 for each id, 1 where a piece starts a word.
A word is what WordPiece's ## and GPT-2's pattern say; in Chinese text (language zh) it is a word
as rjieba cuts it, over the characters that are BERT's pieces.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from sememe.cores import available_cores
from sememe.errors import InputError, OptionError
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import write_folder
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.threads import each_batch
from sememe.tokens import caching
from sememe.tokens.mapped import MappedStore
from sememe.tokens.splits import is_held_out
from sememe.tokens.subwords import SubwordTokenizer

DEFAULT_MEMORY = 512 << 20


class SubwordStore(MappedStore):
    """A text as ids of sub-words, with the starts of words and the ends of sentences and documents.

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
        """The language of the text, as its settings had it."""
        return str(self.manifest["language"])

    @property
    def num_documents(self) -> int:
        """How many documents there are."""
        return len(self.document_ends)

    @property
    def vocab_size(self) -> int:
        """The tokens that the tokenizer knows."""
        return int(self.manifest["vocab_size"])

    @overload
    def is_validation(self, documents: int) -> bool: ...
    @overload
    def is_validation(self, documents: np.ndarray) -> np.ndarray: ...
    def is_validation(self, documents: int | np.ndarray) -> bool | np.ndarray:
        """Whether a document, or each of several, is kept from training; the same in every run."""
        is_held = is_held_out(np.asarray(documents), self.validation_share, self.validation_seed)
        return is_held if isinstance(documents, np.ndarray) else bool(is_held)

    def check_tokenizer(self, tokenizer: SubwordTokenizer) -> SubwordStore:
        """Give the store back if its ids are those of `tokenizer`."""
        if self.manifest["tokenizer"] != tokenizer.fingerprint:
            raise OptionError(
                f"The sub-word store {self.path} was made with another tokenizer; "
                "give its own, or the text itself."
            )
        return self

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
    """Open the store of `corpus` in `tokenizer`'s ids, building it where none can serve.

    `corpus` is all that text.stream.read takes, or a store. Where it is kept and when it is used
    again is as in tokens.store.open_or_build.
    """
    if isinstance(corpus, SubwordStore):
        return corpus.check_tokenizer(tokenizer)
    # The tokenizer decides on case, so two settings that differ in it share a store.
    settings = replace(text or TextSettings(), lowercase=False)
    fingerprint = stream.fingerprint(corpus, settings)
    own = _own_fingerprint(tokenizer)
    if fingerprint is not None:
        fingerprint = json.loads(json.dumps(fingerprint | own))  # as it will be read back
    wanted = None if path is None else Path(path)
    place, is_temporary = caching.place_of(
        corpus, fingerprint, wanted, [settings.to_dict(), tokenizer.fingerprint]
    )

    def make() -> None:
        _build(corpus, tokenizer, settings, place, workers, memory, fingerprint, progress)

    store = caching.reuse(SubwordStore, place, fingerprint, lambda _: "", make, progress.note)
    if is_temporary:
        caching.remove_with(store)
    return store


def _own_fingerprint(tokenizer: SubwordTokenizer) -> dict[str, Any]:
    from sememe.tokens.chunks import RULES_VERSION

    return {"tokenizer": tokenizer.fingerprint, "chunk_rules": RULES_VERSION}


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
    from sememe.tokens.building import refuse_other_folders
    from sememe.tokens.chunks import cutter
    from sememe.tokens.locking import remove_leftovers

    if workers < 0 or memory < 1 << 20:
        raise OptionError(
            f"workers must be at least 0 and memory at least 1 MiB, not {workers} and {memory}."
        )
    workers = workers or available_cores()
    refuse_other_folders(path, SubwordStore)
    remove_leftovers(path)
    facts = {
        "language": settings.language,
        "vocab_size": tokenizer.vocab_size,
        "tokenizer": tokenizer.fingerprint,
        "fingerprint": fingerprint,
    }
    total = stream.total_bytes(corpus)
    with (
        cutter(tokenizer, settings, workers, memory) as own,
        caching.heard(progress, total) as on_bytes,
        write_folder(path) as folder,
        closing(each_batch(stream.read(corpus, settings), own.cut, workers, on_bytes)) as parts,
    ):
        files = _write(folder, parts, tokenizer)
        SubwordStore.seal(folder, files, facts)


def _write(folder: Path, parts: Any, tokenizer: SubwordTokenizer) -> dict[str, dict[str, Any]]:
    from sememe.tokens.building import EndsFile, Labels, NumberFile, write_labels

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
