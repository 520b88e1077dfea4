"""Kernels that count n-grams: running text in, its distinct n-grams in sorted order out.

N n-grams of at most K words. An n-gram is a row of K ids and its count; behind the end of a
sentence the ids are PAD. Rows are sorted by their first word, then the second, and so on, so that
those with the same beginning stand together.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

PAD = np.uint32(0xFFFFFFFF)


@kernel
def weave(ids, ends, is_own, id_map, num_words, is_inside, out):
    """Write own sentences between <s> and </s>; gives (ids written, start of an unfinished one).

    ends are those of the sentences in the block, is_own has one more entry for what follows the
    last end; is_inside says that the block begins within a sentence whose start was written.
    """
    end_id, begin_id = np.uint32(num_words + 1), np.uint32(num_words + 2)
    num, start, unfinished = 0, 0, -1
    for sentence in range(len(ends) + 1):
        end = ends[sentence] if sentence < len(ends) else len(ids)
        is_begun = is_inside and sentence == 0
        if is_own[sentence] and (end > start or is_begun):
            unfinished = num
            if not is_begun:
                out[num] = begin_id
                num += 1
            for index in range(start, end):
                out[num] = id_map[ids[index]]
                num += 1
            if sentence < len(ends):
                out[num] = end_id
                num += 1
                unfinished = -1
        start = end
    return num, unfinished


@kernel
def sort_starts(stream, num_starts, order, num_ids, places, spare, cursors):
    """Fill `places` with the starts of n-grams in their order; last word first, each pass stable.

    spare is as long as places; cursors has num_ids + 1 numbers.
    """
    source, target = places, spare
    if order % 2 == 1:  # so that the last pass ends in `places`
        source, target = spare, places
    for index in range(num_starts):
        source[index] = index
    last = len(stream) - 1
    for offset in range(order - 1, -1, -1):
        cursors[:] = 0
        for index in range(num_starts):
            cursors[np.int64(stream[min(index + offset, last)]) + 1] += 1
        for word in range(num_ids):
            cursors[word + 1] += cursors[word]
        for index in range(num_starts):
            start = np.int64(source[index])
            word = stream[min(start + offset, last)]
            target[cursors[word]] = start
            cursors[word] += 1
        source, target = target, source


@kernel
def collect(stream, places, order, end_id, rows):
    """Write the distinct n-grams of sorted starts with their counts; gives their number."""
    num = 0
    for index in range(len(places)):
        start = np.int64(places[index])
        is_same = num > 0
        if is_same:
            for offset in range(order):
                word = stream[start + offset]
                if word != rows[num - 1, offset]:
                    is_same = False
                    break
                if word == end_id:
                    break
        if is_same:
            rows[num - 1, order] += np.uint32(1)
            continue
        offset = 0
        while offset < order:
            word = stream[start + offset]
            rows[num, offset] = word
            offset += 1
            if word == end_id:
                break
        while offset < order:
            rows[num, offset] = PAD
            offset += 1
        rows[num, order] = np.uint32(1)
        num += 1
    return num


@kernel
def is_before(rows, a, others, b, order):
    """Whether row a comes before row b of the others."""
    for offset in range(order):
        if rows[a, offset] != others[b, offset]:
            return rows[a, offset] < others[b, offset]
    return False


@kernel
def num_up_to(rows, limits, which, order):
    """How many sorted rows do not come after the row `which` of the limits."""
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if is_before(limits, which, rows, middle, order):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def merge(rows, bounds, order, out):
    """Merge the sorted runs of rows between bounds, adding up counts; gives the rows written."""
    num_runs = len(bounds) - 1
    heads = bounds[:-1].copy()
    heap = np.empty(num_runs, np.int64)
    size = 0
    for run in range(num_runs):
        if heads[run] < bounds[run + 1]:
            heap[size] = run
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        _sink(rows, heads, heap, size, place, order)
    num = 0
    while size:
        run = heap[0]
        row = heads[run]
        if num and not is_before(out, num - 1, rows, row, order):
            out[num - 1, order] += rows[row, order]
        else:
            # Of a row as a whole numba would check the shape, and compile the words of an error.
            for offset in range(order + 1):
                out[num, offset] = rows[row, offset]
            num += 1
        heads[run] += 1
        if heads[run] == bounds[run + 1]:
            size -= 1
            heap[0] = heap[size]
        _sink(rows, heads, heap, size, 0, order)
    return num


@kernel
def _sink(rows, heads, heap, size, place, order):
    """Put the run at `place` of the heap below those whose next row comes before its own."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and is_before(
            rows, heads[heap[child + 1]], rows, heads[heap[child]], order
        ):
            child += 1
        if not is_before(rows, heads[heap[child]], rows, heads[heap[place]], order):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@kernel
def grow(rows, order, last, sizes, words, starts, counts, nums):
    """Add sorted distinct n-grams to a tree: level k holds the beginnings of k + 1 words.

    last is the n-gram before these, PAD where there is none; sizes are those of the levels so far.
    Fills the new nodes of each level: words, where their children start, counts; nums says how
    many. The count in front of a level's first new node belongs to the last node before it.
    """
    nums[:] = 0
    counts[:, 0] = 0
    for row in range(len(rows)):
        count = np.int64(rows[row, order])
        shared = 0
        while shared < order and rows[row, shared] == last[shared]:
            shared += 1
        for level in range(order):
            word = rows[row, level]
            if word == PAD:
                break
            if level >= shared:
                place = nums[level]
                words[level, place] = word
                counts[level, place + 1] = 0
                if level + 1 < order:
                    starts[level, place] = sizes[level + 1] + nums[level + 1]
                nums[level] += 1
            counts[level, nums[level]] += count
        for level in range(order):
            last[level] = rows[row, level]
