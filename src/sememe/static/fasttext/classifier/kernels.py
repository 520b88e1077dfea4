"""Training kernels of the classifier: lines of rows in, changed matrices out (Joulin et al. 2016).

A line's hidden vector is the mean of its input rows; a linear classifier on it gives the labels.
Matrices are flat float32 with rows of `width` floats (see static.rows). With several workers each
holds its own copy of the rows that nearly every line changes, the labels' and the most frequent
words', and adds its changes to the shared ones every few lines: two cores that write to the same
cache lines would otherwise wait for each other most of the time.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.randomness import fast_number
from sememe.static import simd
from sememe.static.rows import add_row, add_scaled, copy_row, dot, prefetch_row, sigmoid, softplus

LANES = simd.LANES
SOFTMAX, HIERARCHICAL, OVA, NEGATIVE = 0, 1, 2, 3
_ZERO, _ONE = np.float32(0), np.float32(1)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel
def sum_rows(source, rows, num, target, width):
    """target = sum of the source rows at the offsets rows[:num]."""
    d = 0
    while d + 4 * LANES <= width:
        t0 = t1 = t2 = t3 = simd.spread(_ZERO)
        for k in range(num):
            i = rows[k] + d
            t0 = simd.add(t0, simd.load(source, i))
            t1 = simd.add(t1, simd.load(source, i + LANES))
            t2 = simd.add(t2, simd.load(source, i + 2 * LANES))
            t3 = simd.add(t3, simd.load(source, i + 3 * LANES))
        simd.store(target, d, t0)
        simd.store(target, d + LANES, t1)
        simd.store(target, d + 2 * LANES, t2)
        simd.store(target, d + 3 * LANES, t3)
        d += 4 * LANES
    while d + 2 * LANES <= width:
        t0 = t1 = simd.spread(_ZERO)
        for k in range(num):
            t0 = simd.add(t0, simd.load(source, rows[k] + d))
            t1 = simd.add(t1, simd.load(source, rows[k] + d + LANES))
        simd.store(target, d, t0)
        simd.store(target, d + LANES, t1)
        d += 2 * LANES
    if d < width:
        t0 = simd.spread(_ZERO)
        for k in range(num):
            t0 = simd.add(t0, simd.load(source, rows[k] + d))
        simd.store(target, d, t0)


@kernel
def _scale(factor, row, width):
    for d in range(width):
        row[d] *= factor


@kernel
def find_rows(line, ends, items, type_ends, type_rows, num_words, first_own, num_hot, width, rows):
    """Write the offsets of a line's input rows; returns how many there are.

    Items below the number of types stand for all rows of the type. Rows below `num_hot` are
    those of this worker, which start at row `first_own`.
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
    """Learn one decision, whether an output row fits the line; returns its loss."""
    score = dot(hidden, 0, output, row, width)
    step = rate * ((_ONE if is_true else _ZERO) - sigmoid(score))
    add_scaled(step, output, row, gradient, 0, width)
    add_scaled(step, hidden, 0, output, row, width)
    return softplus(-score) if is_true else softplus(score)


@kernel
def _softmax(target, num_labels, first, hidden, output, gradient, scores, rate, width):
    """Learn that `target` is the one label of the line; returns the loss."""
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
    num_negatives, key, start_rate, end_rate, worker, num_rows, num_hot, merge_every, space,
    rows, stats,
):  # fmt: skip
    """Train on the lines first to last, with a rate that moves from start to end.

    The rows of worker w's own copies start at row num_rows + w · num_hot of `input` and at row
    (w + 1) · num_outputs of `output`; with merge_every 0 the shared rows are changed directly.
    `space` holds at least hidden, gradient, scores and the rows as they were at the last merge.
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
        sum_rows(input, now, num, hidden, width)
        _scale(_ONE / np.float32(num), hidden, width)
        for d in range(width):
            gradient[d] = _ZERO
        label_start = label_ends[line - 1] if line > 0 else 0
        num_true = label_ends[line] - label_start
        target = np.int64(labels[label_start])
        if num_true > 1 and loss_kind != OVA:
            draw = fast_number(key, line) % np.uint64(num_true)
            target = np.int64(labels[label_start + np.int64(draw)])
        loss = _ZERO
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
                row = out + label * width
                loss += _decide(is_true, row, hidden, output, gradient, rate, width)
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
            add_row(gradient, 0, input, now[k], width)
        stats[0] += loss
        stats[1] += 1
        stats[2] += 1
        if is_apart and ((line + 1 - first) % merge_every == 0 or line + 1 == last):
            _merge(input, input, before_hot, first_own * width, num_hot, width)
            _merge(output, output, before_out, out, num_outputs, width)


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
