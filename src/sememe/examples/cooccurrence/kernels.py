"""The inner loops of co-occurrence counting. V words.

A text is packed into uint32 entries: word ids, with END after each sentence. The places of each
word are found by a counting sort, and a row of the matrix is summed in one array of V integers
(`tally`), so that nothing is hashed and no pair is ever sorted. Weights are whole numbers (see
cooccurrence.py): sums do not depend on the order in which they are made.

A row that can touch few columns notes them in two levels of bits (64 and 4,096 columns a number),
so that they come out in order without a look at all V; a row that touches many is scanned.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from sememe.machine import kernel

END = np.uint32(0xFFFFFFFF)
_WORD_END = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_LOW = np.uint64(63)
_NONE = np.uint64(0)
AHEAD = 8  # words; farther ahead is no faster
LINE = 16  # entries of a cache line
MOST = 64
FORWARD, BACKWARD = np.uint64(1), np.uint64(2**64 - 1)


@intrinsic
def _lowest(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set in a number other than 0."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), emit


@intrinsic
def prefetch(typing: Any, array: Any, offset: Any) -> Any:
    """Prefetch the cache line at `offset`, which will soon be read."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_reading, keep_near, is_data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(function, [address, for_reading, keep_near, is_data])
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


@kernel
def _fetch_ahead(entries, positions, n, last, left, right):
    """Prefetch the surroundings of a word that is counted a few words later."""
    if n + AHEAD < last:
        position = np.int64(positions[n + AHEAD])
        # The rest of a wide window follows by itself; past the ends of the text nothing happens.
        low, high = position - min(left, MOST), position + min(right, MOST)
        for p in range(low, high, LINE):
            prefetch(entries, p)
        prefetch(entries, high)


@kernel
def pack(ids, ends, num_words, entries, num):
    """Append the ids below num_words to entries[:num], END after a sentence; the new num.

    entries[0] is END already, and an END is never followed by another one.
    """
    start = 0
    for e in range(ends.shape[0] + 1):
        is_whole = e < ends.shape[0]
        end = ends[e] if is_whole else ids.shape[0]
        for p in range(start, end):
            entries[num] = ids[p]
            num += ids[p] < num_words
        start = end
        if is_whole and entries[num - 1] != END:
            entries[num] = END
            num += 1
    return num


@kernel
def tally_words(entries, first, last, counts):
    """Count the words of entries[first:last]."""
    for p in range(first, last):
        entry = entries[p]
        if entry != END:
            counts[entry] += 1


@kernel
def place_words(entries, first, last, places, positions):
    """Write the positions of entries[first:last]; `places` has each word's next free place."""
    for p in range(first, last):
        entry = entries[p]
        if entry != END:
            positions[places[entry]] = p
            places[entry] += 1


@kernel
def _walk(entries, position, step, weights, tally):
    for d in range(weights.shape[0]):
        position += step
        word = entries[position]
        if word == END:
            break
        tally[word] += weights[d]


@kernel
def _walk_marking(entries, position, step, weights, tally, marks, top):
    for d in range(weights.shape[0]):
        position += step
        word = np.uint64(entries[position])
        if word == _WORD_END:
            break
        tally[word] += weights[d]
        group = word >> _SIX
        marks[group] |= _ONE << (word & _LOW)
        top[group >> _SIX] |= _ONE << (group & _LOW)


@kernel
def _emit_all(tally, columns, sums, num):
    for c in range(tally.shape[0]):
        if tally[c] != 0:
            columns[num] = c
            sums[num] = tally[c]
            tally[c] = 0
            num += 1
    return num


@kernel
def emit_marked(tally, marks, top, columns, sums, num):
    """Write the cells of the summed row after the first `num` ones; the new number."""
    for t in range(top.shape[0]):
        groups = top[t]
        top[t] = _NONE
        while groups != _NONE:
            group = (np.uint64(t) << _SIX) | _lowest(groups)
            groups &= groups - _ONE
            words = marks[group]
            marks[group] = _NONE
            while words != _NONE:
                word = (group << _SIX) | _lowest(words)
                words &= words - _ONE
                columns[num] = word
                sums[num] = tally[word]
                tally[word] = 0
                num += 1
    return num


@kernel
def count_rows(entries, positions, starts, left, right, limit,
               tally, marks, top, columns, sums, ends):  # fmt: skip
    """Write the cells of some rows, one after the other, and where each row ends.

    positions[starts[r]:starts[r + 1]] is where row r's word stands; left[d - 1] and right[d - 1]
    weigh a word d places before and after it. Rows of more than `limit` words are scanned.
    """
    num = 0
    end = starts[-1]
    for row in range(ends.shape[0]):
        is_dense = (starts[row + 1] - starts[row]) * (left.shape[0] + right.shape[0]) > limit
        if is_dense:
            for n in range(starts[row], starts[row + 1]):
                _fetch_ahead(entries, positions, n, end, left.shape[0], right.shape[0])
                position = np.uint64(positions[n])
                _walk(entries, position, BACKWARD, left, tally)
                _walk(entries, position, FORWARD, right, tally)
            num = _emit_all(tally, columns, sums, num)
        else:
            for n in range(starts[row], starts[row + 1]):
                _fetch_ahead(entries, positions, n, end, left.shape[0], right.shape[0])
                position = np.uint64(positions[n])
                _walk_marking(entries, position, BACKWARD, left, tally, marks, top)
                _walk_marking(entries, position, FORWARD, right, tally, marks, top)
            num = emit_marked(tally, marks, top, columns, sums, num)
        ends[row] = num
    return num


@kernel
def add_cells(columns, sums, first, last, tally, marks, top):
    """Add cells of one row that were counted before."""
    for n in range(first, last):
        word = np.uint64(columns[n])
        tally[word] += sums[n]
        group = word >> _SIX
        marks[group] |= _ONE << (word & _LOW)
        top[group >> _SIX] |= _ONE << (group & _LOW)


@kernel
def merge_rows(columns, sums, bounds_PR, tally, marks, top, to_columns, to_sums, ends):
    """Add up the same rows of several parts: those of part p are at bounds_PR[p, r] and on."""
    num = 0
    for r in range(bounds_PR.shape[1] - 1):
        for p in range(bounds_PR.shape[0]):
            add_cells(columns, sums, bounds_PR[p, r], bounds_PR[p, r + 1], tally, marks, top)
        num = emit_marked(tally, marks, top, to_columns, to_sums, num)
        ends[r] = num
    return num
