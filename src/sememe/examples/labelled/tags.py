"""Rows of tagged words: CoNLL columns, json, tables, parquet or Python lists.

rows = read_tags("eng.train", on_note=print)            # a word per line, blank lines between
rows = read_tags("train.jsonl")                         # words and tags, or text and entities
rows = read_tags([(["Jim", "sings"], ["B-PER", "O"])])
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sememe.errors import InputError
from sememe.examples import tagging
from sememe.examples.labelled import tag_files
from sememe.examples.labelled.rows import NAME, LabelledRows, Note, TagRow, items_of, silent
from sememe.examples.labelled.tag_files import TAGS, WORDS
from sememe.examples.labelled.texts import Sieve, opened
from sememe.examples.tagging import Scheme
from sememe.text.headers import plain
from sememe.text.settings import TextSettings
from sememe.text.sources import JSON_ENDINGS, PARQUET_ENDINGS, TABLE_ENDINGS, Source, find_sources
from sememe.text.tables import BLANK, FileTable, Record, is_path, open_table

# Some tables hold the words of a sentence in one cell, distinguished by this, or by spaces.
_CELL_MARK = "\x02"


def read_tags(
    data: Any,
    *,
    scheme: Scheme | Literal["auto"] = "auto",
    target: Scheme | Literal["same"] = "same",
    word_column: int | str = 0,
    tag_column: int | str = -1,
    mark_column: int | None = None,
    labels_known: Sequence[str] | None = None,
    labelled: bool = True,
    by_character: bool = False,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    on_note: Note = silent,
    sieve: Sieve | None = None,
) -> LabelledRows[TagRow]:
    """Read tagged sentences from paths, an iterable, or a part of a table.

    `target` selects another tag scheme. Parts, from `open_tags`, share a `sieve`, which the caller
    finishes.

    Columns of CoNLL files are numbered from 0, or negative from the end; those of other files are
    named, or known by their names. Text with entities becomes words and IOB2 tags. Without
    `labelled`, rows may lack tags, and a text is split into its words, or `by_character`. The
    column `mark_column`, or the field “marks”, marks the words that the tags are about.
    """
    if scheme != "auto":
        tagging.check_scheme(scheme)
    own = sieve or Sieve(skip_bad, on_note)
    named = {
        role: column
        for role, column in (("words", word_column), ("tags", tag_column))
        if isinstance(column, str)
    }
    rows: list[TagRow] = []
    places: dict[str, Any] = {"word_column": word_column, "tag_column": tag_column}
    for table in open_tags(
        data, labelled=labelled, encoding=encoding, on_note=own.say, mark_column=mark_column,
        **places,
    ):  # fmt: skip
        rows += _kept(table, named, labelled, by_character, own)
    if labelled:
        rows = _in_scheme(rows, scheme, target, own)
    if labels_known is not None:
        rows = _known(rows, frozenset(labels_known), own)
    found = own.rows_of(rows, named)
    if sieve is None:
        own.finish()
    return found


def open_tags(
    data: Any,
    *,
    labelled: bool,
    encoding: str,
    on_note: Note,
    word_column: int | str = 0,
    tag_column: int | str = -1,
    mark_column: int | None = None,
) -> Iterator[FileTable]:
    """The tables of data in any form, each to be read entirely or in parts."""
    columns = tag_files.Columns(word_column, tag_column, labelled, mark_column)  # type: ignore[arg-type]
    if isinstance(data, FileTable):
        yield data
        return
    data = opened(data, "tag", on_note)
    if not is_path(data):
        yield FileTable(NAME, [], True, _items(data, columns.labelled))  # type: ignore[arg-type]
        return
    settings = TextSettings(encoding=encoding)
    for found in find_sources(data):
        source = Source(found.path)
        ending = source.format_ending
        has_header = ending in TABLE_ENDINGS and tag_files.has_header(source, settings)
        is_by_word = has_header and tag_files.has_word_per_row(source, settings)
        if ending in (*JSON_ENDINGS, *PARQUET_ENDINGS) or (has_header and not is_by_word):
            yield open_table(Source(found.path), settings, lambda *_: True)
        elif not (columns.labelled or is_by_word) and tag_files.is_prose(source, settings):
            on_note(f"{source.name}: running text, one row per line, split into words.")
            records = tag_files.read_prose(Source(found.path), settings)
            yield FileTable(source.name, ["text"], True, records, roles={})
        else:
            rows = tag_files.read_columns(Source(found.path), settings, columns, on_note)
            yield FileTable(source.name, [], False, rows)  # type: ignore[arg-type]


def _items(data: Any, labelled: bool) -> Iterator[Record | TagRow]:
    for index, item in enumerate(items_of(data)):
        where = f"row {index}"
        if isinstance(item, TagRow):
            yield item if item.source else replace(item, source=where)
        elif isinstance(item, Mapping):
            yield Record(item, where)
        elif isinstance(item, str) and not labelled:
            yield Record({"text": item}, where)
        elif _is_words(item) and not labelled:
            yield Record({"words": list(item)}, where)
        elif isinstance(item, (list, tuple)) and len(item) == 2:
            first = "text" if isinstance(item[0], str) else "words"
            second = "entities" if isinstance(item[0], str) else "tags"
            yield Record({first: item[0], second: item[1]}, where)
        else:
            raise InputError(f"Row {index} is not (words, tags): {item!r:.60}.")


def _is_words(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and all(isinstance(word, str) for word in item)


# ---- rows ---------------------------------------------------------------------------------


def _kept(
    table: FileTable, named: Mapping[str, str], labelled: bool, by_character: bool, sieve: Sieve
) -> Iterator[TagRow]:
    for record in table.records:
        if isinstance(record, TagRow):
            row: TagRow | str = record
        elif record.problem:
            row = record.problem
        else:
            if table.roles is None and table.name != NAME:
                sieve.say(_story(record, table.name, named))
                table.roles = {}
            row = _row(record, named, by_character)
        problem = row if isinstance(row, str) else _problem(row, labelled)
        if problem:
            where = record.source if isinstance(record, TagRow) else record.where
            sieve.refuse(where, problem, record.cells)
        else:
            assert isinstance(row, TagRow)
            sieve.num_kept += 1
            yield row if labelled else replace(row, cells=_all_cells(record, row))


def _all_cells(record: Record | TagRow, row: TagRow) -> Mapping[str, Any] | None:
    """The columns of a row, with its words if it was given as a text."""
    if record.cells is None or row.text is None:
        return record.cells
    return {**record.cells, "words": list(row.words)}


def _story(record: Record, name: str, named: Mapping[str, str]) -> str:
    words = _column(record, "words", named)
    if words is None:
        return f"{name}: text = “text”, with its entities as IOB2 tags."
    tags = _column(record, "tags", named)
    return f"{name}: words = “{words}”" + (f", tags = “{tags}”." if tags else ".")


def _column(record: Record, role: str, named: Mapping[str, str]) -> str | None:
    if role in named:
        if named[role] not in record.cells:
            there = ", ".join(map(repr, list(record.cells)[:20]))
            raise InputError(
                f"{record.where}: there is no column {named[role]!r}; the row has {there}."
            )
        return named[role]
    by_plain = {plain(column): column for column in record.cells}
    names: Sequence[str] = WORDS if role == "words" else TAGS
    return next((by_plain[name] for name in names if name in by_plain), None)


def _row(record: Record, named: Mapping[str, str], by_character: bool) -> TagRow | str:
    """One record as a row, or what is wrong with it."""
    column = _column(record, "words", named)
    identity = str(record.cells.get("id", ""))
    if column is None or (column in TAGS and "text" in record.cells):
        if not isinstance(record.cells.get("text"), str):
            return "neither words nor a text; fields are words and tags, or text and entities"
        return tag_files.row_of(record, identity, by_character)
    tags = _column(record, "tags", named)
    return TagRow(
        words=_cells(record.cells[column]),
        tags=None if tags is None or record.cells[tags] is None else _cells(record.cells[tags]),
        source=record.where,
        id=identity,
        marks=_marks(record.cells.get("marks")),
    )


def _marks(value: Any) -> tuple[bool, ...] | None:
    if value is None:
        return None
    cells = value.split() if isinstance(value, str) else value
    return tuple(map(tag_files.is_marked, cells)) if isinstance(cells, (list, tuple)) else ()


def _cells(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split(_CELL_MARK) if _CELL_MARK in value else value.split())
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else ()


def _problem(row: TagRow, labelled: bool) -> str:
    if not row.words:
        return "no words" if labelled else BLANK
    if not all(word.strip() for word in row.words):
        return f"word {next(i for i, word in enumerate(row.words, 1) if not word.strip())} is empty"
    if row.marks is not None and len(row.marks) != len(row.words):
        return f"{len(row.words)} words but {len(row.marks)} marks"
    if row.tags is None:
        return "no tags" if labelled else ""
    if len(row.tags) != len(row.words):
        return f"{len(row.words)} words but {len(row.tags)} tags"
    return "" if all(row.tags) else "a tag is empty"


def _in_scheme(rows: list[TagRow], scheme: str, target: str, sieve: Sieve) -> list[TagRow]:
    tagged = [row.tags for row in rows if row.tags is not None]
    if not tagged:
        return rows
    source: Scheme = tagging.detect_scheme(tagged) if scheme == "auto" else scheme  # type: ignore[assignment]
    if scheme == "auto":
        sieve.say(f"The tags are written in {_NAMES[source]}.")
    if source == "none":
        return rows
    goal: Scheme = source if target == "same" else target  # type: ignore[assignment]
    found = [row if row.tags is None else _written(row, row.tags, source, goal) for row in rows]
    if source == target == "bioes":
        found = [
            row
            if row.tags is None
            else replace(row, tags=tuple(tagging.fixed_tags(row.tags, source)))
            for row in found
        ]
    return found


def _written(row: TagRow, tags: Sequence[str], source: Scheme, target: Scheme) -> TagRow:
    plain_tags = [tagging.plain_tag(tag) for tag in tags]
    own = tuple(tagging.convert_tags(plain_tags, source, target))
    return row if own == row.tags else replace(row, tags=own)


_NAMES = {"iob1": "IOB1", "iob2": "IOB2", "bioes": "BIOES", "none": "no scheme of spans"}


def _known(rows: list[TagRow], known: frozenset[str], sieve: Sieve) -> list[TagRow]:
    kept = []
    for row in rows:
        wrong = next((tag for tag in row.tags or () if tag not in known), None)
        if wrong is None:
            kept.append(row)
        else:
            some = ", ".join(sorted(known)[:12])
            sieve.refuse(row.source, f"the tag {wrong!r} is not among those known: {some}", None)
    return kept
