"""A token store in chunks of equal size: what one step of training works on."""

from __future__ import annotations

import os

import numpy as np

from sememe.tokens.store import TokenStore

CHUNK = 16_384
_READ = 1 << 18


def sentence_index(store: TokenStore, size: int) -> np.ndarray:
    """For each chunk edge, the number of sentences that end at or before it."""
    edges = np.arange(0, store.num_tokens + size, size)
    index = np.zeros(len(edges), np.int64)
    for start in range(0, len(store.sentence_ends), _READ):
        # Read, not mapped: pages of a map would count as this process's memory.
        ends = np.fromfile(store.path / "sentence_ends.bin", np.int64, _READ, offset=8 * start)
        index += np.searchsorted(ends, edges, "right")
    return index


class ChunkReader:
    """Reads a token store chunk by chunk, its words as rows of a model."""

    def __init__(self, store: TokenStore, id_map: np.ndarray, size: int = CHUNK) -> None:
        """id_map: int32, from the store's ids to rows; the last row + 1 for words without one."""
        self.num_tokens, self._id_map, self._dtype = store.num_tokens, id_map, store.ids.dtype
        self.size, self.num_chunks = size, -(-store.num_tokens // size)
        self._index = sentence_index(store, size)
        self._file = os.open(store.path / "ids.bin", os.O_RDONLY)
        self._ends_file = os.open(store.path / "sentence_ends.bin", os.O_RDONLY)

    def close(self) -> None:
        """Let go of the store's files."""
        os.close(self._file)
        os.close(self._ends_file)

    def words_at(self, step: int) -> int:
        """Words of text, rare ones included, that lie before `step`."""
        epoch, chunk = divmod(step, self.num_chunks)
        return epoch * self.num_tokens + min(chunk * self.size, self.num_tokens)

    def read(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows of the chunk's words, ends of its sentences)."""
        item = self._dtype.itemsize
        data = os.pread(self._file, self.size * item, chunk * self.size * item)
        ids = self._id_map[np.frombuffer(data, self._dtype)]
        first, last = int(self._index[chunk]), int(self._index[chunk + 1])
        ends_data = os.pread(self._ends_file, 8 * (last - first), 8 * first)
        ends = np.frombuffer(ends_data, np.int64) - chunk * self.size
        # A sentence that runs over the edge of the chunk is cut there.
        return ids, np.append(ends, len(ids))


def first_words(store: TokenStore, num_words: int) -> np.ndarray:
    """The id_map that gives the first words of a store rows in the same order."""
    id_map = np.full(len(store.vocabulary) + 1, num_words, np.int32)
    id_map[:num_words] = np.arange(num_words, dtype=np.int32)
    return id_map
