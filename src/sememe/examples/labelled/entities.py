"""Texts with entities marked by character: each becomes words with IOB2 tags and their places.

{"text": …, "entities": [{"start": 0, "end": 3, "label": "PER"}, …]}   end behind the last
{"text": …, "entities": [[0, 3, "PER"], …]}                             the same, shorter
{"text": …, "label": {"name": {"彭小军": [[0, 2]]}}}                     CLUENER: last inside
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from sememe.examples.labelled.records import Record
from sememe.examples.labelled.rows import TagRow
from sememe.examples.labelled.running_text import word_places
from sememe.examples.tagging import Span, tags_of

_LISTS = ("entities", "spans", "label", "labels", "annotations", "tags")
_STARTS = ("start", "start_offset", "start_idx", "begin", "from")
_ENDS = ("end", "end_offset", "end_idx", "stop", "to")
_TYPES = ("label", "type", "entity_type", "tag", "category")
_MENTIONS = ("text", "mention", "word", "entity", "value")


class Entity(NamedTuple):
    """Characters `start` up to `end` of a text are a mention of one type."""

    type: str
    start: int
    end: int


def row_of(record: Record, identity: str, by_character: bool) -> TagRow | str:
    """The row of a text with entities (without any: no tags), or what is wrong with it."""
    text = record.cells["text"]
    column = next((name for name in _LISTS if name in record.cells), None)
    if column is None:
        return _cut(text, None, record.where, identity, by_character)
    try:
        found = sorted(_entities(record.cells[column], text), key=lambda entity: entity.start)
    except _WrongError as error:
        return str(error)
    for entity in found:
        if not 0 <= entity.start < entity.end <= len(text):
            return (
                f"the span {entity.start} to {entity.end} ({entity.type}) leaves the text of "
                f"{len(text)} characters"
            )
    for one, other in pairwise(found):
        if other.start < one.end:
            return (
                f"the spans {text[one.start : one.end]!r} ({one.type}) and "
                f"{text[other.start : other.end]!r} ({other.type}) overlap"
            )
    return _cut(text, found, record.where, identity, by_character)


def _cut(
    text: str, found: list[Entity] | None, where: str, identity: str, by_character: bool
) -> TagRow | str:
    """Cut a text into words, with a border wherever an entity begins or ends."""
    borders = {border for entity in found or () for border in (entity.start, entity.end)}
    places = word_places(text, borders, by_character=by_character)
    tags = None
    if found is not None:
        spans = []
        for entity in found:
            inside = [i for i, (start, end) in enumerate(places) if _within(start, end, entity)]
            if not inside:
                return f"the span {entity.start} to {entity.end} ({entity.type}) holds no word"
            spans.append(Span(entity.type, inside[0], inside[-1] + 1))
        tags = tuple(tags_of(spans, len(places)))
    return TagRow(
        words=tuple(text[start:end] for start, end in places),
        tags=tags,
        source=where,
        text=text,
        starts=tuple(start for start, _ in places),
        ends=tuple(end for _, end in places),
        id=identity,
    )


def _within(start: int, end: int, entity: Entity) -> bool:
    return entity.start <= start and end <= entity.end


class _WrongError(Exception):
    """What is wrong with the entities of a row."""


def _entities(value: Any, text: str) -> Iterator[Entity]:
    if isinstance(value, Mapping):
        yield from _nested(value, text)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield _listed(item, text)
    elif value is not None:
        raise _WrongError("the entities are neither a list nor an object")


def _nested(value: Mapping[str, Any], text: str) -> Iterator[Entity]:
    """CLUENER's form: type, mention, places whose last character lies inside."""
    for kind, mentions in value.items():
        if not isinstance(mentions, Mapping):
            raise _WrongError(f"the entities of {kind!r} are not given by mention")
        for mention, places in mentions.items():
            for place in places:
                start, last = _numbers(place)
                _check(text, start, last + 1, mention)
                yield Entity(kind, start, last + 1)


def _numbers(place: Any) -> tuple[int, int]:
    if not (isinstance(place, (list, tuple)) and len(place) == 2):
        raise _WrongError(f"{place!r:.40} is not a start and an end")
    if not all(isinstance(number, int) for number in place):
        raise _WrongError(f"{place!r:.40} is not two whole numbers")
    return place[0], place[1]


def _check(text: str, start: int, end: int, mention: str) -> None:
    if not 0 <= start < end <= len(text) or text[start:end] != mention:
        there = text[max(start, 0) : end]
        raise _WrongError(f"characters {start} to {end} are {there!r:.40}, not {mention!r:.40}")


def _listed(item: Any, text: str) -> Entity:
    if isinstance(item, Mapping):
        start, end, kind = (
            next((item[name] for name in names if name in item), None)
            for names in (_STARTS, _ENDS, _TYPES)
        )
        mention = next((item[name] for name in _MENTIONS if isinstance(item.get(name), str)), None)
    elif isinstance(item, (list, tuple)) and len(item) == 3:
        (start, end, kind), mention = item, None
    else:
        raise _WrongError(f"an entity is (start, end, type) or an object, not {item!r:.40}")
    if kind is None or not str(kind).strip():
        raise _WrongError(f"the entity {item!r:.60} has no type")
    start, end = _numbers((start, end))
    if mention is not None:
        # Some files count the last character in.
        end += text[start:end] != mention and text[start : end + 1] == mention
        _check(text, start, end, mention)
    return Entity(str(kind), start, end)
