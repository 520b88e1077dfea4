"""Kernels over record bytes and word ids: words counted and numbered, pairs counted and joined.

A table is five arrays that the caller owns and grows; `slots` is uint64, two for each slot: the
hash, then (word_id + 1) << 1 | is_long.
"""

import numpy as np

from sememe.machine import kernel
from sememe.randomness import GOLDEN, fast_mix

NUM_WORDS, ARENA_END, NUM_IDS, NUM_SENTENCES, NUM_DOCUMENTS = 0, 1, 2, 3, 4
SENTENCE_SIZE, DOCUMENT_SIZE, CONTENT_HASH, CONTENT_SIZE, NUM_SCANNED = 5, 6, 7, 8, 9
STATE_SIZE = 10

U0, U1, U2, U7, U8 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(7), np.uint64(8)
DOCUMENT_END, SENTENCE_END, WORD_END = np.uint64(0x1D), np.uint64(0x1E), np.uint64(0x1F)
BYTE = np.uint64(0xFF)
EVERY_01 = np.uint64(0x0101010101010101)
EVERY_1F = np.uint64(0x1F1F1F1F1F1F1F1F)
EVERY_80 = np.uint64(0x8080808080808080)
S8, S16, S24, S32 = np.uint64(8), np.uint64(16), np.uint64(24), np.uint64(32)
S40, S48, S56 = np.uint64(40), np.uint64(48), np.uint64(56)
U3, U4, U5, U6 = np.uint64(3), np.uint64(4), np.uint64(5), np.uint64(6)


@kernel
def load(data, start, size):
    """Eight bytes from `start` as one number, with WORD_END for bytes past the end."""
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
def find_end(key):
    """The top bit of the first WORD_END byte in `key`, or 0."""
    difference = key ^ EVERY_1F
    found = (difference - EVERY_01) & ~difference & EVERY_80
    return found & (~found + U1)


@kernel
def end_offset(found):
    """The byte that `found` is in, 0 to 7."""
    return ((((found >> U7) - U1) & EVERY_01) * EVERY_01) >> S56


@kernel
def hash_word(data, position, size, key):
    """The hash of the word at `position`, whose first bytes are `key`; where it stops; is_long."""
    found, stop = find_end(key), position
    if found:
        return fast_mix(key & (found | (found - U1))), stop + end_offset(found) + U1, U0
    word_hash = GOLDEN
    while not found:
        word_hash = fast_mix(word_hash ^ key) + GOLDEN
        stop += U8
        key = load(data, stop, size)
        found = find_end(key)
    word_hash = fast_mix(word_hash ^ (key & (found | (found - U1))))
    return word_hash, stop + end_offset(found) + U1, U1


@kernel
def is_same(data, position, word_size, arena, ends, word_id):
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
def find_word(data, position, word_size, word_hash, is_long, slots, ends, arena):
    """The slot of a word, or the free one for it."""
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
def scan(data, start, weights, ids, sentences, documents, slots, counts, ends, arena, state):
    """Count and number the words of `data` from `start` on; return where it stopped.

    It stops early when an output or the table is full. Word ids go to `ids`, sizes of sentences in
    words to `sentences`, of documents in sentences to `documents`; empty sentences are dropped.
    `weights` holds the count of each word of `data`, or is empty if each counts once.
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
def grow(slots, new_slots):
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
def group(slots, shift, bounds, order):
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
def gather(arena, ends, order, out):
    """Copy the words `order` of `arena` consecutively into `out`; return their size."""
    end = 0
    for index in range(len(order)):
        word_id = np.int64(order[index])
        start = ends[word_id - 1] if word_id else 0
        for offset in range(start, ends[word_id]):
            out[end] = arena[offset]
            end += 1
    return end


@kernel
def translate(ids, mapping, out):
    """Write mapping[ids] to `out` and return its rolling hash (see `roll`)."""
    rolled = U0
    for index in range(len(ids)):
        new_id = mapping[np.uint64(ids[index])]
        out[index] = new_id
        rolled = rolled * GOLDEN + np.uint64(new_id)
    return rolled


@kernel
def roll(numbers, rolled):
    """Continue the rolling hash: hash(a + b) = hash(a)·GOLDEN^len(b) + hash(b) modulo 2^64."""
    for index in range(len(numbers)):
        rolled = rolled * GOLDEN + np.uint64(numbers[index])
    return rolled


NO_WORD = np.uint64(0xFFFFFFFF)


@kernel
def count_pairs(ids, ends, held, num_words, num_parts, part, keys, counts, num_pairs):
    """Count pairs of words below `num_words` whose hash falls in `part`; -1 when that is too many.

    Returns the word to hold for the next block, and the number of distinct pairs so far.
    """
    mask, limit, sentence = np.uint64(len(keys) - 1), len(keys) * 3 // 4, 0
    for index in range(len(ids)):
        word = np.uint64(ids[index])
        if word < num_words and held < num_words:
            key = (held << S32) | (word + U1)
            code = fast_mix(key)
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
def fill(keys, new_ids, slot_keys, slot_ids):
    """Put the joined word of each key into an empty table."""
    mask = np.uint64(len(slot_keys) - 1)
    for index in range(len(keys)):
        slot = fast_mix(keys[index]) & mask
        while slot_keys[slot]:
            slot = (slot + U1) & mask
        slot_keys[slot] = keys[index]
        slot_ids[slot] = new_ids[index]


@kernel
def join_pairs(ids, ends, held, size, slot_keys, slot_ids, out, sizes, counts):
    """Join pairs of the table from left to right; a word of one pair cannot begin another.

    Joined ids go to `out`, sizes of sentences to `sizes`, occurrences are added to `counts`.
    Returns the word to hold, the size of the open sentence without it, and the number of ids.
    """
    mask, sentence, num_out = np.uint64(len(slot_keys) - 1), 0, 0
    for index in range(len(ids)):
        word = np.uint64(ids[index])
        if held != NO_WORD:
            key = (held << S32) | (word + U1)
            slot = fast_mix(key) & mask
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
