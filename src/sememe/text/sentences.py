"""Where sentences end: the rule in plain Python, and the abbreviations that do not end one.

A sentence ends at a newline; at 。！？；and their kin whatever follows; and at `.`, `!`, `?` or `…`
when space follows (behind closing quotes or brackets), unless the next word starts in lower case.
A single full stop after a title ("Dr."), an initial ("J."), a dotted abbreviation ("e.g.") or,
before a number, after "No." and its kin ends nothing; two or more ("...") are an ellipsis.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sememe.text import characters as ch

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

_AFTER_SPACE = {ENDED: MAY_BREAK, BLOCKED: CLEAR, NUMBER_ENDED: NUMBER_MAY_BREAK}


def state_after(state: int, char: str, previous_word: str, before_word: str) -> int:
    """The state once `char` (not of a word) is read.

    `previous_word` is the source of the word that ends right before `char`, empty if there is none,
    and `before_word` the character before that word.
    """
    kind = ch.classify(char) & ch.CLASS_MASK
    if kind in (ch.NEWLINE, ch.FULL_STOP) or state == MUST_BREAK:
        return MUST_BREAK
    if kind == ch.TERMINATOR:
        return ENDED
    if kind == ch.PERIOD:
        if state != CLEAR or not previous_word:
            return ENDED
        return _state_after_period(previous_word, before_word)
    if kind == ch.SPACE:
        return _AFTER_SPACE.get(state, state)
    if kind in (ch.BRACKET, ch.APOSTROPHE, ch.MARK, ch.FORMAT):
        return state
    return state if state in (MAY_BREAK, NUMBER_MAY_BREAK) else CLEAR


def _state_after_period(previous_word: str, before_word: str) -> int:
    is_upper = bool(ch.classify(previous_word[0]) & ch.UPPER)
    if len(previous_word) == 1 and (is_upper or before_word == "."):
        return BLOCKED
    kind = ABBREVIATIONS.get(previous_word.lower() if previous_word.isascii() else "", 0)
    return {0: ENDED, ALWAYS: BLOCKED, BEFORE_NUMBER: NUMBER_ENDED}[kind]


def breaks_before(state: int, char: str) -> bool:
    """Whether a word that starts with `char` starts a sentence."""
    value = ch.classify(char)
    if state == MUST_BREAK:
        return True
    if state not in (MAY_BREAK, NUMBER_MAY_BREAK) or value & ch.LOWER:
        return False
    return not (state == NUMBER_MAY_BREAK and value & ch.CLASS_MASK == ch.DIGIT)


def packed(word: str) -> int:
    """An ASCII word of at most eight letters as one number, first letter in the lowest byte."""
    return int.from_bytes(word.encode("ascii"), "little")


@cache
def abbreviation_table() -> tuple[np.ndarray, np.ndarray]:
    """Packed abbreviations in rising order, and what each of them blocks."""
    pairs = sorted((packed(word), kind) for word, kind in ABBREVIATIONS.items())
    return np.array([key for key, _ in pairs], np.int64), np.array([k for _, k in pairs], np.uint8)
