"""Question files: a path in, parsed questions out; every complaint names the file and the line.

The kind of a file and its columns are recognized by the names in a header and by the content.
Blank lines and lines that start with `#` are skipped.

    pairs      two words and a score; parts of speech, contexts, numbers and ratings may be between
    analogies  four words per line, in sections that begin with `: name` (Google), or without (MSR)
    odd        words of one kind, then `|`, then the odd one: `row column axis | banana`; or columns
               named words and outliers
    groups     a name and its words: `colors: red green blue`; or columns named category and word
    antonyms   two words per line, in sections or without

Columns are separated by tabs, commas, semicolons, bars or spaces. `Lookup` turns words of a file
into ids of a vocabulary, with the chosen treatment of case.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple, get_args

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.text.sources import read_utf8
from sememe.tokens.vocabulary import Vocabulary

Kind = Literal["pairs", "analogies", "odd", "groups", "antonyms"]

BUILT_IN = Path(__file__).parent / "data"  # a folder for each language

_GROUP = re.compile(r"[^:\s][^:]*:\s+\S")
_NUM_LINES_LOOKED_AT = 200
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_LISTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
# Names of columns, without case and marks; the fourth word of an analogy has several.
_FIRST, _SECOND = ("word1", "w1", "wort1", "词1"), ("word2", "w2", "wort2", "词2")
_THIRD, _FOURTH = ("word3", "w3"), ("word4", "w4", "target", "answer")
_OUTLIERS, _WORDS, _WORD = ("outlier", "outliers", "odd"), ("words", "cluster"), ("word",)
_SECTION = ("category", "class", "group", "section", "type", "relation")
# Two of these make a line a header; w1 and the like, which may be words, only if all are names.
_ALL_NAMES = {
    *_FIRST, *_SECOND, *_THIRD, *_FOURTH, *_OUTLIERS, *_WORDS, *_WORD, *_SECTION, "pos", "score",
}  # fmt: skip
_NAMES = _ALL_NAMES - {"w1", "w2", "w3", "w4"}
# What a header must name for its kind to be certain.
_NAMED: dict[Kind, tuple[Sequence[str], ...]] = {
    "odd": (_OUTLIERS,),
    "groups": (_SECTION, _WORD),
    "analogies": (_FIRST, _SECOND, _THIRD, _FOURTH),
}
_SCORE = re.compile(r"^(?!sd|std|var).*(score|mean|rating|simil|simlex|human|relat|average|avg|gold"
                    r"|wert|得分|分数|评分|平均|相似)")  # fmt: skip
_TAG = re.compile(
    "[nvajrs]|nnp?s?|vb[dgnpz]?|jj[rs]?|rb[rs]?|noun|verb|adj|adv|adjective|adverb|propn", re.I
)
_LEMMA = re.compile(rf"(.*\w)[-_/#](?:{_TAG.pattern})", re.I)


class Line(NamedTuple):
    """One line with content, and its position."""

    number: int
    text: str


class WordQuestions(NamedTuple):
    """Rows of words with their sections, the scores of pairs, and how the file was read."""

    sections: list[str]
    rows: list[tuple[str, ...]]
    scores: Sequence[float] = ()
    columns: str = ""  # the columns that were used, if the file has several

    @property
    def words(self) -> list[str]:
        """All distinct words."""
        return list(dict.fromkeys(word for row in self.rows for word in row))

    def without_tags(self) -> WordQuestions:
        """The same questions with `sun-n` and `run_VERB` as sun and run, if most words are so."""
        bare = {word: found[1] for word in self.words if (found := _LEMMA.fullmatch(word))}
        if 10 * len(bare) < 9 * len(self.words):
            return self
        return self._replace(
            rows=[tuple(bare.get(word, word) for word in row) for row in self.rows]
        )


def read_lines(path: Path) -> list[Line]:
    """Read the lines that are neither blank nor comments."""
    numbered = enumerate(read_utf8(path).split("\n"), start=1)
    lines = [Line(number, line.strip("\r\n ")) for number, line in numbered]
    found = [line for line in lines if line.text.strip() and not line.text.startswith("#")]
    if not found:
        raise InputError(f"{path} holds no questions: it is empty.")
    return found


def _number(text: str) -> float:
    """The number in a cell, with a point or a comma; NaN if it has none."""
    try:
        value = float(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether most cells are numbers; a single bad one must not change the chosen column."""
    return 2 * sum(not math.isnan(_number(cell)) for cell in cells) >= len(cells)


def _content(cells: Sequence[str]) -> str:
    """The content of a column: numbers, row numbers, texts, parts of speech, labels or words."""
    if _are_numbers(cells):
        steps = {second - first for first, second in pairwise(map(_number, cells))}
        return "id" if len(cells) > 2 and steps == {1.0} else "number"
    if median(len(cell.split()) for cell in cells) > 3 or median(map(len, cells)) > 30:
        return "text"
    distinct = {cell.lower() for cell in cells}
    if all(map(_TAG.fullmatch, distinct)):
        return "tag"
    return "label" if 20 * len(distinct) <= len(cells) else "word"


def _cells(text: str, mark: str) -> list[str]:
    if mark in (",", ";"):
        try:
            return [cell.strip() for cell in next(csv.reader([text], delimiter=mark))]
        except csv.Error as error:
            raise InputError(f"“{text[:80]}…” cannot be read as columns: {error}.") from error
    # Where a quotation mark is a word like any other.
    return [cell.strip() for cell in text.split(mark)] if mark else text.split()


def choose_splitter(lines: Sequence[Line]) -> Callable[[str], list[str]]:
    """Choose the column separator: a character that is on every line, or white space.

    Tabs come first, since texts contain the other separators; of several others the one that splits
    most lines alike, then the one that gives most columns: `Tiger;Katze;7,35` has three.
    """
    marks = [mark for mark in "\t,;|" if all(mark in line.text for line in lines)]
    if "\t" in marks:
        return partial(_cells, mark="\t")
    counts = {mark: Counter(len(_cells(line.text, mark)) for line in lines) for mark in marks}
    alike = {mark: max((num, width) for width, num in own.items()) for mark, own in counts.items()}
    return partial(_cells, mark=max(marks, key=alike.__getitem__, default=""))


class QuestionRow(NamedTuple):
    """The cells of a line, and its section."""

    line: Line
    section: str
    cells: list[str]


class QuestionTable:
    """The lines of a file as columns; `names` are those of a header, normalized."""

    def __init__(self, path: Path, lines: Sequence[Line]) -> None:
        self.path, self.rows, section = path, list[QuestionRow](), path.stem
        self.titles, self.names = list[str](), list[str]()
        split = choose_splitter([line for line in lines if not line.text.startswith(":")])
        for line in lines:
            if line.text.startswith(":"):
                section = line.text.lstrip(": ").strip() or path.stem
                continue
            cells = split(line.text)
            # A row that has only its number says no more than a blank line.
            if len(cells) < 3 or sum(map(bool, cells)) > 1:
                self.rows.append(QuestionRow(line, section, cells))
        if not self.rows:
            raise InputError(f"{path} holds no questions: its lines name sections or are empty.")
        counts = Counter(len(row.cells) for row in self.rows)
        self.width = max(counts, key=lambda width: (counts[width], width))
        if not lines[0].text.startswith(":"):  # below a section's name, words are words
            self._take_header()
        self.kinds = [_content(cells) for cells in zip(*self.regular, strict=True)]

    @property
    def regular(self) -> list[list[str]]:
        """The cells of the rows with the most frequent number of columns."""
        return [row.cells for row in self.rows if len(row.cells) == self.width]

    def _take_header(self) -> None:
        """Remove the first line if it names columns: words above numbers, or known names."""
        first = self.rows[0].cells
        names = [re.sub(r"[\W_]", "", cell.lower()) for cell in first]
        is_whole = len(first) == self.width
        body = list(zip(*(self.regular[is_whole:]), strict=True))
        numeric = [column for column, cells in enumerate(body) if _are_numbers(cells)]
        is_header = len(_NAMES & {*names}) > 1 or (len(names) > 2 and {*names} <= _ALL_NAMES)
        if numeric and is_whole:  # the name of a column of running numbers is often left out
            is_header = any(
                math.isnan(_number(first[column])) and (first[column] or not column)
                for column in numeric
            )
        if is_header and len(self.rows) > 1:
            del self.rows[0]
            self.titles, self.names = (first, names) if is_whole else ([], [])

    def named(self, *names: Sequence[str]) -> list[int]:
        """The columns with one of each of these names; empty unless all exist."""
        found = [[self.names.index(n) for n in own if n in self.names] for own in names]
        return [own[0] for own in found] if all(found) else []

    def of(self, *kinds: str) -> list[int]:
        """The columns with such content."""
        return [column for column, own in enumerate(self.kinds) if own in kinds]

    def told(self, **roles: Sequence[int]) -> str:
        """A sentence about the columns that were used, with the first row."""
        numbers = [f"column {column + 1}" for column in range(self.width)]
        if self.titles:
            titles = zip(self.titles, numbers, strict=True)
            numbers = [f"“{title}” ({number})" if title else number for title, number in titles]
        parts = [f"{role} = {', '.join(numbers[c] for c in own)}" for role, own in roles.items()]
        first = self.regular[0]
        cells = [first[column][:40] for columns in roles.values() for column in columns]
        return f"{'; '.join(parts)}; first row: {' | '.join(cells)}"

    def take(
        self, columns: Sequence[int], expected: str, score: int | None = None
    ) -> list[tuple[str, ...]]:
        """Some columns of every row; each must be filled, and `score` must be a number."""
        found = []
        for line, _, cells in self.rows:
            is_whole = len(cells) == self.width and all(cells[column] for column in columns)
            if not is_whole or (score is not None and math.isnan(_number(cells[score]))):
                raise InputError(
                    f"{self.path}:{line.number}: {expected} expected, not “{line.text[:200]}”."
                )
            found.append(tuple(cells[column] for column in columns))
        return found


def _pair_columns(table: QuestionTable) -> tuple[list[int], int | None]:
    """The columns that may be the words of a pair, and the one with the score.

    The score is the column with such a name, else the one that is the mean of the other numbers,
    else the first after the words that is not constant.
    """
    numbers = table.of("number") or [column for column in table.of("id") if column]
    words = table.named(_FIRST, _SECOND) or table.of("word")
    if len(words) < 2:
        words = table.of("word", "label")
    called = [column for column in numbers if table.names and _SCORE.match(table.names[column])]
    varied = [
        column for column in numbers if len({cells[column] for cells in table.regular}) > 1
    ] or numbers
    behind = [column for column in varied if words and column > words[-1]]
    return words, next(iter(called or _means(table, numbers) or behind or varied), None)


def _means(table: QuestionTable, numbers: Sequence[int]) -> list[int]:
    """The columns that are the mean of all other numbers, two or more, in nine of ten rows."""
    if len(numbers) < 3:
        return []
    own = np.array([[_number(cells[column]) for column in numbers] for cells in table.regular])
    gaps = np.abs(own - (own.sum(axis=1, keepdims=True) - own) / (len(numbers) - 1))
    return [numbers[place] for place in np.flatnonzero((gaps < 0.06).mean(axis=0) >= 0.9).tolist()]


def detect_kind(path: Path) -> Kind | None:
    """Detect the kind of a question file from its first lines; None for something else."""
    lines = read_lines(path)[:_NUM_LINES_LOOKED_AT]
    plain = [line.text for line in lines if not line.text.startswith(":")]
    if not plain:
        return None
    if all("|" in text for text in plain) and plain[0].count("|") == 1:
        return "odd"
    if all(map(_GROUP.match, plain)):
        return "groups"
    table = QuestionTable(path, lines)
    if len(plain) < len(lines):  # a bad line is named when they are read
        return "antonyms" if table.width == 2 else "analogies"
    for kind, names in _NAMED.items():
        if table.named(*names):
            return kind
    words, score = _pair_columns(table)
    if 2 * len(table.regular) <= len(table.rows):
        return None
    if score is not None:
        return "pairs" if len(words) > 1 else None
    is_words = set(table.kinds) <= {"word", "label"}
    kinds: dict[int, Kind] = {2: "antonyms", 4: "analogies"}
    return kinds.get(table.width) if is_words else None


def read_questions(path: Path, kind: Kind) -> WordQuestions:
    """Read a file of a known kind."""
    lines = read_lines(path)
    if kind == "groups" and all(":" in line.text for line in lines):
        return _read_groups(path, lines)
    table = QuestionTable(path, lines)
    readers = {"pairs": _read_pairs, "odd": _read_odd, "groups": _read_categories}
    return readers[kind](table) if kind in readers else _read_words(table, kind)


def _read_pairs(table: QuestionTable) -> WordQuestions:
    words, score = _pair_columns(table)
    where = f"{table.path}:{table.rows[0].line.number}"
    if score is None:
        raise InputError(f"{where}: no score found; a line must hold two words and a number.")
    if len(words) != 2:
        raise InputError(
            f"{where}: two columns of words were expected, not {len(words)}; leave two words and a "
            "score on a line, or name their columns word1, word2 and score in a first line."
        )
    pairs = table.take(words, "two words and a score were", score)
    scores = [_number(row.cells[score]) for row in table.rows]
    sections = [row.section for row in table.rows]
    return WordQuestions(sections, pairs, scores, table.told(words=words, score=[score]))


def _read_words(table: QuestionTable, kind: Kind) -> WordQuestions:
    """Read rows of four or two words; those before any `: section` line get the file's name."""
    width = 4 if kind == "analogies" else 2
    columns = table.named(*(_FIRST, _SECOND, _THIRD, _FOURTH)[:width])
    if not columns:
        # So that the first row that has another width is named.
        table.width, table.titles = width, []
    rows = table.take(columns or range(width), f"{width} words were")
    section = table.named(_SECTION) if columns else []
    sections = [row.cells[section[0]] if section else row.section for row in table.rows]
    roles = {"words": columns or range(width), **({"section": section} if section else {})}
    # Named sections leave no doubt about the kind of the lines.
    is_plain = not columns and {*sections} != {table.path.stem}
    return WordQuestions(sections, rows, columns="" if is_plain else table.told(**roles))


def _read_odd(table: QuestionTable) -> WordQuestions:
    """Read odd-one-out lines; the odd word comes last in each row."""
    outliers, words = table.named(_OUTLIERS), table.named(_WORDS)
    if outliers:
        others, has_several = [*outliers, *table.named(_SECTION)], bool(words)
        words = words or [one for one in table.of("word", "label") if one not in others]
        rows = [
            (*(word for cell in cells[:-1] for word in _listed(cell, has_several)), odd)
            for cells in table.take([*words, *outliers], "words and outliers were")
            for odd in _listed(cells[-1], has_several)
        ]
        told = table.told(words=words, outliers=outliers)
        return WordQuestions([table.path.stem] * len(rows), rows, columns=told)
    rows = []
    for line, _, _ in table.rows:
        kin, bar, odd = line.text.partition("|")
        if not bar or len(kin.split()) < 2 or len(odd.split()) != 1:
            raise InputError(
                f"{table.path}:{line.number}: two or more words of one kind, then |, then the odd "
                f"one were expected, not “{line.text[:200]}”."
            )
        rows.append((*kin.split(), odd.strip()))
    return WordQuestions([row.section for row in table.rows], rows)


def _listed(cell: str, has_several: bool) -> list[str]:
    """The words of a cell: one, a Python list, or several with commas or blanks between."""
    if not cell.startswith("["):
        return re.findall(r"[^\s,;]+", cell) if has_several else [cell]
    return [first or second for first, second in _LISTED.findall(cell) if first or second]


def _read_groups(path: Path, lines: Sequence[Line]) -> WordQuestions:
    """Read named groups; the section of a row is the group's name."""
    sections, rows = [], []
    for line in lines:
        name, _, words = (part.strip() for part in line.text.partition(":"))
        if not name or len(words.split()) < 2 or name in sections:
            raise InputError(
                f"{path}:{line.number}: a new name, a colon and two or more words were expected, "
                f"not “{line.text}”."
            )
        sections.append(name)
        rows.append(tuple(words.split()))
    return WordQuestions(sections, rows)


def _read_categories(table: QuestionTable) -> WordQuestions:
    """Read groups from a column of names and a column of words."""
    columns = table.named(_SECTION, _WORD)
    groups: dict[str, list[str]] = defaultdict(list)
    if not columns:
        raise InputError(f"{table.path} must hold groups: a name, a colon and two or more words.")
    for name, word in table.take(columns, "a category and a word were"):
        groups[name].append(word)
    told = table.told(groups=columns[:1], words=columns[1:])
    return WordQuestions(list(groups), list(map(tuple, groups.values())), columns=told)


Case = Literal["fold", "lower", "exact"]


class Lookup:
    """Finds words among the first `restrict_vocab` ones (all, if None).

    `fold` ignores case: the most frequent spelling represents all, as in gensim; `lower` tries the
    word as written and then in lower case; `exact` only as written.
    """

    def __init__(self, vocabulary: Vocabulary, case: Case, restrict_vocab: int | None) -> None:
        if case not in get_args(Case):
            raise OptionError(f"case must be one of {', '.join(get_args(Case))}, not {case!r}.")
        if restrict_vocab is not None and restrict_vocab < 1:
            raise OptionError(f"restrict_vocab must be at least 1, not {restrict_vocab}.")
        self.vocabulary, self.case = vocabulary, case
        self.size = min(len(vocabulary), restrict_vocab or len(vocabulary))

    @cached_property
    def _folded(self) -> dict[str, list[int]]:
        # Upper case, because gensim's: the two foldings differ for a few letters (ß, ſ).
        folded: dict[str, list[int]] = defaultdict(list)
        for word_id, word in enumerate(self.vocabulary[: self.size]):
            folded[word.upper()].append(word_id)
        return dict(folded)

    @cached_property
    def variants(self) -> Mapping[int, Sequence[int]]:
        """All ids that fold to one word, by the id that represents them, if there are several."""
        if self.case != "fold":
            return {}
        return {ids[0]: ids for ids in self._folded.values() if len(ids) > 1}

    def known(self, words: Iterable[str]) -> list[str]:
        """The words that have an id."""
        return [word for word in words if self.find(word) >= 0]

    def spelling(self, word: str) -> str:
        """The known word that represents `word`; an unknown one in lower case unless `exact`."""
        word_id = self.find(word)
        if word_id >= 0:
            return str(self.vocabulary[word_id])
        return word if self.case == "exact" else word.lower()

    def find(self, word: str) -> int:
        """The id that represents `word`, or -1."""
        if self.case == "fold":
            return self._folded.get(word.upper(), [-1])[0]
        word_id = self.vocabulary.find(word)
        if not 0 <= word_id < self.size and self.case == "lower":
            word_id = self.vocabulary.find(word.lower())
        return word_id if word_id < self.size else -1
