"""Text cut into tokens: blocks of lines in, their types out, and one table of all types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from sememe.cores import in_order
from sememe.tokens.vocabulary import Vocabulary

_LINE_END = b"</s>"


class Block(NamedTuple):
    """A piece of text cut into tokens; types by their place in `data`."""

    data: np.ndarray  # uint8, </s> and then the lines
    tokens: np.ndarray  # int32, the type of each
    line_ends: np.ndarray  # int64
    starts: np.ndarray
    sizes: np.ndarray
    hashes: np.ndarray  # uint32
    counts: np.ndarray


def scan(text: bytes) -> Block:
    """Cut lines into tokens."""
    from sememe.static.fasttext.classifier.scanning_kernels import scan_block

    data = np.frombuffer(_LINE_END + text, np.uint8)
    return Block(data, *scan_block(data))


def scan_all(texts: Iterable[bytes], workers: int) -> Iterator[Block]:
    """Cut blocks of lines in threads; give them back in order, few at a time."""
    with ThreadPoolExecutor(workers) as pool:
        yield from in_order(pool, scan, texts, 2 * workers)


class Table:
    """All types of a text with their counts; grows block by block."""

    def __init__(self) -> None:
        self.num_types, self.num_tokens = 0, 0
        self._arena = np.empty(1 << 16, np.uint8)
        self._ends = np.zeros(1 << 12, np.int64)
        self._hashes = np.empty(1 << 12, np.uint32)
        self._counts = np.zeros(1 << 12, np.int64)
        self._slots = np.full(1 << 13, -1, np.int32)

    def _make_room(self, num_types: int, num_bytes: int) -> None:
        from sememe.static.fasttext.classifier.scanning_kernels import build_slots

        needed = self.num_types + num_types
        if needed > len(self._ends):
            more = max(needed, 2 * len(self._ends)) - len(self._ends)
            self._ends = np.concatenate([self._ends, np.zeros(more, np.int64)])
            self._hashes = np.concatenate([self._hashes, np.zeros(more, np.uint32)])
            self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])
        if 2 * needed > len(self._slots):
            size = 1 << (2 * needed).bit_length()
            self._slots = np.full(size, -1, np.int32)
            build_slots(self._hashes[: self.num_types], self._slots)
        used = int(self._ends[self.num_types - 1]) if self.num_types else 0
        if used + num_bytes > len(self._arena):
            more = max(used + num_bytes, 2 * len(self._arena)) - len(self._arena)
            self._arena = np.concatenate([self._arena, np.empty(more, np.uint8)])

    def add(self, block: Block) -> np.ndarray:
        """Take a block's types in and count them; the answer is their place in the table."""
        from sememe.static.fasttext.classifier.scanning_kernels import add_types, find_types

        self._make_room(len(block.starts), int(block.sizes.sum()))
        places = np.empty(len(block.starts), np.int32)
        types = (block.data, block.starts, block.sizes, block.hashes)
        known = (self._arena, self._ends, self._hashes, self._slots)
        find_types(*types, *known, places)
        self.num_types = int(add_types(*types, places, self.num_types, *known))
        self._counts[places] += block.counts
        self.num_tokens += int(block.counts.sum())
        return places

    @property
    def types(self) -> tuple[np.ndarray, ...]:
        """(bytes, starts, sizes, hashes, counts) of all types."""
        ends = self._ends[: self.num_types]
        starts = np.concatenate([np.zeros(1, np.int64), ends])[: len(ends)]
        sizes = (ends - starts).astype(np.int32)
        hashes, counts = self._hashes[: self.num_types], self._counts[: self.num_types]
        return self._arena, starts, sizes, hashes, counts


def words_as_block(words: Vocabulary) -> Block:
    """The words of a vocabulary as types without tokens, so that a table can take them in."""
    from sememe.static.fasttext.classifier.scanning_kernels import hash_words

    data, ends = words.to_arrays()
    starts = np.concatenate([np.zeros(1, np.int64), ends])[: len(ends)]
    sizes = (ends - starts).astype(np.int32)
    hashes = np.empty(len(ends), np.uint32)
    hash_words(data, starts, sizes, hashes)
    none = np.empty(0, np.int32)
    return Block(data, none, none, starts, sizes, hashes, np.zeros(len(ends), np.int64))
