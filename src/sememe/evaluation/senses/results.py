"""Results of sense separation: scores for each set and layer; tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from sememe.evaluation.results import (
    ResultTable,
    SystemRow,
    format_score,
    marked,
    package_version,
    plain,
)
from sememe.metrics import Interval, PairedBootstrap, paired_bootstrap
from sememe.progress import FEW


class WordScore(NamedTuple):
    """One word: accuracy of nearest neighbors, chance level, and number of sentences."""

    word: str
    nearest: float
    chance: float
    auc: float
    num_asked: int


@dataclass(frozen=True, kw_only=True)
class SenseScore:
    """One representation of the words of one set; means over words."""

    set: str
    name: str
    role: str
    is_last: bool
    nearest: float  # fraction of occurrences whose nearest other one has the same sense
    interval: Interval
    chance: float  # the same fraction for random neighbors
    auc: float  # how often a same-sense pair is closer than a different-sense pair; 0.5 by chance
    num_words: int
    num_occurrences: int
    words: list[WordScore]

    @property
    def num_asked(self) -> int:
        """Occurrences that the model knows and that could be compared."""
        return sum(word.num_asked for word in self.words)

    @property
    def coverage(self) -> float:
        """Fraction of the occurrences that were scored."""
        return self.num_asked / self.num_occurrences

    def gain_over(self, other: SenseScore, seed: int = 1) -> PairedBootstrap:
        """The gain over another representation on the words that both know."""
        theirs = {word.word: word.nearest for word in other.words}
        both = [word for word in self.words if word.word in theirs]
        first = np.array([theirs[word.word] for word in both], np.float64)
        second = np.array([word.nearest for word in both], np.float64)
        return paired_bootstrap(first, second, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """The scores for JSON."""
        return {
            "set": self.set,
            "name": self.name,
            "role": self.role,
            "is_last": self.is_last,
            "nearest": plain(self.nearest),
            "interval": plain(self.interval),
            "chance": plain(self.chance),
            "auc": plain(self.auc),
            "num_words_asked": len(self.words),
            "num_words": self.num_words,
            "num_asked": self.num_asked,
            "num_occurrences": self.num_occurrences,
            "coverage": plain(self.coverage),
            "few_questions": self.num_asked < FEW,
            "words": [plain(word._asdict()) for word in self.words],
        }


@dataclass(frozen=True, kw_only=True)
class SensesResult:
    """The scores of one model on every set."""

    model: str
    kind: str
    scores: list[SenseScore]
    seed: int
    version: str = field(default_factory=package_version)

    def of_set(self, name: str) -> list[SenseScore]:
        """The scores on one set: the other words, then the word by itself or layer by layer."""
        return [score for score in self.scores if score.set == name]

    def gains(self, name: str) -> dict[str, PairedBootstrap]:
        """The gain of the last layer over each mean of the other words, if both were scored."""
        own = self.of_set(name)
        return {
            context.name: last.gain_over(context, self.seed)
            for last in own
            for context in own
            if last.is_last and context.role == "context" and last.words and context.words
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        sets = dict.fromkeys(score.set for score in self.scores)
        return {
            "model": self.model,
            "kind": self.kind,
            "version": self.version,
            "seed": self.seed,
            "scores": [score.to_dict() for score in self.scores],
            "gains": {
                name: {context: plain(gain._asdict()) for context, gain in self.gains(name).items()}
                for name in sets
            },
        }

    def __str__(self) -> str:
        """The tables in plain text."""
        return "\n\n".join(map(str, sense_tables([self])))


def sense_tables(results: Sequence[SensesResult]) -> list[ResultTable]:
    """A table for each set, with the models as rows."""
    names = short_names([result.model for result in results])
    sets = dict.fromkeys(score.set for result in results for score in result.scores)
    return [_table(own, dict(zip(names, results, strict=True))) for own in sets]


def _table(set_name: str, results: dict[str, SensesResult]) -> ResultTable:
    rows, notes = [], []
    for name, result in results.items():
        own = result.of_set(set_name)
        if not any(score.words for score in own):
            notes.append(f"{name} knows none of the words.")
            continue
        rows += [
            SystemRow(f"{name}: {score.name}" + " (last)" * score.is_last, _cells(score))
            for score in own
        ]
        for context, gain in result.gains(set_name).items():
            low, high = (f"{100 * bound:+.1f}" for bound in gain.interval)
            notes.append(
                f"{name}: the last layer is {100 * gain.difference:+.1f} ({low} to {high}) "
                f"against “{context}”."
            )
    first = next(iter(results.values()))
    one = first.of_set(set_name)[0]
    notes.append(
        "nearest: % of sentences whose nearest other one has the same sense, mean over words; "
        f"each model of one training (one seed); intervals by bootstrap over words (seed "
        f"{first.seed}); sememe {first.version}"
    )
    return ResultTable(
        title=f"{set_name}: {one.num_words} words, {one.num_occurrences} sentences",
        headings=("", "nearest", "95 % interval", "chance", "AUC", "words", "asked", "coverage"),
        rows=rows,
        notes=notes,
    )


def _cells(score: SenseScore) -> tuple[str, ...]:
    low, high = score.interval
    return (
        marked(format_score(100 * score.nearest), score.num_asked),
        f"{format_score(100 * low)} – {format_score(100 * high)}" if math.isfinite(low) else "–",
        format_score(100 * score.chance),
        format_score(100 * score.auc),
        str(len(score.words)),
        f"{score.num_asked:,}",
        f"{score.coverage:.0%}",
    )


def short_names(names: Sequence[str]) -> list[str]:
    """The ends of paths, as long as needed to be distinct."""
    parts = [PurePath(name).parts for name in names]
    for length in range(1, max(map(len, parts), default=1) + 1):
        short = ["/".join(own[-length:]) for own in parts]
        if len(set(short)) == len(set(names)):
            break
    return short
