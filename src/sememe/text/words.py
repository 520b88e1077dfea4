"""Words and sentence ends of documents: the calls of the kernels, and the records they write.

A word is a run of letters, digits and their combining marks; apostrophes and underscores join
what they are between. A record is segmented text in one bytes object: every word is followed by
0x1F, every sentence by 0x1E, every document by 0x1D. Raw text keeps its bytes: only the offsets of
sentence ends come out.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from sememe.text import characters as ch
from sememe.text.settings import TextSettings


class Records(NamedTuple):
    """Complete documents as sentences of words, and one label per document (or None)."""

    data: bytes
    labels: list[str] | None


def decode_documents(data: bytes) -> Iterator[list[list[str]]]:
    """Give back each document of record bytes as a list of sentences, each a list of words."""
    for document in data.decode("utf-8", "surrogatepass").split("\x1d")[:-1]:
        yield [sentence.split("\x1f")[:-1] for sentence in document.split("\x1e")[:-1]]


def records_of(data: np.ndarray, labels: list[str] | None, is_kept: np.ndarray) -> Records:
    """Record bytes with the labels of the documents that are in them."""
    if labels is not None:
        labels = [label for label, kept in zip(labels, is_kept, strict=True) if kept]
    return Records(data.tobytes(), labels)


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
            plain[byte] = 0 if char == "\n" else 0x1F
        elif mode == "whitespace" or char.isalnum():
            plain[byte] = ord(char.lower() if lowercase else char)
    return plain


def segment_batch(
    text: bytes, ends: np.ndarray, labels: list[str] | None, settings: TextSettings
) -> Records:
    """Segment the documents of `text` (valid UTF-8) that end at `ends`; empty ones are dropped."""
    from sememe.text import kernels

    classes, lower = _tables(settings.lowercase)
    plain = _plain_bytes(settings.mode, settings.lowercase)
    if settings.mode == "whitespace":
        return _run(kernels.segment_whitespace, text, len(ends), labels, ends, lower, plain)
    return _run(
        kernels.segment_unicode, text, len(ends), labels, ends, classes, lower, plain,
        *ch.abbreviation_table(), settings.sentences,
    )  # fmt: skip


def select_tokens(
    tokens: bytes, num_documents: int, labels: list[str] | None, settings: TextSettings
) -> Records:
    """Keep the words among the tokens of `chinese.Cutter.cut`; documents are between 0x1D."""
    from sememe.text import kernels

    options = (*_tables(settings.lowercase), settings.sentences)
    return _run(kernels.select_tokens, tokens + b"\x1f\x1d", num_documents, labels, *options)


def _run(
    kernel: Callable[..., int],
    text: bytes,
    num_documents: int,
    labels: list[str] | None,
    *options: Any,
) -> Records:
    data = np.frombuffer(text, np.uint8)
    out = np.empty(2 * len(data) + 3 * num_documents + 16, np.uint8)
    is_kept = np.zeros(num_documents, np.bool_)
    size = kernel(data, *options, out, is_kept)
    return records_of(out[:size], labels, is_kept)


def _is_joined(kind: int, last_kind: int, next_kind: int) -> bool:
    if kind in (ch.APOSTROPHE, ch.UNDERSCORE):
        return next_kind in (ch.LETTER, ch.DIGIT)
    if kind in (ch.COMMA, ch.PERIOD):
        return last_kind == next_kind == ch.DIGIT
    return kind == ch.MID_LETTER and last_kind == next_kind == ch.LETTER


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


@lru_cache(maxsize=1 << 16)  # the words of a text come repeatedly
def write_word(source: str, lowercase: bool) -> str:
    """A word as output: without invisible characters, with the plain apostrophe, in its case."""
    kept = [char for char in source if ch.classify(char) & ch.CLASS_MASK != ch.FORMAT]
    word = "".join(kept).replace("’", "'")
    return "".join(map(ch.lower_char, word)) if lowercase else word


def sentence_ends(text: bytes, ends: np.ndarray, settings: TextSettings) -> np.ndarray:
    """The offsets in `text` (valid UTF-8) of sentence ends inside documents.

    `ends` are the ends of the documents, which are not repeated here.
    """
    data = np.frombuffer(text, np.uint8)
    if settings.mode == "whitespace":
        return np.flatnonzero(data == 10)
    from sememe.text import kernels

    out = np.empty(len(data) // 2 + 1, np.int64)
    num = kernels.sentence_ends(
        data, ends, ch.tables()[0], *ch.abbreviation_table(),
        settings.sentences, settings.mode == "chinese", out,
    )  # fmt: skip
    return out[:num].copy()
