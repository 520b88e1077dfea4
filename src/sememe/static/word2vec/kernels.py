"""word2vec's updates, compiled. `reference.py` does the same in plain NumPy.

A kernel takes kept words with the bounds of their windows (examples.windows), noise words, both
matrices (flat float32, rows of `width` floats) and a rate, and changes the matrices. Gradients of
one block are taken at the values before it, then applied: a small step of plain SGD.

BLOCK neighboring centres share one pool of noise words. Each still meets as many different ones
as in the original program (negatives × pairs of a centre), but a noise row is fetched once a
block, and its dot product with a centre is taken once for all of the centre's pairs.

`stats` collects [loss, pairs in it, all pairs]; the loss is taken from every `loss_every`-th block.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.static import simd
from sememe.static.rows import (
    LANES,
    add_row,
    add_scaled,
    combine_into,
    combine_tile,
    copy_row,
    dot,
    dot_four,
    prefetch_row,
    score_tile,
    sigmoid,
    softplus,
    sum_scaled,
)

BLOCK = 8
_ZERO = np.float32(0)
_ONE = np.float32(1)


@kernel
def _span(left, right, first, last):
    """The outermost bounds of the windows of centres first to last."""
    low = left[first]
    high = right[first]
    for c in range(first + 1, last):
        low = min(low, left[c])
        high = max(high, right[c])
    return low, high


@kernel
def _score_noise(hidden, pool_rows, scores, stride, at, pool, width):
    """scores[j, at + k] = hidden row j · noise row k for a whole block."""
    for j in range(0, BLOCK, 4):
        for k in range(0, pool, 4):
            score_tile(
                hidden, j * width, pool_rows, k * width, width, scores, j * stride + at + k, stride
            )


@kernel
def _combine_hidden(factors, stride, at, num, source, i, change, j, width):
    """change rows j to j + 3 += Σ_s factors[j, at + s] · source row s."""
    t = j * width
    combine_tile(
        factors, j * stride + at, stride, 1, num, source, i,
        change, t, t + width, t + 2 * width, t + 3 * width, width,
    )  # fmt: skip


@kernel
def skipgram_negative(
    tokens, left, right, num_tokens, noise, input, output, width, window,
    pool, weight, rate, loss_every, stats,
):  # fmt: skip
    """Every centre predicts its window; row weight = pairs × negatives ÷ pool for noise words."""
    most = (BLOCK + 2 * window + 3) // 4 * 4  # context rows of a block
    stride = most + pool
    hidden = np.zeros(BLOCK * width, np.float32)
    change = np.empty(BLOCK * width, np.float32)
    outer = np.zeros(stride * width, np.float32)  # context rows, then noise rows
    targets = np.zeros(stride, np.int64)
    g = np.empty(BLOCK * stride, np.float32)
    for first in range(0, num_tokens, BLOCK):
        last = min(first + BLOCK, num_tokens)
        low, high = _span(left, right, first, last)
        draw = first // BLOCK * pool
        for k in range(pool):
            targets[most + k] = np.int64(noise[draw + k]) * width
            copy_row(output, targets[most + k], outer, (most + k) * width, width)
            if draw + pool + k < noise.shape[0]:
                prefetch_row(output, np.int64(noise[draw + pool + k]) * width, width)
        for q in range(low, high):
            targets[q - low] = np.int64(tokens[q]) * width
            copy_row(output, targets[q - low], outer, (q - low) * width, width)
        for c in range(first, last):
            copy_row(input, np.int64(tokens[c]) * width, hidden, (c - first) * width, width)
            if c + BLOCK < num_tokens:
                prefetch_row(input, np.int64(tokens[c + BLOCK]) * width, width)
            if c + BLOCK + window < num_tokens:
                prefetch_row(output, np.int64(tokens[c + BLOCK + window]) * width, width)
        g[:] = _ZERO
        change[:] = _ZERO
        _score_noise(hidden, outer[most * width :], g, stride, most, pool, width)
        for j in range(0, last - first, 4):
            near, far = _span(left, right, first + j, min(first + j + 4, last))
            start = (near - low) // 4 * 4
            end = min((far - low + 3) // 4 * 4, most)
            for q in range(start, end, 4):
                score_tile(hidden, j * width, outer, q * width, width, g, j * stride + q, stride)
        if first // BLOCK % loss_every == 0:
            _skipgram_loss(g, stride, most, pool, weight, left, right, first, last, low, stats)
        for j in range(BLOCK):
            c = first + j
            row = j * stride
            if c < last:
                a = left[c] - low
                b = right[c] - low
                factor = -rate * weight * np.float32(b - a - 1)
                stats[2] += b - a - 1
                g[row : row + a] = _ZERO
                for q in range(row + a, row + b):
                    g[q] = rate - rate * sigmoid(g[q])
                g[row + c - low] = _ZERO  # a word does not predict itself
                g[row + b : row + most] = _ZERO
                for k in range(row + most, row + stride):
                    g[k] = factor * sigmoid(g[k])
            else:
                g[row : row + stride] = _ZERO
        for j in range(0, last - first, 4):
            near, far = _span(left, right, first + j, min(first + j + 4, last))
            start = near - low
            _combine_hidden(g, stride, start, far - near, outer, start * width, change, j, width)
            _combine_hidden(g, stride, most, pool, outer, most * width, change, j, width)
        num = last - first
        combine_into(g, 0, 1, stride, num, hidden, targets, 0, high - low, output, width)
        combine_into(g, most, 1, stride, num, hidden, targets, most, stride, output, width)
        for c in range(first, last):
            add_row(change, (c - first) * width, input, np.int64(tokens[c]) * width, width)


@kernel
def _skipgram_loss(scores, stride, most, pool, weight, left, right, first, last, low, stats):
    """Add the mean-able loss of one block: each pair costs its own and its share of the noise."""
    for c in range(first, last):
        row = (c - first) * stride
        num_pairs = right[c] - left[c] - 1
        loss = 0.0
        for q in range(left[c], right[c]):
            if q != c:
                loss += softplus(-scores[row + q - low])
        for k in range(row + most, row + most + pool):
            loss += weight * num_pairs * softplus(scores[k])
        stats[0] += loss
        stats[1] += num_pairs


@kernel
def _context_sum(tokens, c, low, high, input, hidden, to, scale, width):
    """hidden row at `to` = scale · sum of the input rows of the window of centre c."""
    factor = simd.spread(scale)
    nothing = simd.spread(_ZERO)
    for d in range(0, width, LANES):
        row = nothing
        for q in range(low, c):
            row = simd.add(row, simd.load(input, np.int64(tokens[q]) * width + d))
        for q in range(c + 1, high):
            row = simd.add(row, simd.load(input, np.int64(tokens[q]) * width + d))
        simd.store(hidden, to + d, simd.multiply_add(nothing, row, factor))


@kernel
def cbow_negative(
    tokens, left, right, num_tokens, noise, input, output, width, window,
    pool, block, weight, rate, is_mean, loss_every, stats,
):  # fmt: skip
    """The joined window predicts its centre; noise words weigh negatives ÷ pool.

    Windows of neighboring centres share most of their words, so a step for several at once
    overshoots (it cost 3 points of analogies): each centre is a step of its own here, and only
    the pool of noise words is shared by `block` of them.
    """
    stride = pool + 4  # the pool, then the centre, then nothing
    hidden = np.zeros(width, np.float32)
    change = np.zeros(width, np.float32)
    rows = np.zeros(stride, np.int64)
    g = np.zeros(stride, np.float32)
    for c in range(num_tokens):
        if c % block == 0:
            draw = c // block * pool
            for k in range(pool):
                rows[k] = np.int64(noise[draw + k]) * width
                if draw + pool + k < noise.shape[0]:
                    prefetch_row(output, np.int64(noise[draw + pool + k]) * width, width)
        if c + window + 4 < num_tokens:
            prefetch_row(input, np.int64(tokens[c + window + 4]) * width, width)
            prefetch_row(output, np.int64(tokens[c + 4]) * width, width)
        num = right[c] - left[c] - 1
        if num == 0:
            continue
        scale = _ONE / np.float32(num) if is_mean else _ONE
        _context_sum(tokens, c, left[c], right[c], input, hidden, 0, scale, width)
        rows[pool] = np.int64(tokens[c]) * width
        for k in range(0, pool, 4):
            dot_four(hidden, 0, output, rows, k, width, g)
        g[pool] = dot(hidden, 0, output, rows[pool], width)
        stats[2] += 1
        if c % loss_every == 0:
            stats[0] += softplus(-g[pool])
            stats[1] += 1
            for k in range(pool):
                stats[0] += weight * softplus(g[k])
        for k in range(pool):
            g[k] = -rate * weight * sigmoid(g[k])
        g[pool] = rate - rate * sigmoid(g[pool])
        sum_scaled(g, output, rows, pool + 1, change, width)
        for k in range(pool + 1):
            add_scaled(g[k], hidden, 0, output, rows[k], width)
        for q in range(left[c], right[c]):
            if q != c:
                add_row(change, 0, input, np.int64(tokens[q]) * width, width)


@kernel
def skipgram_hierarchical(
    tokens, left, right, num_tokens, starts, nodes, codes, longest,
    input, output, width, window, rate, loss_every, stats,
):  # fmt: skip
    """Every word of a window walks the tree to the centre (as in the released C program)."""
    most = (2 * window + 3) // 4 * 4
    stride = (longest + 3) // 4 * 4
    hidden = np.zeros(most * width, np.float32)
    change = np.empty(most * width, np.float32)
    path = np.zeros(stride * width, np.float32)
    targets = np.zeros(stride, np.int64)
    g = np.empty(most * stride, np.float32)
    for c in range(num_tokens):
        num_rows = right[c] - left[c] - 1
        start = starts[tokens[c]]
        length = starts[tokens[c] + 1] - start
        if num_rows == 0 or length == 0:
            continue
        j = 0
        for q in range(left[c], right[c]):
            if q != c:
                copy_row(input, np.int64(tokens[q]) * width, hidden, j * width, width)
                j += 1
        for k in range(length):
            targets[k] = np.int64(nodes[start + k]) * width
            copy_row(output, targets[k], path, k * width, width)
        change[: (num_rows + 3) // 4 * 4 * width] = _ZERO
        for j in range(0, num_rows, 4):
            for k in range(0, length, 4):
                score_tile(hidden, j * width, path, k * width, width, g, j * stride + k, stride)
        has_loss = c % loss_every == 0
        stats[2] += num_rows
        for j in range((num_rows + 3) // 4 * 4):
            for k in range(length):
                at = j * stride + k
                label = _ONE - np.float32(codes[start + k])
                if has_loss and j < num_rows:
                    stats[0] += softplus(g[at] if label == _ZERO else -g[at])
                g[at] = rate * (label - sigmoid(g[at])) if j < num_rows else _ZERO
        if has_loss:
            stats[1] += num_rows
        for j in range(0, num_rows, 4):
            _combine_hidden(g, stride, 0, length, path, 0, change, j, width)
        combine_into(g, 0, 1, stride, num_rows, hidden, targets, 0, length, output, width)
        j = 0
        for q in range(left[c], right[c]):
            if q != c:
                add_row(change, j * width, input, np.int64(tokens[q]) * width, width)
                j += 1


@kernel
def cbow_hierarchical(
    tokens, left, right, num_tokens, starts, nodes, codes,
    input, output, width, rate, is_mean, loss_every, stats,
):  # fmt: skip
    """The joined window walks the tree to its centre."""
    hidden = np.zeros(width, np.float32)
    change = np.zeros(width, np.float32)
    for c in range(num_tokens):
        num = right[c] - left[c] - 1
        if num == 0:
            continue
        scale = _ONE / np.float32(num) if is_mean else _ONE
        _context_sum(tokens, c, left[c], right[c], input, hidden, 0, scale, width)
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
        for q in range(left[c], right[c]):
            if q != c:
                add_row(change, 0, input, np.int64(tokens[q]) * width, width)


@kernel
def full_softmax(
    tokens, left, right, num_tokens, input, output, width,
    rate, is_skipgram, is_mean, loss_every, stats,
):  # fmt: skip
    """The definition itself: a probability for every word of the vocabulary, for each centre."""
    num_words = output.shape[0] // width
    hidden = np.zeros(width, np.float32)
    change = np.zeros(width, np.float32)
    p = np.empty(num_words, np.float32)
    for c in range(num_tokens):
        num = right[c] - left[c] - 1
        if num == 0:
            continue
        if is_skipgram:
            copy_row(input, np.int64(tokens[c]) * width, hidden, 0, width)
        else:
            scale = _ONE / np.float32(num) if is_mean else _ONE
            _context_sum(tokens, c, left[c], right[c], input, hidden, 0, scale, width)
        highest = np.float32(-np.inf)
        for w in range(num_words):
            p[w] = dot(hidden, 0, output, w * width, width)
            highest = max(highest, p[w])
        norm = 0.0
        for w in range(num_words):
            norm += np.exp(p[w] - highest)
        log_norm = highest + np.log(norm)
        num_targets = num if is_skipgram else 1
        stats[2] += num_targets
        if c % loss_every == 0:
            stats[1] += num_targets
            for q in range(left[c], right[c]):
                if (q != c) == is_skipgram:
                    stats[0] += log_norm - p[tokens[q]]
        change[:] = _ZERO
        for w in range(num_words):
            p[w] = -rate * np.float32(num_targets) * np.exp(p[w] - np.float32(log_norm))
        for q in range(left[c], right[c]):
            if (q != c) == is_skipgram:
                p[tokens[q]] += rate
        for w in range(num_words):
            add_scaled(p[w], output, w * width, change, 0, width)
            add_scaled(p[w], hidden, 0, output, w * width, width)
        if is_skipgram:
            add_row(change, 0, input, np.int64(tokens[c]) * width, width)
        else:
            for q in range(left[c], right[c]):
                if q != c:
                    add_row(change, 0, input, np.int64(tokens[q]) * width, width)
