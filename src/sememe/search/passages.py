"""Passages of long rows, and the words of a query in them: texts in, character offsets out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from sememe.text.characters import is_han
from sememe.text.settings import TextSettings
from sememe.text.words import sentence_ends

Span = tuple[int, int]
# A Chinese character says about as much as three letters, to a reader and to a tokenizer.
_HAN = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_HAN_SIZE = 3


def size_of(text: str) -> int:
    """The number of characters, where a Chinese one counts as three."""
    return len(text) if text.isascii() else len(text) + (_HAN_SIZE - 1) * len(_HAN.findall(text))


def split(text: str, size: int, overlap: int, settings: TextSettings) -> list[Span]:
    """Starts and ends of passages of at most `size` characters that end at sentence ends.

    Neighbors share whole sentences of at most `overlap` characters; a sentence that is too long is
    cut at a space, or anywhere if it has none.
    """
    if not size or size_of(text) <= size:
        return [_stripped(text, 0, len(text))]
    units = [
        part for start, end in _sentences(text, settings) for part in _cut(text, start, end, size)
    ]
    sizes = [size_of(text[start:end]) for start, end in units]
    found, first = [], 0
    while first < len(units):
        last, total = first + 1, sizes[first]
        while last < len(units) and total + sizes[last] <= size:
            total, last = total + sizes[last], last + 1
        found.append(_stripped(text, units[first][0], units[last - 1][1]))
        if last == len(units):
            break
        shared, first_of_next = 0, last
        while first_of_next - 1 > first and shared + sizes[first_of_next - 1] <= overlap:
            first_of_next -= 1
            shared += sizes[first_of_next]
        # Nothing is shared that leaves no room for the next sentence: it would be repeated alone.
        while first_of_next < last and shared + sizes[last] > size:
            shared -= sizes[first_of_next]
            first_of_next += 1
        first = first_of_next
    return [span for span in found if span[0] < span[1]]


def _sentences(text: str, settings: TextSettings) -> Iterator[Span]:
    data = text.encode("utf-8", "replace")
    inner = sentence_ends(data, np.array([len(data)], np.int64), settings).tolist()
    parts = [
        data[start:end].decode("utf-8", "replace")
        for start, end in pairwise([0, *inner, len(data)])
    ]
    return pairwise(accumulate(map(len, parts), initial=0))


def _cut(text: str, start: int, end: int, size: int) -> Iterator[Span]:
    """A sentence in parts that are not too long."""
    left = size_of(text[start:end])
    while left > size:
        width = size // _HAN_SIZE if _HAN.search(text, start, min(end, start + size)) else size
        width = max(width, 1)
        space = text.rfind(" ", start + 1, start + width)
        cut = space + 1 if space > 0 else start + width
        yield start, cut
        left -= size_of(text[start:cut])
        start = cut
    if start < end:
        yield start, end


def _stripped(text: str, start: int, end: int) -> Span:
    """The span without white space at both ends."""
    own = text[start:end]
    start += len(own) - len(own.lstrip())
    return start, max(start, start + len(own.strip()))


# ---- snippets -----------------------------------------------------------------------------


def highlights(text: str, words: Sequence[str]) -> list[Span]:
    """Where the words are in a text, whatever their case; Chinese words also inside others."""
    if not (distinct := sorted({word for word in words if word}, key=len, reverse=True)):
        return []
    parts = (
        re.escape(word) if any(map(is_han, word)) else rf"(?<!\w){re.escape(word)}(?!\w)"
        for word in distinct
    )
    return [found.span() for found in re.finditer("|".join(parts), text, re.IGNORECASE)]


class Snippet(NamedTuple):
    """A part of a text, and where the words of the query are in it."""

    text: str
    highlights: list[Span]

    def marked(self, before: str, after: str) -> str:
        """The text with marks around the words of the query."""
        found, end = [], 0
        for first, last in self.highlights:
            found += [self.text[end:first], before, self.text[first:last], after]
            end = last
        return "".join([*found, self.text[end:]])


def snippet(text: str, words: Sequence[str], size: int = 200) -> Snippet:
    """About `size` characters of a text, on one line, with as many words of a query as possible."""
    text = " ".join(text.split())
    spans = highlights(text, words)
    width = size // 2 if _HAN.search(text[:size]) else size

    def num_words(start: int) -> int:
        return len({text[a:b].lower() for a, b in spans if start <= a and b <= start + width})

    if len(text) <= width or not spans:
        start = 0
    else:
        best = max((span[0] for span in spans), key=num_words)  # the first of equals
        last = max(b for _, b in spans if b <= best + width or b == spans[0][1])
        start = max(0, min(best - (width - (last - best)) // 2, len(text) - width))
    end = min(len(text), start + width)
    if start and (space := text.find(" ", start, start + width // 4)) > 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", end - width // 4, end)) > 0:
        end = space
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = start - len(before)
    inside = [(a - shift, b - shift) for a, b in spans if start <= a and b <= end]
    return Snippet(before + text[start:end] + after, inside)
