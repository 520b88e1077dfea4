"""The token store: a text as memory-mapped word ids, written once and read by every epoch.

The files of mapped.py, where an id of len(vocabulary) is any word below min_count, and
vocabulary.safetensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sememe.progress import SILENT, Reporter
from sememe.storage.tensors import read_tensors
from sememe.text.records import Records
from sememe.text.settings import TextSettings
from sememe.tokens.mapped import MappedStore
from sememe.tokens.vocabulary import Vocabulary

DEFAULT_MEMORY = 512 << 20


class TokenStore(MappedStore):
    """A text as word ids, with the ends of its sentences and documents; open it or build it."""

    kind = "tokens"
    format = 1
    noun = "token store"
    file_names = MappedStore.file_names | {"vocabulary.safetensors"}

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super().__init__(path, manifest, arrays)
        self.vocabulary = Vocabulary.from_tensors(read_tensors(path / "vocabulary.safetensors"))

    @property
    def min_count(self) -> int:
        """The fewest occurrences that give a word an id of its own."""
        return int(self.manifest["min_count"])

    def _sizes(self) -> dict[str, tuple[int, int]]:
        return {"words": (len(self.vocabulary), self.manifest["num_words"]), **super()._sizes()}

    def __repr__(self) -> str:
        return (
            f"TokenStore({str(self.path)!r}: {self.num_tokens:,} words, "
            f"{len(self.vocabulary):,} of them distinct, min_count {self.min_count})"
        )

    @classmethod
    def build(
        cls,
        path: str | Path,
        records: Iterable[Records],
        *,
        min_count: int = 1,
        workers: int = 0,
        memory: int = DEFAULT_MEMORY,
        fingerprint: dict[str, Any] | None = None,
        note: Callable[[str], None] = SILENT.note,
    ) -> TokenStore:
        """Write the store of `records` to `path`, replacing one that is there.

        Counting takes about `memory` bytes whatever the text; what passes that goes to scratch
        files beside `path`, and the vocabulary itself comes on top.
        """
        from sememe.tokens.building import build_store
        from sememe.tokens.locking import locked

        path = Path(path).absolute()
        with locked(path, note):
            build_store(path, records, min_count, workers, memory, fingerprint)
            return cls.open(path)


def open_or_build(
    corpus: Any,
    settings: TextSettings,
    *,
    min_count: int,
    workers: int = 0,
    path: str | Path | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Reporter = SILENT,
) -> TokenStore:
    """Open the token store of `corpus`, building it where there is none that can serve.

    `corpus` is all that text.stream.segment takes, or a store. Without `path` the store of files
    and of the built-in corpus is kept in the user's cache, that of anything else (standard input,
    iterables) only as long as the store is in use. A store serves if its text and settings are the
    same and its min_count is not higher; `progress` hears why another one is built again.
    """
    from sememe.tokens import caching

    if isinstance(corpus, TokenStore):
        return caching.check_min_count(corpus, min_count)
    place = None if path is None else Path(path)
    return caching.build_from_text(corpus, settings, place, min_count, workers, memory, progress)
