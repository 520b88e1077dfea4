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


# --- compact tables (floret): MurmurHash3 instead of FNV-1a, several rows for each n-gram -------

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_F1, _F2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_ADD1, _ADD2, _FIVE = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(5)
_S33, _LOW = np.uint64(33), np.uint64(0xFFFFFFFF)


@kernel
def _rotate(value, shift):  # type: ignore[no-untyped-def]
    return (value << np.uint64(shift)) | (value >> np.uint64(64 - shift))


@kernel
def _scatter(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> _S33)) * _F1
    value = (value ^ (value >> _S33)) * _F2
    return value ^ (value >> _S33)


@kernel
def _load(data, start, end):  # type: ignore[no-untyped-def]
    """Up to eight bytes as one number, the first one lowest."""
    value = np.uint64(0)
    for offset in range(min(8, end - start)):
        value |= np.uint64(data[start + offset]) << np.uint64(8 * offset)
    return value


@kernel
def _murmur(data, start, end, seed):  # type: ignore[no-untyped-def]
    first, second = np.uint64(seed), np.uint64(seed)
    position = start
    while position < end:
        low = _load(data, position, end) * _C1
        high = _load(data, position + 8, end) * _C2
        position += 16
        first ^= _rotate(low, 31) * _C2
        if position <= end:
            first = (_rotate(first, 27) + second) * _FIVE + _ADD1
        second ^= _rotate(high, 33) * _C1
        if position <= end:
            second = (_rotate(second, 31) + first) * _FIVE + _ADD2
    size = np.uint64(end - start)
    first, second = first ^ size, second ^ size
    first += second
    second += first
    first, second = _scatter(first), _scatter(second)
    first += second
    second += first
    return first, second


@kernel
def _put_hashes(whole, start, end, seed, bucket, hash_count, rows, place):  # type: ignore[no-untyped-def]
    first, second = _murmur(whole, start, end, seed)
    for index in range(hash_count):
        half = first if index < 2 else second
        key = half & _LOW if index % 2 == 0 else half >> np.uint64(32)
        rows[place] = key % np.uint64(bucket)
        place += 1
    return place


@kernel
def _fill_whole(word_bytes, start, end, before, after, whole):  # type: ignore[no-untyped-def]
    """Write the word in its marks; gives its size."""
    size = 0
    for index in range(len(before)):
        whole[size] = before[index]
        size += 1
    for index in range(start, end):
        whole[size] = word_bytes[index]
        size += 1
    for index in range(len(after)):
        whole[size] = after[index]
        size += 1
    return size


@kernel
def _num_starts(data, start, end):  # type: ignore[no-untyped-def]
    """How many characters start between two places."""
    num_starts = 0
    for index in range(start, end):
        if not _is_inside(data[index]):
            num_starts += 1
    return num_starts


@kernel
def count_floret(word_bytes, word_ends, first, before, after, minn, maxn, hash_count, ends):  # type: ignore[no-untyped-def]
    """Write where the rows of each word end; gives their number and the longest word in bytes."""
    num_rows, longest = 0, 0
    marks = _num_starts(before, 0, len(before)) + _num_starts(after, 0, len(after))
    start = word_ends[first - 1] if first > 0 else 0
    for index in range(len(ends)):
        end = word_ends[first + index]
        longest = max(longest, end - start + len(before) + len(after))
        num_characters = marks + _num_starts(word_bytes, start, end)
        num_pieces = 1
        for size in range(max(1, minn), min(maxn, num_characters) + 1):
            num_pieces += num_characters - size + 1
            if size == 1:
                num_pieces -= min(2, num_characters)
        num_rows += num_pieces * hash_count
        ends[index] = num_rows
        start = end
    return num_rows, longest


@kernel
def fill_floret(  # type: ignore[no-untyped-def]
    word_bytes, word_ends, first, last, before, after, minn, maxn, bucket, hash_count, seed,
    whole, rows,
):  # fmt: skip
    """Write the rows of the words `first` to `last`: of the word in its marks, then its n-grams."""
    place = 0
    start = word_ends[first - 1] if first > 0 else 0
    for word_id in range(first, last):
        end = word_ends[word_id]
        size = _fill_whole(word_bytes, start, end, before, after, whole)
        place = _put_hashes(whole, 0, size, seed, bucket, hash_count, rows, place)
        for from_index in range(size):
            if _is_inside(whole[from_index]):
                continue
            index = from_index
            for length in range(1, maxn + 1):
                if index == size:
                    break
                index += 1
                while index < size and _is_inside(whole[index]):
                    index += 1
                is_boundary = length == 1 and (from_index == 0 or index == size)
                if length >= minn and not is_boundary:
                    place = _put_hashes(
                        whole, from_index, index, seed, bucket, hash_count, rows, place
                    )
        start = end
    return place
