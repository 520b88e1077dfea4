"""What a score must pass before it means anything: answers that understand no text.

The commonest label, the commonest tag of each word, regular expressions for parameters and their
types, and logistic regression on means of word vectors. Rows in, predictions out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from sememe import metrics
from sememe.errors import OptionError
from sememe.evaluation.logistic import fit_logistic, logistic_scores
from sememe.examples.labelled import AnswerRow, TagRow, TextRow
from sememe.tasks.words import WordCoder, words_of
from sememe.vectors.search import unit_rows

# What somebody would write down who has read a few docstrings.
_TYPE = (
    "(?:int|integers?|ints|floats?|str|strings?|bools?|booleans?|none|arrays?|array_like|ndarrays?|"
    "scalars?|numbers?|complex|lists?|tuples?|dict|dictionary|set|sequence|iterable|callable|"
    "function|object|tensor|dtype|graph|any|matrix|path|file|nodes?|bytes|type|expr|symbol|color|"
    "axes|module)"
)
_TYPES = re.compile(rf"(?<!\S){_TYPE}(?: (?:(?:or|of|and) )*{_TYPE})*(?!\S)")
_PENALTY = 10.0  # on the squares of weights, with features of size one


def floors(
    kind: str, train: Sequence[Any], rows: Sequence[Any], vectors: Any = None
) -> dict[str, float]:
    """The scores that need no understanding, by name, as the main figure of each kind of task.

    `vectors`, word vectors in any form, add the mean of word vectors where rows are of texts.
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


# ---- the commonest ------------------------------------------------------------------------------


def majority_labels(train: Sequence[TextRow], rows: Sequence[TextRow]) -> list[str]:
    """The commonest label of the training rows, whatever the row."""
    return [_commonest(Counter(str(row.label) for row in train))] * len(rows)


def majority_tags(train: Sequence[TagRow], rows: Sequence[TagRow]) -> list[list[str]]:
    """The commonest tag of each word; that of all words for one that was never seen."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in train:
        for word, tag in zip(row.words, row.tags or (), strict=True):
            counts[word][tag] += 1
            counts[""][tag] += 1
    best = {word: _commonest(own) for word, own in counts.items()}
    return [[best.get(word, best[""]) for word in row.words] for row in rows]


def majority_answers(train: Sequence[AnswerRow], rows: Sequence[AnswerRow]) -> list[str]:
    """The commonest answer of the training rows among those that the context holds."""
    counts = Counter(answer.text for row in train for answer in row.answers)
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    return [
        next((text for text in ranked if f" {text} " in f" {row.context} "), "") for row in rows
    ]


def _commonest(counts: Counter[str]) -> str:
    return min(counts, key=lambda value: (-counts[value], value))


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
    coder = _coder(vectors)
    return _classified(train, *(_features(coder, own) for own in (train, rows)))


def cosine_labels(vectors: Any, train: Sequence[TextRow], rows: Sequence[TextRow]) -> list[str]:
    """Labels of pairs by a threshold on the cosine of their mean vectors."""
    coder = _coder(vectors)
    return _classified(train, *(_cosines(coder, own) for own in (train, rows)))


def _coder(vectors: Any) -> WordCoder:
    opened = words_of(vectors)
    if opened is None:
        raise OptionError(f"{vectors!r} is or holds no word vectors.")
    return WordCoder(*opened, 1 << 20)


def _cosines(coder: WordCoder, rows: Sequence[TextRow]) -> np.ndarray:
    texts = [row.text for row in rows], [row.second or "" for row in rows]
    first_ND, second_ND = (unit_rows(_means(coder, own)) for own in texts)
    return (first_ND * second_ND).sum(1, keepdims=True)


def _classified(
    train: Sequence[TextRow], features_ND: np.ndarray, others_ND: np.ndarray
) -> list[str]:
    mean_D, spread_D = features_ND.mean(0), features_ND.std(0) + 1e-6
    labels = sorted({str(row.label) for row in train})
    numbers_N = np.array([labels.index(str(row.label)) for row in train])
    known_ND, asked_ND = ((own - mean_D) / spread_D for own in (features_ND, others_ND))
    weights_DC = fit_logistic(known_ND, numbers_N, len(labels), penalty=_PENALTY)
    scores_NC = logistic_scores(asked_ND, weights_DC)
    return [labels[index] for index in scores_NC.argmax(1)]


def _features(coder: WordCoder, rows: Sequence[TextRow]) -> np.ndarray:
    first_ND = _means(coder, [row.text for row in rows])
    if all(row.second is None for row in rows):
        return first_ND
    second_ND = _means(coder, [row.second or "" for row in rows])
    both = [first_ND, second_ND, np.abs(first_ND - second_ND), first_ND * second_ND]
    return np.concatenate(both, 1)


def _means(coder: WordCoder, texts: Sequence[str]) -> np.ndarray:
    from sememe.networks.words import NUM_MARKS

    encodings = coder.encode(texts)
    table_WD, is_known_W = coder.lexicon.rows(0, len(coder.lexicon))
    found = []
    for encoding in encodings:
        numbers = encoding.ids - NUM_MARKS
        own_ND = table_WD[numbers[is_known_W[numbers]]]
        found.append(own_ND.mean(0) if len(own_ND) else np.zeros(coder.lexicon.dim, np.float32))
    return np.stack(found).astype(np.float64)
