"""How a query is found among the words: as it is written, else as the corpus was prepared.

A query in, the words whose vectors answer it out. Files of other programs do not say how their text
was prepared: they are searched in lower case only if they have no other words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sememe.errors import UnknownWordError
from sememe.examples.running_words import is_word, places_in, written
from sememe.text.characters import is_han

if TYPE_CHECKING:
    from sememe.text.settings import TextSettings
    from sememe.vectors.wordvectors import WordVectors

_JOINT = "_"  # of the words of a phrase
_LONGEST = 40  # characters of a Chinese query that is split by the vocabulary


class Match(NamedTuple):
    """The words that answer a query: one, or several whose mean vector is used."""

    query: str
    words: tuple[str, ...]

    @property
    def note(self) -> str:
        """The sentence that says what was looked up; empty if it is the query itself."""
        if self.words == (self.query,):
            return ""
        if len(self.words) == 1:
            return f"“{self.query}” is looked up as “{self.words[0]}”."
        parts = " + ".join(self.words)
        return f"“{self.query}” is not in the vocabulary: the mean of {parts} is used."


def find_match(vectors: WordVectors, query: str) -> Match:
    """Find the words for a query: exactly, in another form, as a phrase, or as its parts."""
    if query in vectors:
        return Match(query, (query,))
    settings = _settings_for(vectors, query)
    forms = list(dict.fromkeys(_forms(vectors, query, settings)))
    for form in forms:
        for spelled in (form, _JOINT.join(form.split())):
            if spelled in vectors:
                return Match(query, (spelled,))
    parts = _parts(vectors, forms[-1], settings)
    unknown = [part for part in parts if part not in vectors]
    if parts and not unknown:
        return Match(query, tuple(parts))
    if len(own := _fewest_words(vectors, forms[-1])) > 1:
        return Match(query, own)
    if vectors.has_subwords:
        is_text = len(parts) > 1 and len(query.split()) > 1
        return Match(query, tuple(parts) if is_text else (forms[0],))
    if len(parts) < 2:
        vectors.vocabulary.id(query)  # raises, with near spellings
    raise UnknownWordError(
        f"“{query}” is not among the {len(vectors):,} words; split like the corpus it is "
        f"{' + '.join(parts)}, and {', '.join(dict.fromkeys(unknown))} is unknown."
    )


def _settings_for(vectors: WordVectors, query: str) -> TextSettings:
    """How the corpus was prepared; guessed for files that do not say it."""
    if vectors.has_text_settings:
        return vectors.text
    own = replace(vectors.text, lowercase=vectors.is_lower_case)
    return own.for_language("zh") if any(map(is_han, query)) else own


def _forms(vectors: WordVectors, query: str, settings: TextSettings) -> Iterator[str]:
    """The query as the corpus would spell it, in the order in which forms are tried."""
    yield written(query, settings)
    yield written(unicodedata.normalize("NFKC", query), settings)
    if vectors.is_lower_case:
        yield unicodedata.normalize("NFKC", query).lower()


def _parts(vectors: WordVectors, query: str, settings: TextSettings) -> list[str]:
    """The words into which the tokenizer splits a query; those of a known phrase are joined."""
    (places,) = places_in([query], settings)
    pieces = [query[slice(*place)] for place in places]
    words = [written(piece, settings) for piece in pieces if is_word(piece, settings)]
    split = [
        part
        for word in words
        for part in ([word] if word in vectors else filter(None, word.split(_JOINT)))
    ]
    found, start = [], 0
    while start < len(split):
        ends = range(len(split), start, -1)
        phrases = ((_JOINT.join(split[start:end]), end) for end in ends)
        longest = ((phrase, end) for phrase, end in phrases if phrase in vectors)
        phrase, start = next(longest, (split[start], start + 1))
        found.append(phrase)
    return found


def _fewest_words(vectors: WordVectors, query: str) -> tuple[str, ...]:
    """The fewest words of the vocabulary that make up a Chinese query, the most frequent of them.

    A segmenter splits a name differently without a sentence around it. Empty if there are none, or
    only single characters.
    """
    if not 2 < len(query) <= _LONGEST or not all(map(is_han, query)):
        return ()
    best: list[tuple[int, int, tuple[str, ...]] | None] = [(0, 0, ())]
    for end in range(1, len(query) + 1):
        options = []
        for start, before in enumerate(best):
            word_id = vectors.vocabulary.find(query[start:end])
            if before is not None and word_id >= 0:
                num, rank, words = before
                options.append((num + 1, rank + word_id, (*words, query[start:end])))
        best.append(min(options, default=None))
    found = best[-1]
    return found[2] if found is not None and found[0] < len(query) else ()
