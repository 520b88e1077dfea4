"""Words of a document: the rule in plain Python, and the call of the kernels that do the work.

A word is a run of letters, digits and their combining marks; apostrophes and underscores join what
they stand between, a full stop or comma joins two digits (3.14, 1,000), a middle dot two letters.
Punctuation and symbols are dropped; each Han character and kana is a word of its own. This is
UAX #29 but for: hyphens, colons and full stops between letters separate; `’` is written `'`, so
that "don’t" and "don't" are one word; soft hyphens and other invisible characters are left out.
Already segmented text (language none) is split at white space as `str.split` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from sememe.text import characters as ch
from sememe.text import sentences as st
from sememe.text.records import WORD_END, Records, encode_documents
from sememe.text.settings import TextSettings

_STARTS = (ch.LETTER, ch.DIGIT, ch.IDEOGRAPH)


@cache
def _tables(lowercase: bool) -> tuple[np.ndarray, np.ndarray]:
    """The class of each code point, and what is written for it."""
    classes, lower = ch.tables()
    return classes, lower if lowercase else np.arange(len(lower), dtype=lower.dtype)


@cache
def _plain_bytes(mode: str, lowercase: bool) -> np.ndarray:
    """What `kernels.copy_plain` writes for each byte; 0 for those that are not plain."""
    plain = np.zeros(256, np.uint8)
    for byte in range(1, 128):
        char = chr(byte)
        if char.isspace():
            plain[byte] = 0 if char == "\n" else ord(WORD_END)
        elif mode == "whitespace" or char.isalnum():
            plain[byte] = ord(char.lower() if lowercase else char)
    return plain


def segment_batch(
    text: bytes, ends: np.ndarray, labels: list[str] | None, settings: TextSettings
) -> Records:
    """Cut the documents of `text` (valid UTF-8) that end at `ends`; those without a word go."""
    from sememe.text import kernels, unicode_kernels

    data = np.frombuffer(text, np.uint8)
    out = np.empty(2 * len(data) + 3 * len(ends) + 16, np.uint8)
    is_kept = np.zeros(len(ends), np.bool_)
    classes, lower = _tables(settings.lowercase)
    plain = _plain_bytes(settings.mode, settings.lowercase)
    if settings.mode == "whitespace":
        size = kernels.segment_whitespace(data, ends, lower, plain, out, is_kept)
    else:
        size = unicode_kernels.segment_unicode(
            data, ends, classes, lower, plain, *st.abbreviation_table(),
            settings.sentences, out, is_kept,
        )  # fmt: skip
    return _records(out[:size], labels, is_kept)


def select_tokens(
    tokens: bytes, num_documents: int, labels: list[str] | None, settings: TextSettings
) -> Records:
    """Keep the words among the tokens of `chinese.Cutter.cut`; documents stand between 0x1D."""
    from sememe.text import kernels

    data = np.frombuffer(tokens + b"\x1f\x1d", np.uint8)
    out = np.empty(2 * len(data) + 3 * num_documents + 16, np.uint8)
    is_kept = np.zeros(num_documents, np.bool_)
    size = kernels.select_tokens(
        data, *_tables(settings.lowercase), settings.sentences, out, is_kept
    )
    return _records(out[:size], labels, is_kept)


def _records(data: np.ndarray, labels: list[str] | None, is_kept: np.ndarray) -> Records:
    if labels is not None and not is_kept.all():
        labels = [label for label, kept in zip(labels, is_kept, strict=True) if kept]
    return Records(data.tobytes(), labels)


def _is_joined(kind: int, last_kind: int, next_kind: int) -> bool:
    if kind in (ch.APOSTROPHE, ch.UNDERSCORE):
        return next_kind in (ch.LETTER, ch.DIGIT)
    if kind in (ch.COMMA, ch.PERIOD):
        return last_kind == next_kind == ch.DIGIT
    return kind == ch.MID_LETTER and last_kind == next_kind == ch.LETTER


def word_end(document: str, start: int) -> int:
    """Where the word that starts at `start` ends, by the rule above."""
    kinds = [ch.classify(char) & ch.CLASS_MASK for char in document[start:]]
    return start + end_among(kinds, 0)


def end_among(kinds: Sequence[int], start: int) -> int:
    """Where the word that starts at `start` ends, from the classes of a document's characters."""
    last_kind = kinds[start]
    for index in range(start + 1, len(kinds)):
        kind = kinds[index]
        if kind in (ch.MARK, ch.FORMAT):
            continue
        if last_kind == ch.IDEOGRAPH:
            return index
        if kind in (ch.LETTER, ch.DIGIT):
            last_kind = kind
        elif not (index + 1 < len(kinds) and _is_joined(kind, last_kind, kinds[index + 1])):
            return index
    return len(kinds)


@lru_cache(maxsize=1 << 16)  # the words of a text come again and again
def write_word(source: str, lowercase: bool) -> str:
    """A word as it leaves: without invisible characters, with the plain apostrophe, in its case."""
    kept = [char for char in source if ch.classify(char) & ch.CLASS_MASK != ch.FORMAT]
    word = "".join(kept).replace("’", "'")
    return "".join(map(ch.lower_char, word)) if lowercase else word


def unicode_sentences(document: str, settings: TextSettings) -> list[list[str]]:
    """Cut one document, plainly and slowly: the reference of `unicode_kernels.segment_unicode`."""
    result: list[list[str]] = [[]]
    state, i, previous_word, before_word = st.CLEAR, 0, "", ""
    while i < len(document):
        char = document[i]
        if ch.classify(char) & ch.CLASS_MASK in _STARTS:
            if st.breaks_before(state, char):
                result.append([])
            end = word_end(document, i)
            state, previous_word = st.CLEAR, document[i:end]
            before_word = document[i - 1] if i else ""
            result[-1].append(write_word(previous_word, settings.lowercase))
            i = end
            continue
        if settings.sentences or ch.classify(char) & ch.CLASS_MASK == ch.NEWLINE:
            state = st.state_after(state, char, previous_word, before_word)
        previous_word = ""
        i += 1
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
