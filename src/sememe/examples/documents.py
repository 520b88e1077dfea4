"""Which documents of a store are learned from and which are held out, in blocks of bounded size."""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.examples.batches import Split
from sememe.examples.packing_kernels import measure_documents

# Examples planned at a time, at about 33 bytes each.
_BLOCK_EXAMPLES = 1 << 20


class Documents:
    """The documents of one split that have any text.

    Of a store it takes ids, word_starts, sentence_ends, document_ends and is_validation.
    """

    def __init__(self, store: Any, split: Split) -> None:
        self.split = split
        self.ids = _plain(store.ids, store.ids.dtype)
        self.word_starts = _plain(store.word_starts, np.uint8)
        self.sentence_ends = _plain(store.sentence_ends, np.int64)
        self.document_ends = _plain(store.document_ends, np.int64)
        sizes = np.empty(len(self.document_ends), np.int64)
        measure_documents(self.sentence_ends, self.document_ends, sizes)
        is_held = store.is_validation(np.arange(len(sizes)))
        is_own = is_held if split == "validation" else ~is_held
        self.indices = np.flatnonzero(is_own & (sizes > 0))
        self.sizes = sizes[self.indices]
        self.firsts = (np.cumsum(sizes) - sizes)[self.indices]  # first tokens
        self.num_tokens = int(self.sizes.sum())
        if not len(self.indices):
            raise InputError(
                "No document is held out for validation: give more documents or a larger share."
                if split == "validation"
                else "There is no text to learn from: the store has no document with tokens "
                "besides those held out for validation."
            )

    def __len__(self) -> int:
        return len(self.indices)

    def blocks(self, room: int) -> np.ndarray:
        """Bounds of blocks of documents, so that rows of `room` tokens of each are not too many."""
        num_examples = len(self) + self.num_tokens // room
        num_blocks = min(len(self), -(-num_examples // _BLOCK_EXAMPLES))
        return np.linspace(0, len(self), num_blocks + 1).astype(np.int64)


def _plain(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A view that cannot be written to, whatever the array is, so that kernels compile once."""
    view = np.asarray(array, dtype).view()
    view.flags.writeable = False
    return view
