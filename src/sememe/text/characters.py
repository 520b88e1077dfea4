"""What a segmenter knows: the class and lower case of every code point, and how sentences end.

`classify` is the definition (a reading of UAX #29, see words.py); the tables are made from it.

A sentence ends at a newline; at 。！？；and their kin whatever follows; and at `.`, `!`, `?` or `…`
when space follows (after closing quotes or brackets), unless the next word starts in lower case.
A single full stop after a title ("Dr."), an initial ("J."), a dotted abbreviation ("e.g.") or,
before a number, after "No." and its kin ends nothing; two or more ("...") are an ellipsis.
"""

import unicodedata
from collections.abc import Collection
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
BRACKET = 15  # quotes and brackets: may be between a terminator and the space
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

# Chinese characters: the unified ideographs, their extensions and the compatibility forms.
_HAN = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
# With radicals, kana and bopomofo. Token stores depend on these: see stream.RULES_VERSION.
_IDEOGRAPHS = (
    *_HAN, (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B),
    (0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x3105, 0x312F),
    (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1AFF0, 0x1B16F),
)  # fmt: skip
HAN = "".join(f"{chr(first)}-{chr(last)}" for first, last in _HAN)  # for the class of a pattern
# Beyond these all code points are unassigned or private: OTHER.
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
    return SPACE if char.isspace() else _CATEGORIES.get(unicodedata.category(char), OTHER)


@cache
def char_class(char: str) -> int:
    """The class of one character, without its case flags."""
    return classify(char) & CLASS_MASK


def is_han(char: str) -> bool:
    """Whether a character is Chinese (also used in Japanese and Korean texts)."""
    return any(first <= ord(char) <= last for first, last in _HAN)


def is_mostly_chinese(words: Collection[str]) -> bool:
    """Whether more than half of the words start with a Chinese character."""
    return 2 * sum(is_han(word[0]) for word in words if word) > len(words)


def has_ideograph(text: str) -> bool:
    """Whether a text has a character of a script without spaces: Han or kana."""
    return any(classify(char) & CLASS_MASK == IDEOGRAPH for char in text)


def language_of(text: str) -> str:
    """The language by which the words of a text are found, as its letters tell it."""
    return "zh" if has_ideograph(text) else "en"


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
    classes[[code_point for code_point in range(0x3001) if chr(code_point).isspace()]] = SPACE
    classes[0xFE00:0xFE10] = FORMAT
    classes[0xE0100:0xE01F0] = FORMAT
    for first, last in _IDEOGRAPHS:
        classes[first : last + 1] = IDEOGRAPH
    for char, value in _SINGLES.items():
        classes[ord(char)] = value
    return classes, lower


# ---- ends of sentences ---------------------------------------------------------------------

ALWAYS = 1
BEFORE_NUMBER = 2

_NEVER_LAST = """
mr mrs ms mx dr prof hon rev fr sr jr st ste mt messrs mme mlle mgr msgr gen col maj capt cmdr
lt sgt cpl pvt adm brig gov pres sen rep rt supt insp det pfc
vs cf viz approx esp incl resp ed eds trans ibid univ dept assn bros inc ltd co corp ave blvd rd
jan feb mar apr jun jul aug sep sept oct nov dec
bzw ca evtl ggf inkl sog usw vgl zzgl dipl ing hr abs sra srta dra ud uds sig dott avv
"""
_BEFORE_NUMBER = "no nos nr vol vols fig figs p pp pg art sec sect ch chap eq eqs op bd s n num pt"
# Lower case, ASCII, at most eight letters: the kernel packs each into one 64-bit number.
ABBREVIATIONS = dict.fromkeys(_NEVER_LAST.split(), ALWAYS)
ABBREVIATIONS |= dict.fromkeys(_BEFORE_NUMBER.split(), BEFORE_NUMBER)

# States between two words; the kernel knows them by these numbers.
CLEAR = 0  # no end in sight
ENDED = 1  # terminator seen, no space yet
MAY_BREAK = 2  # terminator and space seen: the next word breaks unless in lower case
BLOCKED = 3  # full stop of an abbreviation; a second full stop makes it an ellipsis
NUMBER_ENDED = 4  # full stop of "No."
NUMBER_MAY_BREAK = 5  # then space: the next word breaks unless a number or in lower case
MUST_BREAK = 6


def packed(word: str) -> int:
    """An ASCII word of at most eight letters as one number, first letter in the lowest byte."""
    return int.from_bytes(word.encode("ascii"), "little")


@cache
def abbreviation_table() -> tuple[np.ndarray, np.ndarray]:
    """Packed abbreviations in rising order, and what each of them prevents."""
    pairs = sorted((packed(word), kind) for word, kind in ABBREVIATIONS.items())
    return np.array([key for key, _ in pairs], np.int64), np.array([k for _, k in pairs], np.uint8)
