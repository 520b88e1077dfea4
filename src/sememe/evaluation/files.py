"""Question files: a path in, parsed questions out; every complaint names the file and the line.

The kind of a file is told by its content. Blank lines and lines that start with `#` are skipped.

    pairs      two words and a score, by tabs, commas, semicolons or spaces; a header may come first
    analogies  four words a line, in sections that begin with `: name` (Google), or without (MSR)
    odd        words of one kind, then `|`, then the odd one: `row column axis | banana`
    groups     a name and its words: `colors: red green blue`
    antonyms   two words a line, in sections or without
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from sememe.errors import InputError

Kind = Literal["pairs", "analogies", "odd", "groups", "antonyms"]

BUILT_IN = Path(__file__).parent / "data"

_GROUP = re.compile(r"[^:\s][^:]*:\s+\S")
_NUM_LINES_LOOKED_AT = 200


class Line(NamedTuple):
    """One line that says something, and where it stands."""

    number: int
    text: str


class ScoredPairs(NamedTuple):
    """Word pairs with people's scores, and the column the scores were taken from."""

    pairs: list[tuple[str, str]]
    scores: list[float]
    score_column: str


class Sectioned(NamedTuple):
    """Rows of words with the section that each belongs to."""

    sections: list[str]
    rows: list[tuple[str, ...]]


def read_lines(path: Path) -> list[Line]:
    """Read the lines that are neither blank nor comments."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 (byte {error.start:,}); convert it, for instance with iconv."
        ) from None
    numbered = enumerate(text.split("\n"), start=1)
    lines = [Line(number, line.strip("\r\n ")) for number, line in numbered]
    found = [line for line in lines if line.text.strip() and not line.text.startswith("#")]
    if not found:
        raise InputError(f"{path} holds no questions: it is empty.")
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def choose_splitter(lines: Sequence[Line]) -> Callable[[str], list[str]]:
    """Choose what separates the columns: the first of tab, comma and semicolon on every line."""
    for mark in "\t,;":
        if all(mark in line.text for line in lines):
            if mark == "\t":  # where a quotation mark is a word like any other
                return lambda text: [cell.strip() for cell in text.split("\t")]
            return lambda text: [cell.strip() for cell in next(csv.reader([text], delimiter=mark))]
    return str.split


def detect_kind(path: Path) -> Kind | None:
    """Tell by its first lines what a file asks; None for something else."""
    lines = read_lines(path)[:_NUM_LINES_LOOKED_AT]
    has_sections = any(line.text.startswith(":") for line in lines)
    lines = [line for line in lines if not line.text.startswith(":")]
    if not lines:
        return None
    if all("|" in line.text for line in lines):
        return "odd"
    split = choose_splitter(lines)
    rows = [split(line.text) for line in lines]
    body = rows[1:] or rows
    if not has_sections and all(len(row) >= 3 and any(map(_is_number, row[2:])) for row in body):
        return "pairs"
    if all(_GROUP.match(line.text) for line in lines):
        return "groups"
    widths = {len(row) for row in rows}
    if widths == {2}:
        return "antonyms"
    # A file of analogies with a bad line is still one; reading it names the line.
    num_of_four = sum(len(row) == 4 for row in rows)
    return "analogies" if has_sections or num_of_four > len(rows) // 2 else None


def read_pairs(path: Path) -> ScoredPairs:
    """Read word pairs; the score is the first column after the words that is all numbers."""
    lines = read_lines(path)
    split = choose_splitter(lines)
    rows = [split(line.text) for line in lines]
    body = rows[1:] or rows
    # A single bad cell must not move the choice to another column: most numbers wins.
    counts = {
        column: sum(column < len(row) and _is_number(row[column]) for row in body)
        for column in range(2, max(map(len, rows)))
    }
    column = max(counts, key=lambda c: (counts[c], -c), default=0)
    if not column or not counts[column]:
        raise InputError(
            f"{path}:{lines[0].number}: no score found; a line must hold two words and a number."
        )
    name = f"column {column + 1}"
    if len(rows) > 1 and len(rows[0]) > column and not _is_number(rows[0][column]):
        name = f"“{rows[0][column]}” ({name})"
        rows, lines = rows[1:], lines[1:]
    pairs, scores = [], []
    for line, row in zip(lines, rows, strict=True):
        cell = row[column] if column < len(row) else ""
        if not _is_number(cell) or not math.isfinite(float(cell)) or not (row[0] and row[1]):
            raise InputError(
                f"{path}:{line.number}: two words and a score in {name} were expected, "
                f"not “{line.text}”."
            )
        pairs.append((row[0], row[1]))
        scores.append(float(cell))
    return ScoredPairs(pairs, scores, name)


def _sectioned(path: Path) -> Iterator[tuple[str, Line]]:
    section = path.stem
    for line in read_lines(path):
        if line.text.startswith(":"):
            section = line.text.lstrip(": ").strip() or path.stem
        else:
            yield section, line


def read_rows(path: Path, width: int) -> Sectioned:
    """Read rows of `width` words; rows before any `: section` line take the file's name."""
    sections, rows = [], []
    content = list(_sectioned(path))
    split = choose_splitter([line for _, line in content])
    for section, line in content:
        words = tuple(split(line.text))
        if len(words) != width:
            raise InputError(
                f"{path}:{line.number}: {width} words were expected, not {len(words)}: "
                f"“{line.text}”."
            )
        sections.append(section)
        rows.append(words)
    if not rows:
        raise InputError(f"{path} holds section names but no questions.")
    return Sectioned(sections, rows)


def read_odd(path: Path) -> Sectioned:
    """Read odd-one-out lines; the odd word comes last in each row."""
    sections, rows = [], []
    for section, line in _sectioned(path):
        kin, bar, odd = line.text.partition("|")
        if not bar or len(kin.split()) < 2 or len(odd.split()) != 1:
            raise InputError(
                f"{path}:{line.number}: two or more words of one kind, then |, then the odd one "
                f"were expected, not “{line.text}”."
            )
        sections.append(section)
        rows.append((*kin.split(), odd.strip()))
    if not rows:
        raise InputError(f"{path} holds section names but no questions.")
    return Sectioned(sections, rows)


def read_groups(path: Path) -> Sectioned:
    """Read named groups; the section of a row is the group's name."""
    sections, rows = [], []
    for line in read_lines(path):
        name, colon, words = line.text.partition(":")
        if not name.strip() or not colon or len(words.split()) < 2 or name.strip() in sections:
            raise InputError(
                f"{path}:{line.number}: a new name, a colon and two or more words were expected, "
                f"not “{line.text}”."
            )
        sections.append(name.strip())
        rows.append(tuple(words.split()))
    return Sectioned(sections, rows)
