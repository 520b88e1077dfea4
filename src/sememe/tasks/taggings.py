"""What a tagger says: tags of words in, spans of the text and figures out."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.examples import tagging
from sememe.examples.labelled import TagRow
from sememe.examples.tagging import OUTSIDE, Span


class TaggedSpan(NamedTuple):
    """Characters `start` up to `end` of a text are of one type; the probability is the words'."""

    type: str
    text: str
    start: int
    end: int
    probability: float


class Tagging(NamedTuple):
    """The words of a row with their tags; word i is text[starts[i]:ends[i]]."""

    text: str  # the row's own, or its words with a space between them
    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    spans: tuple[TaggedSpan, ...]


def tagging_of(row: TagRow, tags: tuple[str, ...], chances: np.ndarray, scheme: Any) -> Tagging:
    """The tags of a row's words with their chances, and the spans that they write in its text."""
    text, starts, ends = _places(row)

    def tagged(span: Span) -> TaggedSpan:
        start, end = starts[span.start], ends[span.end - 1]
        chance = float(np.prod(chances[span.start : span.end]))
        return TaggedSpan(span.type, text[start:end], start, end, chance)

    spans = () if scheme == "none" else tuple(map(tagged, tagging.spans_of(tags, scheme)))
    return Tagging(text, row.words, tags, tuple(map(float, chances)), starts, ends, spans)


def _places(row: TagRow) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """The text of a row and where its words lie in it."""
    if row.text is not None and row.starts is not None and row.ends is not None:
        return row.text, row.starts, row.ends
    ends = np.cumsum([len(word) + 1 for word in row.words]) - 1
    starts = tuple(int(end) - len(word) for end, word in zip(ends, row.words, strict=True))
    return " ".join(row.words), starts, tuple(map(int, ends))


def tag_figures(
    rows: Several[TagRow], predictions: Several[Tagging], scheme: str
) -> dict[str, float]:
    """Entity F1 as conlleval counts it, and the share of right tags.

    Tags without a scheme are scored each by itself, O left out.
    """
    gold = [list(row.tags or ()) for row in rows]
    said = [list(one.tags) for one in predictions]
    if scheme == "none":
        return _plain_figures(gold, said)
    found = metrics.score_entities(gold, said)
    return {
        "f1": found.overall.f1,
        "precision": found.overall.precision,
        "recall": found.overall.recall,
        "accuracy": found.tag_accuracy,
    }


def _plain_figures(gold: list[list[str]], said: list[list[str]]) -> dict[str, float]:
    pairs = [pair for own, other in zip(gold, said, strict=True) for pair in zip(own, other)]  # noqa: B905
    num_right = sum(one == other != OUTSIDE for one, other in pairs)
    total = sum((one != OUTSIDE) + (other != OUTSIDE) for one, other in pairs)
    return {
        "f1": 2 * num_right / total if total else 0.0,
        "accuracy": sum(one == other for one, other in pairs) / max(len(pairs), 1),
    }
