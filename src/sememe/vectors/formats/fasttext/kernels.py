"""Compiled parser of the dictionary in a fastText file: bytes in, flat arrays out."""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

_ENTRY_END = 9  # bytes after the end of a word: its count and its type


@kernel
def scan_entries(data, start, longest, ends, counts, types):  # type: ignore[no-untyped-def]
    """Find the words from `start` on: where they end among all their bytes, counts and types.

    Gives the number of entries read and the place after them; fewer than asked for where the data
    end, or where a word is longer than `longest`.
    """
    position, total, size = start, 0, len(data)
    for index in range(len(ends)):
        word_end = position
        stop = min(size, position + longest + 1)
        while word_end < stop and data[word_end] != 0:
            word_end += 1
        if word_end == stop or word_end + _ENTRY_END >= size:
            return index, position
        total += word_end - position
        count = np.uint64(0)
        for byte in range(8):
            count |= np.uint64(data[word_end + 1 + byte]) << np.uint64(8 * byte)
        ends[index], counts[index] = total, np.int64(count)
        types[index] = data[word_end + _ENTRY_END]
        position = word_end + 1 + _ENTRY_END
    return len(ends), position


@kernel
def copy_words(data, start, ends, word_bytes):  # type: ignore[no-untyped-def]
    """Copy the words that `scan_entries` found, one after the other."""
    position, place = start, 0
    for index in range(len(ends)):
        while place < ends[index]:
            word_bytes[place] = data[position]
            place, position = place + 1, position + 1
        position += 1 + _ENTRY_END


@kernel
def write_entries(word_bytes, word_ends, counts, type_id, out):  # type: ignore[no-untyped-def]
    """Write entries as a file has them: the word, a zero byte, its count, its type."""
    place, start = 0, 0
    for index in range(len(word_ends)):
        for at in range(start, word_ends[index]):
            out[place] = word_bytes[at]
            place += 1
        out[place] = 0
        count = np.uint64(counts[index])
        for byte in range(8):
            out[place + 1 + byte] = (count >> np.uint64(8 * byte)) & np.uint64(255)
        out[place + _ENTRY_END] = type_id
        place += 1 + _ENTRY_END
        start = word_ends[index]
