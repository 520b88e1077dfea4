"""Tiles in Triton: each program walks through its own stretch of the text, tile by tile.

The updates are those of `reference.py`. Programs add them to the matrices without waiting for each
other, so that an update sees those of other stretches that have arrived until then: two runs differ
in the last digits, and as many centres are in flight as all programs have in their tiles.

CENTRES, AROUND and POOL are the words of a tile, of its windows and of its noise, padded to powers
of two (16 and more). Rows are read in slices of SLICE columns: a first pass over them gives the
scores, a second one the gradients; a single slice (IS_WHOLE) stays in registers. With SUBWORDS the
row of an input word is the mean of several (fastText): those of word w are
rows[starts[w]:starts[w + 1]], and each of them gets the full change.

Tile size and window are ordinary arguments, so another window needs no compilation.
"""

import triton
import triton.language as tl

# Rows are read at L2, where the additions of other programs arrive; L1 would keep old ones.
_FRESH: tl.constexpr = tl.constexpr(".cg")


@triton.jit
def _softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def _places(words, columns, width):
    return words.to(tl.int64)[:, None] * width + columns[None, :]


@triton.jit
def _take(table, words, is_used, columns, width):
    """Rows of words, zeros for those that are not used."""
    mask = is_used[:, None] & (columns < width)[None, :]
    places = _places(words, columns, width)
    return tl.load(table + places, mask=mask, other=0.0, cache_modifier=_FRESH)


@triton.jit
def _give(table, damping, words, is_used, columns, change, width):
    """Add the damped change to the rows of words."""
    mask = is_used[:, None] & (columns < width)[None, :]
    damped = change * tl.load(damping + words)[:, None]
    tl.atomic_add(table + _places(words, columns, width), damped, mask=mask, sem="relaxed")


@triton.jit
def _compose(table, starts, rows, words, is_used, columns, width, SUBWORDS: tl.constexpr):
    """Input vectors of words: their row, or the mean of their rows."""
    if SUBWORDS:
        first = tl.load(starts + words)
        num = tl.where(is_used, tl.load(starts + words + 1) - first, 0)
        total = tl.zeros([words.shape[0], columns.shape[0]], tl.float32)
        for index in range(tl.max(num, 0)):
            row = tl.load(rows + first + tl.minimum(index, tl.maximum(num - 1, 0)))
            total += _take(table, row, index < num, columns, width)
        vectors = total / tl.maximum(num, 1).to(tl.float32)[:, None]
    else:
        vectors = _take(table, words, is_used, columns, width)
    return vectors


@triton.jit
def _share(
    table, damping, starts, rows, words, is_used, columns, change,
    width, SUBWORDS: tl.constexpr,
):  # fmt: skip
    """Add a change of input vectors to their row, or to each of their rows."""
    if SUBWORDS:
        first = tl.load(starts + words)
        num = tl.where(is_used, tl.load(starts + words + 1) - first, 0)
        for index in range(tl.max(num, 0)):
            row = tl.load(rows + first + tl.minimum(index, tl.maximum(num - 1, 0)))
            _give(table, damping, row, index < num, columns, change, width)
    else:
        _give(table, damping, words, is_used, columns, change, width)


@triton.jit
def _tile(
    tokens, left, right, noise, number, num, tile, window,
    CENTRES: tl.constexpr, AROUND: tl.constexpr, POOL: tl.constexpr,
):  # fmt: skip
    """(centres, are they there, words around, are they there, noise words, which are pairs)."""
    in_tile, around = tl.arange(0, CENTRES), tl.arange(0, AROUND)
    place = number * tile + in_tile
    near = number * tile - window + around
    has_centre = (place < num) & (in_tile < tile)
    has_near = (near >= 0) & (near < num) & (around < tile + 2 * window)
    centre = tl.load(tokens + place, mask=has_centre, other=0)
    context = tl.load(tokens + near, mask=has_near, other=0)
    low = tl.load(left + place, mask=has_centre, other=0)
    high = tl.load(right + place, mask=has_centre, other=0)
    drawn = tl.load(noise + number.to(tl.int64) * POOL + tl.arange(0, POOL))
    is_pair = (near[None, :] >= low[:, None]) & (near[None, :] < high[:, None])
    is_pair = is_pair & (near[None, :] != place[:, None]) & has_centre[:, None]
    return centre, has_centre, context, has_near, drawn, is_pair.to(tl.float32)


@triton.jit
def _skipgram_rows(
    input, output, starts, rows, centre, has_centre, context, has_near, drawn, has_noise,
    columns, width, SUBWORDS: tl.constexpr,
):  # fmt: skip
    """A slice of the centres' input rows and of the output rows of contexts and noise words."""
    hidden = _compose(input, starts, rows, centre, has_centre, columns, width, SUBWORDS)
    near = _take(output, context, has_near, columns, width)
    return hidden, near, _take(output, drawn, has_noise, columns, width)


@triton.jit
def _update_skipgram(
    input, output, damp_input, damp_output, starts, rows,
    centre, has_centre, context, has_near, drawn, has_noise, hidden, near, other,
    g_true, g_false, columns, width, SUBWORDS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add the changes of a slice of columns."""
    change = tl.dot(g_true, near, input_precision=PRECISION)
    change = tl.dot(g_false, other, change, input_precision=PRECISION)
    for_near = tl.dot(tl.trans(g_true), hidden, input_precision=PRECISION)
    for_other = tl.dot(tl.trans(g_false), hidden, input_precision=PRECISION)
    _give(output, damp_output, drawn, has_noise, columns, for_other, width)
    _give(output, damp_output, context, has_near, columns, for_near, width)
    _share(
        input, damp_input, starts, rows, centre, has_centre, columns, change, width, SUBWORDS
    )  # fmt: skip


@triton.jit(do_not_specialize=["num", "num_tiles", "per", "tile", "window"])
def skipgram_tiles(
    input, output, damp_input, damp_output, starts, rows, tokens, left, right, noise, stats,
    num, num_tiles, per, tile, window, width, first_rate, last_rate, weight,
    CENTRES: tl.constexpr, AROUND: tl.constexpr, POOL: tl.constexpr, SLICE: tl.constexpr,
    IS_WHOLE: tl.constexpr, IS_MEAN: tl.constexpr, SUBWORDS: tl.constexpr, PRECISION: tl.constexpr,
    LOSS_EVERY: tl.constexpr,
):  # fmt: skip
    """A centre predicts every word of its window."""
    begin = tl.program_id(0) * per
    column, has_noise = tl.arange(0, SLICE), tl.full([POOL], 1, tl.int1)
    loss = tl.zeros([1], tl.float64)
    counted = tl.zeros([1], tl.float64)
    pairs = tl.zeros([1], tl.float64)
    for k in tl.range(0, tl.minimum(per, num_tiles - begin), num_stages=1):
        rate = first_rate + (last_rate - first_rate) * k / per
        centre, has_centre, context, has_near, drawn, is_pair = _tile(
            tokens, left, right, noise, begin + k, num, tile, window, CENTRES, AROUND, POOL
        )
        true = tl.zeros([CENTRES, AROUND], tl.float32)
        false = tl.zeros([CENTRES, POOL], tl.float32)
        if IS_WHOLE:
            hidden, near, other = _skipgram_rows(
                input, output, starts, rows, centre, has_centre, context, has_near, drawn,
                has_noise, column, width, SUBWORDS,
            )  # fmt: skip
            true = tl.dot(hidden, tl.trans(near), true, input_precision=PRECISION)
            false = tl.dot(hidden, tl.trans(other), false, input_precision=PRECISION)
        else:
            for first in tl.range(0, width, SLICE, num_stages=1):
                hidden, near, other = _skipgram_rows(
                    input, output, starts, rows, centre, has_centre, context, has_near, drawn,
                    has_noise, first + column, width, SUBWORDS,
                )  # fmt: skip
                true = tl.dot(hidden, tl.trans(near), true, input_precision=PRECISION)
                false = tl.dot(hidden, tl.trans(other), false, input_precision=PRECISION)
        # A noise word that is the target of a pair does not count for it. Sums of 0 and 1 are
        # exact in any precision.
        is_target = (context[:, None] == drawn[None, :]).to(tl.float32)
        weights = tl.sum(is_pair, 1)[:, None] - tl.dot(is_pair, is_target, input_precision="tf32")
        weights = weights * weight
        num_pairs = tl.sum(tl.sum(is_pair, 1), 0).to(tl.float64)
        pairs += num_pairs
        if k % LOSS_EVERY == 0:
            costs = tl.sum(is_pair * _softplus(-true), 1) + tl.sum(weights * _softplus(false), 1)
            loss += tl.sum(costs, 0).to(tl.float64)
            counted += num_pairs
        g_true = rate * is_pair * tl.sigmoid(-true)
        g_false = -rate * weights * tl.sigmoid(false)
        if IS_WHOLE:
            _update_skipgram(
                input, output, damp_input, damp_output, starts, rows, centre, has_centre, context,
                has_near, drawn, has_noise, hidden, near, other, g_true, g_false, column, width,
                SUBWORDS, PRECISION,
            )  # fmt: skip
        else:
            for first in tl.range(0, width, SLICE, num_stages=1):
                hidden, near, other = _skipgram_rows(
                    input, output, starts, rows, centre, has_centre, context, has_near, drawn,
                    has_noise, first + column, width, SUBWORDS,
                )  # fmt: skip
                _update_skipgram(
                    input, output, damp_input, damp_output, starts, rows, centre, has_centre,
                    context, has_near, drawn, has_noise, hidden, near, other, g_true, g_false,
                    first + column, width, SUBWORDS, PRECISION,
                )  # fmt: skip
    at = stats + tl.program_id(0) * 3 + tl.arange(0, 1)
    tl.store(at, loss)
    tl.store(at + 1, counted)
    tl.store(at + 2, pairs)


@triton.jit
def _cbow_rows(
    input, output, starts, rows, join, centre, has_centre, context, has_near, drawn, has_noise,
    columns, width, SUBWORDS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A slice of the joined windows and of the output rows of centres and noise words."""
    near = _compose(input, starts, rows, context, has_near, columns, width, SUBWORDS)
    hidden = tl.dot(join, near, input_precision=PRECISION)
    target = _take(output, centre, has_centre, columns, width)
    return hidden, target, _take(output, drawn, has_noise, columns, width)


@triton.jit
def _update_cbow(
    input, output, damp_input, damp_output, starts, rows,
    centre, has_centre, context, has_near, drawn, has_noise, is_pair, hidden, target, other,
    g_true, g_false, columns, width, SUBWORDS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add the changes of a slice of columns."""
    change = g_true[:, None] * target
    change = tl.dot(g_false, other, change, input_precision=PRECISION)
    for_near = tl.dot(tl.trans(is_pair), change, input_precision=PRECISION)
    for_other = tl.dot(tl.trans(g_false), hidden, input_precision=PRECISION)
    _give(output, damp_output, drawn, has_noise, columns, for_other, width)
    _give(output, damp_output, centre, has_centre, columns, g_true[:, None] * hidden, width)
    _share(
        input, damp_input, starts, rows, context, has_near, columns, for_near, width, SUBWORDS
    )  # fmt: skip


@triton.jit(do_not_specialize=["num", "num_tiles", "per", "tile", "window"])
def cbow_tiles(
    input, output, damp_input, damp_output, starts, rows, tokens, left, right, noise, stats,
    num, num_tiles, per, tile, window, width, first_rate, last_rate, weight,
    CENTRES: tl.constexpr, AROUND: tl.constexpr, POOL: tl.constexpr, SLICE: tl.constexpr,
    IS_WHOLE: tl.constexpr, IS_MEAN: tl.constexpr, SUBWORDS: tl.constexpr, PRECISION: tl.constexpr,
    LOSS_EVERY: tl.constexpr,
):  # fmt: skip
    """The joined window predicts its centre; every word of it gets the full gradient."""
    begin = tl.program_id(0) * per
    column, has_noise = tl.arange(0, SLICE), tl.full([POOL], 1, tl.int1)
    loss = tl.zeros([1], tl.float64)
    counted = tl.zeros([1], tl.float64)
    pairs = tl.zeros([1], tl.float64)
    for k in tl.range(0, tl.minimum(per, num_tiles - begin), num_stages=1):
        rate = first_rate + (last_rate - first_rate) * k / per
        centre, has_centre, context, has_near, drawn, is_pair = _tile(
            tokens, left, right, noise, begin + k, num, tile, window, CENTRES, AROUND, POOL
        )
        size = tl.sum(is_pair, 1)
        has_window = (size > 0).to(tl.float32)
        join = is_pair
        if IS_MEAN:
            join = is_pair / tl.maximum(size, 1.0)[:, None]
        true = tl.zeros([CENTRES], tl.float32)
        false = tl.zeros([CENTRES, POOL], tl.float32)
        if IS_WHOLE:
            hidden, target, other = _cbow_rows(
                input, output, starts, rows, join, centre, has_centre, context, has_near, drawn,
                has_noise, column, width, SUBWORDS, PRECISION,
            )  # fmt: skip
            true += tl.sum(hidden * target, 1)
            false = tl.dot(hidden, tl.trans(other), false, input_precision=PRECISION)
        else:
            for first in tl.range(0, width, SLICE, num_stages=1):
                hidden, target, other = _cbow_rows(
                    input, output, starts, rows, join, centre, has_centre, context, has_near,
                    drawn, has_noise, first + column, width, SUBWORDS, PRECISION,
                )  # fmt: skip
                true += tl.sum(hidden * target, 1)
                false = tl.dot(hidden, tl.trans(other), false, input_precision=PRECISION)
        is_other = (centre[:, None] != drawn[None, :]).to(tl.float32)
        weights = has_window[:, None] * is_other * weight
        num_pairs = tl.sum(has_window, 0).to(tl.float64)
        pairs += num_pairs
        if k % LOSS_EVERY == 0:
            costs = has_window * _softplus(-true) + tl.sum(weights * _softplus(false), 1)
            loss += tl.sum(costs, 0).to(tl.float64)
            counted += num_pairs
        g_true = rate * has_window * tl.sigmoid(-true)
        g_false = -rate * weights * tl.sigmoid(false)
        if IS_WHOLE:
            _update_cbow(
                input, output, damp_input, damp_output, starts, rows, centre, has_centre, context,
                has_near, drawn, has_noise, is_pair, hidden, target, other, g_true, g_false,
                column, width, SUBWORDS, PRECISION,
            )  # fmt: skip
        else:
            for first in tl.range(0, width, SLICE, num_stages=1):
                hidden, target, other = _cbow_rows(
                    input, output, starts, rows, join, centre, has_centre, context, has_near,
                    drawn, has_noise, first + column, width, SUBWORDS, PRECISION,
                )  # fmt: skip
                _update_cbow(
                    input, output, damp_input, damp_output, starts, rows, centre, has_centre,
                    context, has_near, drawn, has_noise, is_pair, hidden, target, other, g_true,
                    g_false, first + column, width, SUBWORDS, PRECISION,
                )  # fmt: skip
    at = stats + tl.program_id(0) * 3 + tl.arange(0, 1)
    tl.store(at, loss)
    tl.store(at + 1, counted)
    tl.store(at + 2, pairs)
