"""The words of running text with their places in it, cut and written as a model's own text was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from sememe.examples.labelled.running_text import Place, word_places
from sememe.text.settings import TextSettings
from sememe.text.words import write_word

_SPACED = re.compile(r"\S+")


def places_in(texts: Sequence[str], settings: TextSettings) -> Iterator[list[Place]]:
    """Where the words of each text start and end, in characters; punctuation counts as words."""
    if settings.mode == "whitespace":
        return ([match.span() for match in _SPACED.finditer(text)] for text in texts)
    if settings.mode == "chinese":
        return _chinese_places(texts, settings)
    return (word_places(text) for text in texts)


def _chinese_places(texts: Sequence[str], settings: TextSettings) -> Iterator[list[Place]]:
    """Where rjieba's words lie in each text, in characters."""
    from sememe.text.chinese import ChineseSegmenter, narrow

    with ChineseSegmenter(settings, 1) as segmenter:
        for text in texts:
            # Full-width letters would be taken apart; the plain ones stand in the same places.
            data = (narrow(text) if settings.lowercase else text).encode("utf-8", "replace")
            starts = segmenter.word_starts(data, np.array([len(data)]))
            # A byte of the form 10xxxxxx continues a character; the others start one.
            chars = np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
            firsts = [int(chars[start]) - 1 for start in starts.tolist() if start < len(data)]
            ends = [*firsts, len(text)][1:]
            places = zip(firsts, ends, strict=True)
            yield [(start, end) for start, end in places if text[start:end].strip()]


def written(piece: str, settings: TextSettings) -> str:
    """A word of a text as the store of such a text has it."""
    if settings.mode == "chinese" and settings.lowercase:
        from sememe.text.chinese import narrow

        piece = narrow(piece)
    return write_word(piece, settings.lowercase)


def is_word(piece: str, settings: TextSettings) -> bool:
    """Whether the store of such a text would keep a piece: it drops punctuation and symbols."""
    return settings.mode == "whitespace" or any(map(str.isalnum, piece))
