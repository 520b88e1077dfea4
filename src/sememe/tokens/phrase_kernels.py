"""Kernels over ids: pairs of neighbours counted and joined, block after block of one text.

A block may start or end inside a sentence: `held` carries the last word over, NO_WORD after the
end of a sentence. `ends` are the ends of sentences within the block. A pair's key is
first << 32 | second + 1, never 0, which marks a free slot.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.tokens.kernels import mix

NO_WORD = np.uint64(0xFFFFFFFF)
U1, S32 = np.uint64(1), np.uint64(32)


@kernel
def count_pairs(ids, ends, held, num_words, num_parts, part, keys, counts, num_pairs):  # type: ignore[no-untyped-def]
    """Count pairs of words below `num_words` whose hash falls in `part`; -1 when that is too many.

    Returns the word to hold for the next block, and the number of distinct pairs so far.
    """
    mask, limit, sentence = np.uint64(len(keys) - 1), len(keys) * 3 // 4, 0
    for index in range(len(ids)):
        word = np.uint64(ids[index])
        if word < num_words and held < num_words:
            key = (held << S32) | (word + U1)
            code = mix(key)
            if ((code >> S32) * num_parts) >> S32 == part:
                slot = code & mask
                while keys[slot] and keys[slot] != key:
                    slot = (slot + U1) & mask
                if not keys[slot]:
                    if num_pairs == limit:
                        return NO_WORD, -1
                    keys[slot] = key
                    num_pairs += 1
                counts[slot] += 1
        held = word
        if sentence < len(ends) and index + 1 == ends[sentence]:
            held, sentence = NO_WORD, sentence + 1
    return held, num_pairs


@kernel
def fill(keys, new_ids, slot_keys, slot_ids):  # type: ignore[no-untyped-def]
    """Put the joined word of each key into an empty table."""
    mask = np.uint64(len(slot_keys) - 1)
    for index in range(len(keys)):
        slot = mix(keys[index]) & mask
        while slot_keys[slot]:
            slot = (slot + U1) & mask
        slot_keys[slot] = keys[index]
        slot_ids[slot] = new_ids[index]


@kernel
def join_pairs(ids, ends, held, size, slot_keys, slot_ids, out, sizes, counts):  # type: ignore[no-untyped-def]
    """Join pairs of the table from left to right; a word of one pair cannot begin another.

    Joined ids go to `out`, sizes of sentences to `sizes`, occurrences are added to `counts`.
    Returns the word to hold, the size of the open sentence without it, and the number of ids.
    """
    mask, sentence, num_out = np.uint64(len(slot_keys) - 1), 0, 0
    for index in range(len(ids)):
        word = np.uint64(ids[index])
        if held != NO_WORD:
            key = (held << S32) | (word + U1)
            slot = mix(key) & mask
            while slot_keys[slot] and slot_keys[slot] != key:
                slot = (slot + U1) & mask
            if slot_keys[slot]:
                held, word = np.uint64(slot_ids[slot]), NO_WORD
            out[num_out] = held
            counts[held] += 1
            num_out, size = num_out + 1, size + 1
        held = word
        if sentence < len(ends) and index + 1 == ends[sentence]:
            if held != NO_WORD:
                out[num_out] = held
                counts[held] += 1
                num_out, size = num_out + 1, size + 1
            sizes[sentence] = size
            held, size, sentence = NO_WORD, 0, sentence + 1
    return held, size, num_out
