"""Kernels that predict labels: lines of rows in, the most likely labels of each line out.

Probabilities come out as Facebook's program gives them, with its roundings: those of softmax are
1e-5 too high, those of one-vs-all come from a table of 512 steps. B lines, L labels, K places.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.static.fasttext.classifier.kernels import HIERARCHICAL, LANES, SOFTMAX, sum_rows

SIGMOID_SIZE, SIGMOID_REACH = 512, 8
_ONE = np.float32(1)


@kernel
def mean_rows(items, ends, first, last, matrix, width, num_rows, rows, hidden_BD):
    """Average the rows of each line; a row from `num_rows` on is zero.

    `rows` has room for the offsets of the longest line's rows.
    """
    dim = hidden_BD.shape[1]
    whole = dim // LANES * LANES
    for line in range(first, last):
        hidden = hidden_BD[line - first]
        start = ends[line - 1] if line > 0 else 0
        num = 0
        for index in range(start, ends[line]):
            if items[index] < num_rows:
                rows[num] = np.int64(items[index]) * width
                num += 1
        sum_rows(matrix, rows, num, hidden, whole)
        hidden[whole:] = 0
        for k in range(num):
            for d in range(whole, dim):
                hidden[d] += matrix[rows[k] + d]
        if ends[line] > start:
            factor = np.float32(1.0 / (ends[line] - start))
            for d in range(dim):
                hidden[d] *= factor


@kernel
def mean_codes(items, ends, first, last, codes, centroids, part_size, last_size, norms, hidden_BD):
    """Average the quantised rows of each line; `norms` is empty where lengths are not kept."""
    num_parts = codes.shape[1]
    for line in range(first, last):
        hidden = hidden_BD[line - first]
        hidden[:] = 0
        start = ends[line - 1] if line > 0 else 0
        for index in range(start, ends[line]):
            row = items[index]
            norm = norms[row] if len(norms) > 0 else _ONE
            for part in range(num_parts):
                size = last_size if part == num_parts - 1 else part_size
                at = part * 256 * part_size + np.int64(codes[row, part]) * size
                for d in range(size):
                    hidden[part * part_size + d] += norm * centroids[at + d]
        if ends[line] > start:
            factor = np.float32(1.0 / (ends[line] - start))
            for d in range(hidden.shape[0]):
                hidden[d] *= factor


@kernel
def _dot(left, right, at):
    total = np.float32(0)
    for d in range(len(left)):
        total += left[d] * right[at + d]
    return total


@kernel
def _log(chance):
    return np.float32(np.log(np.float64(chance) + 1e-5))


@kernel
def table_sigmoid(score, table):
    """The logistic function as Facebook's program looks it up."""
    if score < -SIGMOID_REACH:
        return np.float32(0)
    if score > SIGMOID_REACH:
        return np.float32(1)
    return table[np.int64((score + SIGMOID_REACH) * SIGMOID_SIZE / SIGMOID_REACH / 2)]


@kernel
def _rise(scores, labels, hole, score, label):
    """Put an entry at `hole`, or above it where what stands there is larger."""
    while hole > 0 and scores[(hole - 1) // 2] > score:
        parent = (hole - 1) // 2
        scores[hole], labels[hole] = scores[parent], labels[parent]
        hole = parent
    scores[hole], labels[hole] = score, label


@kernel
def _pop(scores, labels, size):
    """Move the smallest of a heap of `size` entries behind the others."""
    last = size - 1
    score, label = scores[last], labels[last]
    scores[last], labels[last] = scores[0], labels[0]
    hole, child = 0, 0
    while child < (last - 1) // 2:
        child = 2 * (child + 1)
        if scores[child] > scores[child - 1]:
            child -= 1
        scores[hole], labels[hole] = scores[child], labels[child]
        hole = child
    if last % 2 == 0 and last > 0 and child == (last - 2) // 2:
        child = 2 * child + 1
        scores[hole], labels[hole] = scores[child], labels[child]
        hole = child
    _rise(scores, labels, hole, score, label)


@kernel
def _insert(score, label, num, k, scores, labels):
    """Put a label among the k best so far, a heap; returns how many there are.

    Step by step the heap of the C++ library, so that of equal labels the same ones are kept, in
    the same order, as by Facebook's program.
    """
    if num == k and score < scores[0]:
        return num
    _rise(scores, labels, num, score, label)
    if num == k:
        _pop(scores, labels, num + 1)
        return num
    return num + 1


@kernel
def _walk(hidden, output, children, threshold, stack, sums, k, scores, labels):
    """Find the best leaves of the tree, depth first, leaving out what cannot be among them."""
    dim, num_labels = len(hidden), len(children) // 2 + 1
    lowest = _log(threshold)
    num, depth = 0, 1
    stack[0], sums[0] = 2 * num_labels - 2, np.float32(0)
    while depth > 0:
        depth -= 1
        node, total = stack[depth], sums[depth]
        if total < lowest or (num == k and total < scores[0]):
            continue
        if node < num_labels:
            num = _insert(total, node, num, k, scores, labels)
            continue
        inner = node - num_labels
        score = _dot(hidden, output, inner * dim)
        chance = np.float32(1.0 / np.float64(_ONE + np.exp(-score)))
        # The left one is looked at first, so it goes onto the stack last.
        stack[depth], sums[depth] = children[2 * inner + 1], total + _log(chance)
        stack[depth + 1] = children[2 * inner]
        sums[depth + 1] = total + _log(_ONE - chance)
        depth += 2
    return num


@kernel
def best_labels(
    loss_kind, hidden_BD, sizes, output, num_labels, children, table, threshold, labels_BK,
    scores_BK,
):  # fmt: skip
    """Write the most likely labels of each line, -1 behind the last, and their probabilities.

    `sizes` are the numbers of rows of the lines: a line without any has no prediction.
    """
    dim = hidden_BD.shape[1]
    chances = np.empty(num_labels, np.float32)
    stack = np.empty(2 * num_labels + 2, np.int64)
    sums = np.empty(2 * num_labels + 2, np.float32)
    k = labels_BK.shape[1]
    labels, scores = np.empty(k + 1, np.int32), np.empty(k + 1, np.float32)
    for line in range(len(sizes)):
        labels_BK[line, :] = -1
        if sizes[line] == 0:
            continue
        hidden, num = hidden_BD[line], 0
        if loss_kind == HIERARCHICAL:
            num = _walk(hidden, output, children, threshold, stack, sums, k, scores, labels)
        else:
            highest = np.float32(-np.inf)
            for label in range(num_labels):
                chances[label] = _dot(hidden, output, label * dim)
                highest = max(highest, chances[label])
            total = np.float32(0)
            for label in range(num_labels):
                if loss_kind == SOFTMAX:
                    chances[label] = np.exp(chances[label] - highest)
                    total += chances[label]
                else:
                    chances[label] = table_sigmoid(chances[label], table)
            for label in range(num_labels):
                if loss_kind == SOFTMAX:
                    chances[label] /= total
                if chances[label] >= threshold:
                    num = _insert(_log(chances[label]), label, num, k, scores, labels)
        for size in range(num, 1, -1):
            _pop(scores, labels, size)
        for place in range(num):
            labels_BK[line, place], scores_BK[line, place] = labels[place], np.exp(scores[place])


@kernel
def tree_children(starts, nodes, codes, children):
    """Write the two children of each inner node: leaves below the number of labels."""
    num_labels = len(starts) - 1
    for label in range(num_labels):
        for place in range(starts[label], starts[label + 1]):
            is_last = place + 1 == starts[label + 1]
            child = label if is_last else num_labels + nodes[place + 1]
            children[2 * nodes[place] + codes[place]] = child
