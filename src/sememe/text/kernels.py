# ruff: noqa: SIM109 (plain comparisons compile to plain machine code)
"""Text over UTF-8 bytes, without the GIL: characters, words, tokens, ends of sentences.

`lower` maps each code point to what is written for it: its lower case, or itself. `out` must hold
2 × the text + 3 × the documents + 16 bytes (a lower-case letter can be longer than its capital).
`reference.py` has the rules in plain Python.
"""

import numpy as np

from sememe.machine import kernel
from sememe.text.characters import (
    ALWAYS,
    APOSTROPHE,
    BLOCKED,
    BRACKET,
    CLASS_MASK,
    CLEAR,
    COMMA,
    DIGIT,
    ENDED,
    FORMAT,
    FULL_STOP,
    IDEOGRAPH,
    LETTER,
    LOWER,
    MARK,
    MAY_BREAK,
    MID_LETTER,
    MUST_BREAK,
    NEWLINE,
    NUMBER_ENDED,
    NUMBER_MAY_BREAK,
    OPENING,
    PERIOD,
    SPACE,
    TERMINATOR,
    UNDERSCORE,
    UPPER,
)  # fmt: skip

WORD_END, SENTENCE_END, DOCUMENT_END = 0x1F, 0x1E, 0x1D
LONGEST_ABBREVIATION = 8


@kernel
def decode(text, i, end):
    """The code point at `i` and its size; a byte that starts nothing valid counts as U+FFFD."""
    b = np.int64(text[i])
    if b < 0x80:
        return b, 1
    if b >= 0xC2 and b < 0xE0 and i + 1 < end:
        return ((b & 0x1F) << 6) | (text[i + 1] & 0x3F), 2
    if b >= 0xE0 and b < 0xF0 and i + 2 < end:
        return ((b & 0x0F) << 12) | ((text[i + 1] & 0x3F) << 6) | (text[i + 2] & 0x3F), 3
    if b >= 0xF0 and b < 0xF5 and i + 3 < end:
        high = ((b & 0x07) << 18) | ((text[i + 1] & 0x3F) << 12)
        return min(high | ((text[i + 2] & 0x3F) << 6) | (text[i + 3] & 0x3F), 0x10FFFF), 4
    return 0xFFFD, 1


@kernel
def encode(code_point, out, o):
    """Write `code_point` as UTF-8 at `o`; the place after it."""
    if code_point < 0x80:
        out[o] = code_point
        return o + 1
    if code_point < 0x800:
        out[o] = 0xC0 | (code_point >> 6)
        out[o + 1] = 0x80 | (code_point & 0x3F)
        return o + 2
    if code_point < 0x10000:
        out[o] = 0xE0 | (code_point >> 12)
        out[o + 1] = 0x80 | ((code_point >> 6) & 0x3F)
        out[o + 2] = 0x80 | (code_point & 0x3F)
        return o + 3
    out[o] = 0xF0 | (code_point >> 18)
    out[o + 1] = 0x80 | ((code_point >> 12) & 0x3F)
    out[o + 2] = 0x80 | ((code_point >> 6) & 0x3F)
    out[o + 3] = 0x80 | (code_point & 0x3F)
    return o + 4


@kernel
def close(out, o, end, is_open):
    """Write `end` after the word or sentence that is open in `out`, if one is."""
    if is_open:
        out[o] = end
        o += 1
    return o


@kernel
def close_document(out, o, in_word, sentence_start, document_start):
    """End the word, the sentence and the document that are open in `out`; empty ones vanish."""
    o = close(out, o, WORD_END, in_word)
    o = close(out, o, SENTENCE_END, o > sentence_start)
    return close(out, o, DOCUMENT_END, o > document_start)


@kernel
def copy_plain(text, i, end, plain, out, o, in_word):
    """Copy words and single spaces while `plain` knows the bytes: most of a text, fast.

    `plain` gives the byte to write, WORD_END for a space, 0 for what needs a closer look. A space
    after another is written but not counted, so that no branch depends on where words end.
    Gives the new `i` and `o`, and where in `out` the last word starts (-1: in an earlier call).
    """
    was_end = np.int64(0) if in_word else np.int64(1)
    word_start = o if was_end else np.int64(-1)
    while i < end:
        b = plain[text[i]]
        if b == 0:
            break
        out[o] = b
        is_end = np.int64(b == WORD_END)
        o += 1 - (is_end & was_end)
        was_end = is_end
        word_start = o if is_end else word_start
        i += 1
    return i, o, word_start


@kernel
def space_size(text, i, end):
    """The size of the white space (as `str.split` sees it) at `i`; 0 if there is none."""
    b = text[i]
    if b < 0x80:
        return 1 if b == 32 or (b >= 9 and b <= 13) or (b >= 28 and b <= 31) else 0
    if b == 0xC2:
        return 2 if i + 1 < end and (text[i + 1] == 0x85 or text[i + 1] == 0xA0) else 0
    if b < 0xE1 or b > 0xE3 or i + 2 >= end:
        return 0
    c, d = text[i + 1], text[i + 2]
    if b == 0xE1:
        return 3 if c == 0x9A and d == 0x80 else 0
    if b == 0xE3:
        return 3 if c == 0x80 and d == 0x80 else 0
    if c == 0x80:
        return 3 if d <= 0x8A or d == 0xA8 or d == 0xA9 or d == 0xAF else 0
    return 3 if c == 0x81 and d == 0x9F else 0


@kernel
def segment_whitespace(text, ends, lower, plain, out, is_kept):
    """Split documents at white space, a sentence per line; the number of bytes written to `out`."""
    o = 0
    i = 0
    for document in range(len(ends)):
        end = ends[document]
        document_start = o
        sentence_start = o
        in_word = False
        while i < end:
            before = i
            i, o, word_start = copy_plain(text, i, end, plain, out, o, in_word)
            if i > before:
                in_word = word_start < 0 or o > word_start
                if i == end:
                    break
            size = space_size(text, i, end)
            if size == 0:
                code_point, size = decode(text, i, end)
                if size == 1:  # NUL, or a byte of no character: no longer than it was
                    out[o] = text[i]
                    o += 1
                else:
                    o = encode(lower[code_point], out, o)
                i += size
                in_word = True
                continue
            o = close(out, o, WORD_END, in_word)
            in_word = False
            if text[i] == 10:
                o = close(out, o, SENTENCE_END, o > sentence_start)
                sentence_start = o
            i += size
        o = close_document(out, o, in_word, sentence_start, document_start)
        is_kept[document] = o > document_start
    return o


@kernel
def select_tokens(tokens, classes, lower, sentences, out, is_kept):
    """Keep the words among the tokens of chinese.py; the number of bytes written to `out`.

    A token without a letter, digit or ideograph is not a word, but may end a sentence or document.
    Letters that rjieba does not know (é, я) come one by one: neighbours are joined again.
    """
    o = 0
    i = 0
    document = 0
    document_start = 0
    sentence_start = 0
    last_kind = 0  # of the word that was just written, if nothing is after it
    last_is_ascii = True
    while i < len(tokens):
        end = i
        has_word = False
        is_end = False
        while end < len(tokens) and tokens[end] != WORD_END:
            code_point, size = decode(tokens, end, len(tokens))
            kind = classes[code_point] & CLASS_MASK
            has_word |= kind == LETTER or kind == DIGIT or kind == IDEOGRAPH
            is_end |= kind == NEWLINE
            is_end |= sentences and (kind == FULL_STOP or kind == TERMINATOR)
            end += size
        is_document_end = end - i == 1 and tokens[i] == DOCUMENT_END
        if has_word:
            code_point, size = decode(tokens, i, end)
            kind = classes[code_point] & CLASS_MASK
            is_foreign = not (last_is_ascii and code_point < 0x80)
            is_alphabetic = kind == LETTER or kind == DIGIT
            if is_foreign and is_alphabetic and (last_kind == LETTER or last_kind == DIGIT):
                o -= 1
            while i < end:
                code_point, size = decode(tokens, i, end)
                kind = classes[code_point] & CLASS_MASK
                o = encode(lower[code_point], out, o)
                i += size
                last_is_ascii = code_point < 0x80
                last_kind = kind
            out[o] = WORD_END
            o += 1
        else:
            last_kind = 0
        if is_end or is_document_end:
            o = close(out, o, SENTENCE_END, o > sentence_start)
            sentence_start = o
        if is_document_end:
            o = close(out, o, DOCUMENT_END, o > document_start)
            is_kept[document] = o > document_start
            document += 1
            document_start = o
            sentence_start = o
        i = end + 1
    return o


# ---- Unicode words and ends of sentences: the rules of words.py ---------------------------------


@kernel
def is_joined(kind, last_kind, next_kind):
    """Whether a character of class `kind` joins what is before and after it to one word."""
    if kind == APOSTROPHE or kind == UNDERSCORE:
        return next_kind == LETTER or next_kind == DIGIT
    if kind == COMMA or kind == PERIOD:
        return last_kind == DIGIT and next_kind == DIGIT
    return kind == MID_LETTER and last_kind == LETTER and next_kind == LETTER


@kernel
def state_after_period(text, begin, start, i, classes, keys, kinds):
    """The state after a full stop at `i` right after the word that starts at `start`.

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
def breaks_before(state, value):
    """Whether a word whose first character has the class and flags `value` starts a sentence."""
    if state == MAY_BREAK:
        return value & LOWER == 0
    if state == NUMBER_MAY_BREAK:
        return value & LOWER == 0 and value & CLASS_MASK != DIGIT
    return state == MUST_BREAK


@kernel
def state_after(state, kind, sentences):
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
def segment_unicode(text, ends, classes, lower, plain, keys, kinds, sentences, out, is_kept):
    """Split documents into Unicode words and sentences; the number of bytes written to `out`."""
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
            if breaks_before(state, value):
                o = close(out, o, SENTENCE_END, o > sentence_start)
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
            o = close(out, o, WORD_END, kind == IDEOGRAPH)
        o = close_document(out, o, in_word, sentence_start, document_start)
        is_kept[document] = o > document_start
    return o


@kernel
def word_end(text, i, end, classes):
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
def next_state(state, kind, text, begin, start, i, classes, keys, kinds, sentences, is_chinese):
    """The state after a character of class `kind` at `i`; a word ends there if `start` >= 0."""
    if is_chinese:
        if kind == NEWLINE or (sentences and (kind == TERMINATOR or kind == FULL_STOP)):
            return MUST_BREAK
        return state
    if kind == PERIOD and start >= 0 and sentences:
        return state_after_period(text, begin, start, i, classes, keys, kinds)
    return state_after(state, kind, sentences)


@kernel
def sentence_ends(text, ends, classes, keys, kinds, sentences, is_chinese, out):
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
