"""PV-DBOW's update, compiled. `reference.py` does the same in plain NumPy.

Words come with the row of their document (`owners`) and with noise words: `block` consecutive words
share a pool of them, which weigh negatives ÷ pool each, as in word2vec's kernels. Matrices are flat
float32 with rows of `width` floats. `stats` collects [loss, words in it, all words].
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
from sememe.models.static.tile_kernels import dot_eight

_AHEAD = 4  # words between prefetching a row and using it


@kernel
def learn_documents(
    tokens, owners, num_words, noise, documents, output, width, pool, block, weight, rate,
    is_frozen, loss_every, stats,
):  # fmt: skip
    """Each document predicts its words, one step per word; a frozen `output` is not changed.

    The pool is a multiple of 8.
    """
    hidden = np.zeros(width, np.float32)
    change = np.zeros(width, np.float32)
    rows = np.zeros(pool + 1, np.int64)  # the pool, then the word
    g = np.zeros(pool + 9, np.float32)
    for n in range(num_words):
        if n % block == 0:
            for k in range(pool):
                rows[k] = np.int64(noise[n // block * pool + k]) * width
        if n + _AHEAD < num_words:
            prefetch_row(output, np.int64(tokens[n + _AHEAD]) * width, width)
        rows[pool] = np.int64(tokens[n]) * width
        own = np.int64(owners[n]) * width
        copy_row(documents, own, hidden, 0, width)
        for k in range(0, pool, 8):
            dot_eight(hidden, 0, output, rows, k, width, g)
        g[pool] = dot(hidden, 0, output, rows[pool], width)
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
        sum_scaled(g, output, rows, pool + 1, change, width)
        if not is_frozen:
            for k in range(pool + 1):
                add_scaled(g[k], hidden, 0, output, rows[k], width)
        add_row(change, 0, documents, own, width)
