"""word2vec's updates, compiled. `reference.py` does the same in plain NumPy.

A kernel takes subsampled words with the bounds of their windows (examples.windows), noise words,
both matrices (flat float32, rows of `width` floats) and a learning rate, and updates the matrices.
The words from `head` to `tail` are its centres; `head` is the first of a block. Gradients of one
block are computed before any of its updates: a mini-batch step of plain SGD.

Up to BLOCK neighboring centres share one pool of noise words (training.pool_size sets its size): a
noise row is fetched once per block, and its dot product with a word is computed once for all pairs
of the word there. The noise words of a pair weigh negatives ÷ pool each, so that the expected loss
is that of the original program.

With hierarchical softmax, the path of a word through the tree is nodes[starts[word]:starts[word +
1]], rows of `output` from the root down, with the branches `codes`; `longest` is the length of the
longest path.

`stats` collects [loss, pairs in it, all pairs]; the loss is computed for every `loss_every`-th
block.
"""

import numpy as np

from sememe.machine import kernel
from sememe.models.static import simd
from sememe.models.static.row_kernels import (
    add_row,
    add_scaled,
    combine_into,
    copy_row,
    dot,
    exchange,
    exchange_four,
    prefetch_row,
    sigmoid,
    softplus,
    sum_scaled,
)
from sememe.models.static.tile_kernels import (
    MOST_ROWS,
    dot_eight,
    exchange_pairs,
    score_pairs,
    score_tile,
    sum_rows,
)

BLOCK = 16
_ZERO = np.float32(0)
_ONE = np.float32(1)


@kernel
def span(left, right, first, last):
    """The outermost bounds of the windows of centres first to last."""
    low = left[first]
    high = right[first]
    for c in range(first + 1, last):
        low = min(low, left[c])
        high = max(high, right[c])
    return low, high


@kernel
def skipgram_negative(
    tokens, inputs, left, right, head, tail, noise, input, output, width, window,
    pool, block, weight, rate, loss_every, stats,
):  # fmt: skip
    """Every word of a window predicts its centre, as in the released C program.

    A block is a matrix: its rows are the words of all windows, its columns the centres and the
    pool. A word's score with a noise word counts for all of the word's pairs in the block. `block`
    is the number of centres, a multiple of 4 and at most BLOCK.
    """
    most = (BLOCK + 2 * window + 3) // 4 * 4
    stride = BLOCK + pool
    hidden = np.zeros(most * width, np.float32)
    outer = np.zeros(stride * width, np.float32)
    sources = np.zeros(most, np.int64)  # where the rows of `hidden` and `outer` come from
    targets = np.zeros(stride, np.int64)
    g = np.zeros(most * stride, np.float32)
    is_pair = np.empty(most * BLOCK, np.float32)
    for first in range(head, tail, block):
        last = min(first + block, tail)
        low, high = span(left, right, first, last)
        num_rows = high - low
        draw = first // block * pool
        is_pair[:] = _ZERO
        for c in range(first, last):
            targets[c - first] = np.int64(tokens[c]) * width
            copy_row(output, targets[c - first], outer, (c - first) * width, width)
            for q in range(left[c], right[c]):
                is_pair[(q - low) * BLOCK + c - first] = _ONE
            is_pair[(c - low) * BLOCK + c - first] = _ZERO  # a word does not predict itself
            if c + block < tail:
                prefetch_row(output, np.int64(tokens[c + block]) * width, width)
            if c + block + window < tail:
                prefetch_row(input, np.int64(inputs[c + block + window]) * width, width)
        for k in range(pool):
            targets[BLOCK + k] = np.int64(noise[draw + k]) * width
            copy_row(output, targets[BLOCK + k], outer, (BLOCK + k) * width, width)
        for q in range(num_rows):
            sources[q] = np.int64(inputs[low + q]) * width
            copy_row(input, sources[q], hidden, q * width, width)
        for k in range(0, stride, 4):
            # Prefetching all rows of the next block at once would fill the cache's queue.
            for ahead in range(draw + pool + k, min(draw + pool + k + 4, draw + 2 * pool)):
                if ahead < noise.shape[0]:
                    prefetch_row(output, np.int64(noise[ahead]) * width, width)
            start, end = 0, num_rows
            if k < BLOCK:  # a few centres only touch the rows of their windows
                if first + k >= last:
                    continue
                start, end = span(left, right, first + k, min(first + k + 4, last))
                start, end = (start - low) // 4 * 4, end - low
            for j in range(start, end, 4):
                score_tile(hidden, j * width, outer, k * width, width, g, j * stride + k, stride)
        if first // block % loss_every == 0:
            _skipgram_loss(g, is_pair, num_rows, stride, weight, stats)
        for k in range(num_rows * stride):
            g[k] = sigmoid(g[k])
        for j in range(num_rows):
            row = j * stride
            num_pairs = _ZERO
            for c in range(BLOCK):
                num_pairs += is_pair[j * BLOCK + c]
            for c in range(BLOCK):
                g[row + c] = rate * is_pair[j * BLOCK + c] * (_ONE - g[row + c])
            factor = -rate * weight * num_pairs
            for k in range(row + BLOCK, row + stride):
                g[k] *= factor
            stats[2] += num_pairs
        for c in range(first, last, 4):
            stop = min(c + 4, last)
            start, end = span(left, right, c, stop)
            at = (start - low) * stride + c - first
            combine_into(
                g, at, 1, stride, end - start, hidden, (start - low) * width,
                output, targets, c - first, stop - first, width,
            )  # fmt: skip
        combine_into(
            g, BLOCK, 1, stride, num_rows, hidden, 0, output, targets, BLOCK, stride, width
        )
        for j in range(0, num_rows, 4):
            stop = min(j + 4, num_rows)
            start = max(0, low + j - window - first)
            end = min(last, low + stop + window) - first
            combine_into(
                g, j * stride + start, stride, 1, end - start, outer, start * width,
                input, sources, j, stop, width,
            )  # fmt: skip
            combine_into(
                g, j * stride + BLOCK, stride, 1, pool, outer, BLOCK * width,
                input, sources, j, stop, width,
            )  # fmt: skip


@kernel
def _skipgram_loss(scores, is_pair, num_rows, stride, weight, stats):
    """Add the loss of one block: each pair's own part, and its part of the noise."""
    for j in range(num_rows):
        num_pairs = 0.0
        loss = 0.0
        for c in range(BLOCK):
            if is_pair[j * BLOCK + c] > _ZERO:
                num_pairs += 1.0
                loss += softplus(-scores[j * stride + c])
        for k in range(j * stride + BLOCK, (j + 1) * stride):
            loss += weight * num_pairs * softplus(scores[k])
        stats[0] += loss
        stats[1] += num_pairs


@kernel
def window_rows(inputs, c, low, high, width, rows):
    """Fill rows with the offsets of a window's words, without centre c; return their number."""
    num = 0
    for q in range(low, high):
        if q != c:
            rows[num] = np.int64(inputs[q]) * width
            num += 1
    return num


@kernel
def _has_twins(rows, num):
    """Whether two of the first `num` rows are equal."""
    for k in range(1, num):
        for other in range(k):
            if rows[k] == rows[other]:
                return True
    return False


@kernel
def cbow_negative(
    tokens, inputs, left, right, head, tail, noise, input, output, width, window,
    pool, block, weight, rate, is_mean, loss_every, stats,
):  # fmt: skip
    """The joined window predicts its centre; noise words weigh negatives ÷ pool.

    Windows of neighboring centres share most of their words, so a step for several at once
    overshoots (it cost 1.5 points of analogies): each centre is its own step here, and only the
    pool of noise words, a multiple of 8, is shared by `block` of them.
    """
    hidden = np.zeros(width, np.float32)
    change = np.zeros(width, np.float32)
    context = np.zeros(2 * window, np.int64)
    rows = np.zeros(pool + 1, np.int64)  # the pool, then the centre
    g = np.zeros(pool + 9, np.float32)
    for c in range(head, tail):
        if c % block == 0:
            draw = c // block * pool
            for k in range(pool):
                rows[k] = np.int64(noise[draw + k]) * width
                if draw + pool + k < noise.shape[0]:
                    prefetch_row(output, np.int64(noise[draw + pool + k]) * width, width)
            has_twins = _has_twins(rows, pool)
        if c + window + 4 < tail:
            prefetch_row(input, np.int64(inputs[c + window + 4]) * width, width)
            prefetch_row(output, np.int64(tokens[c + 4]) * width, width)
        num = right[c] - left[c] - 1
        if num == 0:
            continue
        window_rows(inputs, c, left[c], right[c], width, context)
        sum_rows(_ONE / np.float32(num) if is_mean else _ONE, input, context, num, hidden, width)
        rows[pool] = np.int64(tokens[c]) * width
        is_noise = has_twins
        for k in range(0, pool, 8):
            dot_eight(hidden, 0, output, rows, k, width, g)
            for n in range(k, k + 8):
                is_noise |= rows[n] == rows[pool]
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
        if is_noise:  # a row that occurs twice must be read before it is updated
            sum_scaled(g, output, rows, pool + 1, change, width)
            for k in range(pool + 1):
                add_scaled(g[k], hidden, 0, output, rows[k], width)
        else:
            exchange(g[pool], hidden, output, rows[pool], change, width)
            for k in range(0, pool, 4):
                exchange_four(g, k, hidden, output, rows, change, width)
        for n in range(num):
            add_row(change, 0, input, context[n], width)


@kernel
def full_softmax(
    tokens, inputs, left, right, head, tail, input, output, width, window,
    rate, is_skipgram, is_mean, loss_every, stats,
):  # fmt: skip
    """The exact definition: softmax over the full vocabulary for each centre."""
    num_words = output.shape[0] // width
    hidden = np.zeros(width, np.float32)
    context = np.zeros(2 * window, np.int64)
    change = np.zeros(width, np.float32)
    p = np.empty(num_words, np.float32)
    for c in range(head, tail):
        num = right[c] - left[c] - 1
        if num == 0:
            continue
        if is_skipgram:
            copy_row(input, np.int64(inputs[c]) * width, hidden, 0, width)
        else:
            window_rows(inputs, c, left[c], right[c], width, context)
            scale = _ONE / np.float32(num) if is_mean else _ONE
            sum_rows(scale, input, context, num, hidden, width)
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
            add_row(change, 0, input, np.int64(inputs[c]) * width, width)
        else:
            for n in range(num):
                add_row(change, 0, input, context[n], width)


OWN_NODES, MERGE_EVERY = 127, 512  # rows, centres
_SWEEP = 32


@kernel
def _merge(share, own, output, start, size):
    """Move the shared rows from `start` on towards a worker's copy by `share`; refresh the copy."""
    f = simd.spread(share)
    for d in range(0, size, simd.LANES):
        row = simd.load(output, start + d)
        row = simd.multiply_add(row, f, simd.subtract(simd.load(own, d), row))
        simd.store(output, start + d, row)
        simd.store(own, d, row)


@kernel
def _find_path(word, starts, nodes, first_own, width, targets):
    """Fill targets with the offsets of the rows on a word's path, and one more valid one.

    Returns (their number, how many of them, from the root on, are a worker's copies).
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
    """Turn the scores of `num` words, node by node, into the factors of their update."""
    for k in range(length):
        simd.store(labels, k * num, simd.spread(_ONE - np.float32(codes[start + k])))
    stats[2] += num
    if has_loss:
        stats[1] += num
        for k in range(length * num):
            stats[0] += softplus(g[k] if labels[k] == _ZERO else -g[k])
    # Unused entries are included: LLVM vectorises only full runs.
    for k in range((length * num + _SWEEP - 1) // _SWEEP * _SWEEP):
        g[k] = rate * (labels[k] - sigmoid(g[k]))


@kernel
def skipgram_hierarchical(
    tokens, inputs, left, right, head, tail, starts, nodes, codes, longest,
    input, output, width, window, rate, num_workers, loss_every, stats,
):  # fmt: skip
    """Every word of a window predicts the centre's path (as in the released C program).

    MOST_ROWS words of a window at a time, usually all of it, are one step. With several workers,
    each has its own copy of the top of the tree (the last rows) and merges it occasionally: rows
    written by all of them in every step would bounce between the cores' caches.
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
            # The upper nodes are in the cache anyway: every path contains them.
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
    """The joined window predicts its centre's path."""
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
