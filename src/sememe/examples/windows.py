"""Context windows: token ids in, kept words and the bounds of their windows out.

Words that are too rare have no entry (their id is the vocabulary size) and are dropped first;
frequent words are thinned out; then each remaining word gets a window of a random half-width,
so that near words are seen more often than far ones (Mikolov et al. 2013a, 3.2).
"""

from __future__ import annotations

import math

import numpy as np

from sememe.compiled import kernel
from sememe.examples.randomness import fast_number, number

_HALF = np.uint64(32)


def keep_probability(count: int, total: int, threshold: float) -> float:
    """Chance that one occurrence of a word survives sub-sampling (Mikolov et al. 2013b, 2.3)."""
    if threshold <= 0 or count <= 0:
        return 1.0
    ratio = threshold * total / count
    # The paper stops at the square root; the released C program adds `ratio`.
    # We follow the program, so that our vectors can be compared with its own.
    return min(1.0, math.sqrt(ratio) + ratio)


def keep_limits(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Per id, the 32-bit limit under which a random number keeps the word; 0 for the unknown."""
    total = int(counts.sum())
    ratio = threshold * total / np.maximum(counts, 1).astype(np.float64)
    chance = np.sqrt(ratio) + ratio if threshold > 0 else np.ones(len(counts))
    limits = np.minimum(chance, 1.0) * 2.0**32
    return np.append(limits, 0).astype(np.uint64)


@kernel
def draw_windows(ids, sentence_ends, limits, window, key, tokens, left, right):
    """Fill tokens[n], left[n], right[n] and return n; a window is tokens[left:right] less itself.

    ids: int32; sentence_ends: int64 offsets into them, the last one being len(ids).
    """
    num_kept = 0
    start = 0
    num_ids = ids.shape[0]
    for s in range(sentence_ends.shape[0]):
        first = num_kept
        for p in range(start, sentence_ends[s]):
            if fast_number(key, p) >> _HALF < limits[ids[p]]:
                tokens[num_kept] = ids[p]
                num_kept += 1
        start = sentence_ends[s]
        for c in range(first, num_kept):
            draw = fast_number(key, num_ids + c) >> _HALF
            reach = np.int32(1) + np.int32((draw * np.uint64(window)) >> _HALF)
            left[c] = max(first, c - reach)
            right[c] = min(num_kept, c + reach + 1)
    return num_kept


def draw_windows_plainly(
    ids: np.ndarray, sentence_ends: np.ndarray, limits: np.ndarray, window: int, key: int
) -> tuple[list[int], list[int], list[int]]:
    """Do what `draw_windows` does, without haste."""
    tokens: list[int] = []
    left: list[int] = []
    right: list[int] = []
    start = 0
    for end in sentence_ends:
        first = len(tokens)
        tokens += [
            int(ids[p]) for p in range(start, end) if number(key, p) >> 32 < int(limits[ids[p]])
        ]
        start = int(end)
        for c in range(first, len(tokens)):
            reach = 1 + ((number(key, len(ids) + c) >> 32) * window >> 32)
            left.append(max(first, c - reach))
            right.append(min(len(tokens), c + reach + 1))
    return tokens, left, right
