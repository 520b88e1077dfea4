"""Entity F1 as conlleval (Tjong Kim Sang) and seqeval count it: tags of sentences in, scores out.

An entity is right if its type, its first and its last word are. Any sequence of tags can be read,
also an invalid one: `I-` after `O` or after another type begins an entity, as in conlleval. Tags
are IOB1, IOB2, IOE or BIOES, told apart by nothing but these rules; on B, I and O they are
conlleval's, on E and S seqeval's (conlleval joins neighbours there, for it knows no S).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sememe.examples.tagging import OUTSIDE, Span, spans_of

_LETTERS = frozenset("BIES")


class EntityScore(NamedTuple):
    """Counts of entities of one type, or of all."""

    type: str
    num_right: int
    num_gold: int
    num_predicted: int

    @property
    def precision(self) -> float:
        """Share of the predicted entities that are right; 0 where none was predicted."""
        return self.num_right / self.num_predicted if self.num_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold entities that were found; 0 where there are none."""
        return self.num_right / self.num_gold if self.num_gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.num_gold + self.num_predicted
        return 2 * self.num_right / total if total else 0.0


class SentenceCounts(NamedTuple):
    """Entities of one sentence by type."""

    right: Counter[str]
    gold: Counter[str]
    predicted: Counter[str]


class EntityScores(NamedTuple):
    """Entities of all types, of each type, and the share of words with the right tag."""

    overall: EntityScore
    types: list[EntityScore]
    tag_accuracy: float


def entities(tags: Sequence[str]) -> list[Span]:
    """Read the entities of one sentence's tags."""
    for tag in tags:
        if tag != OUTSIDE and (tag[:1] not in _LETTERS or tag[1:2] != "-" or len(tag) < 3):
            raise ValueError(f"“{tag}” is no tag: O, or B-, I-, E- or S- and a type were expected")
    return spans_of(tags)


def score_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> EntityScores:
    """Score the entities of many sentences; every sentence stands by itself."""
    right, truth, guesses = Counter[str](), Counter[str](), Counter[str]()
    for found in count_entities(gold, predicted):
        right.update(found.right)
        truth.update(found.gold)
        guesses.update(found.predicted)
    types = [
        EntityScore(kind, right[kind], truth[kind], guesses[kind])
        for kind in sorted(truth.keys() | guesses.keys())
    ]
    num_words = sum(map(len, gold))
    num_same = sum(
        first == second
        for row, other in zip(gold, predicted, strict=True)
        for first, second in zip(row, other, strict=True)
    )
    overall = EntityScore("all", right.total(), truth.total(), guesses.total())
    return EntityScores(overall, types, num_same / num_words if num_words else 0.0)


def count_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> list[SentenceCounts]:
    """Count right, gold and predicted entities of each sentence by type."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} sentences of gold tags and {len(predicted)} predicted ones")
    counts = []
    for index, (row, other) in enumerate(zip(gold, predicted, strict=True)):
        if len(row) != len(other):
            raise ValueError(f"sentence {index}: {len(row)} gold tags and {len(other)} predicted")
        truth, guesses = set(entities(row)), set(entities(other))
        chosen = (truth & guesses, truth, guesses)
        counts.append(SentenceCounts(*(Counter(one.type for one in some) for some in chosen)))
    return counts
