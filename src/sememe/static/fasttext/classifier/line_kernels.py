"""Kernels that turn tokens into what a line consists of: types in, rows and labels out."""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

NO_LABEL = -(2**31)  # the kind of a type that is a label which the model does not know
UNKNOWN = -1  # the kind of a word without a row of its own; labels l are kind -2 - l
_NGRAM_PRIME = np.uint64(116049371)


@kernel
def keep_known(ends, rows, kinds, num_words):
    """Turn rows that were given to all types (tokens.ngrams.ngram_rows) into those of a model.

    A type starts with its own row; that of a word the model does not know goes, and labels have
    none at all. N-grams follow `num_words` words. Changes both arrays, returns the rows left.
    """
    num_types, place, start = len(ends), 0, 0
    for kind in range(num_types):
        end = ends[kind]
        if kinds[kind] >= 0:
            rows[place] = kinds[kind]
            place += 1
        if kinds[kind] >= UNKNOWN:
            for index in range(start + 1, end):
                rows[place] = rows[index] - num_types + num_words
                place += 1
        start = end
        ends[kind] = place
    return place


@kernel
def expand_lines(
    tokens, line_ends, kinds, hashes, type_ends, type_rows, num_types, word_ngrams, bucket,
    num_words, items, item_ends, labels, label_ends,
):  # fmt: skip
    """Write what each line consists of: rows, or types where `num_types` says so, and labels.

    A type has the rows type_rows[type_ends[t - 1]:type_ends[t]], or its own one where type_ends is
    empty. An n-gram of words in bucket b is the item first + b, where `first` is the number of
    types if types are kept, of words otherwise.
    """
    base = num_types if num_types > 0 else num_words
    num_items, num_labels, start = 0, 0, 0
    for line in range(len(line_ends)):
        end = line_ends[line]
        for index in range(start, end):
            kind = tokens[index]
            own = kinds[kind]
            if own < UNKNOWN:
                if own != NO_LABEL:
                    labels[num_labels] = -2 - own
                    num_labels += 1
            elif num_types > 0:
                items[num_items] = kind
                num_items += 1
            elif len(type_ends) > 0:
                for place in range(type_ends[kind - 1] if kind > 0 else 0, type_ends[kind]):
                    items[num_items] = type_rows[place]
                    num_items += 1
            elif own >= 0:
                items[num_items] = own
                num_items += 1
        if word_ngrams > 1:
            for index in range(start, end):
                if kinds[tokens[index]] < UNKNOWN:
                    continue
                # Facebook keeps hashes as int32 and sums them up as uint64.
                value = np.uint64(np.int64(np.int32(hashes[tokens[index]])))
                size = 1
                for other in range(index + 1, end):
                    if size == word_ngrams:
                        break
                    if kinds[tokens[other]] < UNKNOWN:
                        continue
                    next_hash = np.uint64(np.int64(np.int32(hashes[tokens[other]])))
                    value = value * _NGRAM_PRIME + next_hash
                    items[num_items] = base + np.int64(value % np.uint64(bucket))
                    num_items += 1
                    size += 1
        item_ends[line], label_ends[line] = num_items, num_labels
        start = end
    return num_items, num_labels


@kernel
def mark_buckets(items, first, is_used):
    """Mark the buckets among `items`, those from `first` on."""
    for index in range(len(items)):
        if items[index] >= first:
            is_used[items[index] - first] = True


@kernel
def map_buckets(items, ends, first, places):
    """Replace bucket b, item first + b, by places[b]; drop it where that is negative.

    `ends` are changed with it; returns how many items are left.
    """
    num_items, start = 0, 0
    for line in range(len(ends)):
        end = ends[line]
        for index in range(start, end):
            item = items[index]
            if item >= first:
                item = places[item - first]
            if item >= 0:
                items[num_items] = item
                num_items += 1
        start = end
        ends[line] = num_items
    return num_items


@kernel
def longest_line(ends, items, type_ends):
    """The most rows that a line has."""
    longest, start = 0, 0
    for line in range(len(ends)):
        num_rows = 0
        for index in range(start, ends[line]):
            item = items[index]
            if item < len(type_ends):
                num_rows += type_ends[item] - (type_ends[item - 1] if item > 0 else 0)
            else:
                num_rows += 1
        longest = max(longest, num_rows)
        start = ends[line]
    return longest
