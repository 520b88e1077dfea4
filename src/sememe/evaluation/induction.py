"""Dictionary induction: whether the translations of a word are its nearest neighbors.

    evaluate_induction("runs/de-in-en", "runs/en", "test.txt")

For every source word of a test dictionary that has a vector, the target words are ranked by cosine
and by CSLS (Conneau et al. 2018). P@k is the share of these words with one of their translations
among the first k. Words that the map was learned from are left out and counted. Two baselines are
scored on the same words: the same spelling as translation, and random target words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.evaluation.results import (
    ResultTable,
    SystemRow,
    format_score,
    marked,
    package_version,
    plain,
)
from sememe.metrics import Interval, proportion_interval
from sememe.models.registry import load_words, opened
from sememe.vectors import WordVectors
from sememe.vectors.alignment import Space, find, read_dictionary, seed_words
from sememe.vectors.search import unit_rows

RANKS = (1, 5, 10)
# CSLS counts the neighbors of a target among this many of the most frequent source words: all of
# them would take minutes.
_NUM_CSLS = 20_000


@dataclass(frozen=True)
class Precision:
    """P@k of one way to choose translations, with its 95 % interval over the words."""

    system: str
    k: int
    num_right: float  # of chance, the expected number
    num_words: int
    interval: Interval

    @property
    def value(self) -> float:
        """The share of the words with a translation among the first k."""
        return self.num_right / self.num_words


@dataclass(frozen=True, kw_only=True)
class InductionResult:
    """Precisions over the words of a test dictionary, and which words were left out."""

    scores: list[Precision]
    num_words: int  # that were scored
    num_given: int  # source words of the dictionary
    num_trained: int  # not scored: the map was learned from them
    num_unknown_source: int
    num_unknown_target: int  # none of their translations has a vector
    num_candidates: int
    seed: int
    answers: dict[str, list[str]] = field(default_factory=dict)  # the first, by CSLS
    version: str = field(default_factory=package_version)

    def precision(self, system: str, k: int) -> Precision:
        """The score of csls, cosine, same spelling or chance at a rank."""
        return next(own for own in self.scores if (own.system, own.k) == (system, k))

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return {
            **{name: value for name, value in vars(self).items() if name != "scores"},
            "scores": [
                {"system": own.system, "k": own.k, "value": own.value, "num_right": own.num_right,
                 "interval": plain(own.interval)}
                for own in self.scores
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        """The table in plain text, in the language in use."""
        systems = dict.fromkeys(own.system for own in self.scores)
        rows = [SystemRow(system, [self._cell(system, k) for k in RANKS]) for system in systems]
        notes = [
            f"{self.num_words:,} of {self.num_given:,} words; not scored: {self.num_trained:,} "
            f"that the map was learned from, {self.num_unknown_source:,} without a vector, "
            f"{self.num_unknown_target:,} without a translation that has one.",
            f"{self.num_candidates:,} candidates; 95 % bootstrap intervals over the words (seed "
            f"{self.seed}); one alignment (one seed); sememe {self.version}",
        ]
        headings = ["translations by", *(f"P@{k}" for k in RANKS)]
        return str(ResultTable(title="", headings=headings, rows=rows, notes=notes))

    def _cell(self, system: str, k: int) -> str:
        own = self.precision(system, k)
        low, high = own.interval
        between = f" ({format_score(100 * low)} – {format_score(100 * high)})"
        digits = 3 if system == "chance" else 1
        score = format_score(100 * own.value, digits=digits)
        return score if system == "chance" else marked(score, own.num_words) + between


def evaluate_induction(
    source: Any,
    target: Any,
    data: str | Path,
    *,
    restrict_vocab: int = 200_000,
    include_trained: bool = False,
    seed: int = 1,
) -> InductionResult:
    """Score the translations that aligned vectors find for the words of a dictionary.

    Candidates are the `restrict_vocab` most frequent target words. Words of the seed dictionary of
    the alignment are left out unless `include_trained`.
    """
    left, right = (_words(model) for model in (source, target))
    if left.dim != right.dim:
        raise OptionError(
            f"The vectors have {left.dim} and {right.dim} dimensions: they are not in one space."
        )
    if restrict_vocab < max(RANKS):
        raise OptionError(f"restrict_vocab must be at least {max(RANKS)}.")
    num_candidates = min(restrict_vocab, len(right))
    if num_candidates < max(RANKS):
        raise InputError(f"The target has {num_candidates} words: too few for P@{max(RANKS)}.")
    gold, counts = _questions(left, right, data, num_candidates, include_trained)
    words = list(gold)
    ids_Q = np.array([find(left, word) for word in words])
    queries_QD = unit_rows(left.vectors[ids_Q])
    targets_TD = unit_rows(right.vectors[:num_candidates])
    others_SD = unit_rows(left.vectors[:_NUM_CSLS])
    scores, answers = [], {}
    for name in ("csls", "cosine"):
        space = Space(targets_TD, others_SD, "csls" if name == "csls" else "cosine")
        near_QK, _ = space.nearest(queries_QD, max(RANKS))
        hits_QK = np.array(
            [[one in gold[word] for one in row] for word, row in zip(words, near_QK, strict=True)]
        )
        for k in RANKS:
            scores.append(_precision(name, k, int(hits_QK[:, :k].any(axis=1).sum()), words, seed))
        if name == "csls":
            answers = {
                word: [right.vocabulary[int(one)] for one in row[: RANKS[1]]]
                for word, row in zip(words, near_QK, strict=True)
            }
    num_same = sum(find(right, word) in gold[word] for word in words)
    chance = _chances([len(gold[word]) for word in words], num_candidates)
    for k in RANKS:  # a word has one spelling, so all ranks are alike
        scores.append(_precision("same spelling", k, num_same, words, seed))
    for k, share in zip(RANKS, chance, strict=True):
        interval = Interval(share, share)
        scores.append(Precision("chance", k, share * len(words), len(words), interval))
    return InductionResult(
        scores=scores, num_words=len(words), num_candidates=num_candidates, seed=seed,
        answers=answers, **counts,
    )  # fmt: skip


def _words(model: Any) -> WordVectors:
    if isinstance(model, str | Path):
        return load_words(model)
    found: WordVectors = opened(model, able="words").words
    return found


def _precision(system: str, k: int, num_right: int, words: list[str], seed: int) -> Precision:
    interval = proportion_interval(num_right, len(words), seed=seed)
    return Precision(system, k, num_right, len(words), interval)


def _chances(nums_right: list[int], num_candidates: int) -> list[float]:
    """P@k of candidates drawn at random, for every k."""
    found = []
    for k in RANKS:
        missed = [
            np.prod([(num_candidates - num - i) / (num_candidates - i) for i in range(k)])
            for num in nums_right
        ]
        found.append(float(1 - np.mean(missed)))
    return found


def _questions(
    left: WordVectors, right: WordVectors, data: str | Path, num_candidates: int, has_seeds: bool
) -> tuple[dict[str, set[int]], dict[str, Any]]:
    """The source words with the ids of their translations, and how many were left out."""
    translations: dict[str, list[str]] = {}
    for source, target in read_dictionary(data):
        translations.setdefault(source, []).append(target)
    seeds = set() if has_seeds else seed_words(left)
    counts = {"num_given": len(translations), "num_trained": 0}
    counts |= {"num_unknown_source": 0, "num_unknown_target": 0}
    gold: dict[str, set[int]] = {}
    for source, targets in translations.items():
        ids = {find(right, target) for target in targets}
        own = {one for one in ids if 0 <= one < num_candidates}
        if find(left, source) < 0:
            counts["num_unknown_source"] += 1
        elif left.spelling(source) in seeds:
            counts["num_trained"] += 1
        elif not own:
            counts["num_unknown_target"] += 1
        else:
            gold[source] = own
    if not gold:
        raise InputError(
            f"{data}: none of its {len(translations):,} words can be scored: "
            f"{counts['num_trained']:,} belong to the seed dictionary, "
            f"{counts['num_unknown_source']:,} have no vector, "
            f"{counts['num_unknown_target']:,} have no translation that has one."
        )
    return gold, counts
