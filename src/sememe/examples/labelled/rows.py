"""What labelled data becomes: one frozen row an example, and a list of them with its story."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar, overload

Note = Callable[[str], None]


def silent(_: str) -> None:
    """Say nothing: what `on_note` is when nobody listens."""


@dataclass(frozen=True)
class TextRow:
    """One text, or two, with a label, a score or choices.

    classify: text, label; pairs: text, second, label; regress: text, perhaps second, score;
    choose: text (the context), perhaps second (a question or the start of every choice), choices,
    and the index of the right one as label.
    """

    text: str
    second: str | None = None
    label: str | None = None
    score: float | None = None
    choices: tuple[str, ...] | None = None
    source: str = ""  # "train.tsv, line 12"
    id: str = ""


@dataclass(frozen=True)
class TagRow:
    """The words of a sentence with their tags; offsets say where each lies in a running text.

    `marks` are true for the words that the tags are about, such as the predicate whose roles
    they name.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    source: str = ""
    text: str | None = None
    starts: tuple[int, ...] | None = None
    ends: tuple[int, ...] | None = None
    id: str = ""
    marks: tuple[bool, ...] | None = None


class Answer(NamedTuple):
    """A span of a context: its characters, and the place of the first."""

    text: str
    start: int


@dataclass(frozen=True)
class AnswerRow:
    """A question about a context; without answers it has none there, or none is known."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False
    source: str = ""


Row = TypeVar("Row", TextRow, TagRow, AnswerRow)


@dataclass(frozen=True)
class Rows(Sequence[Row], Generic[Row]):
    """Rows as a list, with the column that each part came from and how many were left out."""

    rows: list[Row]
    columns: Mapping[str, str] = field(default_factory=dict)
    num_skipped: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self.rows[index]


def sorted_labels(labels: Iterable[str]) -> list[str]:
    """The distinct labels: by value where all are whole numbers, else by their characters."""
    found = set(labels)
    if all(label.lstrip("-").isdecimal() and label.isascii() for label in found):
        return sorted(found, key=lambda label: (int(label), label))
    return sorted(found)
