"""Kernels of `ngrams`: the words of a vocabulary as flat bytes in, rows of the input matrix out.

fastText gives a word a row of its own and hashes each n-gram by FNV-1a; in a compact table (floret)
the word and each n-gram have `hash_count` rows by MurmurHash3. A `hash_count` of 0 means the first.
"""

import numpy as np

from sememe.machine import kernel

_BASIS, _PRIME = np.uint32(2166136261), np.uint32(16777619)
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_F1, _F2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_ADD1, _ADD2, _FIVE = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(5)
_S33, _LOW = np.uint64(33), np.uint64(0xFFFFFFFF)


@kernel
def _is_line_end(word_bytes, start, end):
    return (
        end - start == 4
        and word_bytes[start] == 60
        and word_bytes[start + 1] == 47
        and word_bytes[start + 2] == 115
        and word_bytes[start + 3] == 62
    )


@kernel
def _is_inside(byte):
    """Whether `byte` continues a character of UTF-8."""
    return byte & 0xC0 == 0x80


@kernel
def mix_byte(value, byte):
    """One step of FNV-1a; Facebook's hash takes bytes as signed characters."""
    signed = np.uint32(byte)
    if byte >= 0x80:
        signed |= np.uint32(0xFFFFFF00)
    return np.uint32(np.uint32(value ^ signed) * _PRIME)


@kernel
def _rotate(value, shift):
    return (value << np.uint64(shift)) | (value >> np.uint64(64 - shift))


@kernel
def _scatter(value):
    value = (value ^ (value >> _S33)) * _F1
    value = (value ^ (value >> _S33)) * _F2
    return value ^ (value >> _S33)


@kernel
def _load(data, start, end):
    """Up to eight bytes as one number, the first one lowest."""
    value = np.uint64(0)
    for offset in range(min(8, end - start)):
        value |= np.uint64(data[start + offset]) << np.uint64(8 * offset)
    return value


@kernel
def _murmur(data, start, end, seed):
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
def _put_hashes(whole, start, end, seed, bucket, hash_count, rows, place):
    first, second = _murmur(whole, start, end, seed)
    for index in range(hash_count):
        half = first if index < 2 else second
        key = half & _LOW if index % 2 == 0 else half >> np.uint64(32)
        rows[place] = key % np.uint64(bucket)
        place += 1
    return place


@kernel
def _fill_whole(word_bytes, start, end, before, after, whole):
    """Write the word with its boundary marks; return its size."""
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
def _num_starts(data, start, end):
    """The number of characters that start between two positions."""
    num_starts = 0
    for index in range(start, end):
        if not _is_inside(data[index]):
            num_starts += 1
    return num_starts


@kernel
def count_rows(word_bytes, word_ends, first, before, after, minn, maxn, hash_count, ends):
    """Write where the rows of each word end; return their number and the longest word in bytes."""
    num_rows, longest = 0, 0
    marks = _num_starts(before, 0, len(before)) + _num_starts(after, 0, len(after))
    start = word_ends[first - 1] if first > 0 else 0
    for index in range(len(ends)):
        end = word_ends[first + index]
        longest = max(longest, end - start + len(before) + len(after))
        num_characters = marks + _num_starts(word_bytes, start, end)
        num_pieces = 1
        if hash_count > 0 or not _is_line_end(word_bytes, start, end):
            for size in range(max(1, minn), min(maxn, num_characters) + 1):
                num_pieces += num_characters - size + 1
                if size == 1:
                    num_pieces -= min(2, num_characters)
        num_rows += num_pieces * max(hash_count, 1)
        ends[index] = num_rows
        start = end
    return num_rows, longest


@kernel
def fill_rows(
    word_bytes, word_ends, first, last, before, after, minn, maxn, bucket, hash_count, seed,
    whole, rows,
):  # fmt: skip
    """Write the rows of the words `first` to `last`: of the marked word, then its n-grams."""
    place = 0
    start = word_ends[first - 1] if first > 0 else 0
    for word_id in range(first, last):
        end = word_ends[word_id]
        size = _fill_whole(word_bytes, start, end, before, after, whole)
        if hash_count > 0:
            place = _put_hashes(whole, 0, size, seed, bucket, hash_count, rows, place)
        else:
            rows[place] = word_id
            place += 1
            if _is_line_end(word_bytes, start, end):
                size = 0
        start = end
        for from_index in range(size):
            if _is_inside(whole[from_index]):
                continue
            value, index = _BASIS, from_index
            for length in range(1, maxn + 1):
                if index == size:
                    break
                value = mix_byte(value, whole[index])
                index += 1
                while index < size and _is_inside(whole[index]):
                    value = mix_byte(value, whole[index])
                    index += 1
                if length < minn or (length == 1 and (from_index == 0 or index == size)):
                    continue
                if hash_count > 0:
                    place = _put_hashes(
                        whole, from_index, index, seed, bucket, hash_count, rows, place
                    )
                else:
                    rows[place] = len(word_ends) + np.int64(value) % bucket
                    place += 1
    return place
