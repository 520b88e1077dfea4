"""Character n-grams of words as rows of fastText's input matrix (Bojanowski et al. 2017, 3.2).

A word is written <word>; its n-grams are the parts of `minn` to `maxn` characters, hashed into
`bucket` rows that follow the rows of the words. Single `<` and `>` are no n-grams. Everything
here agrees with Facebook's program, so that its models can be read: a character is a byte
that starts one with the continuation bytes after it, and the hash is FNV-1a over signed bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.tokens.vocabulary import Vocabulary

# The word that stands for the end of a line; it has a row of its own and no n-grams.
LINE_END = "</s>"
_MAX_ROWS = 2**31 - 1


def hash_bytes(data: bytes) -> int:
    """Hash as in Facebook's program: FNV-1a, 32 bits, with bytes from 0x80 on as negative."""
    value = 2166136261
    for byte in data:
        value ^= byte | 0xFFFFFF00 if byte >= 0x80 else byte
        value = value * 16777619 & 0xFFFFFFFF
    return value


def split_ngrams(word: str, minn: int, maxn: int) -> list[bytes]:
    """List the n-grams of <word> in UTF-8, in the order in which the program adds them up."""
    if word == LINE_END:
        return []
    return cut_ngrams(b"<" + word.encode("utf-8", "surrogatepass") + b">", minn, maxn)


def cut_ngrams(whole: bytes, minn: int, maxn: int) -> list[bytes]:
    """Split a marked word into n-grams; a single mark at either end is none."""
    edges = [index for index, byte in enumerate(whole) if byte & 0xC0 != 0x80] + [len(whole)]
    num_characters = len(edges) - 1
    ngrams = []
    for first in range(num_characters):
        for size in range(max(1, minn), min(maxn, num_characters - first) + 1):
            is_boundary = size == 1 and first in (0, num_characters - 1)
            if not is_boundary:
                ngrams.append(whole[edges[first] : edges[first + size]])
    return ngrams


def check_options(num_words: int, minn: int, maxn: int, bucket: int) -> None:
    """Raise an error for n-gram options that no table could have."""
    if min(minn, maxn, bucket) < 0 or max(minn, maxn) > _MAX_ROWS:
        raise OptionError(
            f"minn, maxn and bucket must be 0 or more, and below 2³¹, not {minn}, {maxn} and "
            f"{bucket}."
        )
    if num_words + bucket > _MAX_ROWS:
        raise OptionError(f"{num_words:,} words and {bucket:,} buckets are more than 2³¹ rows.")


def ngram_rows_of(word: str, num_words: int, minn: int, maxn: int, bucket: int) -> np.ndarray:
    """The rows (int32) of the n-grams of a word without its own row."""
    check_options(num_words, minn, maxn, bucket)
    if bucket == 0:
        return np.empty(0, np.int32)
    rows = [num_words + hash_bytes(ngram) % bucket for ngram in split_ngrams(word, minn, maxn)]
    return np.array(rows, np.int32)


def ngram_rows(
    vocabulary: Vocabulary,
    minn: int,
    maxn: int,
    bucket: int,
    *,
    first: int = 0,
    last: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of every word from `first` to `last`: its own id, then those of its n-grams.

    The first array (int64, one entry per word) says where the rows of a word end in the second
    (int32). Without buckets, or with `maxn` 0, a word has only its own row.
    """
    check_options(len(vocabulary), minn, maxn, bucket)
    if bucket == 0:
        minn, maxn, bucket = 1, 0, 1
    return _rows_of_all(vocabulary, minn, maxn, bucket, 0, FLORET_SEED, Marks(), first, last)


def _rows_of_all(
    vocabulary: Vocabulary,
    minn: int,
    maxn: int,
    bucket: int,
    hash_count: int,
    seed: int,
    marks: Marks,
    first: int,
    last: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    from sememe.tokens.ngram_kernels import count_rows, fill_rows

    words = vocabulary.to_arrays()
    last = len(vocabulary) if last is None else last
    before, after = (np.frombuffer(mark, np.uint8) for mark in marks)
    ends = np.empty(last - first, np.int64)
    num_rows, longest = count_rows(*words, first, before, after, minn, maxn, hash_count, ends)
    rows, whole = np.empty(num_rows, np.int32), np.empty(longest, np.uint8)
    fill_rows(*words, first, last, before, after, minn, maxn, bucket, hash_count, seed, whole, rows)
    return ends, rows


def keep_ngrams(
    ends: np.ndarray, rows: np.ndarray, num_words: int, pruned: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Replace the rows of n-grams by those of a pruned model; drop the others.

    `pruned` (N, 2) holds pairs of a bucket and its row after the words, sorted by bucket.
    """
    is_kept, kept = rows < num_words, rows.copy()
    if len(pruned):
        ngrams = np.flatnonzero(~is_kept)
        buckets = rows[ngrams] - num_words
        places = np.minimum(np.searchsorted(pruned[:, 0], buckets), len(pruned) - 1)
        is_kept[ngrams] = pruned[places, 0] == buckets
        kept[ngrams] = num_words + pruned[places, 1]
    num_kept = np.concatenate(([0], np.cumsum(is_kept)))
    return num_kept[ends], kept[is_kept]


# --- compact tables in the manner of floret ---------------------------------------------------

FLORET_SEED = 2166136261
_WORD_64 = 2**64 - 1


def _rotate(value: int, shift: int) -> int:
    return (value << shift | value >> (64 - shift)) & _WORD_64


def _scatter(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _WORD_64
    return value ^ value >> 33


def murmur_hashes(data: bytes, seed: int = FLORET_SEED) -> tuple[int, int, int, int]:
    """Hash by MurmurHash3 (x64, 128 bits; Appleby 2011) into four numbers of 32 bits."""
    first = second = seed
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    for start in range(0, len(data), 16):
        block = data[start : start + 16]
        low = int.from_bytes(block[:8], "little") * c1 & _WORD_64
        high = int.from_bytes(block[8:], "little") * c2 & _WORD_64
        first ^= _rotate(low, 31) * c2 & _WORD_64
        if len(block) == 16:
            first = (_rotate(first, 27) + second) * 5 + 0x52DCE729 & _WORD_64
        second ^= _rotate(high, 33) * c1 & _WORD_64
        if len(block) == 16:
            second = (_rotate(second, 31) + first) * 5 + 0x38495AB5 & _WORD_64
    first, second = first ^ len(data), second ^ len(data)
    first = first + second & _WORD_64
    second = second + first & _WORD_64
    first, second = _scatter(first), _scatter(second)
    first = first + second & _WORD_64
    second = second + first & _WORD_64
    return first & 0xFFFFFFFF, first >> 32, second & 0xFFFFFFFF, second >> 32


class Marks(NamedTuple):
    """The characters around a word when it is split into n-grams."""

    before: bytes = b"<"
    after: bytes = b">"


def floret_rows(
    word: str,
    minn: int,
    maxn: int,
    bucket: int,
    hash_count: int,
    *,
    seed: int = FLORET_SEED,
    marks: Marks = Marks(),
) -> np.ndarray:
    """The rows (int32) of a word in a compact table: `hash_count` for it and each n-gram.

    As in floret, no word has its own row, so a table needs no vocabulary. Every word has n-grams
    here, also the end of a line.
    """
    _check_floret(minn, maxn, bucket, hash_count)
    whole = marks.before + word.encode("utf-8", "surrogatepass") + marks.after
    pieces = [whole, *cut_ngrams(whole, minn, maxn)]
    rows = [key % bucket for piece in pieces for key in murmur_hashes(piece, seed)[:hash_count]]
    return np.array(rows, np.int32)


def floret_rows_of_all(
    vocabulary: Vocabulary,
    minn: int,
    maxn: int,
    bucket: int,
    hash_count: int,
    *,
    seed: int = FLORET_SEED,
    marks: Marks = Marks(),
    first: int = 0,
    last: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Give `floret_rows` of every word from `first` to `last`: where each ends, and all rows."""
    _check_floret(minn, maxn, bucket, hash_count)
    return _rows_of_all(vocabulary, minn, maxn, bucket, hash_count, seed, marks, first, last)


def _check_floret(minn: int, maxn: int, bucket: int, hash_count: int) -> None:
    check_options(0, minn, maxn, bucket)
    if bucket < 1 or not 1 <= hash_count <= 4:
        raise OptionError(
            f"A compact table needs at least 1 bucket and 1 to 4 hashes, not {bucket} and "
            f"{hash_count}."
        )
