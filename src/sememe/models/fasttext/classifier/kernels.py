"""Kernels of the classifier (Joulin et al. 2016): training, then predicting the most likely labels.

A line's hidden vector is the mean of its input rows; a linear classifier on it gives the labels.
Matrices are flat float32 with rows of `width` floats (see static.row_kernels). With several
workers, each has its own copy of the rows that nearly every line changes, the labels' and the most
frequent words', and adds its changes to the shared ones every few lines: two cores that write to
the same cache lines would otherwise mostly wait for each other.

Probabilities are those of Facebook's program, with its rounding: softmax is 1e-5 too high,
one-vs-all comes from a table of 512 steps. B lines, L labels, K positions.
"""

import numpy as np

from sememe.machine import kernel
from sememe.models.static import simd
from sememe.models.static.row_kernels import (
    add_row,
    add_scaled,
    copy_row,
    dot,
    prefetch_row,
    sigmoid,
    softplus,
)
from sememe.models.static.tile_kernels import sum_rows
from sememe.randomness import fast_number

LANES = simd.LANES
SOFTMAX, HIERARCHICAL, OVA, NEGATIVE = 0, 1, 2, 3
_ZERO, _ONE = np.float32(0), np.float32(1)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel
def _scale(factor, row, width):
    for d in range(width):
        row[d] *= factor


@kernel
def find_rows(line, ends, items, type_ends, type_rows, num_words, first_own, num_hot, width, rows):
    """Write the offsets of a line's input rows; return their number.

    Items below the number of types stand for all rows of the type. Rows below `num_hot` are this
    worker's copies, which start at row `first_own`.
    """
    num_types = len(type_ends)
    shift = num_words - num_types if num_types > 0 else 0
    num = 0
    for index in range(ends[line - 1] if line > 0 else 0, ends[line]):
        item = np.int64(items[index])
        if item < num_types:
            for place in range(type_ends[item - 1] if item > 0 else 0, type_ends[item]):
                row = np.int64(type_rows[place])
                if row < num_hot:
                    row += first_own
                rows[num] = row * width
                num += 1
        else:
            row = item + shift
            if row < num_hot:
                row += first_own
            rows[num] = row * width
            num += 1
    return num


@kernel
def _decide(is_true, row, hidden, output, gradient, rate, width):
    """Train one binary decision, whether an output row fits the line; return its loss."""
    score = dot(hidden, 0, output, row, width)
    step = rate * ((_ONE if is_true else _ZERO) - sigmoid(score))
    add_scaled(step, output, row, gradient, 0, width)
    add_scaled(step, hidden, 0, output, row, width)
    return softplus(-score) if is_true else softplus(score)


@kernel
def _softmax(target, num_labels, first, hidden, output, gradient, scores, rate, width):
    """Train `target` as the one label of the line; return the loss."""
    highest = np.float32(-np.inf)
    for label in range(num_labels):
        scores[label] = dot(hidden, 0, output, first + label * width, width)
        highest = max(highest, scores[label])
    total = _ZERO
    for label in range(num_labels):
        scores[label] = np.exp(scores[label] - highest)
        total += scores[label]
    chance = scores[target] / total
    for label in range(num_labels):
        step = rate * ((_ONE if label == target else _ZERO) - scores[label] / total)
        add_scaled(step, output, first + label * width, gradient, 0, width)
        add_scaled(step, hidden, 0, output, first + label * width, width)
    return -np.log(max(chance, np.float32(1e-30)))


@kernel
def _draw(limits, alias, key, index):
    """A label of the noise distribution (see examples.noise)."""
    z = fast_number(key, index)
    column = np.int64(((z >> _HALF) * np.uint64(len(limits))) >> _HALF)
    return column if (z & _LOW) < limits[column] else np.int64(alias[column])


@kernel
def _copy_rows(source, start, target, to, num_rows, width):
    for row in range(num_rows):
        copy_row(source, start + row * width, target, to + row * width, width)


@kernel
def _merge(shared, own, before, own_start, num_rows, width):
    """Add a worker's changes since `before` to the shared rows and take over those of others."""
    for at in range(0, num_rows * width, LANES):
        mine = simd.load(own, own_start + at)
        change = simd.multiply_add(mine, simd.spread(-_ONE), simd.load(before, at))
        now = simd.add(simd.load(shared, at), change)
        simd.store(shared, at, now)
        simd.store(own, own_start + at, now)
        simd.store(before, at, now)


@kernel
def train_lines(
    loss_kind, first, last, ends, items, type_ends, type_rows, num_words, label_ends, labels,
    input, output, width, num_outputs, tree_starts, tree_nodes, tree_codes, limits, alias,
    num_negatives, label_weights, key, start_rate, end_rate, worker, num_rows, num_hot,
    merge_every, word_rates, space, rows, stats,
):  # fmt: skip
    """Train on the lines first to last, with a rate that moves from start to end.

    The rows of worker w's copies start at row num_rows + w · num_hot of `input` and at row (w + 1)
    · num_outputs of `output`; with merge_every 0 the shared rows are updated directly. The rate of
    a line is multiplied by the weight of its label, in one-vs-all that of each true label by its
    own; the change of input row r by word_rates[r], unless that is empty. `space` holds at least
    hidden, gradient, scores and the rows at the time of the last merge.
    """
    hidden, gradient = space[:width], space[width : 2 * width]
    scores = space[2 * width : 2 * width + num_outputs]
    after = 2 * width + (num_outputs + LANES - 1) // LANES * LANES
    before_hot = space[after : after + num_hot * width]
    before_out = space[after + num_hot * width :]
    is_apart = merge_every > 0
    first_own = num_rows + worker * num_hot
    out = (worker + 1) * num_outputs * width if is_apart else 0
    if is_apart:
        _copy_rows(input, 0, input, first_own * width, num_hot, width)
        _copy_rows(input, 0, before_hot, 0, num_hot, width)
        _copy_rows(output, 0, output, out, num_outputs, width)
        _copy_rows(output, 0, before_out, 0, num_outputs, width)
    hot = num_hot if is_apart else 0
    half = len(rows) // 2
    now, later = rows[:half], rows[half:]
    num_later = find_rows(
        first, ends, items, type_ends, type_rows, num_words, first_own, hot, width, later
    )
    for line in range(first, last):
        now, later = later, now
        num = num_later
        if line + 1 < last:
            num_later = find_rows(
                line + 1, ends, items, type_ends, type_rows, num_words, first_own, hot,
                width, later,
            )  # fmt: skip
            for k in range(num_later):
                prefetch_row(input, later[k], width)
        if num == 0:
            continue
        done = np.float32(line - first) / np.float32(last - first)
        rate = start_rate + (end_rate - start_rate) * done
        sum_rows(_ONE / np.float32(num), input, now, num, hidden, width)
        for d in range(width):
            gradient[d] = _ZERO
        label_start = label_ends[line - 1] if line > 0 else 0
        num_true = label_ends[line] - label_start
        target = np.int64(labels[label_start])
        if num_true > 1 and loss_kind != OVA:
            draw = fast_number(key, line) % np.uint64(num_true)
            target = np.int64(labels[label_start + np.int64(draw)])
        loss = _ZERO
        weight = label_weights[target] if loss_kind != OVA else _ONE
        rate *= weight
        if loss_kind == SOFTMAX:
            loss = _softmax(target, num_outputs, out, hidden, output, gradient, scores, rate, width)
        elif loss_kind == HIERARCHICAL:
            for place in range(tree_starts[target], tree_starts[target + 1]):
                row = out + tree_nodes[place] * width
                loss += _decide(tree_codes[place] == 1, row, hidden, output, gradient, rate, width)
        elif loss_kind == OVA:
            for label in range(num_outputs):
                is_true = False
                for place in range(label_start, label_ends[line]):
                    is_true = is_true or labels[place] == label
                row, own = out + label * width, label_weights[label] if is_true else _ONE
                loss += own * _decide(is_true, row, hidden, output, gradient, rate * own, width)
        else:
            row = out + target * width
            loss += _decide(True, row, hidden, output, gradient, rate, width)
            index, num_drawn = np.int64(line) << 20, 0
            while num_drawn < num_negatives:
                index += 1
                noise = _draw(limits, alias, key, index)
                if noise != target:
                    num_drawn += 1
                    row = out + noise * width
                    loss += _decide(False, row, hidden, output, gradient, rate, width)
        _scale(_ONE / np.float32(num), gradient, width)
        for k in range(num):
            if len(word_rates) > 0:
                row = now[k] // width
                row -= first_own if row >= num_rows else 0
                add_scaled(word_rates[row], gradient, 0, input, now[k], width)
            else:
                add_row(gradient, 0, input, now[k], width)
        stats[0] += weight * loss
        stats[1] += 1
        stats[2] += 1
        if is_apart and ((line + 1 - first) % merge_every == 0 or line + 1 == last):
            _merge(input, input, before_hot, first_own * width, num_hot, width)
            _merge(output, output, before_out, out, num_outputs, width)


@kernel
def count_lines(ends, items, type_ends, type_rows, num_words, last_line, counts):
    """Count the lines that each input row occurs in; `last_line` is -1 everywhere."""
    num_types = len(type_ends)
    shift = num_words - num_types if num_types > 0 else 0
    start = 0
    for line in range(len(ends)):
        for index in range(start, ends[line]):
            item = np.int64(items[index])
            if item < num_types:
                for place in range(type_ends[item - 1] if item > 0 else 0, type_ends[item]):
                    row = np.int64(type_rows[place])
                    if last_line[row] != line:
                        last_line[row] = line
                        counts[row] += 1
            else:
                row = item + shift
                if last_line[row] != line:
                    last_line[row] = line
                    counts[row] += 1
        start = ends[line]


@kernel
def start_rows(matrix, ids, dim, reach, key):
    """Fill row r with the ids[r]-th run of `dim` numbers of the stream, from [-reach, reach)."""
    scale = reach / np.float32(8388608.0)
    for row in range(len(ids)):
        for d in range(dim):
            bits = fast_number(key, np.int64(ids[row]) * dim + d) >> np.uint64(40)
            matrix[row, d] = scale * np.float32(bits) - reach


@kernel
def shuffle(order, key):
    """Put the numbers of `order` in random order (Fisher and Yates)."""
    for index in range(len(order) - 1, 0, -1):
        other = np.int64(fast_number(key, index) % np.uint64(index + 1))
        order[index], order[other] = order[other], order[index]


@kernel
def gather_lines(order, first, last, ends, items, new_ends, new_items):
    """Copy the lines order[first:last] to their places among new_items, which new_ends gives."""
    for line in range(first, last):
        old = order[line]
        source = ends[old - 1] if old > 0 else 0
        target = new_ends[line - 1] if line > 0 else 0
        for offset in range(ends[old] - source):
            new_items[target + offset] = items[source + offset]


SIGMOID_SIZE, SIGMOID_REACH = 512, 8


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
        sum_rows(_ONE, matrix, rows, num, hidden, whole)
        hidden[whole:] = 0
        for k in range(num):
            for d in range(whole, dim):
                hidden[d] += matrix[rows[k] + d]
        if ends[line] > start:
            _scale(np.float32(1.0 / (ends[line] - start)), hidden, dim)


@kernel
def mean_codes(items, ends, first, last, codes, centroids, part_size, last_size, norms, hidden_BD):
    """Average the quantised rows of each line; `norms` is empty where lengths are not kept.

    A row after the last one is zero.
    """
    num_parts = codes.shape[1]
    for line in range(first, last):
        hidden = hidden_BD[line - first]
        hidden[:] = 0
        start = ends[line - 1] if line > 0 else 0
        for index in range(start, ends[line]):
            row = items[index]
            if row >= len(codes):
                continue
            norm = norms[row] if len(norms) > 0 else _ONE
            for part in range(num_parts):
                size = last_size if part == num_parts - 1 else part_size
                at = part * 256 * part_size + np.int64(codes[row, part]) * size
                for d in range(size):
                    hidden[part * part_size + d] += norm * centroids[at + d]
        if ends[line] > start:
            _scale(np.float32(1.0 / (ends[line] - start)), hidden, hidden.shape[0])


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
    """Put an entry at `hole`, or above it if the entry there is larger."""
    while hole > 0 and scores[(hole - 1) // 2] > score:
        parent = (hole - 1) // 2
        scores[hole], labels[hole] = scores[parent], labels[parent]
        hole = parent
    scores[hole], labels[hole] = score, label


@kernel
def _pop(scores, labels, size):
    """Move the smallest of a heap of `size` entries after the others."""
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
    """Put a label among the k best so far, a heap; return their number.

    Follows the heap of the C++ library step by step, so that ties are broken as in Facebook's
    program.
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
    """Find the best leaves of the tree, depth first, pruning what cannot be among them."""
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
    """Write the most likely labels of each line, -1 after the last, and their probabilities.

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
