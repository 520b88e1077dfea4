"""Kernels of the n-gram model: counting, modified Kneser–Ney smoothing, probabilities of text.

Counting: running text in, its distinct n-grams in sorted order out. N n-grams of at most K words.
An n-gram is a row of K ids and its count; after the end of a sentence the ids are PAD. Rows are
sorted by their first word, then the second, and so on, so that those with the same beginning
are together.

Smoothing (Chen & Goodman 1999, section 3): of the n-gram v w x the parent is v w, its context,
and the suffix w x, the n-gram one shorter that it backs off to. Nodes of a level are sorted, and
so are the children of each node.
"""

import numpy as np

from sememe.machine import exact_kernel, kernel

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
    """Fill `places` with the starts of n-grams in sorted order; last word first, each pass stable.

    spare is as long as places; cursors has num_ids + 1 entries.
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
    """Write the distinct n-grams of sorted starts with their counts; return their number."""
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
    """The number of sorted rows that do not come after the row `which` of the limits."""
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
    """Merge the sorted runs of rows between bounds, adding up counts; return the rows written."""
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
            # For an entire row numba would check the shape, and compile an error message.
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
    """Sift the run at `place` of the heap down to its position."""
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
    """Add sorted distinct n-grams to a tree: level k holds the prefixes of k + 1 words.

    last is the previous n-gram, PAD if there is none; sizes are those of the levels so far. Fills
    the new nodes of each level: words, where their children start, counts; nums says how many. The
    count before a level's first new node belongs to the last node before it.
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


@kernel
def find_word(words, low, high, word):
    """The first position among the sorted words low … high whose word is not smaller."""
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def link(words, starts, parent_suffixes, parent_words, grand_starts, first, last, suffixes):
    """Find the suffix of each child of the parents first … last in the parents' own level."""
    for parent in range(first, last):
        suffix = parent_suffixes[parent]
        low, high = grand_starts[suffix], grand_starts[suffix + 1]
        for node in range(starts[parent], starts[parent + 1]):
            low = find_word(parent_words, low, high, words[node])
            suffixes[node] = low


@kernel
def count_extensions(suffixes, counts):
    """Count the distinct words before each suffix."""
    for node in range(len(suffixes)):
        counts[suffixes[node]] += 1


@kernel
def count_counts(counts, tally):
    """Count how many n-grams have the counts 1 … 4 (in tally[1:5])."""
    for node in range(len(counts)):
        if counts[node] <= 4:
            tally[counts[node]] += 1


@exact_kernel
def estimate(starts, adjusted, counts, cut, discounts, suffixes, lower, first, last, out, rests):
    """Fill the probabilities of the children of the parents first … last, and the back-off weights.

    adjusted are the counts that probabilities are computed from; n-grams whose plain count does not
    exceed `cut` get none and leave theirs to the shorter ones. lower are the probabilities of
    suffixes.
    """
    for parent in range(first, last):
        total, rest = 0.0, 0.0
        for node in range(starts[parent], starts[parent + 1]):
            count = adjusted[node]
            total += count
            rest += discounts[min(count, 3)] if counts[node] > cut else float(count)
        if total == 0.0:
            rests[parent] = 1.0
            continue
        rests[parent] = rest / total
        for node in range(starts[parent], starts[parent + 1]):
            count = adjusted[node]
            own = (count - discounts[min(count, 3)]) / total
            out[node] = own + rests[parent] * lower[suffixes[node]]


@kernel
def keep(words, is_kept, starts, places, kept_words, kept_starts):
    """Compact the n-grams to keep; places are the new positions of the next level's nodes."""
    num = 0
    for node in range(len(words)):
        if is_kept[node]:
            kept_words[num] = words[node]
            kept_starts[num] = places[starts[node]]
            num += 1


@kernel
def find_child(words, starts, node, word):
    """The child of a node for the next word, or -1."""
    end = np.int64(starts[node + 1])
    place = find_word(words, np.int64(starts[node]), end, word)
    return place if place < end and words[place] == word else np.int64(-1)


@kernel
def read(words, probs, backoffs, starts, nodes, ids, out):
    """Fill the log10 probability of each id; nodes are those of the last 1, 2, … words, or -1."""
    order = len(nodes) - 1
    for index in range(len(ids)):
        word = ids[index]
        weight, is_found = np.float32(0.0), False
        for size in range(order - 1, 0, -1):
            child = np.int64(-1)
            if nodes[size] >= 0:
                child = find_child(words, starts, nodes[size], word)
                if not is_found:
                    if child >= 0:
                        is_found = True
                        out[index] = weight + probs[child]
                    else:
                        weight += backoffs[nodes[size]]
            nodes[size + 1] = child
        if not is_found:
            out[index] = weight + probs[word]
        nodes[1] = word


@kernel
def reset_context(nodes, begin_id):
    """Start after <s>, as at the start of a sentence."""
    nodes[:] = -1
    nodes[1] = begin_id


@kernel
def read_text(words, probs, backoffs, starts, nodes, stream, begin_id, unknown_id, sums):
    """Add the log10 probabilities of running text between <s> and </s> to sums.

    sums: the total, its number of words, the sum for <unk>, its number of words.
    """
    one, out = np.empty(1, np.uint32), np.empty(1, np.float32)
    for index in range(len(stream)):
        if stream[index] == begin_id:
            reset_context(nodes, begin_id)
            continue
        one[0] = stream[index]
        read(words, probs, backoffs, starts, nodes, one, out)
        sums[0] += out[0]
        sums[1] += 1
        if one[0] == unknown_id:
            sums[2] += out[0]
            sums[3] += 1
