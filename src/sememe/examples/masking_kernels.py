"""Kernels that write rows of ids and hide some of their tokens. B rows, T positions.

A row is [CLS] A [SEP], or [CLS] A [SEP] B [SEP] where B is not empty, then padding.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.randomness import fast_number
from sememe.examples.spans_kernels import is_word_start, phrase_end

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
        elif unit == TOKEN or is_word_start(word_starts, index):
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
