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

from sememe.errors import InputError
from sememe.examples.labelled.rows import Note, TagRow
from sememe.examples.running_words import word_places
from sememe.examples.tagging import Span, split_tag, tags_of
from sememe.text.headers import plain
from sememe.text.settings import TextSettings
from sememe.text.sources import Source
from sememe.text.tables import BLANK, Record, at, csv_rows, numbered_lines, text_lines

_DOCUMENT = "-DOCSTART-"
_LONGEST_TAG = 64
_LOOKED_AT = 50
_LONGEST_WORD = 40
_LONGEST_SENTENCE = 200  # words
_MANY_ROWS = 10
# What is in the column of predicates beside every other word.
_UNMARKED = ("-", "_", "O", "0", "*", "")


def is_marked(cell: object) -> bool:
    """Whether a cell of a column of predicates marks its word."""
    return cell is not None and str(cell) not in (*_UNMARKED, "False", "false")


WORDS = ("words", "tokens", "word", "token", "texta", "chars", "characters", "form", "字", "词")
TAGS = ("tags", "nertags", "labels", "label", "tag", "ner", "postags", "upos", "pos", "bio", "标签")
_SENTENCES = ("sentence#", "sentence", "sentenceid", "sentid", "sentenceidx", "sent", "句子编号")


class Columns(NamedTuple):
    """The columns of the word, the tag and, if there is one, the predicate mark.

    Negative ones count from the end; a header may name them.
    """

    word: int
    tag: int
    labelled: bool
    mark: int | None = None


def has_header(source: Source, settings: TextSettings) -> bool:
    """Whether the first line of a table names its columns."""
    _, cells = next(_rows(source, settings), (0, []))
    names = [plain(cell) for cell in cells]
    return len(cells) > 1 and all(names) and any(name in (*WORDS, *TAGS) for name in names)


def has_word_per_row(source: Source, settings: TextSettings) -> bool:
    """Whether the rows of a table with a header hold a word each, not a sentence."""
    (_, header), *rows = islice(_rows(source, settings), _LOOKED_AT)
    names = [plain(cell) for cell in header]
    place = next((names.index(name) for name in WORDS if name in names), None)
    filled = [cells for _, cells in rows if any(cells)]
    if place is None or any(len(split(cell)) > 1 for cells in filled for cell in cells[place:][:1]):
        return False
    is_split = len(filled) < len(rows) or any(name in _SENTENCES for name in names)
    return is_split or len(filled) >= _MANY_ROWS


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
    rows = _rows(source, settings)
    early = list(islice(rows, _LOOKED_AT))
    header = _header(early, columns)
    sentence = next((i for i, name in enumerate(map(plain, header)) if name in _SENTENCES), None)
    word = _place(source.name, header, columns.word, WORDS if columns.word == 0 else ())
    tag = _place(source.name, header, columns.tag, TAGS if columns.tag == -1 else ())
    columns, below = columns._replace(word=word, tag=tag), chain(early[bool(header) :], rows)
    num_columns = num_sentences = 0
    for lines in _sentences(below, sentence):
        num_columns, num_sentences = num_columns or len(lines[0][1]), num_sentences + 1
        yield _tagged(source.name, lines, columns, num_columns)
    if header and num_sentences == 1 and len(lines) > _LONGEST_SENTENCE:
        raise InputError(
            f"{source.name} has a word per row, but nothing separates its sentences: add blank "
            "lines, or a column “sentence” with their numbers."
        )
    on_note(
        f"{source.name}: {num_columns} columns; words = {_named(word, header)}"
        + (f", tags = {_named(tag, header)}." if columns.labelled else ".")
    )


def _rows(source: Source, settings: TextSettings) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, with its number; none in a blank one."""
    if source.format_ending == ".csv":
        lines = text_lines(Source(source.path), settings)
        yield from csv_rows(source.name, lines, 1, has_blank=True)
        return
    is_conllu = source.format_ending == ".conllu"
    for number, line in numbered_lines(Source(source.path), settings):
        # The separator of CoNLL is a line without anything but blanks; \x0c and others are words.
        if not line.strip(" \t"):
            yield number, []
        # A word of CoNLL-U has a number; 1-2 is a range of words, 1.1 an empty node.
        elif not (_is_document(line) or (is_conllu and not line.split("\t")[0].isdecimal())):
            yield number, split(line)


def _header(early: list[tuple[int, list[str]]], columns: Columns) -> list[str]:
    """The first row, if it names the columns: its tag comes nowhere else, and it has their names.

    Where all other tags are of spans, a first one that is not is a name, too.
    """
    (_, first), *others = early or [(0, [])]
    if isinstance(columns.word, str) or isinstance(columns.tag, str):
        return first
    below = [cells for _, cells in others if len(cells) == len(first) > 1]
    if not below or not -len(first) <= columns.tag < len(first):
        return []
    tags = [cells[columns.tag] for cells in below]
    is_named = bool({*map(plain, first)} & {*WORDS}) and bool({*map(plain, first)} & {*TAGS})
    is_odd = len(tags) >= _MANY_ROWS and all(split_tag(tag)[0] for tag in tags)
    is_odd &= not split_tag(first[columns.tag])[0]
    return first if first[columns.tag] not in tags and (is_named or is_odd) else []


def _place(name: str, header: list[str], column: int | str, known: Sequence[str]) -> int:
    named = [plain(cell) for cell in header]
    if isinstance(column, int):
        return next((named.index(own) for own in known if own in named), column)
    if plain(column) not in named:
        raise InputError(
            f"{name} has no column {column!r}; its first line is {', '.join(map(repr, header))}. "
            "If that is no header, number the columns from 1."
        )
    return named.index(plain(column))


def _sentences(
    rows: Iterator[tuple[int, list[str]]], sentence: int | None
) -> Iterator[list[tuple[int, list[str]]]]:
    """The rows of each sentence: between blank ones, or of one number in the column `sentence`."""
    kept: list[tuple[int, list[str]]] = []
    current = ""
    for number, cells in chain(rows, [(0, [])]):
        own = cells[sentence].strip() if sentence is not None and sentence < len(cells) else ""
        if kept and (not any(cells) or own not in ("", current)):
            yield kept
            kept = []
        current = own or current
        if any(cells):
            kept.append((number, cells))


def _named(column: int, header: list[str]) -> str:
    if header:
        return f"“{header[column]}”"
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
            return f"there is no {_named(column, [])} among {len(cells)}"
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
            if not isinstance(places, (list, tuple)):
                raise _WrongError(f"the places of {mention!r:.40} are not a list")
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
