"""Doc2Vec's update, compiled. `reference.py` does the same in plain NumPy.

Words come with the row of their document (`owners`), with their windows (empty in PV-DBOW, where a
document alone predicts its words) and with noise words: `pool` for each word, which weigh
negatives ÷ pool each. Words do not share them as in word2vec: a short document would see few of
them (docs/experiments.md). Matrices are flat float32 with rows of `width` floats.

With `num_parts` above 1 the document and the words of the window are concatenated, and rows of
`output` have num_parts · width floats: part 0 meets the document, then come the places before and
after the word; places outside the window are zeros. `stats` collects [loss, words in it, all
words].
"""

import numpy as np

from sememe.machine import kernel
from sememe.models.static.row_kernels import (
    add_row,
    add_scaled,
    copy_row,
    dot,
    prefetch_row,
    sigmoid,
    softplus,
    sum_scaled,
)
from sememe.models.static.tile_kernels import dot_eight, sum_rows

_AHEAD = 4  # words between prefetching a row and using it
_ONE = np.float32(1)


@kernel
def _find_context(tokens, left, right, n, num_parts, width, rows, places):
    """Fill the rows of the words around n, and their places in a concatenation; their number."""
    num, window = 0, num_parts // 2
    for q in range(left, right):
        if q != n:
            rows[num] = np.int64(tokens[q]) * width
            if num_parts > 1:
                places[num] = (q - n + window + (1 if q < n else 0)) * width
            num += 1
    return num


@kernel
def learn_documents(
    tokens, left, right, owners, num_words, noise, documents, input, output, width, window,
    num_parts, pool, weight, rate, is_mean, is_frozen, loss_every, stats,
):  # fmt: skip
    """Predict each word from its document and its window, one step per word.

    If it is frozen, only `documents` change. The pool is a multiple of 8.
    """
    wide = num_parts * width
    hidden = np.zeros(wide, np.float32)
    change = np.zeros(wide, np.float32)
    context = np.zeros(2 * window + 1, np.int64)
    places = np.zeros(2 * window + 1, np.int64)
    rows = np.zeros(pool + 1, np.int64)  # the pool, then the word
    g = np.zeros(pool + 9, np.float32)
    for n in range(num_words):
        for k in range(pool):
            rows[k] = np.int64(noise[n * pool + k]) * wide
            if (n + 1) * pool + k < noise.shape[0]:
                prefetch_row(output, np.int64(noise[(n + 1) * pool + k]) * wide, wide)
        if n + _AHEAD < num_words:
            prefetch_row(output, np.int64(tokens[n + _AHEAD]) * wide, wide)
        rows[pool] = np.int64(tokens[n]) * wide
        own = np.int64(owners[n]) * width
        num = _find_context(tokens, left[n], right[n], n, num_parts, width, context, places)
        if num == 0 or num_parts > 1:
            hidden[width:] = np.float32(0)
            copy_row(documents, own, hidden, 0, width)
            for k in range(num):
                copy_row(input, context[k], hidden, places[k], width)
        else:
            scale = _ONE / np.float32(num + 1) if is_mean else _ONE
            sum_rows(scale, input, context, num, hidden, width)
            add_scaled(scale, documents, own, hidden, 0, width)
        for k in range(0, pool, 8):
            dot_eight(hidden, 0, output, rows, k, wide, g)
        g[pool] = dot(hidden, 0, output, rows[pool], wide)
        stats[2] += 1
        if n % loss_every == 0:
            stats[0] += softplus(-g[pool])
            stats[1] += 1
            for k in range(pool):
                stats[0] += weight * softplus(g[k])
        for k in range(pool):
            g[k] = -rate * weight * sigmoid(g[k])
        g[pool] = rate - rate * sigmoid(g[pool])
        # A row may occur twice: all are read before any is updated.
        sum_scaled(g, output, rows, pool + 1, change, wide)
        if not is_frozen:
            for k in range(pool + 1):
                add_scaled(g[k], hidden, 0, output, rows[k], wide)
            for k in range(num):
                add_row(change, places[k], input, context[k], width)
        add_row(change, 0, documents, own, width)
