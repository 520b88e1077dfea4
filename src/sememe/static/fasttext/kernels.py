"""What sub-words add to word2vec's kernels: words are put together before them and shared after.

A word is the mean of its rows (its own and those of its n-grams). The distinct words of a part of
the text are put together once; word2vec's kernels then train them as if they were rows of their
own; at the end each row of a word takes the whole change of that word, as in Facebook's program.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.static import simd
from sememe.static.rows import LANES, prefetch_row
from sememe.static.word2vec.kernels import span

_ZERO = np.float32(0)


@kernel
def number_words(tokens, left, right, head, tail, numbers, words, inputs):
    """Number the distinct words in the windows of the centres from `head` up to `tail`.

    words[inputs[n]] = tokens[n]; returns how many they are. `numbers` is a thread's own array with
    a place for each word of the vocabulary; what earlier calls left in it is told by `words`.
    """
    num_words = 0
    low, high = span(left, right, head, tail)
    for n in range(low, high):
        word = tokens[n]
        number = numbers[word]
        if number >= num_words or words[number] != word:
            number = np.int32(num_words)
            numbers[word] = number
            words[number] = word
            num_words += 1
        inputs[n] = number
    return num_words


@kernel
def put_together(words, num_words, ends, rows, input, width, hidden, before):
    """hidden row n = before row n = mean of the rows of words[n]."""
    for n in range(num_words):
        word = words[n]
        first = ends[word - 1] if word > 0 else 0
        last = ends[word]
        scale = simd.spread(np.float32(1) / np.float32(last - first))
        ahead = np.int64(words[n + 1]) if n + 1 < num_words else np.int64(word)
        shift = (ends[ahead - 1] if ahead > 0 else 0) - first
        for r in range(first, min(last, ends[ahead] - shift)):
            prefetch_row(input, np.int64(rows[r + shift]) * width, width)
        for d in range(0, width, LANES):
            total = simd.spread(_ZERO)
            for r in range(first, last):
                total = simd.add(total, simd.load(input, np.int64(rows[r]) * width + d))
            mean = simd.multiply_add(simd.spread(_ZERO), total, scale)
            simd.store(hidden, n * width + d, mean)
            simd.store(before, n * width + d, mean)


@kernel
def share_changes(words, num_words, ends, rows, input, width, hidden, before):
    """Add to every row of words[n] what training changed in hidden row n."""
    minus = simd.spread(np.float32(-1))
    for n in range(num_words):
        word = words[n]
        first = ends[word - 1] if word > 0 else 0
        for d in range(0, width, LANES):
            place = n * width + d
            change = simd.multiply_add(simd.load(hidden, place), minus, simd.load(before, place))
            for r in range(first, ends[word]):
                at = np.int64(rows[r]) * width + d
                simd.store(input, at, simd.add(simd.load(input, at), change))
