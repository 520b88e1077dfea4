"""Kernels of modified Kneser–Ney smoothing (Chen & Goodman 1999, section 3) on a tree of n-grams.

Of the n-gram v w x the parent is v w, its context, and the suffix w x, the n-gram one shorter that
it falls back on. Nodes of a level are sorted, and so are the children of each node.
"""

from __future__ import annotations

from sememe.compiled import exact_kernel, kernel


@kernel
def find_word(words, low, high, word):
    """The first place among the sorted words low … high whose word is not smaller."""
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def link(words, starts, parent_suffixes, parent_words, grand_starts, first, last, suffixes):
    """Find the suffix of each child of the parents first … last among the parents' own level."""
    for parent in range(first, last):
        suffix = parent_suffixes[parent]
        low, high = grand_starts[suffix], grand_starts[suffix + 1]
        for node in range(starts[parent], starts[parent + 1]):
            low = find_word(parent_words, low, high, words[node])
            suffixes[node] = low


@kernel
def count_extensions(suffixes, counts):
    """Count for each suffix the different words that stand before it."""
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
    """Fill the probabilities of the children of the parents first … last, and what is left over.

    adjusted are the counts that probabilities come from; n-grams whose plain count does not pass
    `cut` get none and leave theirs to the shorter ones. lower are the probabilities of suffixes.
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
    """Move the n-grams to keep together; places are where the nodes of the next level go."""
    num = 0
    for node in range(len(words)):
        if is_kept[node]:
            kept_words[num] = words[node]
            kept_starts[num] = places[starts[node]]
            num += 1
