"""Analogy accuracy by section, with the totals of Mikolov et al. (2013a, 4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class SectionScore(NamedTuple):
    """Right answers among the questions that could be asked."""

    name: str
    num_correct: int
    num_asked: int
    num_questions: int

    @property
    def accuracy(self) -> float:
        """Share of right answers; NaN where nothing could be asked."""
        return self.num_correct / self.num_asked if self.num_asked else math.nan

    @property
    def coverage(self) -> float:
        """Share of questions whose four words are all known."""
        return self.num_asked / self.num_questions if self.num_questions else math.nan


def is_syntactic(section: str) -> bool:
    """Tell grammar from meaning as the Google set names its sections: `gram1-…` to `gram9-…`."""
    return section.startswith("gram")


def score_sections(
    sections: Sequence[str], is_asked: Sequence[bool], is_correct: Sequence[bool]
) -> list[SectionScore]:
    """Count per section, in the order in which the sections first appear."""
    counts: dict[str, list[int]] = {}
    for name, asked, correct in zip(sections, is_asked, is_correct, strict=True):
        count = counts.setdefault(name, [0, 0, 0])
        count[0] += bool(asked and correct)
        count[1] += bool(asked)
        count[2] += 1
    return [SectionScore(name, *count) for name, count in counts.items()]


def total_score(name: str, scores: Iterable[SectionScore]) -> SectionScore:
    """Add sections up: every question weighs the same, whatever its section."""
    chosen = list(scores)
    return SectionScore(
        name,
        sum(score.num_correct for score in chosen),
        sum(score.num_asked for score in chosen),
        sum(score.num_questions for score in chosen),
    )
