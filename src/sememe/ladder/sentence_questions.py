"""Questions about sentences on frozen vectors: texts, pairs, tags, answers; one head for all rungs.

Every rung gives the vectors of the words of all rows once; a linear head is then trained on draws
of the training rows, one a seed, and asked about the same test rows. N words, D numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from sememe import metrics
from sememe.evaluation.floors import majority_labels, majority_tags
from sememe.examples.labelled import TagRow, TextRow
from sememe.ladder import heads
from sememe.ladder.questions import NO_VECTORS, Answer, Interview
from sememe.ladder.reading import Reader, Words, cut, given
from sememe.ladder.results import Task
from sememe.text.settings import TextSettings

HOW = "frozen vectors of words in their sentence, one linear head"
_DRAWN = 0.75  # of the training rows, for each seed
_TEXTS_AT_ONCE = 1_024


class SentenceQuestion:
    """A task on frozen vectors; kinds fill in the parts that differ."""

    kind: str
    metric: str
    penalty: float | None = None  # of the head, chosen by its first draw

    def __init__(
        self, name: str, title: str, what: str, train: Sequence[Any], test: Sequence[Any],
        settings: TextSettings, *, seeds: int = 3,
    ) -> None:  # fmt: skip
        self.train, self.test = self.usable(train), self.usable(test)
        self.settings, self.seeds = settings, seeds
        self.task = Task(
            name=name, title=title, group="sentences", what=what, metric=self.metric,
            baselines={key: round(100 * x, 2) for key, x in self.baselines().items()},
            num_train=self._num_drawn, num_test=len(self.test), how=HOW,
        )  # fmt: skip

    @property
    def _num_drawn(self) -> int:
        return max(1, round(_DRAWN * len(self.train)))

    def ask(self, rung: Interview) -> Answer:
        """Train the head on draws of rows, and score the test rows."""
        reader = rung.opened.reader
        if reader is None:
            return Answer(why=NO_VECTORS)
        train_X, test_X = self.features(reader, self.train), self.features(reader, self.test)
        scores = []
        self.penalty = None
        for seed in range(1, self.seeds + 1):
            order = np.random.default_rng(seed).permutation(len(self.train))
            scores.append(100 * self.score(train_X, np.sort(order[: self._num_drawn]), test_X))
        return Answer(scores)

    def usable(self, rows: Sequence[Any]) -> list[Any]:
        """The rows that this head can learn or answer."""
        return list(rows)

    @abstractmethod
    def baselines(self) -> dict[str, float]:
        """What needs no understanding, as shares."""

    @abstractmethod
    def features(self, reader: Reader, rows: Sequence[Any]) -> Any:
        """What the head sees of rows."""

    @abstractmethod
    def score(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> float:
        """Train on the drawn rows; the share that is right, or F1."""


def read_words(reader: Reader, texts: Sequence[Words]) -> Any:
    """The vectors of the words of many texts, some at a time."""
    parts = [
        reader.read(texts[first : first + _TEXTS_AT_ONCE])
        for first in range(0, len(texts), _TEXTS_AT_ONCE)
    ]
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, "csr")


def sizes_of(texts: Sequence[Words]) -> list[int]:
    """How many words each text has."""
    return [len(own.words) for own in texts]


class ClassifyQuestion(SentenceQuestion):
    """Which label has a text? The mean over its words."""

    kind, metric = "classify", "accuracy"

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.labels = sorted({str(row.label) for row in self.train})

    def baselines(self) -> dict[str, float]:
        """The chance of a draw, and the commonest label."""
        gold = [row.label for row in self.test]
        commonest = metrics.accuracy(gold, majority_labels(self.train, self.test))
        return {"chance": 1 / len({row.label for row in self.train}), "most frequent": commonest}

    def features(self, reader: Reader, rows: Sequence[TextRow]) -> Any:
        """The mean over the words of each text."""
        return self.means(reader, [row.text for row in rows])

    def means(self, reader: Reader, texts: Sequence[str]) -> Any:
        """One vector for each text."""
        words = cut(texts, self.settings)
        return heads.pooled(read_words(reader, words), sizes_of(words))

    def score(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> float:
        """The share of the test rows whose label is found."""
        numbers = {label: index for index, label in enumerate(self.labels)}
        classes = np.array([numbers[str(self.train[index].label)] for index in drawn])
        head = heads.fit_classes(train_X[drawn], classes, len(self.labels), self.penalty)
        self.penalty = head.penalty
        said = [self.labels[index] for index in head.scores(test_X).argmax(1)]
        return metrics.accuracy([str(row.label) for row in self.test], said)


class PairsQuestion(ClassifyQuestion):
    """Which label has a pair of texts? Both means, their distance and their product."""

    kind = "pairs"

    def features(self, reader: Reader, rows: Sequence[TextRow]) -> Any:
        """Both texts compared."""
        first = self.means(reader, [row.text for row in rows])
        return heads.compared(first, self.means(reader, [row.second or "" for row in rows]))


class TagQuestion(SentenceQuestion):
    """Which tag has each word? Its own vector alone: what it knows of its neighbors is in it."""

    kind, metric = "tag", "F1"

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.tags = sorted({tag for row in self.train for tag in row.tags})
        self._sizes = np.array([len(row.words) for row in self.train])
        self._firsts = np.cumsum(self._sizes) - self._sizes
        numbers = {tag: index for index, tag in enumerate(self.tags)}
        self._classes = np.array([numbers[tag] for row in self.train for tag in row.tags])

    def usable(self, rows: Sequence[TagRow]) -> list[TagRow]:
        """Rows with words and tags."""
        return [row for row in rows if row.words and row.tags]

    def baselines(self) -> dict[str, float]:
        """The commonest tag of each word."""
        return {"commonest tag of a word": self._f1(majority_tags(self.train, self.test))}

    def _f1(self, said: Sequence[Sequence[str]]) -> float:
        gold = [list(row.tags) for row in self.test]
        return metrics.score_entities(gold, [list(own) for own in said]).overall.f1

    def features(self, reader: Reader, rows: Sequence[TagRow]) -> Any:
        """A row for each word."""
        return read_words(reader, [given(row.words, self.settings) for row in rows])

    def score(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> float:
        """F1 over the entities of the test rows."""
        own = np.concatenate(
            [np.arange(self._firsts[row], self._firsts[row] + self._sizes[row]) for row in drawn]
        )
        head = heads.fit_classes(train_X[own], self._classes[own], len(self.tags), self.penalty)
        self.penalty = head.penalty
        found = iter(head.scores(test_X).argmax(1).tolist())
        said = [[self.tags[next(found)] for _ in row.words] for row in self.test]
        return self._f1(said)
