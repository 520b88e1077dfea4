"""CoNLL columns: a word a line with its tags, blank lines between sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sememe.examples.labelled.columns import plain
from sememe.examples.labelled.records import Record, numbered_lines
from sememe.examples.labelled.rows import TagRow
from sememe.examples.labelled.sieve import Sieve
from sememe.examples.tagging import split_tag
from sememe.text.readers.sources import Source
from sememe.text.settings import TextSettings

_DOCUMENT = "-DOCSTART-"
_LONGEST_TAG = 64
_LOOKED_AT = 50
_LONGEST_WORD = 40
# What stands in the column of predicates beside every other word.
_UNMARKED = ("-", "_", "O", "0", "*", "")


def is_marked(cell: object) -> bool:
    """Whether a cell of a column of predicates marks its word."""
    return cell is not None and str(cell) not in (*_UNMARKED, "False", "false")


class Columns(NamedTuple):
    """Which column is the word, which the tag and which the mark of a predicate, if there is one.

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
    """Whether a file is running text rather than words with or without tags, one a line."""
    lines = [line for _, line in islice(numbered_lines(source, settings), _LOOKED_AT)]
    rows = [split(line) for line in lines if line.strip() and not _is_document(line)]
    if len({len(cells) for cells in rows}) != 1:
        return True
    if len(rows[0]) > 1 and (any("\t" in line for line in lines) or _are_tagged(rows)):
        return False
    # Words stand between blank lines, and Chinese sentences are too long for words.
    longest = max(len(cell) for cells in rows for cell in cells)
    return all(line.strip() for line in lines) or longest > _LONGEST_WORD


def _are_tagged(rows: list[list[str]]) -> bool:
    return all(split_tag(cells[-1])[0] for cells in rows)


def split(line: str) -> list[str]:
    """The cells of a line: between tabs where there are any, else between blanks."""
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()


def _is_document(line: str) -> bool:
    return line.startswith(_DOCUMENT)


def read_prose(source: Source, settings: TextSettings) -> Iterator[Record]:
    """A text from each line that is not blank."""
    for number, line in numbered_lines(source, settings):
        if line.strip():
            yield Record({"text": line}, f"{source.name}, line {number:,}")


def read_columns(
    source: Source, settings: TextSettings, columns: Columns, sieve: Sieve
) -> Iterator[Record | TagRow]:
    """Read sentences; a line with fewer or more columns than the first makes its sentence bad."""
    is_conllu = source.format_ending == ".conllu"
    sentence = _Sentence(source.name, columns)
    for number, line in numbered_lines(source, settings):
        # The separator of CoNLL is a line without anything but blanks; \x0c and others are words.
        if not line.strip(" \t"):
            yield from sentence.finish()
        elif _is_document(line) or (is_conllu and (line[0] == "#" or not _is_word(line))):
            continue
        else:
            sentence.add(number, split(line))
    yield from sentence.finish()
    sieve.say(
        f"{source.name}: {sentence.num_columns} columns; words = {_named(columns.word)}"
        + (f", tags = {_named(columns.tag)}." if columns.labelled else ".")
    )


def _is_word(line: str) -> bool:
    """Whether a line of CoNLL-U is a word, not a range of words (1-2) or an empty node (1.1)."""
    return line.split("\t")[0].isdecimal()


def _named(column: int) -> str:
    if column == -1:
        return "the last column"
    return f"column {column + 1}" if column >= 0 else f"column {-column} from the end"


class _Sentence:
    """Gathers the lines of one sentence after the other."""

    def __init__(self, name: str, columns: Columns) -> None:
        self._name, self._columns = name, columns
        self.num_columns = 0
        self._clear()

    def _clear(self) -> None:
        self._words: list[str] = []
        self._tags: list[str] = []
        self._marks: list[bool] = []
        self._first = 0
        self._problem: tuple[int, str] | None = None

    def add(self, number: int, cells: list[str]) -> None:
        """Take the word and tag of a line."""
        self.num_columns = self.num_columns or len(cells)
        self._first = self._first or number
        if self._problem:
            return
        if problem := self._problem_of(cells):
            self._problem = number, problem
            return
        self._words.append(cells[self._columns.word])
        if self._columns.mark is not None:
            self._marks.append(is_marked(cells[self._columns.mark]))
        if self._has_tags:
            self._tags.append(cells[self._columns.tag])

    @property
    def _has_tags(self) -> bool:
        return self._columns.labelled or self.num_columns > 1

    def _problem_of(self, cells: list[str]) -> str:
        if self._columns.labelled and self.num_columns == 1:
            return "one column, where a word and its tag are needed"
        if len(cells) != self.num_columns:
            return f"{len(cells)} columns, where the first line has {self.num_columns}"
        wanted = [self._columns.word, *([self._columns.tag] if self._has_tags else [])]
        for column in [*wanted, *([] if self._columns.mark is None else [self._columns.mark])]:
            if not -len(cells) <= column < len(cells):
                return f"there is no {_named(column)} among {len(cells)}"
        if not cells[self._columns.word]:
            return "the word is empty"
        # Tags that no one asked for may be notes of any length; those of morphology are long lists.
        tag = cells[self._columns.tag] if self._columns.labelled else ""
        if len(tag) > _LONGEST_TAG and "|" not in tag:
            return f"the tag “{tag[:20]}…” is a text; a line holds one word and its tag"
        return ""

    def finish(self) -> Iterator[Record | TagRow]:
        """Give the sentence that a blank line ends, if there is one."""
        where = f"{self._name}, line {self._first:,}"
        if self._problem:
            number, problem = self._problem
            yield Record({}, f"{self._name}, line {number:,}", problem)
        elif self._words:
            tags = tuple(self._tags) if self._has_tags else None
            marks = None if self._columns.mark is None else tuple(self._marks)
            yield TagRow(tuple(self._words), tags, where, marks=marks)
        self._clear()
