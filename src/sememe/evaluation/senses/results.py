"""What was found of the meanings of words: figures for each set and layer; tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from sememe.evaluation.results import package_version, plain
from sememe.evaluation.tables import Row, Table, figure
from sememe.metrics import Interval, PairedBootstrap, paired_bootstrap


class WordScore(NamedTuple):
    """One word: shares of like neighbors, what chance gives, and how many sentences were used."""

    word: str
    nearest: float
    chance: float
    auc: float
    num_asked: int


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


@dataclass(frozen=True, kw_only=True)
class SenseScore:
    """One way to represent the words of one set; means over words."""

    set: str
    name: str
    role: str
    is_last: bool
    interval: Interval
    num_words: int
    num_occurrences: int
    words: list[WordScore]

    @property
    def nearest(self) -> float:
        """Share of occurrences whose nearest other one has the same meaning."""
        return _mean([word.nearest for word in self.words])

    @property
    def chance(self) -> float:
        """The same share if neighbors were drawn."""
        return _mean([word.chance for word in self.words])

    @property
    def auc(self) -> float:
        """How often a pair of one meaning is nearer than a pair of two; 0.5 by chance."""
        return _mean([word.auc for word in self.words])

    @property
    def num_asked(self) -> int:
        """Occurrences that the model knows and that could be compared."""
        return sum(word.num_asked for word in self.words)

    @property
    def coverage(self) -> float:
        """Share of the occurrences that were asked."""
        return self.num_asked / self.num_occurrences

    def gain_over(self, other: SenseScore, seed: int = 1) -> PairedBootstrap:
        """How much better this is than another on the words that both were asked."""
        theirs = {word.word: word.nearest for word in other.words}
        both = [word for word in self.words if word.word in theirs]
        first = np.array([theirs[word.word] for word in both], np.float64)
        second = np.array([word.nearest for word in both], np.float64)
        return paired_bootstrap(first, second, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
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
        """What the last layer adds to each mean of the other words, where both were asked."""
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


def sense_tables(results: Sequence[SensesResult]) -> list[Table]:
    """A table for each set, the models below each other."""
    names = short_names([result.model for result in results])
    sets = dict.fromkeys(score.set for result in results for score in result.scores)
    return [_table(own, dict(zip(names, results, strict=True))) for own in sets]


def _table(set_name: str, results: dict[str, SensesResult]) -> Table:
    rows, notes = [], []
    for name, result in results.items():
        own = result.of_set(set_name)
        if not any(score.words for score in own):
            notes.append(f"{name} knows none of the words.")
            continue
        for score in own:
            rows.append(Row(f"{name}: {score.name}" + " (last)" * score.is_last, _cells(score)))
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
        f"intervals by bootstrap over words, seed {first.seed}; sememe {first.version}"
    )
    return Table(
        title=f"{set_name}: {one.num_words} words, {one.num_occurrences} sentences",
        headings=("", "nearest", "95 % interval", "chance", "AUC", "words", "asked", "coverage"),
        rows=rows,
        notes=notes,
    )


def _cells(score: SenseScore) -> tuple[str, ...]:
    low, high = score.interval
    return (
        figure(100 * score.nearest),
        f"{figure(100 * low)} – {figure(100 * high)}" if math.isfinite(low) else "–",
        figure(100 * score.chance),
        figure(100 * score.auc),
        str(len(score.words)),
        f"{score.num_asked:,}",
        f"{score.coverage:.0%}",
    )


def short_names(names: Sequence[str]) -> list[str]:
    """The ends of paths, as long as they must be to be told apart."""
    parts = [PurePath(name).parts for name in names]
    for length in range(1, max(map(len, parts), default=1) + 1):
        short = ["/".join(own[-length:]) for own in parts]
        if len(set(short)) == len(set(names)):
            break
    return short
