"""Words and sentences in plain Python: what the kernels of text must agree with."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import rjieba

from sememe.text import characters as ch
from sememe.text.chinese import narrow
from sememe.text.settings import TextSettings
from sememe.text.words import end_among, write_word

_STARTS = (ch.LETTER, ch.DIGIT, ch.IDEOGRAPH)


def encode_documents(documents: Iterable[Iterable[Iterable[str]]]) -> bytes:
    """Write documents (lists of sentences, lists of words) as record bytes, without empty ones."""
    parts: list[str] = []
    for document in documents:
        sentences = ["".join(f"{word}\x1f" for word in sentence if word) for sentence in document]
        body = "".join(f"{sentence}\x1e" for sentence in sentences if sentence)
        if body:
            parts.append(f"{body}\x1d")
    return "".join(parts).encode("utf-8", "surrogatepass")


_AFTER_SPACE = {ch.ENDED: ch.MAY_BREAK, ch.BLOCKED: ch.CLEAR, ch.NUMBER_ENDED: ch.NUMBER_MAY_BREAK}


def state_after(state: int, char: str, previous_word: str, before_word: str) -> int:
    """The state once `char` (not of a word) is read.

    `previous_word` is the source of the word that ends right before `char`, empty if there is none,
    and `before_word` the character before that word.
    """
    kind = ch.char_class(char)
    if kind in (ch.NEWLINE, ch.FULL_STOP) or state == ch.MUST_BREAK:
        return ch.MUST_BREAK
    if kind == ch.TERMINATOR:
        return ch.ENDED
    if kind == ch.PERIOD:
        if state != ch.CLEAR or not previous_word:
            return ch.ENDED
        return _state_after_period(previous_word, before_word)
    if kind == ch.SPACE:
        return _AFTER_SPACE.get(state, state)
    if kind in (ch.BRACKET, ch.APOSTROPHE, ch.MARK, ch.FORMAT):
        return state
    return state if state in (ch.MAY_BREAK, ch.NUMBER_MAY_BREAK) else ch.CLEAR


def _state_after_period(previous_word: str, before_word: str) -> int:
    is_upper = bool(ch.classify(previous_word[0]) & ch.UPPER)
    if len(previous_word) == 1 and (is_upper or before_word == "."):
        return ch.BLOCKED
    kind = ch.ABBREVIATIONS.get(previous_word.lower() if previous_word.isascii() else "", 0)
    return {0: ch.ENDED, ch.ALWAYS: ch.BLOCKED, ch.BEFORE_NUMBER: ch.NUMBER_ENDED}[kind]


def breaks_before(state: int, char: str) -> bool:
    """Whether a word that starts with `char` starts a sentence."""
    value = ch.classify(char)
    if state == ch.MUST_BREAK:
        return True
    if state not in (ch.MAY_BREAK, ch.NUMBER_MAY_BREAK) or value & ch.LOWER:
        return False
    return not (state == ch.NUMBER_MAY_BREAK and value & ch.CLASS_MASK == ch.DIGIT)


def word_end(document: str, start: int) -> int:
    """Where the word that starts at `start` ends, by the rule above."""
    kinds = [ch.char_class(char) for char in document[start:]]
    return start + end_among(kinds, 0)


def _steps(document: str, settings: TextSettings) -> Iterator[tuple[int, int, int]]:
    """Each word: where it starts and ends, and the state before it; between words each character's
    place, 0, and the state after it.
    """
    state, i, previous_word, before_word = ch.CLEAR, 0, "", ""
    while i < len(document):
        char = document[i]
        if ch.char_class(char) in _STARTS:
            end = word_end(document, i)
            yield i, end, state
            state, previous_word = ch.CLEAR, document[i:end]
            before_word, i = document[i - 1] if i else "", end
        else:
            state = _next_state(state, char, previous_word, before_word, settings)
            yield i, 0, state
            previous_word, i = "", i + 1


def unicode_sentences(document: str, settings: TextSettings) -> list[list[str]]:
    """Cut one document, plainly and slowly: the reference of `kernels.segment_unicode`."""
    result: list[list[str]] = [[]]
    for start, end, state in _steps(document, settings):
        if end and breaks_before(state, document[start]):
            result.append([])
        if end:
            result[-1].append(write_word(document[start:end], settings.lowercase))
    return [sentence for sentence in result if sentence]


def whitespace_sentences(document: str, settings: TextSettings) -> list[list[str]]:
    """Split one document at white space: the reference of `kernels.segment_whitespace`."""
    if settings.lowercase:
        document = "".join(map(ch.lower_char, document))
    return [line.split() for line in document.split("\n") if line.split()]


def reference_records(documents: list[str], settings: TextSettings) -> bytes:
    """The record bytes that the kernels must give for `documents`."""
    cut = whitespace_sentences if settings.mode == "whitespace" else unicode_sentences
    return encode_documents(cut(document, settings) for document in documents)


_ENDING = (ch.PERIOD, ch.TERMINATOR, ch.FULL_STOP, ch.BRACKET, ch.APOSTROPHE)


def raw_sentences(document: str, settings: TextSettings) -> list[str]:
    """Cut one document plainly and slowly: the reference of `sentence_ends`."""
    if settings.mode == "whitespace":
        return document.split("\n")
    cuts = [0, *_cuts(document, settings), len(document)]
    return [document[start:end] for start, end in pairwise(cuts)]


def _cuts(document: str, settings: TextSettings) -> list[int]:
    cuts: list[int] = []
    cut, is_fixed = -1, False
    for start, end, state in _steps(document, settings):
        if end and cut > 0 and breaks_before(state, document[start]):
            cuts.append(cut)
        if end or state in (ch.CLEAR, ch.BLOCKED):
            cut, is_fixed = -1, False
            continue
        value = ch.classify(document[start])
        is_ending = value & ch.CLASS_MASK in _ENDING and not value & ch.OPENING
        if is_ending and not is_fixed:
            cut = start + 1
        elif cut < 0:
            cut = start
        is_fixed |= not is_ending
    return cuts


def _next_state(
    state: int, char: str, previous_word: str, before_word: str, settings: TextSettings
) -> int:
    kind = ch.char_class(char)
    if kind == ch.NEWLINE or state == ch.MUST_BREAK:
        return ch.MUST_BREAK
    if not settings.sentences:
        return state
    if settings.mode == "chinese":
        return ch.MUST_BREAK if kind in (ch.TERMINATOR, ch.FULL_STOP) else state
    return state_after(state, char, previous_word, before_word)


def chinese_sentences(document: str, settings: TextSettings) -> list[list[str]]:
    """Cut one document plainly: split first, then cut each piece, then look at each word."""
    if settings.lowercase:
        document = narrow(document)
    marks = (
        "[。！？；｡।॥۔։።!?…‽؟\n\x85\u2028\u2029]" if settings.sentences else "[\n\x85\u2028\u2029]"
    )
    pieces = [_joined_letters(rjieba.cut(piece)) for piece in re.split(marks, document)]
    lower = str.lower if settings.lowercase else str
    result = [[lower(word) for word in words if _is_word(word)] for words in pieces]
    return [sentence for sentence in result if sentence]


def _is_word(token: str) -> bool:
    return any(char.isalnum() for char in token)


def _joined_letters(tokens: list[str]) -> list[str]:
    result = [""]
    for token in tokens:
        last, first = result[-1][-1:], token[0]
        is_foreign = not (last + first).isascii()
        if is_foreign and _is_alphabetic(last) and _is_alphabetic(first) and _is_word(token):
            result[-1] += token
        else:
            result.append(token)
    return result


def _is_alphabetic(char: str) -> bool:
    return bool(char) and ch.char_class(char) in (ch.LETTER, ch.DIGIT)
