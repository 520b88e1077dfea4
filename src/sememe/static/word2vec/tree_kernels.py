"""word2vec's updates with hierarchical softmax, compiled; see `kernels` for the arguments.

A path through the tree is nodes[starts[word]:starts[word + 1]], rows of `output` from the root
down, with the turns `codes`; `longest` is the length of the longest one.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.static import simd
from sememe.static.pairing import MOST_ROWS, exchange_pairs, score_pairs
from sememe.static.rows import add_row, add_scaled, dot, prefetch_row, sigmoid, softplus, sum_rows
from sememe.static.word2vec.kernels import window_rows

OWN_NODES, MERGE_EVERY = 127, 512  # rows, centres
_SWEEP = 32
_ZERO = np.float32(0)
_ONE = np.float32(1)


@kernel
def _merge(share, own, output, start, size):
    """Move the shared rows from `start` on towards a worker's own by `share`; begin anew there."""
    f = simd.spread(share)
    for d in range(0, size, simd.LANES):
        row = simd.load(output, start + d)
        row = simd.multiply_add(row, f, simd.subtract(simd.load(own, d), row))
        simd.store(output, start + d, row)
        simd.store(own, d, row)


@kernel
def _find_path(word, starts, nodes, first_own, width, targets):
    """Fill targets with the offsets of the rows on the way to a word, and one valid one more.

    Returns (how many, how many of them, from the root on, are a worker's own).
    """
    start = starts[word]
    length = starts[word + 1] - start
    num_own = 0
    for k in range(length):
        node = np.int64(nodes[start + k])
        if node >= first_own:
            node -= first_own
            num_own += 1
        targets[k] = node * width
    targets[length] = 0
    return length, num_own


@kernel
def _take_errors(g, num, codes, start, length, rate, has_loss, labels, stats):
    """Turn the scores of `num` words, node by node, into the factors of their step."""
    for k in range(length):
        simd.store(labels, k * num, simd.spread(_ONE - np.float32(codes[start + k])))
    stats[2] += num
    if has_loss:
        stats[1] += num
        for k in range(length * num):
            stats[0] += softplus(g[k] if labels[k] == _ZERO else -g[k])
    # Unused places are swept too: LLVM vectorises whole runs only.
    for k in range((length * num + _SWEEP - 1) // _SWEEP * _SWEEP):
        g[k] = rate * (labels[k] - sigmoid(g[k]))


@kernel
def skipgram_hierarchical(
    tokens, inputs, left, right, head, tail, starts, nodes, codes, longest,
    input, output, width, window, rate, num_workers, loss_every, stats,
):  # fmt: skip
    """Every word of a window walks the tree to the centre (as in the released C program).

    MOST_ROWS words of a window at a time, usually all of it, are one step. Where several workers
    run, each has the top of the tree, which are the last rows, for itself and merges it now and
    then: rows that all of them write at every step would wander from one core's cache to another's.
    """
    num_rows = output.shape[0] // width
    first_own = max(0, num_rows - OWN_NODES) if num_workers > 1 else num_rows
    own = output[first_own * width :].copy()
    share = np.float32(1.0 / num_workers)
    sources = np.zeros(MOST_ROWS, np.int64)
    targets = np.zeros(longest + 1, np.int64)
    labels = np.zeros(longest * MOST_ROWS + _SWEEP, np.float32)
    g = np.zeros(longest * MOST_ROWS + _SWEEP, np.float32)
    for c in range(head, tail):
        length, num_own = _find_path(tokens[c], starts, nodes, first_own, width, targets)
        if c + window + 2 < tail:
            prefetch_row(input, np.int64(inputs[c + window + 2]) * width, width)
            ahead = tokens[c + 2]
            # The upper nodes are in the cache anyway: every word passes them.
            for k in range(max(starts[ahead], starts[ahead + 1] - 8), starts[ahead + 1]):
                if nodes[k] < first_own:
                    prefetch_row(output, np.int64(nodes[k]) * width, width)
        q = left[c]
        while q < right[c]:
            num = 0
            while q < right[c] and num < MOST_ROWS:
                if q != c:
                    sources[num] = np.int64(inputs[q]) * width
                    num += 1
                q += 1
            score_pairs(input, sources, num, own, num_own, output, targets, length, width, g)
            has_loss = c % loss_every == 0
            _take_errors(g, num, codes, starts[tokens[c]], length, rate, has_loss, labels, stats)
            exchange_pairs(input, sources, num, own, num_own, output, targets, length, width, g)
        if c % MERGE_EVERY == MERGE_EVERY - 1 or c + 1 == tail:
            _merge(share, own, output, first_own * width, own.shape[0])


@kernel
def cbow_hierarchical(
    tokens, inputs, left, right, head, tail, starts, nodes, codes,
    input, output, width, window, rate, is_mean, loss_every, stats,
):  # fmt: skip
    """The joined window walks the tree to its centre."""
    hidden = np.zeros(width, np.float32)
    context = np.zeros(2 * window, np.int64)
    change = np.zeros(width, np.float32)
    for c in range(head, tail):
        num = right[c] - left[c] - 1
        if num == 0:
            continue
        window_rows(inputs, c, left[c], right[c], width, context)
        sum_rows(_ONE / np.float32(num) if is_mean else _ONE, input, context, num, hidden, width)
        change[:] = _ZERO
        has_loss = c % loss_every == 0
        for k in range(starts[tokens[c]], starts[tokens[c] + 1]):
            row = np.int64(nodes[k]) * width
            label = _ONE - np.float32(codes[k])
            score = dot(hidden, 0, output, row, width)
            if has_loss:
                stats[0] += softplus(score if label == _ZERO else -score)
            g = rate * (label - sigmoid(score))
            add_scaled(g, output, row, change, 0, width)
            add_scaled(g, hidden, 0, output, row, width)
        stats[2] += 1
        if has_loss:
            stats[1] += 1
        for n in range(num):
            add_row(change, 0, input, context[n], width)
