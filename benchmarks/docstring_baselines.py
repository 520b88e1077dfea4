"""What the free tasks of the built-in corpus score without understanding: rows in, scores out.

The commonest label, tag or answer, regular expressions for parameters and their types, and logistic
regression on means of word vectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sememe import metrics
from sememe.examples.labelled.rows import AnswerRow, TagRow, TextRow
from sememe.metrics.baselines import majority_answers, majority_labels, majority_tags
from sememe.vectors.search import unit_rows

# What somebody would write down who has read a few docstrings.
_TYPE = (
    "(?:int|integers?|ints|floats?|str|strings?|bools?|booleans?|none|arrays?|array_like|ndarrays?|"
    "scalars?|numbers?|complex|lists?|tuples?|dict|dictionary|set|sequence|iterable|callable|"
    "function|object|tensor|dtype|graph|any|matrix|path|file|nodes?|bytes|type|expr|symbol|color|"
    "axes|module)"
)
_TYPES = re.compile(rf"(?<!\S){_TYPE}(?: (?:(?:or|of|and) )*{_TYPE})*(?!\S)")


def floors(
    kind: str, train: Sequence[Any], rows: Sequence[Any], vectors: Any = None
) -> dict[str, float]:
    """The scores that need no understanding, by name, as the main figure of each kind of task.

    `vectors`, a model that embeds texts, adds the mean of word vectors where rows are of texts.
    """
    if kind == "tag":
        said = {"majority": majority_tags(train, rows), "regular expression": regex_tags(rows)}
        gold = [list(row.tags) for row in rows]
        return {name: metrics.score_entities(gold, own).overall.f1 for name, own in said.items()}
    if kind == "answer":
        answers = {"majority": majority_answers(train, rows)}
        answers["regular expression"] = [regex_answer(row) for row in rows]
        return {name: _answer_score(rows, own) for name, own in answers.items()}
    labels = {"majority": majority_labels(train, rows)}
    if vectors is not None and kind == "pairs":
        labels["cosine of means"] = cosine_labels(vectors, train, rows)
        labels["compared means"] = mean_vector_labels(vectors, train, rows)
    elif vectors is not None:
        labels["mean of word vectors"] = mean_vector_labels(vectors, train, rows)
    gold_labels = [row.label for row in rows]
    return {name: metrics.accuracy(gold_labels, own) for name, own in labels.items()}


def _answer_score(rows: Sequence[AnswerRow], said: Sequence[str]) -> float:
    scores = [
        metrics.score_answer_or_none(text, [answer.text for answer in row.answers])
        for row, text in zip(rows, said, strict=True)
    ]
    return metrics.mean_answer_score(scores).f1


# ---- regular expressions ------------------------------------------------------------------------


def regex_tags(rows: Sequence[TagRow]) -> list[list[str]]:
    """Runs of words that are known as types, the word before each as a name, and `like_this`."""
    return [_regex_tags(list(row.words)) for row in rows]


def _regex_tags(words: list[str]) -> list[str]:
    tags = ["B-NAME" if "_" in word else "O" for word in words]
    places, place = {}, 0
    for index, word in enumerate(words):
        places[place] = index
        place += len(word) + 1
    for match in _TYPES.finditer(" ".join(words)):
        first, num_words = places[match.start()], len(match[0].split(" "))
        tags[first : first + num_words] = ["B-TYPE"] + ["I-TYPE"] * (num_words - 1)
        if first and tags[first - 1] == "O":
            tags[first - 1] = "B-NAME"
    return tags


def regex_answer(row: AnswerRow) -> str:
    """The run of known types right behind the name that is asked for, or else right before it."""
    name = row.question.rstrip("?").split(" ")[-1]
    words = row.context.split(" ")
    for index in (index for index, word in enumerate(words) if word == name):
        if match := _TYPES.match(" ".join(words[index + 1 :])):
            return match[0]
        before = " ".join(words[:index])
        ending = [match for match in _TYPES.finditer(before) if match.end() == len(before)]
        if ending:
            return ending[-1][0]
    return ""


# ---- means of word vectors ----------------------------------------------------------------------


def mean_vector_labels(
    vectors: Any, train: Sequence[TextRow], rows: Sequence[TextRow]
) -> list[str]:
    """Labels by logistic regression on the mean vector of a text, or on those of two compared."""
    return _classified(train, _features(vectors, train), _features(vectors, rows))


def cosine_labels(vectors: Any, train: Sequence[TextRow], rows: Sequence[TextRow]) -> list[str]:
    """Labels of pairs by a threshold on the cosine of their mean vectors."""
    return _classified(train, _cosines(vectors, train), _cosines(vectors, rows))


def _classified(
    train: Sequence[TextRow], features_ND: np.ndarray, others_ND: np.ndarray
) -> list[str]:
    head = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2_000))
    head.fit(features_ND, [str(row.label) for row in train])
    return [str(label) for label in head.predict(others_ND)]


def _cosines(vectors: Any, rows: Sequence[TextRow]) -> np.ndarray:
    texts = [row.text for row in rows], [row.second or "" for row in rows]
    first_ND, second_ND = (unit_rows(vectors.embed(own)) for own in texts)
    return (first_ND * second_ND).sum(1, keepdims=True)


def _features(vectors: Any, rows: Sequence[TextRow]) -> np.ndarray:
    first_ND = vectors.embed([row.text for row in rows])
    if all(row.second is None for row in rows):
        return first_ND
    second_ND = vectors.embed([row.second or "" for row in rows])
    both = [first_ND, second_ND, np.abs(first_ND - second_ND), first_ND * second_ND]
    return np.concatenate(both, 1)
