# ruff: noqa: SIM109 (plain comparisons compile to plain machine code)
"""Unicode words and sentences over UTF-8 bytes, without the GIL: the rules of words.py, fast.

Text and document ends in, record bytes out; see kernels.py for `lower`, `plain` and `out`.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.text import characters as ch
from sememe.text import sentences as st
from sememe.text.kernels import copy_plain, decode, encode

# Plain names, because numba freezes the globals of a kernel but not the attributes of a module.
LETTER, DIGIT, IDEOGRAPH, MARK, FORMAT = ch.LETTER, ch.DIGIT, ch.IDEOGRAPH, ch.MARK, ch.FORMAT
SPACE, NEWLINE, APOSTROPHE, UNDERSCORE = ch.SPACE, ch.NEWLINE, ch.APOSTROPHE, ch.UNDERSCORE
MID_LETTER, COMMA, PERIOD, TERMINATOR = ch.MID_LETTER, ch.COMMA, ch.PERIOD, ch.TERMINATOR
FULL_STOP, BRACKET, CLASS_MASK = ch.FULL_STOP, ch.BRACKET, ch.CLASS_MASK
UPPER, LOWER = ch.UPPER, ch.LOWER
CLEAR, ENDED, MAY_BREAK, BLOCKED = st.CLEAR, st.ENDED, st.MAY_BREAK, st.BLOCKED
NUMBER_ENDED, NUMBER_MAY_BREAK, MUST_BREAK = st.NUMBER_ENDED, st.NUMBER_MAY_BREAK, st.MUST_BREAK
ALWAYS = st.ALWAYS
WORD_END, SENTENCE_END, DOCUMENT_END = 0x1F, 0x1E, 0x1D
LONGEST_ABBREVIATION = 8


@kernel
def is_joined(kind, last_kind, next_kind):  # type: ignore[no-untyped-def]
    """Whether a character of class `kind` joins what stands before and after it to one word."""
    if kind == APOSTROPHE or kind == UNDERSCORE:
        return next_kind == LETTER or next_kind == DIGIT
    if kind == COMMA or kind == PERIOD:
        return last_kind == DIGIT and next_kind == DIGIT
    return kind == MID_LETTER and last_kind == LETTER and next_kind == LETTER


@kernel
def state_after_period(text, begin, start, i, classes, keys, kinds):  # type: ignore[no-untyped-def]
    """The state after a full stop at `i` right behind the word that starts at `start`.

    The document starts at `begin`.
    """
    code_point, size = decode(text, start, i)
    is_upper = classes[code_point] & UPPER != 0
    if i - start == size and (is_upper or (start > begin and text[start - 1] == 46)):
        return BLOCKED
    if i - start > LONGEST_ABBREVIATION:
        return ENDED
    key = np.int64(0)
    for j in range(start, i):
        b = text[j]
        if b >= 0x80:
            return ENDED
        if b >= 65 and b <= 90:
            b += 32
        key |= np.int64(b) << (8 * (j - start))
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == len(keys) or keys[low] != key:
        return ENDED
    return BLOCKED if kinds[low] == ALWAYS else NUMBER_ENDED


@kernel
def breaks_before(state, value):  # type: ignore[no-untyped-def]
    """Whether a word whose first character has the class and flags `value` starts a sentence."""
    if state == MAY_BREAK:
        return value & LOWER == 0
    if state == NUMBER_MAY_BREAK:
        return value & LOWER == 0 and value & CLASS_MASK != DIGIT
    return state == MUST_BREAK


@kernel
def state_after(state, kind, sentences):  # type: ignore[no-untyped-def]
    """The state after a character of class `kind` between words (a full stop: not behind one)."""
    if state == MUST_BREAK or kind == NEWLINE:
        return MUST_BREAK
    if kind == SPACE:
        if state == ENDED:
            return MAY_BREAK
        if state == NUMBER_ENDED:
            return NUMBER_MAY_BREAK
        return CLEAR if state == BLOCKED else state
    if not sentences:
        return state
    if kind == FULL_STOP:
        return MUST_BREAK
    if kind == TERMINATOR or kind == PERIOD:
        return ENDED
    if kind == BRACKET or kind == APOSTROPHE or kind == MARK or kind == FORMAT:
        return state
    return state if state == MAY_BREAK or state == NUMBER_MAY_BREAK else CLEAR


@kernel
def segment_unicode(  # type: ignore[no-untyped-def]
    text, ends, classes, lower, plain, keys, kinds, sentences, out, is_kept
):
    """Cut documents into Unicode words and sentences; the number of bytes written to `out`."""
    o = 0
    i = 0
    for document in range(len(ends)):
        begin = i
        end = ends[document]
        document_start = o
        sentence_start = o
        state = CLEAR
        in_word = False
        start = i  # of the word, in the text
        last_kind = 0  # of the word's last letter or digit
        while i < end:
            if state == CLEAR:
                before = i
                i, o, word_start = copy_plain(text, i, end, plain, out, o, in_word)
                if i > before:
                    if word_start >= 0:
                        start = i - (o - word_start)
                    in_word = word_start < 0 or o > word_start
                    last_kind = classes[text[i - 1]] & CLASS_MASK
                    if i == end:
                        break
            code_point, size = decode(text, i, end)
            value = classes[code_point]
            kind = value & CLASS_MASK
            is_letter = kind == LETTER or kind == DIGIT
            if in_word:
                if not is_letter and kind >= APOSTROPHE and kind <= PERIOD and i + size < end:
                    next_code_point, _ = decode(text, i + size, end)
                    if is_joined(kind, last_kind, classes[next_code_point] & CLASS_MASK):
                        out[o] = 39
                        o = o + 1 if kind == APOSTROPHE else encode(code_point, out, o)
                        i += size
                        continue
                if is_letter or kind == MARK:
                    o = encode(lower[code_point], out, o)
                    i += size
                    last_kind = kind if is_letter else last_kind
                    continue
                if kind == FORMAT:
                    i += size
                    continue
                out[o] = WORD_END
                o += 1
                in_word = False
                if kind == PERIOD and sentences:
                    state = state_after_period(text, begin, start, i, classes, keys, kinds)
                    i += size
                    continue
            if not is_letter and kind != IDEOGRAPH:
                state = state_after(state, kind, sentences)
                i += size
                continue
            if breaks_before(state, value) and o > sentence_start:
                out[o] = SENTENCE_END
                o += 1
                sentence_start = o
            state = CLEAR
            start = i
            last_kind = kind
            in_word = is_letter
            o = encode(lower[code_point], out, o)
            i += size
            while kind == IDEOGRAPH and i < end:
                code_point, size = decode(text, i, end)
                mark_kind = classes[code_point] & CLASS_MASK
                if mark_kind != MARK and mark_kind != FORMAT:
                    break
                if mark_kind == MARK:
                    o = encode(lower[code_point], out, o)
                i += size
            if kind == IDEOGRAPH:
                out[o] = WORD_END
                o += 1
        if in_word:
            out[o] = WORD_END
            o += 1
        if o > sentence_start:
            out[o] = SENTENCE_END
            o += 1
        is_kept[document] = o > document_start
        if o > document_start:
            out[o] = DOCUMENT_END
            o += 1
    return o
