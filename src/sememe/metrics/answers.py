"""SQuAD's exact match and F1, as the official scripts of versions 1.1 and 2.0 compute them.

Both compare normalised answers: lower case, no ASCII punctuation, no articles, single spaces.
Version 2.0 knows questions without an answer: their right answer is the empty string, and an
answer that is nothing after normalisation counts as none.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


class AnswerScore(NamedTuple):
    """How well one prediction, or the mean of all, meets the gold answers; from 0 to 1."""

    exact: float
    f1: float


class Threshold(NamedTuple):
    """The best score that saying "no answer" above some `threshold` could reach."""

    score: float
    threshold: float


def normalize_answer(text: str) -> str:
    """Lower the case, drop punctuation, then articles, then extra white space: in that order.

    The order shows: `a-b` becomes `ab` and keeps its a; `(the)` becomes nothing.
    """
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def _overlap(predicted: list[str], gold: list[str]) -> float:
    num_shared = sum((Counter(predicted) & Counter(gold)).values())
    if not num_shared:
        return 0.0
    precision, recall = num_shared / len(predicted), num_shared / len(gold)
    return 2 * precision * recall / (precision + recall)


def score_answer(predicted: str, answers: Sequence[str]) -> AnswerScore:
    """Score one answer by version 1.1: the best of the gold answers, each figure by itself.

    Two answers that normalise to nothing match exactly, yet share no word: their F1 is 0.
    """
    if not answers:
        raise ValueError("a question without answers can only be scored by version 2.0")
    normal = normalize_answer(predicted)
    golds = [normalize_answer(answer) for answer in answers]
    return AnswerScore(
        float(normal in golds), max(_overlap(normal.split(), gold.split()) for gold in golds)
    )


def score_answer_or_none(predicted: str, answers: Sequence[str]) -> AnswerScore:
    """Score one answer by version 2.0; no `answers`: the question has none, and "" is right."""
    golds = [gold for gold in map(normalize_answer, answers) if gold] or [""]
    normal = normalize_answer(predicted)
    overlaps = [
        _overlap(normal.split(), gold.split()) if normal and gold else float(normal == gold)
        for gold in golds
    ]
    return AnswerScore(float(normal in golds), max(overlaps))


def mean_answer_score(scores: Sequence[AnswerScore]) -> AnswerScore:
    """Average the scores of all questions; NaN for none."""
    if not scores:
        return AnswerScore(math.nan, math.nan)
    return AnswerScore(
        sum(score.exact for score in scores) / len(scores),
        sum(score.f1 for score in scores) / len(scores),
    )


def best_threshold(
    scores: Sequence[float],
    no_answer: Sequence[float],
    has_answer: Sequence[bool],
    is_empty: Sequence[bool],
) -> Threshold:
    """Find the no-answer threshold with the best mean score, as the official script does.

    `scores` are the exact matches or F1s of the raw predictions, `is_empty` says which of those
    were "". Questions are taken in by rising no-answer score, equal ones in the order given: like
    the official figure, the best may lie between equal scores, where no threshold can cut.
    """
    if not len(scores):
        return Threshold(math.nan, 0.0)
    if any(math.isnan(value) for value in (*scores, *no_answer)):
        raise ValueError("a score or a no-answer score is NaN")
    # Nothing answered: every question without an answer is right.
    current = best = float(sum(not has for has in has_answer))
    threshold = 0.0
    rows = sorted(zip(no_answer, scores, has_answer, is_empty, strict=True), key=lambda row: row[0])
    for value, score, has, empty in rows:
        current += score if has else (0 if empty else -1)
        if current > best:
            best, threshold = current, value
    return Threshold(best / len(scores), threshold)
