"""What every rung is asked, in one shape: a column of the table, and the way to its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from sememe.ladder.reading import Opened, open_rung
from sememe.ladder.results import Rung, Task
from sememe.ladder.uses import Uses
from sememe.progress import SILENT, Reporter
from sememe.vectors import WordVectors

NO_VECTORS = "It gives chances of words and no vectors."
NO_SIMILARITY = "Every two words are equally far apart: there is no similarity to ask for."
NO_CHANCES = "It gives no chances of words."


class Answer(NamedTuple):
    """The figures of one rung on one task, one a seed; or why there is none."""

    scores: Sequence[float] = ()
    why: str = ""
    details: Mapping[str, Any] = MappingProxyType({})


class Question(Protocol):
    """A column of the table."""

    task: Task

    def ask(self, rung: Interview) -> Answer:
        """The figure of a rung."""


@dataclass
class Interview:
    """A rung under its questions: opened once, with what several questions need of it."""

    rung: Rung
    path: Any
    uses: Uses
    device: str = "auto"
    reporter: Reporter = SILENT
    kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def opened(self) -> Opened:
        """The model."""
        return open_rung(self.path, self.device)

    @property
    def is_one_hot(self) -> bool:
        """Whether it tells words apart and nothing else."""
        from sememe.vectors.onehot import OneHotVectors

        return isinstance(self.opened.vectors, OneHotVectors)

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """One vector for each of the words that all rungs are asked for; None: it has none."""
        if self.opened.vectors is not None:
            return self.uses.of_static(self.opened.vectors)
        return None if self.opened.reader is None else self.uses.of_reader(self.opened.reader)
