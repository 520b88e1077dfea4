"""Segmented text in one bytes object: the form in which sentences of words leave this room.

Every word is followed by WORD_END, every sentence by SENTENCE_END, every document by DOCUMENT_END.
No word, sentence or document is empty, and the three bytes never occur inside a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

WORD_END = b"\x1f"
SENTENCE_END = b"\x1e"
DOCUMENT_END = b"\x1d"


class Records(NamedTuple):
    """Whole documents, cut into sentences and words, and one label a document (or None)."""

    data: bytes
    labels: list[str] | None


def encode_documents(documents: Iterable[Iterable[Iterable[str]]]) -> bytes:
    """Write documents (lists of sentences, lists of words) as record bytes, without empty ones."""
    parts: list[str] = []
    for document in documents:
        sentences = ["".join(f"{word}\x1f" for word in sentence if word) for sentence in document]
        body = "".join(f"{sentence}\x1e" for sentence in sentences if sentence)
        if body:
            parts.append(f"{body}\x1d")
    return "".join(parts).encode("utf-8", "surrogatepass")


def decode_documents(data: bytes) -> Iterator[list[list[str]]]:
    """Give back each document of record bytes as a list of sentences, each a list of words."""
    for document in data.decode("utf-8", "surrogatepass").split("\x1d")[:-1]:
        yield [sentence.split("\x1f")[:-1] for sentence in document.split("\x1e")[:-1]]
