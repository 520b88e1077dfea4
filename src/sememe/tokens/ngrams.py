"""Character n-grams of words as rows of fastText's input matrix (Bojanowski et al. 2017, 3.2).

A word is written <word>; its n-grams are the pieces of `minn` to `maxn` characters, hashed into
`bucket` rows that follow the rows of the words. Single `<` and `>` are no n-grams. Everything
here agrees with Facebook's program, so that its models can be read: a character is a byte
that starts one with the continuation bytes after it, and the hash is FNV-1a over signed bytes.
"""

from __future__ import annotations

import numpy as np

from sememe.errors import OptionError
from sememe.tokens.vocabulary import Vocabulary

# The word that stands for the end of a line; it has a row of its own and no n-grams.
LINE_END = "</s>"
_MAX_ROWS = 2**31 - 1


def hash_bytes(data: bytes) -> int:
    """Hash as Facebook's program does: FNV-1a, 32 bits, bytes from 0x80 on taken as negative."""
    value = 2166136261
    for byte in data:
        value ^= byte | 0xFFFFFF00 if byte >= 0x80 else byte
        value = value * 16777619 & 0xFFFFFFFF
    return value


def split_ngrams(word: str, minn: int, maxn: int) -> list[bytes]:
    """List the n-grams of <word> in UTF-8, in the order in which the program adds them up."""
    if word == LINE_END:
        return []
    data = b"<" + word.encode("utf-8", "surrogatepass") + b">"
    edges = [index for index, byte in enumerate(data) if byte & 0xC0 != 0x80] + [len(data)]
    num_characters = len(edges) - 1
    ngrams = []
    for first in range(num_characters):
        for size in range(max(1, minn), min(maxn, num_characters - first) + 1):
            is_boundary = size == 1 and first in (0, num_characters - 1)
            if not is_boundary:
                ngrams.append(data[edges[first] : edges[first + size]])
    return ngrams


def check_options(num_words: int, minn: int, maxn: int, bucket: int) -> None:
    """Refuse n-grams that no table of rows could serve."""
    if minn < 0 or maxn < 0 or bucket < 0:
        raise OptionError(
            f"minn, maxn and bucket must be 0 or more, not {minn}, {maxn} and {bucket}."
        )
    if num_words + bucket > _MAX_ROWS:
        raise OptionError(f"{num_words:,} words and {bucket:,} buckets are more than 2³¹ rows.")


def ngram_rows_of(word: str, num_words: int, minn: int, maxn: int, bucket: int) -> np.ndarray:
    """Give the rows (int32) of the n-grams of a word that has no row of its own."""
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
    """Give the rows of every word from `first` to `last`: its own id, then those of its n-grams.

    The first array (int64, one for each word) says where the rows of a word end in the second
    (int32). Without buckets, or with `maxn` 0, a word has its own row alone.
    """
    from sememe.tokens.ngram_kernels import count_rows, fill_rows

    check_options(len(vocabulary), minn, maxn, bucket)
    word_bytes, word_ends = vocabulary.to_arrays()
    last = len(vocabulary) if last is None else last
    if bucket == 0:
        minn, maxn, bucket = 1, 0, 1
    ends = np.empty(last - first, np.int64)
    num_rows = count_rows(word_bytes, word_ends, first, minn, maxn, ends)
    rows = np.empty(num_rows, np.int32)
    fill_rows(word_bytes, word_ends, first, last, minn, maxn, bucket, rows)
    return ends, rows


def keep_ngrams(
    ends: np.ndarray, rows: np.ndarray, num_words: int, pruned: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Replace the rows of n-grams by those that a pruned model has for them; leave out the others.

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
