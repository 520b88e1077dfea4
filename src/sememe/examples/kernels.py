"""Kernels of word windows, noise words and Huffman trees."""

import numpy as np

from sememe.machine import kernel
from sememe.randomness import fast_number

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


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


@kernel
def fill_alias(scaled, limits, alias):
    """Pair every column below the mean with one above it (Vose 1991)."""
    size = scaled.shape[0]
    stack = np.empty(size, np.int64)
    num_small = 0
    num_large = 0  # the large ones grow down from the stack's end
    for i in range(size):
        alias[i] = i
        if scaled[i] < 1.0:
            stack[num_small] = i
            num_small += 1
        else:
            num_large += 1
            stack[size - num_large] = i
    while num_small > 0 and num_large > 0:
        num_small -= 1
        small = stack[num_small]
        large = stack[size - num_large]
        limits[small] = np.uint64(scaled[small] * 4294967296.0)
        alias[small] = large
        scaled[large] -= 1.0 - scaled[small]
        if scaled[large] < 1.0:
            num_large -= 1
            stack[num_small] = large
            num_small += 1


@kernel
def draw_noise(limits, alias, key, out):
    """Fill the int32 array `out` with word ids from the noise distribution."""
    size = np.uint64(limits.shape[0])
    for i in range(out.shape[0]):
        z = fast_number(key, i)
        column = np.int64(((z >> _HALF) * size) >> _HALF)
        out[i] = column if (z & _LOW) < limits[column] else alias[column]


@kernel
def join_nodes(counts, parent, turn):
    """Join the two rarest nodes repeatedly; `counts` has the words in falling order."""
    num_words = counts.shape[0]
    weight = np.empty(2 * num_words - 1, np.int64)
    weight[:num_words] = counts
    leaf = num_words - 1
    inner = num_words
    for new in range(num_words, 2 * num_words - 1):
        for side in range(2):
            # Inner nodes are made in rising order, so both queues are sorted: no heap is needed.
            if leaf >= 0 and (inner >= new or weight[leaf] < weight[inner]):
                child = leaf
                leaf -= 1
            else:
                child = inner
                inner += 1
            parent[child] = new
            turn[child] = side
            weight[new] = weight[child] if side == 0 else weight[new] + weight[child]
