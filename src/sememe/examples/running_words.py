"""The words of running text with their character offsets, segmented as a model's corpus was.

No visible character is dropped: what is not a word by text.words is a word by itself.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from sememe.text import characters as ch
from sememe.text.chinese import ChineseSegmenter, narrow
from sememe.text.settings import TextSettings
from sememe.text.words import end_among, write_word

Place = tuple[int, int]

_STARTS = (ch.LETTER, ch.DIGIT, ch.IDEOGRAPH)
_UNSEEN = (ch.SPACE, ch.NEWLINE, ch.FORMAT)


@cache
def _cluster() -> Any:
    import regex

    return regex.compile(r"\X")


def word_places(
    text: str, borders: Collection[int] = (), *, by_character: bool = False
) -> list[Place]:
    """The start and end of each word; a word that contains a boundary is split there.

    With `by_character` Latin words and numbers are split as well.
    """
    kinds = [ch.char_class(char) for char in text]
    cuts = sorted(set(borders))
    places: list[Place] = []
    index = cut = 0
    while index < len(text):
        kind = kinds[index]
        if kind in _UNSEEN or (kind == ch.OTHER and not text[index].isprintable()):
            index += 1
            continue
        if kind in _STARTS and not by_character:
            end = end_among(kinds, index)
        else:
            end = _cluster().match(text, index).end()
        while cut < len(cuts) and cuts[cut] < end:
            if cuts[cut] > index:
                places.append((index, cuts[cut]))
                index = cuts[cut]
            cut += 1
        places.append((index, end))
        index = end
    return places


_SPACED = re.compile(r"\S+")


def places_in(texts: Sequence[str], settings: TextSettings) -> Iterator[list[Place]]:
    """The start and end of the words of each text, in characters; punctuation counts as words."""
    if settings.mode == "whitespace":
        return ([match.span() for match in _SPACED.finditer(text)] for text in texts)
    if settings.mode == "chinese":
        return _chinese_places(texts, settings)
    return (word_places(text) for text in texts)


def _chinese_places(texts: Sequence[str], settings: TextSettings) -> Iterator[list[Place]]:
    """The spans of rjieba's words in each text, in characters."""

    with ChineseSegmenter(settings, 1) as segmenter:
        for text in texts:
            # Full-width letters would be taken apart; the plain ones are in the same places.
            data = (narrow(text) if settings.lowercase else text).encode("utf-8", "replace")
            starts = segmenter.word_starts(data, np.array([len(data)]))
            # A byte of the form 10xxxxxx continues a character; the others start one.
            chars = np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
            firsts = [int(chars[start]) - 1 for start in starts.tolist() if start < len(data)]
            places = zip(firsts, [*firsts, len(text)][1:], strict=True)
            yield [(start, end) for start, end in places if text[start:end].strip()]


def written(piece: str, settings: TextSettings) -> str:
    """A word of a text in the form of its token store."""
    if settings.mode == "chinese" and settings.lowercase:
        piece = narrow(piece)
    return write_word(piece, settings.lowercase)


def is_word(piece: str, settings: TextSettings) -> bool:
    """Whether the store of such a text would keep a piece: it drops punctuation and symbols."""
    return settings.mode == "whitespace" or any(map(str.isalnum, piece))
