"""What each character is for a segmenter: a class and a lower-case form for every code point.

`classify` is the definition (a reading of UAX #29, see words.py); the tables are made from it.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

# Classes, in the low four bits of CLASSES; the kernels know them by these numbers.
OTHER = 0  # punctuation and symbols: between words, never kept
LETTER = 1
DIGIT = 2  # every number: 7, ², Ⅷ
IDEOGRAPH = 3  # Han and kana: each a word of its own
MARK = 4  # kept inside a word, never starts one: combining marks, zero-width (non-)joiner
FORMAT = 5  # invisible: left out without ending the word (soft hyphen, variation selectors)
SPACE = 6
NEWLINE = 7
APOSTROPHE = 8  # joins letters and digits: ' and ’ (written as ')
UNDERSCORE = 9  # joins letters and digits
MID_LETTER = 10  # joins letters: Catalan middle dot, Hebrew geresh
COMMA = 11  # joins digits
PERIOD = 12  # joins digits; may end a sentence
TERMINATOR = 13  # ! ? …: ends a sentence if space and no lower-case letter follow
FULL_STOP = 14  # 。！？；।: ends a sentence whatever follows
BRACKET = 15  # quotes and brackets: may stand between a terminator and the space
CLASS_MASK = 15
UPPER = 16  # flag: upper or title case
LOWER = 32  # flag: lower case
OPENING = 64  # flag: a bracket or quote that opens

_SINGLES = {
    "\n": NEWLINE, "\x85": NEWLINE, "\u2028": NEWLINE, "\u2029": NEWLINE,
    "\x1d": SPACE, "\x1e": SPACE, "\x1f": SPACE,
    "'": APOSTROPHE, "’": APOSTROPHE, "_": UNDERSCORE,
    "·": MID_LETTER, "\u05f3": MID_LETTER, "\u05f4": MID_LETTER,
    ",": COMMA, ".": PERIOD, '"': BRACKET,
    "\u200c": MARK, "\u200d": MARK,
}  # fmt: skip
_SINGLES |= dict.fromkeys("!?…‽؟", TERMINATOR)
_SINGLES |= dict.fromkeys("。！？；｡।॥۔։።", FULL_STOP)

_CATEGORIES = {
    "Lu": LETTER | UPPER, "Lt": LETTER | UPPER, "Ll": LETTER | LOWER, "Lm": LETTER, "Lo": LETTER,
    "Mn": MARK, "Mc": MARK, "Me": MARK, "Nd": DIGIT, "Nl": DIGIT, "No": DIGIT, "Cf": FORMAT,
    "Zs": SPACE, "Pi": BRACKET | OPENING, "Pf": BRACKET, "Ps": BRACKET | OPENING, "Pe": BRACKET,
}  # fmt: skip

_IDEOGRAPHS = (
    (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3041, 0x3096),
    (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x3105, 0x312F), (0x31A0, 0x31BF),
    (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F),
    (0x1AFF0, 0x1B16F), (0x20000, 0x323AF),
)  # fmt: skip
# Beyond these there are only unassigned and private code points, all of them OTHER.
_ASSIGNED = (range(0x32400), range(0xE0000, 0xE0200))


def classify(char: str) -> int:
    """The class and case flags of one character."""
    if char in _SINGLES:
        return _SINGLES[char]
    code_point = ord(char)
    if any(first <= code_point <= last for first, last in _IDEOGRAPHS):
        return IDEOGRAPH
    if 0xFE00 <= code_point <= 0xFE0F or 0xE0100 <= code_point <= 0xE01EF:
        return FORMAT
    if char.isspace():
        return SPACE
    return _CATEGORIES.get(unicodedata.category(char), OTHER)


def lower_char(char: str) -> str:
    """The lower case of `char` in one character; only İ differs from `str.lower` (no dot)."""
    lower = char.lower()
    return lower if len(lower) == 1 else lower[0]


@cache
def tables() -> tuple[np.ndarray, np.ndarray]:
    """Class and lower case (a code point) by code point, for all of Unicode."""
    classes = np.zeros(0x110000, np.uint8)
    lower = np.arange(0x110000, dtype=np.int32)
    for code_points in _ASSIGNED:
        chars = [chr(code_point) for code_point in code_points]
        values = [_CATEGORIES.get(name, OTHER) for name in map(unicodedata.category, chars)]
        classes[code_points.start : code_points.stop] = values
        lowered = [ord(lower_char(char)) for char in chars]
        lower[code_points.start : code_points.stop] = lowered
    for code_point in range(0x3001):
        if chr(code_point).isspace():
            classes[code_point] = SPACE
    classes[0xFE00:0xFE10] = FORMAT
    classes[0xE0100:0xE01F0] = FORMAT
    for first, last in _IDEOGRAPHS:
        classes[first : last + 1] = IDEOGRAPH
    for char, value in _SINGLES.items():
        classes[ord(char)] = value
    return classes, lower
