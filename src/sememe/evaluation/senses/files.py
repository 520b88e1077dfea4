"""Files of ambiguous words: a path in, words in their sentences out; complaints name the line.

A line holds, between tabs, the word, a name for its meaning, and a sentence in which the word is
marked: `bank⇥river⇥We sat on the [[bank]].` Or the sentence stays as it is, and where the word
starts and ends in it, counted in characters from 0, comes before it: `bank⇥river⇥14⇥18⇥We sat on
the bank.` Blank lines and lines that start with `#` are skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sememe.errors import InputError
from sememe.evaluation.files import Line, read_lines

BUILT_IN = Path(__file__).parent / "data"
SETS = ("english", "chinese", "python", "docstrings")

_MARKED = re.compile(r"\[\[(.+?)\]\]")


class Occurrence(NamedTuple):
    """A word with one of its meanings, in a sentence: characters `start` to `end` of it."""

    word: str
    sense: str
    sentence: str
    start: int
    end: int


class SenseSet(NamedTuple):
    """A file of words in sentences, by the name of the file."""

    name: str
    occurrences: list[Occurrence]

    @property
    def words(self) -> list[str]:
        """The words, as they come in the file."""
        return list(dict.fromkeys(one.word for one in self.occurrences))


Data = str | Path | SenseSet


def find_sets(data: Data | Sequence[Data] | None) -> list[SenseSet]:
    """Read the sets of `data`: built-in ones by name, files, or all that are built in."""
    names = SETS if data is None else [data] if isinstance(data, Data) else data
    found = []
    for name in names:
        if isinstance(name, SenseSet):
            found.append(name)
            continue
        is_built_in = str(name) in SETS and not Path(name).exists()
        found.append(read_senses(BUILT_IN / f"{name}.tsv" if is_built_in else name))
    return found


def read_senses(path: str | Path) -> SenseSet:
    """Read a file in which every word has two meanings or more, and each two sentences or more."""
    path = Path(path)
    if path.is_dir() or not path.exists():
        raise InputError(
            f"{path} is no file of words in sentences; give one, or one of {', '.join(SETS)}."
        )
    lines = read_lines(path)
    occurrences = [_occurrence(path, line) for line in lines]
    first_lines: dict[Occurrence, int] = {}
    for line, one in zip(lines, occurrences, strict=True):
        # The meaning is no part of it: the same place cannot have two.
        place = one._replace(sense="")
        if place in first_lines:
            raise InputError(
                f"{path}:{line.number}: the same sentence stands on line {first_lines[place]}."
            )
        first_lines[place] = line.number
    _check_senses(path, lines, occurrences)
    return SenseSet(path.stem, occurrences)


def _occurrence(path: Path, line: Line) -> Occurrence:
    where = f"{path}:{line.number}"
    cells = [cell.strip() for cell in line.text.split("\t")]
    if len(cells) not in (3, 5) or not all(cells):
        raise InputError(
            f"{where}: a word, its meaning and a sentence between tabs were expected, "
            f"not “{line.text}”."
        )
    if len(cells) == 5:
        return _placed(where, cells)
    word, sense, marked = cells
    marks = list(_MARKED.finditer(marked))
    if len(marks) != 1:
        raise InputError(
            f"{where}: one word in [[ ]] was expected in the sentence, not {len(marks)}: "
            f"“{marked}”."
        )
    start, text = marks[0].start(), marks[0][1]
    sentence = marked[:start] + text + marked[marks[0].end() :]
    return Occurrence(word, sense, sentence, start, start + len(text))


def _placed(where: str, cells: list[str]) -> Occurrence:
    word, sense, first, last, sentence = cells
    if not (first.isdecimal() and last.isdecimal()):
        raise InputError(
            f"{where}: two numbers, where the word starts and ends, were expected before the "
            f"sentence, not “{first}” and “{last}”."
        )
    start, end = int(first), int(last)
    if not start < end <= len(sentence) or not sentence[start:end].strip():
        raise InputError(
            f"{where}: characters {start} to {end} hold no word; the sentence has "
            f"{len(sentence)} characters."
        )
    return Occurrence(word, sense, sentence, start, end)


def _check_senses(path: Path, lines: list[Line], occurrences: list[Occurrence]) -> None:
    counts = Counter((one.word, one.sense) for one in occurrences)
    num_senses = Counter(word for word, _ in counts)
    for line, one in zip(lines, occurrences, strict=True):
        if num_senses[one.word] < 2:
            raise InputError(f"{path}:{line.number}: “{one.word}” has only one meaning here.")
        if counts[one.word, one.sense] < 2:
            raise InputError(
                f"{path}:{line.number}: “{one.sense}” of “{one.word}” has only one sentence; "
                "two are the least."
            )
