# ruff: noqa: SIM109 (plain comparisons compile to plain machine code)
"""Text over UTF-8 bytes, without the GIL: characters, white space, tokens, blank lines.

`lower` maps each code point to what is written for it: its lower case, or itself. `out` must hold
2 × the text + 3 × the documents + 16 bytes (a lower-case letter can be longer than its capital).
The rules are those of words.py and chinese.py, which have the plain references.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.text import characters as ch

# Plain names, because numba freezes the globals of a kernel but not the attributes of a module.
LETTER, DIGIT, IDEOGRAPH = ch.LETTER, ch.DIGIT, ch.IDEOGRAPH
NEWLINE, TERMINATOR, FULL_STOP = ch.NEWLINE, ch.TERMINATOR, ch.FULL_STOP
CLASS_MASK = ch.CLASS_MASK
WORD_END, SENTENCE_END, DOCUMENT_END = 0x1F, 0x1E, 0x1D


@kernel
def decode(text, i, end):  # type: ignore[no-untyped-def]
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
def encode(code_point, out, o):  # type: ignore[no-untyped-def]
    """Write `code_point` as UTF-8 at `o`; the place behind it."""
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
def copy_plain(text, i, end, plain, out, o, in_word):  # type: ignore[no-untyped-def]
    """Copy words and single spaces while `plain` knows the bytes: most of a text, fast.

    `plain` gives the byte to write, WORD_END for a space, 0 for what needs a closer look. A space
    behind another is written but not counted, so that no branch depends on where words end.
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
def space_size(text, i, end):  # type: ignore[no-untyped-def]
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
def segment_whitespace(text, ends, lower, plain, out, is_kept):  # type: ignore[no-untyped-def]
    """Cut documents at white space, a sentence a line; the number of bytes written to `out`."""
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
            if in_word:
                out[o] = WORD_END
                o += 1
                in_word = False
            if text[i] == 10 and o > sentence_start:
                out[o] = SENTENCE_END
                o += 1
                sentence_start = o
            i += size
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


@kernel
def select_tokens(  # type: ignore[no-untyped-def]
    tokens, classes, lower, sentences, out, is_kept
):
    """Keep the words among the tokens of chinese.py; the number of bytes written to `out`.

    A token without a letter, digit or ideograph is no word, but may end a sentence or document.
    Letters that rjieba does not know (é, я) come one by one: neighbours are joined again.
    """
    o = 0
    i = 0
    document = 0
    document_start = 0
    sentence_start = 0
    last_kind = 0  # of the word that was just written, if nothing stands behind it
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
        if (is_end or is_document_end) and o > sentence_start:
            out[o] = SENTENCE_END
            o += 1
            sentence_start = o
        if is_document_end:
            is_kept[document] = o > document_start
            if o > document_start:
                out[o] = DOCUMENT_END
                o += 1
            document += 1
            document_start = o
            sentence_start = o
        i = end + 1
    return o


@kernel
def paragraph_ends(text, ends):  # type: ignore[no-untyped-def]
    """Write to `ends` the place behind each blank line of `text`; how many there are."""
    num_ends = 0
    is_blank = False  # the line so far; the first may be the rest of another
    for i in range(len(text)):
        b = text[i]
        if b == 10:
            if is_blank:
                ends[num_ends] = i + 1
                num_ends += 1
            is_blank = True
        elif b != 32 and b != 9 and b != 13:
            is_blank = False
    return num_ends
