"""Kernels that ask a tree of n-grams for the probabilities of running text."""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel


@kernel
def find_child(words, starts, node, word):
    """The child of a node for the next word, or -1."""
    low, high = np.int64(starts[node]), np.int64(starts[node + 1])
    end = high
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < end and words[low] == word else np.int64(-1)


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
def begin_anew(nodes, begin_id):
    """Stand behind <s>, as at the start of a sentence."""
    nodes[:] = -1
    nodes[1] = begin_id


@kernel
def read_text(words, probs, backoffs, starts, nodes, stream, begin_id, unknown_id, sums):
    """Add the log10 probabilities of running text between <s> and </s> to sums.

    sums: of all, how many there are, of <unk>, how many of it there are.
    """
    one, out = np.empty(1, np.uint32), np.empty(1, np.float32)
    for index in range(len(stream)):
        if stream[index] == begin_id:
            begin_anew(nodes, begin_id)
            continue
        one[0] = stream[index]
        read(words, probs, backoffs, starts, nodes, one, out)
        sums[0] += out[0]
        sums[1] += 1
        if one[0] == unknown_id:
            sums[2] += out[0]
            sums[3] += 1
