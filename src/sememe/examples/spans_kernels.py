"""Kernels over phrases: a trie of token ids, its matches in a text, pairs of words that meet often.

The trie is a hash table of edges: the key of an edge is state · V + token, never negative; -1 marks
a free slot. State 0 is the root. V: the size of the vocabulary.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.randomness import fast_number

_U1 = np.uint64(1)


@kernel
def _slot(keys, key):
    """The slot of an edge, or the free one where it would be."""
    mask = np.uint64(len(keys) - 1)
    slot = fast_number(np.uint64(key), 0) & mask
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + _U1) & mask
    return slot


@kernel
def build_trie(ids, ends, keys, states, is_end, is_first):
    """Put the phrases ids[ends[i - 1]:ends[i]] into an empty trie; returns its number of states.

    keys: int64 and states: int32 by slot; is_end: uint8 by state; is_first: uint8 by id.
    """
    num_states, start = 1, 0
    for phrase in range(len(ends)):
        state = np.int64(0)
        is_first[ids[start]] = 1
        for index in range(start, ends[phrase]):
            key = state * len(is_first) + ids[index]
            slot = _slot(keys, key)
            if keys[slot] < 0:
                keys[slot], states[slot] = key, num_states
                num_states += 1
            state = np.int64(states[slot])
        is_end[state] = 1
        start = ends[phrase]
    return num_states


@kernel
def phrase_end(ids, start, end, is_continuation, keys, states, is_end, is_first):
    """The end of the longest phrase of several tokens at `start`, or `start` where there is none.

    A phrase that would end inside a word does not count: new york is not in new yorker.
    """
    state, found = np.int64(0), start
    for index in range(start, end):
        key = state * len(is_first) + ids[index]
        slot = _slot(keys, key)
        if keys[slot] < 0:
            break
        state = np.int64(states[slot])
        if is_end[state] and (index + 1 == end or not is_continuation[ids[index + 1]]):
            found = index + 1
    return found if found > start + 1 else start


@kernel
def find_phrase(ids, sentence_ends, is_continuation, keys, states, is_end, is_first):
    """The first token that starts a phrase of the trie, or -1 where none does in the whole text."""
    start = np.int64(0)
    for sentence in range(len(sentence_ends)):
        end = sentence_ends[sentence]
        for index in range(start, end):
            found = phrase_end(ids, index, end, is_continuation, keys, states, is_end, is_first)
            if found > index:
                return index
        start = end
    return np.int64(-1)


@kernel
def join_words(
    ids, word_starts, sentence_ends, is_continuation, keys, states, is_end, is_first
):  # fmt: skip
    """Make one word of every phrase of the trie that consists of whole words, from left to right.

    word_starts: uint8, cleared inside the phrases.
    """
    start = np.int64(0)
    for sentence in range(len(sentence_ends)):
        end, index = sentence_ends[sentence], start
        while index < end:
            found = index
            if is_first[ids[index]] and is_word_start(word_starts, index):
                found = phrase_end(ids, index, end, is_continuation, keys, states, is_end, is_first)
            if found > index and (found == end or is_word_start(word_starts, found)):
                for inner in range(index + 1, found):
                    word_starts[inner] = 0
                index = found
            else:
                index += 1
        start = end


@kernel
def find_long_word(word_starts, num_tokens):
    """The first token that does not start a word, or -1 where every word is one token."""
    for index in range(num_tokens):
        if not is_word_start(word_starts, index):
            return index
    return -1


@kernel
def is_word_start(word_starts, index):
    """Whether the token `index` starts a word."""
    return word_starts[index] != 0


@kernel
def _add(keys, counts, places, key, place):
    """Count one occurrence of `key`; returns its slot and whether it is new."""
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while keys[slot] and keys[slot] != key:
        slot = (slot + _U1) & mask
    is_new = not keys[slot]
    if is_new:
        keys[slot], places[slot] = key, place
    counts[slot] += 1
    return slot, is_new


@kernel
def _read_word(ids, word_starts, start, end, is_special):
    """(its end, its hash) of the word at `start`; a hash of 0 for one with a special token."""
    index, code, is_text = start, np.uint64(0), True
    while index < end and (index == start or not is_word_start(word_starts, index)):
        is_text &= not is_special[ids[index]]
        code = fast_number(code, ids[index])
        index += 1
    return index, (code | _U1 if is_text else np.uint64(0))


@kernel
def count_word_pairs(
    ids, word_starts, sentence_ends, document_ends, stride, is_special, keys, counts, places, sizes,
    first_slots, second_slots,
):  # fmt: skip
    """Count words and pairs of neighboring words in every `stride`-th document; returns the words.

    Words and pairs share one table: keys (uint64 hashes), counts, places (int64, the first
    occurrence), sizes (tokens of a pair; 0 for a word), and the slots of a pair's words. What
    comes after the table is three quarters full is left out.
    """
    num_words, num_used = 0, 0
    for document in range(0, len(document_ends), stride):
        first = document_ends[document - 1] if document else 0
        for sentence in range(first, document_ends[document]):
            index = sentence_ends[sentence - 1] if sentence else np.int64(0)
            end = sentence_ends[sentence]
            held, held_slot, held_start = np.uint64(0), np.uint64(0), index
            while index < end:
                start = index
                index, code = _read_word(ids, word_starts, start, end, is_special)
                if code:
                    slot, is_new = _add(keys, counts, places, code, start)
                    num_words, num_used = num_words + 1, num_used + is_new
                    if held:
                        pair = fast_number(held, code) | _U1
                        pair_slot, is_new = _add(keys, counts, places, pair, held_start)
                        num_used += is_new
                        sizes[pair_slot] = index - held_start
                        first_slots[pair_slot], second_slots[pair_slot] = held_slot, slot
                    held_slot = slot
                held, held_start = code, start
            if num_used > len(keys) * 3 // 4:
                return num_words
    return num_words
