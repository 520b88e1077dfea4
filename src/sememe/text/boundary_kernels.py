# ruff: noqa: SIM109 (plain comparisons compile to plain machine code)
"""Ends of sentences in raw UTF-8, without the GIL: the rules of boundaries.py, fast."""

from __future__ import annotations

from sememe.compiled import kernel
from sememe.text import characters as ch
from sememe.text import sentences as st
from sememe.text.kernels import decode
from sememe.text.unicode_kernels import breaks_before, is_joined, state_after, state_after_period

# Plain names, because numba freezes the globals of a kernel but not the attributes of a module.
LETTER, DIGIT, IDEOGRAPH, MARK, FORMAT = ch.LETTER, ch.DIGIT, ch.IDEOGRAPH, ch.MARK, ch.FORMAT
NEWLINE, APOSTROPHE, PERIOD, TERMINATOR = ch.NEWLINE, ch.APOSTROPHE, ch.PERIOD, ch.TERMINATOR
FULL_STOP, BRACKET, CLASS_MASK, OPENING = ch.FULL_STOP, ch.BRACKET, ch.CLASS_MASK, ch.OPENING
CLEAR, BLOCKED, MUST_BREAK = st.CLEAR, st.BLOCKED, st.MUST_BREAK


@kernel
def word_end(text, i, end, classes):  # type: ignore[no-untyped-def]
    """Where the word that starts at `i` ends."""
    code_point, size = decode(text, i, end)
    last_kind = classes[code_point] & CLASS_MASK
    i += size
    while i < end:
        code_point, size = decode(text, i, end)
        kind = classes[code_point] & CLASS_MASK
        if kind != MARK and kind != FORMAT:
            if last_kind == IDEOGRAPH:
                return i
            if kind == LETTER or kind == DIGIT:
                last_kind = kind
            else:
                if i + size >= end:
                    return i
                next_code_point, _ = decode(text, i + size, end)
                if not is_joined(kind, last_kind, classes[next_code_point] & CLASS_MASK):
                    return i
        i += size
    return i


@kernel
def next_state(  # type: ignore[no-untyped-def]
    state, kind, text, begin, start, i, classes, keys, kinds, sentences, is_chinese
):
    """The state after a character of class `kind` at `i`; a word ends there if `start` >= 0."""
    if is_chinese:
        if kind == NEWLINE or (sentences and (kind == TERMINATOR or kind == FULL_STOP)):
            return MUST_BREAK
        return state
    if kind == PERIOD and start >= 0 and sentences:
        return state_after_period(text, begin, start, i, classes, keys, kinds)
    return state_after(state, kind, sentences)


@kernel
def sentence_ends(  # type: ignore[no-untyped-def]
    text, ends, classes, keys, kinds, sentences, is_chinese, out
):
    """Write where sentences end, but not where documents do, to `out`; how many there are."""
    num = 0
    i = 0
    for document in range(len(ends)):
        begin = i
        end = ends[document]
        state = CLEAR
        cut = -1  # where the sentence ends if the next word starts another
        is_fixed = False
        start = -1  # of the word that ends at `i`
        while i < end:
            code_point, size = decode(text, i, end)
            value = classes[code_point]
            kind = value & CLASS_MASK
            if kind == LETTER or kind == DIGIT or kind == IDEOGRAPH:
                if cut > begin and breaks_before(state, value):
                    out[num] = cut
                    num += 1
                start = i
                i = word_end(text, i, end, classes)
                state = CLEAR
                cut = -1
                is_fixed = False
                continue
            state = next_state(
                state, kind, text, begin, start, i, classes, keys, kinds, sentences, is_chinese
            )
            start = -1
            if state == CLEAR or state == BLOCKED:
                cut = -1
                is_fixed = False
            else:
                is_ending = kind == PERIOD or kind == TERMINATOR or kind == FULL_STOP
                is_ending |= kind == APOSTROPHE or (kind == BRACKET and value & OPENING == 0)
                if is_ending and not is_fixed:
                    cut = i + size
                elif cut < 0:
                    cut = i
                is_fixed |= not is_ending
            i += size
    return num
