"""Kernels of `ngrams`: the words of a vocabulary as flat bytes in, rows of the input matrix out."""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

_BASIS, _PRIME = np.uint32(2166136261), np.uint32(16777619)
_OPEN, _CLOSE = np.uint8(60), np.uint8(62)  # < and >


@kernel
def _is_line_end(word_bytes, start, end):  # type: ignore[no-untyped-def]
    return (
        end - start == 4
        and word_bytes[start] == 60
        and word_bytes[start + 1] == 47
        and word_bytes[start + 2] == 115
        and word_bytes[start + 3] == 62
    )


@kernel
def _is_inside(byte):  # type: ignore[no-untyped-def]
    """Whether `byte` continues a character of UTF-8."""
    return byte & 0xC0 == 0x80


@kernel
def _mix(value, byte):  # type: ignore[no-untyped-def]
    signed = np.uint32(byte)
    if byte >= 0x80:
        signed |= np.uint32(0xFFFFFF00)
    return np.uint32(np.uint32(value ^ signed) * _PRIME)


@kernel
def _byte_at(word_bytes, start, end, index):  # type: ignore[no-untyped-def]
    """Byte `index` of <word>; the word itself lies at start:end."""
    if index == 0:
        return _OPEN
    if index > end - start:
        return _CLOSE
    return word_bytes[start + index - 1]


@kernel
def _num_ngrams(word_bytes, start, end, minn, maxn):  # type: ignore[no-untyped-def]
    if _is_line_end(word_bytes, start, end):
        return 0
    num_characters = 2
    for index in range(start, end):
        if not _is_inside(word_bytes[index]):
            num_characters += 1
    num_ngrams = 0
    for size in range(max(1, minn), min(maxn, num_characters) + 1):
        num_ngrams += num_characters - size + 1
        if size == 1:
            num_ngrams -= 2
    return num_ngrams


@kernel
def count_rows(word_bytes, word_ends, first, minn, maxn, ends):  # type: ignore[no-untyped-def]
    """Write where the rows of each word from `first` on end (its own and one for each n-gram)."""
    num_rows = 0
    start = word_ends[first - 1] if first > 0 else 0
    for index in range(len(ends)):
        end = word_ends[first + index]
        num_rows += 1 + _num_ngrams(word_bytes, start, end, minn, maxn)
        ends[index] = num_rows
        start = end
    return num_rows


@kernel
def fill_rows(word_bytes, word_ends, first, last, minn, maxn, bucket, rows):  # type: ignore[no-untyped-def]
    """Write the rows of the words `first` to `last`, one word after the other."""
    num_words = len(word_ends)
    place = 0
    start = word_ends[first - 1] if first > 0 else 0
    for word_id in range(first, last):
        end = word_ends[word_id]
        rows[place] = word_id
        place += 1
        size = end - start + 2
        if maxn > 0 and not _is_line_end(word_bytes, start, end):
            for from_index in range(size):
                if _is_inside(_byte_at(word_bytes, start, end, from_index)):
                    continue
                value, index = _BASIS, from_index
                for length in range(1, maxn + 1):
                    if index == size:
                        break
                    value = _mix(value, _byte_at(word_bytes, start, end, index))
                    index += 1
                    while index < size and _is_inside(_byte_at(word_bytes, start, end, index)):
                        value = _mix(value, _byte_at(word_bytes, start, end, index))
                        index += 1
                    is_boundary = length == 1 and (from_index == 0 or index == size)
                    if length >= minn and not is_boundary:
                        rows[place] = num_words + np.int64(value) % bucket
                        place += 1
        start = end
    return place
