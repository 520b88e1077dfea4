"""Kernels that cut text as Facebook's fastText cuts it: bytes in, tokens and their types out.

A token ends at a blank, \\n, \\r, \\t, \\v, \\f or NUL; the end of a line is the token </s>, and
a token </s> ends a line. Different tokens are types; a block of text has its own, which are then
found in, or added to, the table of a whole text or model.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

END_SIZE = 4  # every block starts with the four bytes of </s>, its type 0
_BASIS, _PRIME = np.uint32(2166136261), np.uint32(16777619)
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
def _mixed(value, byte):
    signed = np.uint32(byte)
    if byte >= 0x80:  # Facebook's hash takes bytes as signed characters
        signed |= np.uint32(0xFFFFFF00)
    return np.uint32(np.uint32(value ^ signed) * _PRIME)


@kernel
def hash_words(data, starts, sizes, hashes):
    """Hash words as Facebook's program does: FNV-1a over signed bytes."""
    for word in range(len(starts)):
        value = _BASIS
        for offset in range(sizes[word]):
            value = _mixed(value, data[starts[word] + offset])
        hashes[word] = value


@kernel
def _spread(hashes, num_types, slots):
    """Fill the empty table `slots` (a power of two) with the types by their hashes."""
    mask = np.uint32(len(slots) - 1)
    for index in range(num_types):
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
    """Cut tokens off until the data end or the table is full; `state` says where to go on."""
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
                value = _mixed(value, byte)
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
    """Cut a block, </s> and then whole lines, into tokens.

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
    # passed over without a look at anything else.
    slots = np.zeros(4 * capacity, np.uint64)
    sizes[0] = END_SIZE
    hash_words(data, starts[:1], sizes[:1], hashes[:1])
    slots[np.uint64(hashes[0]) & np.uint64(len(slots) - 1)] = (np.uint64(hashes[0]) << _HALF) | _U1
    state = (END_SIZE, 0, 0, 1)
    while True:
        # The loop is a function of its own because arrays that are replaced inside a loop are
        # counted anew by every turn of it.
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
def build_slots(hashes, slots):
    """Fill the empty table `slots` (-1 everywhere, a power of two) with all types."""
    _spread(hashes, len(hashes), slots)


@kernel
def find_types(data, starts, sizes, hashes, arena, ends, known_hashes, slots, places):
    """Look each type of a block up in a table; its place there, or -1."""
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
    """Append the types without a place to a table that has room; returns how many it has then."""
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
