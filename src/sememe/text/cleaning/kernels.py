# ruff: noqa: SIM109 (plain comparisons compile to plain machine code)
"""Cleaning over UTF-8 bytes, without the GIL: what a line holds, hashes, MinHash, comparisons.

`reference.py` has the same in plain Python. Shingle hashes are uint32; hashes of texts and lines
are uint64.
"""

import numpy as np

from sememe.machine import exact_kernel, kernel
from sememe.randomness import GOLDEN, fast_mix
from sememe.text.characters import (
    BRACKET,
    CLASS_MASK,
    DIGIT,
    FORMAT,
    FULL_STOP,
    IDEOGRAPH,
    LETTER,
    MARK,
    NEWLINE,
    OPENING,
    PERIOD,
    SPACE,
    TERMINATOR,
)
from sememe.text.kernels import decode

PRIME = 0x100000001B3  # of FNV-1a
SYMBOL = 128  # flag beside those of characters.py: emoji, currency, arithmetic

# What a line may need to be looked at for; `look` sets these bits.
SUSPECT, MARKUP, LINK, NUMBERED, OPEN = 1, 2, 4, 8, 16
# Bits of the table of suspects by code point. The lower thirty are three groups of ten encodings:
# the character is a lead byte of two or of three bytes, or a later byte, read in that encoding.
NUM_ENCODINGS = 10
GARBLED_HAN, ALWAYS = 1 << 30, 1 << 31
LATIN_RUN = 6  # characters from ¡ to þ in a row: no word of a Western language, but GBK as Latin-1
MOST_LETTERS = 12  # of a line that could be a page number
LONG_LINE = 40  # characters; a longer one without a full stop continues in the next line


@kernel
def look(text, starts, ends, classes, suspects, flags, widths, sizes):
    """Set the flags, the width and the number of characters of each line.

    The width counts letters, digits and symbols, ideographs twice; it is -1 for a blank line.
    """
    encodings = np.uint32((1 << NUM_ENCODINGS) - 1)
    for line in range(len(starts)):
        i, end = starts[line], ends[line]
        flag = 0
        width = 0
        num_chars = 0
        num_letters = 0
        num_digits = 0
        num_ideographs = 0
        num_garbled = 0
        latin_run = 0
        is_blank = True
        last_value = 0
        before = np.int64(0)  # the two code points before this one
        before_bits = np.uint32(0)  # encodings in which they begin a character of UTF-8
        begun_bits = np.uint32(0)
        while i < end:
            code_point, size = decode(text, i, end)
            value = classes[code_point]
            kind = value & CLASS_MASK
            suspect = suspects[code_point] if code_point < 0x10000 else np.uint32(0)
            num_chars += 1
            if kind != SPACE and kind != NEWLINE:
                is_blank = False
                last_value = value
            if kind == LETTER:
                num_letters += 1
            elif kind == IDEOGRAPH:
                num_ideographs += 1
            elif kind == DIGIT:
                num_digits += 1
            elif value & SYMBOL:
                width += 1
            later = (suspect >> np.uint32(2 * NUM_ENCODINGS)) & encodings
            # A carriage return at the end belongs to the end of the line.
            is_end = code_point == 13 and i + 1 == end
            if (suspect & np.uint32(ALWAYS) or later & begun_bits) and not is_end:
                flag |= SUSPECT
            num_garbled += 1 if suspect & np.uint32(GARBLED_HAN) else 0
            # Two bytes are complete with this one; three need another.
            begun_bits = (suspect & encodings) | (before_bits & later)
            before_bits = (suspect >> np.uint32(NUM_ENCODINGS)) & encodings
            latin_run = latin_run + 1 if code_point >= 0xA1 and code_point <= 0xFE else 0
            if latin_run == LATIN_RUN:
                flag |= SUSPECT
            is_tag = before == 60 and (code_point == 33 or code_point == 47 or kind == LETTER)
            is_entity = before == 38 and (code_point == 35 or kind == LETTER)
            is_template = before == code_point and (code_point == 123 or code_point == 91)
            if is_tag or is_entity or is_template:  # <p, </, <!, &a, &#, {{, [[
                flag |= MARKUP
            if code_point == 47 and before == 58 and i + 1 < end and text[i + 1] == 47:  # ://
                flag |= LINK
            if code_point == 46 and before == 119 and i >= starts[line] + 3 and text[i - 3] == 119:
                flag |= LINK  # www.
            before = code_point
            i += size
        if num_garbled >= 2 and 5 * num_garbled >= num_ideographs:
            flag |= SUSPECT
        if num_digits > 0 and num_letters + num_ideographs <= MOST_LETTERS:
            flag |= NUMBERED
        last_kind = last_value & CLASS_MASK
        is_ended = last_kind == PERIOD or last_kind == TERMINATOR or last_kind == FULL_STOP
        is_ended |= last_kind == BRACKET and last_value & OPENING == 0
        if num_chars >= LONG_LINE and not is_ended:
            flag |= OPEN
        width += num_letters + num_digits + 2 * num_ideographs
        flags[line] = flag
        widths[line] = np.int64(-1) if is_blank else width
        sizes[line] = num_chars


@kernel
def hash_parts(text, starts, ends, hashes):
    """Hash parts of a text without the white space (of ASCII) around them."""
    for part in range(len(starts)):
        i, end = starts[part], ends[part]
        while i < end and text[i] <= 32:
            i += 1
        while end > i and text[end - 1] <= 32:
            end -= 1
        value = np.uint64(end - i)
        for j in range(i, end):
            value = (value ^ np.uint64(text[j])) * np.uint64(PRIME)
        hashes[part] = fast_mix(value)


# ---- lines that are in many documents -----------------------------------------------------------


@kernel
def count_lines(hashes, documents, first, keys, counts, last, num_used):
    """Count the documents of each line from `first` on; stop where three quarters are used.

    `keys`, `counts` and `last` (the last document of the line) are an open-addressing table whose
    size is a power of two; a key is never 0. Gives the next line and the number of used slots.
    """
    mask = np.uint64(len(keys) - 1)
    limit = len(keys) - len(keys) // 4
    for line in range(first, len(hashes)):
        key = hashes[line]
        if key == 0:
            continue
        slot = key & mask
        while keys[slot] != 0 and keys[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if keys[slot] == 0:
            if num_used >= limit:
                return line, num_used
            num_used += 1
            keys[slot] = key
        elif last[slot] == documents[line]:
            continue
        counts[slot] += 1
        last[slot] = documents[line]
    return len(hashes), num_used


@kernel
def move_counts(keys, counts, last, least, new_keys, new_counts, new_last):
    """Copy the lines of at least `least` documents to an empty table; how many there are."""
    mask = np.uint64(len(new_keys) - 1)
    num = 0
    for old in range(len(keys)):
        if keys[old] == 0 or counts[old] < least:
            continue
        slot = keys[old] & mask
        while new_keys[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        new_keys[slot], new_counts[slot], new_last[slot] = keys[old], counts[old], last[old]
        num += 1
    return num


# ---- shingles and MinHash -----------------------------------------------------------------------


@kernel
def add_unit(unit, ring, power, state, out, num):
    """Append a unit to the rolling hash of the last ones; write a shingle if there are enough.

    `state` holds the rolled hash and the number of units; gives the new number of shingles.
    """
    place = state[1] % np.uint64(len(ring))
    state[0] = state[0] * np.uint64(GOLDEN) + unit - ring[place] * power
    ring[place] = unit
    state[1] += np.uint64(1)
    if state[1] < np.uint64(len(ring)):
        return num
    out[num] = np.uint32(fast_mix(state[0]) >> np.uint64(32))
    return num + 1


@kernel
def shingle(text, start, end, classes, lower, by_characters, ring, power, out):
    """Write the hashes of a document's shingles to `out`, in rising order; how many differ.

    Units are words in lower case, or single characters; ideographs and symbols always are units of
    their own. A document with fewer units than a shingle is one shingle.
    """
    state = np.zeros(2, np.uint64)
    ring[:] = 0
    num = 0
    word = np.uint64(0)
    i = start
    while i < end:
        code_point, size = decode(text, i, end)
        i += size
        value = classes[code_point]
        kind = value & CLASS_MASK
        if kind == FORMAT:
            continue
        is_word = kind == LETTER or kind == DIGIT or kind == MARK
        if is_word and not by_characters:
            if word != 0 or kind != MARK:
                word = (word ^ np.uint64(lower[code_point])) * np.uint64(PRIME) + np.uint64(1)
            continue
        if word != 0:
            num = add_unit(fast_mix(word), ring, power, state, out, num)
            word = np.uint64(0)
        if kind == IDEOGRAPH or value & SYMBOL or (is_word and kind != MARK):
            unit = fast_mix(np.uint64(lower[code_point]) + np.uint64(GOLDEN))
            num = add_unit(unit, ring, power, state, out, num)
    if word != 0:
        num = add_unit(fast_mix(word), ring, power, state, out, num)
    if num == 0 and state[1] > 0:
        out[0] = np.uint32(fast_mix(state[0] + state[1]) >> np.uint64(32))
        return 1
    own = out[:num]
    own.sort()
    num_distinct = min(num, 1)
    for j in range(1, num):
        if own[j] != own[j - 1]:
            own[num_distinct] = own[j]
            num_distinct += 1
    return num_distinct


@kernel
def sign(shingles, factors, offsets, signature):
    """The smallest value of each hash function over the shingles (Broder 1997)."""
    signature[:] = np.uint32(0xFFFFFFFF)
    for j in range(len(shingles)):
        value = shingles[j]
        for h in range(len(signature)):
            hashed = np.uint32(factors[h] * value + offsets[h])
            signature[h] = min(hashed, signature[h])


@kernel
def fingerprint(
    text, ends, classes, lower, by_characters, size, factors, offsets, num_rows, most_kept,
    shingles, num_shingles, keys,
):  # fmt: skip
    """Write the kept shingles of each document one after the other, and its keys per band.

    `keys` has a row per band; a band hashes `num_rows` values of the signature. Of a long document
    the `most_kept` smallest shingles are kept. Gives the number of shingles written.
    """
    ring = np.zeros(size, np.uint64)
    power = np.uint64(1)
    for _ in range(size):
        power *= np.uint64(GOLDEN)
    signature = np.empty(len(factors), np.uint32)
    num = 0
    start = 0
    for document in range(len(ends)):
        end = ends[document]
        own = shingles[num:]
        num_own = shingle(text, start, end, classes, lower, by_characters, ring, power, own)
        sign(own[:num_own], factors, offsets, signature)
        for band in range(len(keys)):
            key = np.uint64(0)
            for row in range(band * num_rows, (band + 1) * num_rows):
                key = fast_mix(key + np.uint64(signature[row]) + np.uint64(GOLDEN))
            keys[band, document] = np.uint32(key >> np.uint64(32))
        num_shingles[document] = min(num_own, most_kept)
        num += min(num_own, most_kept)
        start = end
    return num


# ---- comparisons --------------------------------------------------------------------------------


@exact_kernel
def similarity(a, b, most_kept):
    """The Jaccard similarity of two sets in rising order; estimated where one was cut short."""
    limit = most_kept if len(a) == most_kept or len(b) == most_kept else len(a) + len(b)
    i = j = 0
    num_common = 0
    num_union = 0
    while num_union < limit and (i < len(a) or j < len(b)):
        if j == len(b) or (i < len(a) and a[i] < b[j]):
            i += 1
        elif i == len(a) or b[j] < a[i]:
            j += 1
        else:
            num_common += 1
            i += 1
            j += 1
        num_union += 1
    return num_common / max(num_union, 1)


@exact_kernel
def match(
    first, groups, bases, bounds, filled, members, compared, shingles, shingle_ends, most_kept,
    threshold, original, similarities,
):  # fmt: skip
    """Find an earlier kept document that resembles each document of a run from `first` on.

    `groups` has a row per band: the number from 1 on of the group in which a document shares its
    key with others, or 0; `bases` are the numbers of groups in earlier bands. The members of a
    group, kept documents, are in a ring between two `bounds`, and `filled` counts them. A document
    that resembles none becomes a member of its groups.
    """
    for place in range(groups.shape[1]):
        document = first + place
        own = shingles[shingle_ends[document] : shingle_ends[document + 1]]
        is_found = False
        for band in range(len(groups)):
            if groups[band, place] == 0:
                continue
            group = bases[band] + np.int64(groups[band, place]) - 1
            start, stop = bounds[group], bounds[group + 1]
            for m in range(start, start + min(np.int64(filled[group]), stop - start)):
                other = np.int64(members[m])
                if compared[other] == document + 1:
                    continue
                compared[other] = document + 1
                others = shingles[shingle_ends[other] : shingle_ends[other + 1]]
                # The smaller set cannot hold more than its own share of the union.
                fewer, more = min(len(own), len(others)), max(len(own), len(others))
                if more < most_kept and fewer < threshold * more - 1e-9:
                    continue
                found = similarity(own, others, most_kept)
                if found >= threshold:
                    original[document] = other
                    similarities[document] = found
                    is_found = True
                    break
            if is_found:
                break
        if is_found:
            continue
        for band in range(len(groups)):
            if groups[band, place] > 0:
                group = bases[band] + np.int64(groups[band, place]) - 1
                start, stop = bounds[group], bounds[group + 1]
                members[start + np.int64(filled[group]) % (stop - start)] = document
                filled[group] += 1
