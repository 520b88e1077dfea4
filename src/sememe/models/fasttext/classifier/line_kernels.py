"""Kernels that read lines as Facebook's fastText does: bytes in, tokens, then rows and labels out.

A token ends at ASCII white space or NUL; the end of a line is the token </s>, and a token </s> ends
a line. Distinct tokens are types; a block of text has its own, which are then looked up in, or
added to, the table of a corpus or model. Types become rows and labels of a line.
"""

import numpy as np

from sememe.machine import kernel
from sememe.tokens.ngram_kernels import mix_byte

END_SIZE = 4  # every block starts with the four bytes of </s>, its type 0
_BASIS = np.uint32(2166136261)
_U1, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel
def _is_blank(byte):
    return byte <= 32 and (byte == 32 or 9 <= byte <= 13 or byte == 0)


@kernel
def _is_equal(left, i, right, j, size):
    offset = 0
    while offset < size and left[i + offset] == right[j + offset]:
        offset += 1
    return offset == size


@kernel
def hash_words(data, starts, sizes, hashes):
    """Hash words as Facebook's program does: FNV-1a over signed bytes."""
    for word in range(len(starts)):
        value = _BASIS
        for offset in range(sizes[word]):
            value = mix_byte(value, data[starts[word] + offset])
        hashes[word] = value


@kernel
def build_slots(hashes, slots):
    """Fill the empty table `slots` (-1 everywhere, a power of two) with all types."""
    mask = np.uint32(len(slots) - 1)
    for index in range(len(hashes)):
        slot = hashes[index] & mask
        while slots[slot] >= 0:
            slot = np.uint32(slot + np.uint32(1)) & mask
        slots[slot] = index


@kernel
def _grown(slots):
    """A table twice as large with the same entries."""
    larger = np.zeros(2 * len(slots), np.uint64)
    mask = np.uint64(len(larger) - 1)
    for old in range(len(slots)):
        entry = slots[old]
        if entry:
            slot = (entry >> _HALF) & mask
            while larger[slot]:
                slot = (slot + _U1) & mask
            larger[slot] = entry
    return larger


@kernel
def _scan_some(data, state, tokens, line_ends, starts, sizes, hashes, counts, slots):
    """Tokenize until the data end or the table is full; `state` says where to continue."""
    at, num_tokens, num_lines, num_types = state
    num_bytes, capacity = len(data), len(starts)
    mask = np.uint64(len(slots) - 1)
    while at < num_bytes and num_types < capacity:
        byte = data[at]
        kind = 0
        if _is_blank(byte):
            at += 1
            if byte != 10:
                continue
        else:
            start = at
            value = _BASIS
            while not _is_blank(byte):
                value = mix_byte(value, byte)
                at += 1
                if at == num_bytes:
                    break
                byte = data[at]
            size = at - start
            wide = np.uint64(value)
            slot = wide & mask
            kind = -1
            while slots[slot]:
                if slots[slot] >> _HALF == wide:
                    other = np.int64(slots[slot] & _LOW) - 1
                    if sizes[other] == size and _is_equal(data, starts[other], data, start, size):
                        kind = other
                        break
                slot = (slot + _U1) & mask
            if kind < 0:
                kind = num_types
                slots[slot] = (wide << _HALF) | np.uint64(kind + 1)
                starts[kind], sizes[kind], hashes[kind] = start, size, value
                num_types += 1
        tokens[num_tokens] = kind
        num_tokens += 1
        counts[kind] += 1
        if kind == 0:
            line_ends[num_lines] = num_tokens
            num_lines += 1
    return at, num_tokens, num_lines, num_types


@kernel
def scan_block(data):
    """Tokenize a block: </s>, then complete lines.

    Returns (type of each token, where each line's tokens end, and for each type its start in the
    block, size, hash and count).
    """
    num_bytes = len(data)
    tokens = np.empty(num_bytes + 1, np.int32)
    line_ends = np.empty(num_bytes + 1, np.int64)
    capacity = 1 << 13
    starts = np.zeros(capacity, np.int64)
    sizes = np.empty(capacity, np.int32)
    hashes = np.empty(capacity, np.uint32)
    counts = np.zeros(capacity, np.int64)
    # A slot holds the hash and, in its lower half, the type + 1: most slots of other types are
    # skipped by the hash alone.
    slots = np.zeros(4 * capacity, np.uint64)
    sizes[0] = END_SIZE
    hash_words(data, starts[:1], sizes[:1], hashes[:1])
    slots[np.uint64(hashes[0]) & np.uint64(len(slots) - 1)] = (np.uint64(hashes[0]) << _HALF) | _U1
    state = (END_SIZE, 0, 0, 1)
    while True:
        # The loop is a separate function because arrays replaced inside a loop are
        # reference-counted in every iteration.
        state = _scan_some(data, state, tokens, line_ends, starts, sizes, hashes, counts, slots)
        at, num_tokens, num_lines, num_types = state
        if at >= num_bytes:
            break
        starts = np.concatenate((starts, np.empty(num_types, np.int64)))
        sizes = np.concatenate((sizes, np.empty(num_types, np.int32)))
        hashes = np.concatenate((hashes, np.empty(num_types, np.uint32)))
        counts = np.concatenate((counts, np.zeros(num_types, np.int64)))
        slots = _grown(slots)
    if num_tokens > (line_ends[num_lines - 1] if num_lines > 0 else 0):
        line_ends[num_lines] = num_tokens  # the last line of a file may lack its newline
        num_lines += 1
    return (
        tokens[:num_tokens].copy(),
        line_ends[:num_lines].copy(),
        starts[:num_types],
        sizes[:num_types],
        hashes[:num_types],
        counts[:num_types],
    )


@kernel
def find_types(data, starts, sizes, hashes, arena, ends, known_hashes, slots, places):
    """Look up each type of a block in a table; its position there, or -1."""
    mask = np.uint32(len(slots) - 1)
    for kind in range(len(starts)):
        slot = hashes[kind] & mask
        place = np.int64(slots[slot])
        while place >= 0:
            start = ends[place - 1] if place > 0 else 0
            size = ends[place] - start
            if (
                known_hashes[place] == hashes[kind]
                and size == sizes[kind]
                and _is_equal(arena, start, data, starts[kind], size)
            ):
                break
            slot = np.uint32(slot + np.uint32(1)) & mask
            place = np.int64(slots[slot])
        places[kind] = place


@kernel
def add_types(data, starts, sizes, hashes, places, num_types, arena, ends, known_hashes, slots):
    """Append the types without a position to a table that has room; return its new size."""
    mask = np.uint32(len(slots) - 1)
    end = ends[num_types - 1] if num_types > 0 else 0
    for kind in range(len(starts)):
        if places[kind] >= 0:
            continue
        slot = hashes[kind] & mask
        while slots[slot] >= 0:
            slot = np.uint32(slot + np.uint32(1)) & mask
        slots[slot] = num_types
        for offset in range(sizes[kind]):
            arena[end + offset] = data[starts[kind] + offset]
        end += sizes[kind]
        ends[num_types], known_hashes[num_types] = end, hashes[kind]
        places[kind] = num_types
        num_types += 1
    return num_types


@kernel
def has_prefix(arena, starts, sizes, prefix, answers):
    """Whether each word starts with the bytes `prefix`."""
    for kind in range(len(starts)):
        answers[kind] = sizes[kind] >= len(prefix) and _is_equal(
            arena, starts[kind], prefix, 0, len(prefix)
        )


NO_LABEL = -(2**31)  # the kind of a label that the model does not know
UNKNOWN = -1  # the kind of a word without a row of its own; labels l are kind -2 - l
_NGRAM_PRIME = np.uint64(116049371)


@kernel
def keep_known(ends, rows, kinds, num_words):
    """Turn rows assigned to all types (tokens.ngrams.ngram_rows) into those of a model.

    A type starts with its own row, which is dropped if the model does not know the word; labels
    have none. N-grams follow `num_words` words. Changes both arrays, returns the rows left.
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
    """Write the items of each line (rows, or types if `num_types` says so) and its labels.

    A type has the rows type_rows[type_ends[t - 1]:type_ends[t]], or its own one if type_ends is
    empty. A word n-gram in bucket b is the item first + b, where `first` is the number of types if
    types are kept, of words otherwise.
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
    """Replace bucket b, item first + b, by places[b]; drop it if that is negative.

    Updates `ends` too; returns the number of remaining items.
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
    """The largest number of rows in a line."""
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
