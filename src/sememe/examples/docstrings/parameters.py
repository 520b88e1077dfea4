"""Parameters as running text: which words name them, which their types; what type is one of them?

The layout that gives it away is taken out: colons, brackets, capitals and line breaks go, and a
docstring comes in one of the orders that numpydoc and Sphinx have: name, type, text; type, name,
text; or name, text, type. What is a name and what a type must be told from the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sememe.examples.docstrings.records import Docstring, draw
from sememe.examples.labelled.rows import Answer, AnswerRow, TagRow

ORDERS = (("name", "type", "text"), ("type", "name", "text"), ("name", "text", "type"))
_MOST_WORDS = 48  # of a row
_MOST_TYPE_WORDS, _MOST_TEXT_WORDS = 8, 16
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_WORD = re.compile(r"\w+(?:'\w+)*")


class Entry(NamedTuple):
    """A parameter in words, without marks and capitals."""

    names: tuple[str, ...]
    type_words: tuple[str, ...]
    text_words: tuple[str, ...]

    @property
    def num_words(self) -> int:
        """Words in all."""
        return len(self.names) + len(self.type_words) + len(self.text_words)


class Passage(NamedTuple):
    """Some entries as running words with tags, and where the type of each name lies."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    types: dict[str, tuple[int, int] | None]  # name: first word and the one behind the last
    source: str

    @property
    def text(self) -> str:
        """The words with spaces between."""
        return " ".join(self.words)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each word starts in the text."""
        places, place = [], 0
        for word in self.words:
            places.append(place)
            place += len(word) + 1
        return tuple(places)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def entries(docstring: Docstring) -> list[Entry]:
    """The parameters of a docstring in words; of each text the first sentence."""
    found = []
    for parameter in docstring.parameters:
        first = _SENTENCE_END.split(parameter.text.replace("\n", " "))[0]
        type_words = _words(parameter.type)
        if len(type_words) <= _MOST_TYPE_WORDS and bool(type_words) == bool(parameter.type):
            names = tuple(name.lower() for name in parameter.names)
            found.append(Entry(names, type_words, _words(first)[:_MOST_TEXT_WORDS]))
    return found


def passages(docstrings: Iterable[Docstring]) -> list[Passage]:
    """Runs of parameters of each docstring, two at least, each different run once."""
    found: dict[str, Passage] = {}
    for docstring in docstrings:
        order = ORDERS[draw(docstring.text) % len(ORDERS)]
        source = f"{docstring.package} {docstring.module}"
        for run in _runs(entries(docstring)):
            passage = _passage(run, order, source)
            if passage is not None:
                found.setdefault(passage.text, passage)
    return list(found.values())


def _runs(own: list[Entry]) -> Iterator[list[Entry]]:
    run: list[Entry] = []
    for entry in own:
        if sum(kept.num_words for kept in run) + entry.num_words > _MOST_WORDS:
            yield run
            run = []
        run.append(entry)
    yield run


def _passage(run: list[Entry], order: tuple[str, ...], source: str) -> Passage | None:
    names = [name for entry in run for name in entry.names]
    # Without a text or a type beside them, names are a list of words and nothing can be told.
    is_told = all(entry.type_words or entry.text_words for entry in run)
    if len(run) < 2 or len(set(names)) < len(names) or not is_told:
        return None
    words: list[str] = []
    tags: list[str] = []
    types: dict[str, tuple[int, int] | None] = {}
    for entry in run:
        for part in order:
            if part == "type" and entry.type_words:
                place = (len(words), len(words) + len(entry.type_words))
                types |= dict.fromkeys(entry.names, place)
            own, first, rest = _tagged(entry, part)
            words += own
            tags += [first if part == "name" or not index else rest for index in range(len(own))]
        for name in entry.names:
            types.setdefault(name, None)
    return Passage(tuple(words), tuple(tags), types, source)


def _tagged(entry: Entry, part: str) -> tuple[tuple[str, ...], str, str]:
    if part == "name":
        return entry.names, "B-NAME", "B-NAME"
    if part == "type":
        return entry.type_words, "B-TYPE", "I-TYPE"
    return entry.text_words, "O", "O"


def tag_rows(found: Iterable[Passage]) -> list[TagRow]:
    """Passages with the tags of their words."""
    return [
        TagRow(
            words=own.words,
            tags=own.tags,
            source=own.source,
            text=own.text,
            starts=own.starts,
            ends=tuple(
                start + len(word) for start, word in zip(own.starts, own.words, strict=True)
            ),
        )
        for own in found
    ]


def answer_rows(found: Iterable[Passage]) -> list[AnswerRow]:
    """A question for each name of each passage; where no type is told there is no answer."""
    rows = []
    for own in found:
        starts = own.starts
        for name, place in own.types.items():
            answers: tuple[Answer, ...] = ()
            if place is not None:
                text = " ".join(own.words[place[0] : place[1]])
                answers = (Answer(text, starts[place[0]]),)
            rows.append(
                AnswerRow(
                    id=f"{draw(own.text):016x}-{name}",
                    question=f"What type is {name}?",
                    context=own.text,
                    answers=answers,
                    is_impossible=not answers,
                    source=own.source,
                )
            )
    return rows
