"""Running text in, the places of its words out: nothing that can be seen is dropped.

Words are those of `text.words`: Chinese by character, Latin and numbers whole. Every other
character that can be seen is a word too, because taggers see punctuation; one that combines with
what stands before it (an accent, the parts of an emoji) stays with that.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from sememe.text import characters as ch
from sememe.text.words import end_among

Place = tuple[int, int]

_STARTS = (ch.LETTER, ch.DIGIT, ch.IDEOGRAPH)
_UNSEEN = (ch.SPACE, ch.NEWLINE, ch.FORMAT)


@cache
def _kind(char: str) -> int:
    return ch.classify(char) & ch.CLASS_MASK


@cache
def _cluster() -> Any:
    import regex

    return regex.compile(r"\X")


def word_places(
    text: str, borders: Collection[int] = (), *, by_character: bool = False
) -> list[Place]:
    """Where each word starts and ends; a word that a border lies within is cut there.

    With `by_character` Latin words and numbers come apart as well.
    """
    kinds = [_kind(char) for char in text]
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
