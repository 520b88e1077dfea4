"""Kernels over record-form bytes: words are hashed, counted and numbered without Python objects.

A table is five arrays that the caller owns and grows:
  slots   uint64, two for each slot: the hash, then (word_id + 1) << 1 | is_long; 0 is free
  counts  int64 by word_id
  ends    int64 by word_id: where the word, with its WORD_END, ends in the arena
  arena   uint8: every word followed by WORD_END, so an arena is itself in record form
  state   int64, see the indices below

The hash of a word of up to seven bytes is a bijection of its bytes, so equal hashes mean equal
words; longer words are compared byte by byte. Counts are exact whatever collides.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

NUM_WORDS, ARENA_END, NUM_IDS, NUM_SENTENCES, NUM_DOCUMENTS = 0, 1, 2, 3, 4
SENTENCE_SIZE, DOCUMENT_SIZE, CONTENT_HASH, CONTENT_SIZE, NUM_SCANNED = 5, 6, 7, 8, 9
STATE_SIZE = 10

U0, U1, U2, U7, U8 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(7), np.uint64(8)
DOCUMENT_END, SENTENCE_END, WORD_END = np.uint64(0x1D), np.uint64(0x1E), np.uint64(0x1F)
BYTE = np.uint64(0xFF)
EVERY_01 = np.uint64(0x0101010101010101)
EVERY_1F = np.uint64(0x1F1F1F1F1F1F1F1F)
EVERY_80 = np.uint64(0x8080808080808080)
# Two odd multipliers of splitmix64 (Steele et al. 2014) and the golden ratio.
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
S8, S16, S24, S27, S30 = np.uint64(8), np.uint64(16), np.uint64(24), np.uint64(27), np.uint64(30)
S31, S32, S40, S48, S56 = np.uint64(31), np.uint64(32), np.uint64(40), np.uint64(48), np.uint64(56)
U3, U4, U5, U6 = np.uint64(3), np.uint64(4), np.uint64(5), np.uint64(6)


@kernel
def mix(key):  # type: ignore[no-untyped-def]
    """Scatter 64 bits, one to one (splitmix64's finaliser)."""
    key = (key ^ (key >> S30)) * MIX_1
    key = (key ^ (key >> S27)) * MIX_2
    return key ^ (key >> S31)


@kernel
def load(data, start, size):  # type: ignore[no-untyped-def]
    """Eight bytes from `start` as one number, WORD_END standing for what lies past the end."""
    if start + U8 <= size:  # LLVM makes one load of this
        return (
            np.uint64(data[start])
            | (np.uint64(data[start + U1]) << S8)
            | (np.uint64(data[start + U2]) << S16)
            | (np.uint64(data[start + U3]) << S24)
            | (np.uint64(data[start + U4]) << S32)
            | (np.uint64(data[start + U5]) << S40)
            | (np.uint64(data[start + U6]) << S48)
            | (np.uint64(data[start + U7]) << S56)
        )
    key = EVERY_1F
    for index in range(np.int64(size - start)):
        byte = np.uint64(index)
        shift = byte * U8
        key = (key & ~(BYTE << shift)) | (np.uint64(data[start + byte]) << shift)
    return key


@kernel
def find_end(key):  # type: ignore[no-untyped-def]
    """The top bit of the first WORD_END byte in `key`, or 0."""
    difference = key ^ EVERY_1F
    found = (difference - EVERY_01) & ~difference & EVERY_80
    return found & (~found + U1)


@kernel
def end_offset(found):  # type: ignore[no-untyped-def]
    """The byte that `found` lies in, 0 to 7."""
    return ((((found >> U7) - U1) & EVERY_01) * EVERY_01) >> S56


@kernel
def hash_word(data, position, size, key):  # type: ignore[no-untyped-def]
    """The hash of the word at `position`, whose first bytes are `key`; where it stops; is_long."""
    found, stop = find_end(key), position
    if found:
        return mix(key & (found | (found - U1))), stop + end_offset(found) + U1, U0
    word_hash = GOLDEN
    while not found:
        word_hash = mix(word_hash ^ key) + GOLDEN
        stop += U8
        key = load(data, stop, size)
        found = find_end(key)
    word_hash = mix(word_hash ^ (key & (found | (found - U1))))
    return word_hash, stop + end_offset(found) + U1, U1


@kernel
def is_same(data, position, word_size, arena, ends, word_id):  # type: ignore[no-untyped-def]
    """Whether the word at `position`, its end included in `word_size`, is that of the arena."""
    start = U0
    if word_id:
        start = np.uint64(ends[word_id - U1])
    if np.uint64(ends[word_id]) - start != word_size:
        return False
    for offset in range(np.int64(word_size) - 1):
        if data[position + np.uint64(offset)] != arena[start + np.uint64(offset)]:
            return False
    return True


@kernel
def find_word(data, position, word_size, word_hash, is_long, slots, ends, arena):  # type: ignore[no-untyped-def]
    """The slot of a word, or the free one where it belongs."""
    mask = np.uint64(len(slots) // 2 - 1)
    slot = word_hash & mask
    while True:
        entry = slots[U2 * slot + U1]
        if entry == U0:
            return slot
        if slots[U2 * slot] == word_hash and (entry & U1) == is_long:
            word_id = (entry >> U1) - U1
            if is_long == U0 or is_same(data, position, word_size, arena, ends, word_id):
                return slot
        slot = (slot + U1) & mask


@kernel
def scan(data, start, weights, ids, sentences, documents, slots, counts, ends, arena, state):  # type: ignore[no-untyped-def]
    """Count and number the words of `data` from `start` on; return where it stopped.

    It stops early where an output or the table is full. Word ids go to `ids`, sizes of sentences
    in words to `sentences`, of documents in sentences to `documents`; empty sentences are left
    out. `weights` holds the count of each word of `data`, or is empty where each counts once.
    """
    size, position = np.uint64(len(data)), np.uint64(start)
    num_words, arena_end = state[NUM_WORDS], state[ARENA_END]
    num_ids, num_sentences, num_documents = 0, 0, 0
    sentence_size, document_size = state[SENTENCE_SIZE], state[DOCUMENT_SIZE]
    content_hash, content_size = np.uint64(state[CONTENT_HASH]), state[CONTENT_SIZE]
    num_scanned, has_weights = state[NUM_SCANNED], len(weights) > 0
    while position < size:
        key = load(data, position, size)
        first = key & BYTE
        if first - DOCUMENT_END <= U2:  # a separator; smaller bytes wrap round to huge numbers
            if num_sentences == len(sentences) or num_documents == len(documents):
                break
            position += U1
            if first == WORD_END:  # an empty word
                continue
            content_hash, content_size = content_hash * GOLDEN + first, content_size + 1
            if sentence_size:
                sentences[num_sentences] = sentence_size
                num_sentences, document_size, sentence_size = (
                    num_sentences + 1,
                    document_size + 1,
                    0,
                )
            if first == DOCUMENT_END:
                documents[num_documents] = document_size
                num_documents, document_size = num_documents + 1, 0
            continue
        if num_ids == len(ids):
            break
        word_hash, stop, is_long = hash_word(data, position, size, key)
        word_size = stop - position
        slot = find_word(data, position, word_size, word_hash, is_long, slots, ends, arena)
        entry = slots[U2 * slot + U1]
        if entry == U0:
            if num_words == len(ends) or arena_end + np.int64(word_size) > len(arena):
                break
            entry = (np.uint64(num_words + 1) << U1) | is_long
            slots[U2 * slot] = word_hash
            slots[U2 * slot + U1] = entry
            for offset in range(np.int64(word_size) - 1):
                arena[arena_end + offset] = data[position + np.uint64(offset)]
            arena_end += np.int64(word_size)
            arena[arena_end - 1] = 0x1F
            counts[num_words], ends[num_words] = 0, arena_end
            num_words += 1
        word_id = (entry >> U1) - U1
        counts[word_id] += weights[num_scanned] if has_weights else 1
        ids[num_ids] = word_id
        num_ids, num_scanned, sentence_size = num_ids + 1, num_scanned + 1, sentence_size + 1
        content_hash, content_size = content_hash * GOLDEN + word_hash, content_size + 1
        position = stop
    state[NUM_WORDS], state[ARENA_END] = num_words, arena_end
    state[NUM_IDS], state[NUM_SENTENCES] = num_ids, num_sentences
    state[NUM_DOCUMENTS], state[NUM_SCANNED] = num_documents, num_scanned
    state[SENTENCE_SIZE], state[DOCUMENT_SIZE] = sentence_size, document_size
    state[CONTENT_HASH], state[CONTENT_SIZE] = np.int64(content_hash), content_size
    return min(np.int64(position), len(data))


@kernel
def grow(slots, new_slots):  # type: ignore[no-untyped-def]
    """Move every entry of `slots` to the larger, empty `new_slots`."""
    mask = np.uint64(len(new_slots) // 2 - 1)
    for old in range(len(slots) // 2):
        entry = slots[U2 * np.uint64(old) + U1]
        if entry:
            word_hash = slots[U2 * np.uint64(old)]
            slot = word_hash & mask
            while new_slots[U2 * slot + U1]:
                slot = (slot + U1) & mask
            new_slots[U2 * slot] = word_hash
            new_slots[U2 * slot + U1] = entry


@kernel
def group(slots, shift, bounds, order):  # type: ignore[no-untyped-def]
    """Put word ids in `order` by part, the hash's bits from `shift` up; `bounds` gets starts."""
    bounds[:] = 0
    for slot in range(len(slots) // 2):
        if slots[2 * slot + 1]:
            bounds[np.int64(slots[2 * slot] >> np.uint64(shift)) + 1] += 1
    for part in range(1, len(bounds)):
        bounds[part] += bounds[part - 1]
    places = bounds.copy()
    for slot in range(len(slots) // 2):
        if slots[2 * slot + 1]:
            bucket = np.int64(slots[2 * slot] >> np.uint64(shift))
            order[places[bucket]] = (slots[2 * slot + 1] >> U1) - U1
            places[bucket] += 1


@kernel
def gather(arena, ends, order, out):  # type: ignore[no-untyped-def]
    """Copy the words `order` of `arena`, one after the other, into `out`; return their size."""
    end = 0
    for index in range(len(order)):
        word_id = np.int64(order[index])
        start = ends[word_id - 1] if word_id else 0
        for offset in range(start, ends[word_id]):
            out[end] = arena[offset]
            end += 1
    return end


@kernel
def translate(ids, mapping, out):  # type: ignore[no-untyped-def]
    """Write mapping[ids] to `out` and return its rolling hash (see `roll`)."""
    rolled = U0
    for index in range(len(ids)):
        new_id = mapping[np.uint64(ids[index])]
        out[index] = new_id
        rolled = rolled * GOLDEN + np.uint64(new_id)
    return rolled


@kernel
def roll(numbers, rolled):  # type: ignore[no-untyped-def]
    """Continue the rolling hash: hash(a + b) = hash(a)·GOLDEN^len(b) + hash(b) modulo 2^64."""
    for index in range(len(numbers)):
        rolled = rolled * GOLDEN + np.uint64(numbers[index])
    return rolled
