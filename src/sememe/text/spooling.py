"""A text that can be read once (a pipe, a generator), kept on disk to be read again."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from sememe.storage.folder import write_file
from sememe.storage.leftovers import scratch_mark
from sememe.storage.places import cache_dir
from sememe.text import stream
from sememe.text.readers.batches import Batch
from sememe.text.settings import TextSettings


class Spool(stream.Kept):
    """The documents of a corpus in a file of their own, which goes when this object does."""

    def __init__(
        self, corpus: Any, settings: TextSettings, on_bytes: Callable[[int], None] | None = None
    ) -> None:
        # A name of a token store for one process: what a killed one leaves is cleared with those.
        self.path = cache_dir() / "stores" / f"temporary-{scratch_mark()}.text"
        self._ends: list[np.ndarray] = []
        self.num_bytes = 0
        batches: Any = stream.read(corpus, settings)
        with write_file(self.path) as scratch, scratch.open("wb") as file, closing(batches):
            for batch in batches:
                file.write(batch.text)
                self._ends.append(np.asarray(batch.ends, np.int64))
                self.num_bytes += len(batch.text)
                if on_bytes is not None:
                    on_bytes(batch.num_bytes)
        weakref.finalize(self, Path.unlink, self.path, missing_ok=True)

    def batches(self) -> Iterator[Batch]:
        """The documents as they were read."""
        with self.path.open("rb") as file:
            for ends in self._ends:
                text = file.read(int(ends[-1]) if len(ends) else 0)
                yield Batch(text, ends, None, len(text))
