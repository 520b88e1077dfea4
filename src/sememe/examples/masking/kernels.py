"""Kernels of masking: write rows, find phrases in a trie, hide tokens. B rows, T positions.

A row is [CLS] A [SEP], or [CLS] A [SEP] B [SEP], then padding. The trie is a hash table of edges:
the key of an edge is state · V + token, and -1 marks a free slot.
"""

import numpy as np

from sememe.machine import kernel
from sememe.randomness import fast_number

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
            if is_first[ids[index]] and word_starts[index] != 0:
                found = phrase_end(ids, index, end, is_continuation, keys, states, is_end, is_first)
            if found > index and (found == end or word_starts[found] != 0):
                for inner in range(index + 1, found):
                    word_starts[inner] = 0
                index = found
            else:
                index += 1
        start = end


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
    while index < end and (index == start or word_starts[index] == 0):
        is_text &= not is_special[ids[index]]
        code = fast_number(code, ids[index])
        index += 1
    return index, (code | _U1 if is_text else np.uint64(0))


@kernel
def count_word_pairs(
    ids, word_starts, sentence_ends, is_special, keys, counts, places, sizes, first_slots,
    second_slots,
):  # fmt: skip
    """Count words and pairs of neighboring words within sentences; returns the number of words.

    Words and pairs share one table: keys (uint64 hashes), counts, places (int64, the first
    occurrence), sizes (tokens of a pair; 0 for a word), and the slots of a pair's words. What
    comes after the table is three quarters full is left out.
    """
    num_words, num_used, end = 0, 0, np.int64(0)
    for sentence in range(len(sentence_ends)):
        index, end = end, sentence_ends[sentence]
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
            break
    return num_words


_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
TOKEN, WORD, PHRASE = range(3)
# What a place of a row is to the masks: more of the same unit, the start of one, none at all.
GOES_ON, STARTS, STAYS = range(3)
# The draws of a row: those that choose units come first, then one for each place.
_PLACES = 1 << 32


@kernel
def fill_rows(ids, spans_B4, cls_id, sep_id, pad_id, ids_BT, segments_BT, lengths_B):
    """Write the examples `spans_B4` as rows with their segments and lengths."""
    for row in range(len(spans_B4)):
        ids_BT[row, 0] = cls_id
        segments_BT[row, :] = 0
        at = 1
        for part in range(2):
            start, end = spans_B4[row, 2 * part], spans_B4[row, 2 * part + 1]
            if part and start == end:
                break
            segments_BT[row, at : at + end - start + 1] = part
            for index in range(start, end):
                ids_BT[row, at] = ids[index]
                at += 1
            ids_BT[row, at] = sep_id
            at += 1
        ids_BT[row, at:] = pad_id
        lengths_B[row] = at


@kernel
def _mark_units(ids, word_starts, start, end, unit, is_special, is_continuation, trie, kinds):
    """Fill `kinds` with what each token of ids[start:end] is to the masks."""
    for index in range(start, end):
        if is_special[ids[index]]:
            kinds[index - start] = STAYS
        elif unit == TOKEN or word_starts[index] != 0:
            kinds[index - start] = STARTS
        else:
            kinds[index - start] = GOES_ON
    if unit != PHRASE:
        return
    index = start
    while index < end:
        found = index
        if trie[3][ids[index]]:  # a call costs more than the look at its first token
            found = phrase_end(ids, index, end, is_continuation, trie[0], trie[1], trie[2], trie[3])
        if found == index:
            index += 1
            continue
        kinds[index - start] = STARTS
        kinds[index - start + 1 : found - start] = GOES_ON
        if found < end and kinds[found - start] == GOES_ON:
            kinds[found - start] = STARTS  # the phrase ended inside a word
        index = found


@kernel
def _collect_units(kinds, length, firsts, lasts):
    """Fill firsts[u], lasts[u] with the bounds of each unit of a row; returns their number."""
    num, is_open = 0, False
    for place in range(length):
        if kinds[place] == STAYS:
            is_open = False
        elif kinds[place] == STARTS or not is_open:
            firsts[num], lasts[num] = place, place + 1
            num += 1
            is_open = True
        else:
            lasts[num - 1] = place + 1
    return num


@kernel
def _choose(firsts, lasts, num_units, target, key, is_hidden):
    """Hide units in a random order until `target` tokens are; one that would pass it is left out.

    The first one drawn is hidden in any case if no unit is small enough.
    """
    num_hidden = 0
    for index in range(num_units):
        if num_hidden >= target:
            return
        rest = np.uint64(num_units - index)
        other = index + np.int64(((fast_number(key, index) >> _HALF) * rest) >> _HALF)
        firsts[index], firsts[other] = firsts[other], firsts[index]
        lasts[index], lasts[other] = lasts[other], lasts[index]
        if num_hidden + lasts[index] - firsts[index] <= target:
            is_hidden[firsts[index] : lasts[index]] = True
            num_hidden += lasts[index] - firsts[index]
    if num_hidden == 0 and num_units > 0:
        is_hidden[firsts[0] : lasts[0]] = True


@kernel
def hide_rows(
    ids, word_starts, spans_B4, keys_B, lengths_B, unit, rate, mask_limit, random_limit, mask_id,
    replacements, is_special, is_continuation, trie, ids_BT, hidden, targets,
):  # fmt: skip
    """Hide tokens of every row; returns how many, their places in `hidden`, ids in `targets`.

    mask_limit, random_limit: 32-bit limits under which a draw gives [MASK], or a random token.
    """
    width, num = ids_BT.shape[1], 0
    kinds, is_hidden = np.empty(width, np.uint8), np.empty(width, np.bool_)
    firsts, lasts = np.empty(width, np.int64), np.empty(width, np.int64)
    for row in range(len(ids_BT)):
        kinds[:] = STAYS
        is_hidden[:] = False
        at = 1
        for part in range(2):
            start, end = spans_B4[row, 2 * part], spans_B4[row, 2 * part + 1]
            _mark_units(
                ids, word_starts, start, end, unit, is_special, is_continuation, trie, kinds[at:]
            )
            at += end - start + 1
        num_units = _collect_units(kinds, lengths_B[row], firsts, lasts)
        target = max(1, np.int64(np.rint(rate * lengths_B[row])))
        _choose(firsts, lasts, num_units, target, keys_B[row], is_hidden)
        for place in range(lengths_B[row]):
            if not is_hidden[place]:
                continue
            hidden[num], targets[num] = row * width + place, ids_BT[row, place]
            num += 1
            draw = fast_number(keys_B[row], _PLACES + place)
            if draw >> _HALF < mask_limit:
                ids_BT[row, place] = mask_id
            elif draw >> _HALF < random_limit:
                chosen = ((draw & _LOW) * np.uint64(len(replacements))) >> _HALF
                ids_BT[row, place] = replacements[chosen]
    return num
