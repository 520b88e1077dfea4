"""Where the sentences of raw text end: bytes in, offsets out; the text itself stays whole.

The rule is that of sentences.py: a sentence ends where the next one's first word shows it. The
offset is the place behind the marks that end it (.!?。 and closing quotes or brackets), or the
newline; opening quotes, bullets and white space belong to the next sentence.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sememe.text import characters as ch
from sememe.text import sentences as st
from sememe.text.settings import TextSettings
from sememe.text.words import word_end

_STARTS = (ch.LETTER, ch.DIGIT, ch.IDEOGRAPH)
_ENDING = (ch.PERIOD, ch.TERMINATOR, ch.FULL_STOP, ch.BRACKET, ch.APOSTROPHE)


def sentence_ends(text: bytes, ends: np.ndarray, settings: TextSettings) -> np.ndarray:
    """The offsets in `text` (valid UTF-8) where one sentence of a document ends before another.

    `ends` are the ends of the documents, which are not repeated here.
    """
    data = np.frombuffer(text, np.uint8)
    if settings.mode == "whitespace":
        return np.flatnonzero(data == 10)
    from sememe.text import boundary_kernels as kernels

    out = np.empty(len(data) // 2 + 1, np.int64)
    num = kernels.sentence_ends(
        data, ends, ch.tables()[0], *st.abbreviation_table(),
        settings.sentences, settings.mode == "chinese", out,
    )  # fmt: skip
    return out[:num].copy()


def raw_sentences(document: str, settings: TextSettings) -> list[str]:
    """Cut one document plainly and slowly: the reference of `sentence_ends`."""
    if settings.mode == "whitespace":
        return document.split("\n")
    cuts = [0, *_cuts(document, settings), len(document)]
    return [document[start:end] for start, end in pairwise(cuts)]


def _cuts(document: str, settings: TextSettings) -> list[int]:
    cuts: list[int] = []
    state, cut, is_fixed = st.CLEAR, -1, False
    i, previous_word, before_word = 0, "", ""
    while i < len(document):
        char = document[i]
        value = ch.classify(char)
        kind = value & ch.CLASS_MASK
        if kind in _STARTS:
            if st.breaks_before(state, char) and cut > 0:
                cuts.append(cut)
            end = word_end(document, i)
            previous_word, before_word = document[i:end], document[i - 1] if i else ""
            i, state, cut, is_fixed = end, st.CLEAR, -1, False
            continue
        state = _state_after(state, char, previous_word, before_word, settings)
        previous_word = ""
        if state in (st.CLEAR, st.BLOCKED):
            cut, is_fixed = -1, False
        else:
            is_ending = kind in _ENDING and not value & ch.OPENING
            if not is_fixed and is_ending:
                cut = i + 1
            elif cut < 0:
                cut = i
            is_fixed |= not is_ending
        i += 1
    return cuts


def _state_after(
    state: int, char: str, previous_word: str, before_word: str, settings: TextSettings
) -> int:
    kind = ch.classify(char) & ch.CLASS_MASK
    if kind == ch.NEWLINE or state == st.MUST_BREAK:
        return st.MUST_BREAK
    if not settings.sentences:
        return state
    if settings.mode == "chinese":
        return st.MUST_BREAK if kind in (ch.TERMINATOR, ch.FULL_STOP) else state
    return st.state_after(state, char, previous_word, before_word)
