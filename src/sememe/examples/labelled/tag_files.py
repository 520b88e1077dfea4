"""Tagged words as files hold them: CoNLL columns, and texts with entities marked by character.

A word per line with its tags, blank lines between sentences; or

    {"text": …, "entities": [{"start": 0, "end": 3, "label": "PER"}, …]}   end after the last
    {"text": …, "entities": [[0, 3, "PER"], …]}                             the same, shorter
    {"text": …, "label": {"name": {"彭小军": [[0, 2]]}}}                     CLUENER: last inside

Each text becomes words with IOB2 tags and their places.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from sememe.examples.labelled.rows import Note, TagRow
from sememe.examples.running_words import word_places
from sememe.examples.tagging import Span, split_tag, tags_of
from sememe.text.headers import plain
from sememe.text.settings import TextSettings
from sememe.text.sources import Source
from sememe.text.tables import BLANK, Record, at, numbered_lines

_DOCUMENT = "-DOCSTART-"
_LONGEST_TAG = 64
_LOOKED_AT = 50
_LONGEST_WORD = 40
# What is in the column of predicates beside every other word.
_UNMARKED = ("-", "_", "O", "0", "*", "")


def is_marked(cell: object) -> bool:
    """Whether a cell of a column of predicates marks its word."""
    return cell is not None and str(cell) not in (*_UNMARKED, "False", "false")


class Columns(NamedTuple):
    """The columns of the word, the tag and, if there is one, the predicate mark.

    Negative ones count from the end.
    """

    word: int
    tag: int
    labelled: bool
    mark: int | None = None


def has_header(source: Source, settings: TextSettings, names: Sequence[str]) -> bool:
    """Whether the first line of a table names its columns."""
    _, line = next(numbered_lines(source, settings), (0, ""))
    cells = [plain(cell) for cell in line.replace(",", "\t").split("\t")]
    return len(cells) > 1 and all(cells) and any(cell in names for cell in cells)


def is_prose(source: Source, settings: TextSettings) -> bool:
    """Whether a file is running text rather than one word per line."""
    lines = [line for _, line in islice(numbered_lines(source, settings), _LOOKED_AT)]
    rows = [split(line) for line in lines if line.strip() and not _is_document(line)]
    if len({len(cells) for cells in rows}) != 1:
        return True
    are_tagged = all(split_tag(cells[-1])[0] for cells in rows)
    if len(rows[0]) > 1 and (any("\t" in line for line in lines) or are_tagged):
        return False
    # Words are between blank lines, and Chinese sentences are too long for words.
    longest = max(len(cell) for cells in rows for cell in cells)
    return all(line.strip() for line in lines) or longest > _LONGEST_WORD


def split(line: str) -> list[str]:
    """The cells of a line, separated by tabs if there are any, otherwise by blanks."""
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()


def _is_document(line: str) -> bool:
    return line.startswith(_DOCUMENT)


def read_prose(source: Source, settings: TextSettings) -> Iterator[Record]:
    """A text from each line; a blank one holds none."""
    for number, line in numbered_lines(source, settings):
        problem = "" if line.strip() else BLANK
        yield Record({"text": line}, at(source.name, number), problem)


def read_columns(
    source: Source, settings: TextSettings, columns: Columns, on_note: Note
) -> Iterator[Record | TagRow]:
    """Read sentences; a line with fewer or more columns than the first makes its sentence bad."""
    num_columns = 0
    for sentence in _sentences(source, settings):
        num_columns = num_columns or len(sentence[0][1])
        yield _tagged(source.name, sentence, columns, num_columns)
    on_note(
        f"{source.name}: {num_columns} columns; words = {_named(columns.word)}"
        + (f", tags = {_named(columns.tag)}." if columns.labelled else ".")
    )


def _sentences(source: Source, settings: TextSettings) -> Iterator[list[tuple[int, list[str]]]]:
    """The lines of each sentence, their numbers and cells; blank lines are between."""
    is_conllu = source.format_ending == ".conllu"
    kept: list[tuple[int, list[str]]] = []
    for number, line in chain(numbered_lines(source, settings), [(0, "")]):
        # The separator of CoNLL is a line without anything but blanks; \x0c and others are words.
        if not line.strip(" \t"):
            if kept:
                yield kept
            kept = []
        # A word of CoNLL-U has a number; 1-2 is a range of words, 1.1 an empty node.
        elif not (_is_document(line) or (is_conllu and not line.split("\t")[0].isdecimal())):
            kept.append((number, split(line)))


def _named(column: int) -> str:
    if column == -1:
        return "the last column"
    return f"column {column + 1}" if column >= 0 else f"column {-column} from the end"


def _tagged(
    name: str, sentence: list[tuple[int, list[str]]], columns: Columns, num_columns: int
) -> Record | TagRow:
    """The words and tags of a sentence, or the line that is wrong."""
    for number, cells in sentence:
        if problem := _problem(cells, columns, num_columns):
            return Record({}, at(name, number), problem)
    words = tuple(cells[columns.word] for _, cells in sentence)
    has_tags = columns.labelled or num_columns > 1
    tags = tuple(cells[columns.tag] for _, cells in sentence) if has_tags else None
    marks = None
    if columns.mark is not None:
        marks = tuple(is_marked(cells[columns.mark]) for _, cells in sentence)
    return TagRow(words, tags, at(name, sentence[0][0]), marks=marks)


def _problem(cells: list[str], columns: Columns, num_columns: int) -> str:
    """What is wrong with the cells of a line, or nothing."""
    if columns.labelled and num_columns == 1:
        return "one column, where a word and its tag are needed"
    if len(cells) != num_columns:
        return f"{len(cells)} columns, where the first line has {num_columns}"
    tag = columns.tag if columns.labelled or num_columns > 1 else None
    for column in (columns.word, tag, columns.mark):
        if column is not None and not -len(cells) <= column < len(cells):
            return f"there is no {_named(column)} among {len(cells)}"
    if not cells[columns.word]:
        return "the word is empty"
    # Tags that no one requested may be notes of any length; those of morphology are long lists.
    written = cells[columns.tag] if columns.labelled else ""
    if len(written) > _LONGEST_TAG and "|" not in written:
        return f"the tag “{written[:20]}…” is a text; a line holds one word and its tag"
    return ""


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
    """Split a text into words, with a boundary wherever an entity begins or ends."""
    borders = {border for entity in found or () for border in (entity.start, entity.end)}
    places = word_places(text, borders, by_character=by_character)
    tags = None
    if found is not None:
        spans = []
        for entity in found:
            inside = [i for i, (a, b) in enumerate(places) if entity.start <= a and b <= entity.end]
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


class _WrongError(Exception):
    """What is wrong with the entities of a row."""


def _entities(value: Any, text: str) -> Iterator[Entity]:
    if isinstance(value, Mapping):
        yield from _nested(value, text)
    elif isinstance(value, (list, tuple)):
        yield from (_listed(item, text) for item in value)
    elif value is not None:
        raise _WrongError("the entities are neither a list nor an object")


def _nested(value: Mapping[str, Any], text: str) -> Iterator[Entity]:
    """CLUENER's format: type, mention, positions including the last character."""
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
