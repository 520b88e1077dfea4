"""Tasks about sentences: texts, pairs, tags, answers; on frozen vectors or fine-tuned.

On frozen vectors, every rung computes the vectors of the words of all rows once; the same light
head is then trained on samples of the training rows, one per seed. N words, D dimensions.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import vstack

from sememe.contract import KINDS
from sememe.errors import InputError
from sememe.examples.labelled.rows import AnswerRow, TagRow, TextRow
from sememe.ladder import heads
from sememe.ladder.plan import EPOCHS
from sememe.ladder.reading import (
    NO_VECTORS,
    Reader,
    RungAnswer,
    RungModel,
    Words,
    cut,
    given,
    percent_bounds,
)
from sememe.ladder.results import Column
from sememe.ladder.text import LadderText
from sememe.metrics import Interval, are_chinese, mean_bounds
from sememe.metrics.baselines import (
    TFIDF,
    baselines_of,
    majority_answers,
    majority_labels,
    majority_tags,
)
from sememe.metrics.by_name import METRICS, gold_of, interval_of

HOW = "frozen vectors of words in their sentence, one linear head"
_DRAWN = 0.75  # of the training rows, for each seed
_TEXTS_AT_ONCE = 1_024


class SentenceQuestion:
    """A task on frozen vectors; subclasses fill in the parts that differ."""

    kind: str
    metric: str
    measure: str  # its name in METRICS
    penalty: float | None = None  # of the head, chosen by its first sample

    def __init__(
        self, name: str, title: str, what: str, train: Sequence[Any], test: Sequence[Any],
        text: LadderText, *, seeds: int = 3,
    ) -> None:  # fmt: skip
        self.train, self.test = self.usable(train), self.usable(test)
        self.text, self.settings, self.seeds = text, text.settings, seeds
        self.task = Column(
            name=name, title=title, group="sentences", what=what, metric=self.metric,
            baselines=percents(self.baselines(self.taught)),
            num_train=self._num_drawn, num_test=len(self.test), how=HOW,
        )  # fmt: skip

    @property
    def _num_drawn(self) -> int:
        return max(1, round(_DRAWN * len(self.train)))

    def _drawn(self, seed: int) -> np.ndarray:
        """The places of the training rows of a seed."""
        order = np.random.default_rng(seed).permutation(len(self.train))
        return np.sort(order[: self._num_drawn])

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Train the head on samples of rows, and score the test rows."""
        reader = rung.reader
        if reader is None:
            return RungAnswer(why=NO_VECTORS)
        train_X, test_X = self.features(reader, self.train), self.features(reader, self.test)
        scores, intervals, self.penalty = [], [], None
        for seed in range(1, self.seeds + 1):
            said = self.predicted(train_X, self._drawn(seed), test_X)
            scores.append(100 * self.score_of(said))
            intervals.append(interval_of(self.measure, self.gold, said))
        interval = percent_bounds(mean_bounds(intervals))
        return RungAnswer(scores, len(self.test), interval=interval)

    @cached_property
    def gold(self) -> list[Any]:
        """What is right for each test row."""
        return gold_of(self.kind, self.test)

    def score_of(self, said: Sequence[Any]) -> float:
        """The score of predictions for the test rows, as a fraction."""
        return METRICS[self.measure].score(self.gold, said, "")

    def usable(self, rows: Sequence[Any]) -> list[Any]:
        """The rows that this head can train on or predict."""
        return list(rows)

    @property
    def taught(self) -> list[Any]:
        """The rows that a head with the first seed learns from, and so do the baselines."""
        return [self.train[place] for place in self._drawn(1)]

    def full_task(self) -> Column:
        """The task with the baselines that take seconds to learn."""
        more = percents(self.regression(self.taught))
        return replace(self.task, baselines={**self.task.baselines, **more})

    def regression(self, train: Sequence[Any]) -> dict[str, float]:
        """The baseline of texts that learns from these rows, as a fraction."""
        return {}

    @abstractmethod
    def baselines(self, train: Sequence[Any]) -> dict[str, float]:
        """Baselines that need no model and learn from these rows, as fractions."""

    @abstractmethod
    def features(self, reader: Reader, rows: Sequence[Any]) -> Any:
        """The head's input for rows."""

    @abstractmethod
    def predicted(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> list[Any]:
        """Train on the sampled rows; predict the test rows."""


def percents(scores: dict[str, float]) -> dict[str, float]:
    """Fractions in percent, with two decimals."""
    return {name: round(100 * score, 2) for name, score in scores.items()}


def read_words(reader: Reader, texts: Sequence[Words]) -> Any:
    """The vectors of the words of many texts, some at a time."""
    parts = [
        reader.read(texts[first : first + _TEXTS_AT_ONCE])
        for first in range(0, len(texts), _TEXTS_AT_ONCE)
    ]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else vstack(parts, "csr")


def sizes_of(texts: Sequence[Words]) -> list[int]:
    """The number of words of each text."""
    return [len(own.words) for own in texts]


class ClassifyQuestion(SentenceQuestion):
    """Which label does a text have? Uses the mean over its words."""

    kind, metric, measure = "classify", "accuracy", "accuracy"

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.labels = sorted({str(row.label) for row in self.train})

    @cached_property
    def gold(self) -> list[Any]:
        """The label of each test row."""
        return [str(row.label) for row in self.test]

    def baselines(self, train: Sequence[Any]) -> dict[str, float]:
        """Chance level, and the most frequent label."""
        return {
            "chance": 1 / len({row.label for row in self.train}),
            "most frequent": self.score_of(majority_labels(train, self.test)),
        }

    def regression(self, train: Sequence[Any]) -> dict[str, float]:
        """Logistic regression on TF-IDF weights, unless no text has a word."""
        said = baselines_of(self.kind, train).predict(self.test)
        return {TFIDF: self.score_of(said[TFIDF])} if TFIDF in said else {}

    def features(self, reader: Reader, rows: Sequence[TextRow]) -> Any:
        """The mean over the words of each text."""
        return self.means(reader, [row.text for row in rows])

    def means(self, reader: Reader, texts: Sequence[str]) -> Any:
        """One vector for each text."""
        words = cut(texts, self.settings)
        return heads.pooled(read_words(reader, words), sizes_of(words))

    def predicted(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> list[Any]:
        """The label of each test row."""
        numbers = {label: index for index, label in enumerate(self.labels)}
        classes = np.array([numbers[str(self.train[index].label)] for index in drawn])
        head = heads.fit_classes(train_X[drawn], classes, len(self.labels), self.penalty)
        self.penalty = head.penalty
        return [self.labels[index] for index in head.scores(test_X).argmax(1)]


class PairsQuestion(ClassifyQuestion):
    """Which label does a pair have? Uses both means, their difference and their product."""

    kind = "pairs"

    def features(self, reader: Reader, rows: Sequence[TextRow]) -> Any:
        """Both texts compared."""
        first = self.means(reader, [row.text for row in rows])
        return heads.compared(first, self.means(reader, [row.second or "" for row in rows]))


class TagQuestion(SentenceQuestion):
    """Which tag does each word have? Uses only its own vector, which may encode its context."""

    kind, metric, measure = "tag", "F1", "entity_f1"

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

    def baselines(self, train: Sequence[Any]) -> dict[str, float]:
        """The most frequent tag of each word."""
        return {"most frequent tag of a word": self.score_of(majority_tags(train, self.test))}

    def features(self, reader: Reader, rows: Sequence[TagRow]) -> Any:
        """One row per word."""
        return read_words(reader, [given(row.words, self.settings) for row in rows])

    def predicted(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> list[Any]:
        """The tags of each test row."""
        own = np.concatenate(
            [np.arange(self._firsts[row], self._firsts[row] + self._sizes[row]) for row in drawn]
        )
        head = heads.fit_classes(train_X[own], self._classes[own], len(self.tags), self.penalty)
        self.penalty = head.penalty
        found = iter(head.scores(test_X).argmax(1).tolist())
        return [[self.tags[next(found)] for _ in row.words] for row in self.test]


_REACHES = {"rarest": 8, "any": 3, "alike": 1}  # words on each side whose flags a word sees


class AnswerQuestion(SentenceQuestion):
    """Where does the answer start and end? A softmax over the words of the passage.

    A word is its vector, with flags for the words around it: is one the rarest word of the
    question, is one any word of it, and how similar is it to the rarest.
    """

    kind, metric = "answer", "F1"

    def usable(self, rows: Sequence[AnswerRow]) -> list[AnswerRow]:
        """Questions whose answer is a sequence of words of the passage."""
        return [row for row in rows if row.answers and row.context.strip()]

    def baselines(self, train: Sequence[Any]) -> dict[str, float]:
        """The most frequent answer."""
        return {"most frequent": self.score_of(majority_answers(train, self.test))}

    @property
    def measure(self) -> str:  # type: ignore[override]
        """F1 by SQuAD's rules, or by CMRC's for Chinese."""
        return "cmrc_f1" if are_chinese(self.gold) else "squad_f1"

    def features(self, reader: Reader, rows: Sequence[AnswerRow]) -> tuple[list[Words], Any]:
        """The words of the passages, and the head's input for each."""
        passages = cut([row.context for row in rows], self.settings)
        questions = cut([row.question for row in rows], self.settings)
        rarest = [min(own.words, key=self._count, default="") for own in questions]
        words_ND, sizes = read_words(reader, passages), sizes_of(passages)
        is_rarest = _flags(passages, [{word} for word in rarest])
        is_any = _flags(passages, [set(own.words) for own in questions])
        parts = [
            words_ND,
            heads.windowed(is_rarest, sizes, _REACHES["rarest"]),
            heads.windowed(is_any, sizes, _REACHES["any"]),
        ]
        if isinstance(words_ND, np.ndarray):
            asked_QD = read_words(reader, [given([word or "?"], self.settings) for word in rarest])
            alike = _cosines(words_ND, np.repeat(asked_QD, sizes, axis=0))
            parts.append(heads.windowed(alike, sizes, _REACHES["alike"]))
        return passages, heads.beside(parts)

    def _count(self, word: str) -> int:
        """How often a word was read."""
        vocabulary = self.text.words.vocabulary
        found = vocabulary.find(word)
        return int(vocabulary.counts[found]) if found >= 0 else 0

    def predicted(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> list[Any]:
        """The most likely span of each test row."""
        passages, rows_ND = train_X
        sizes = np.array(sizes_of(passages))
        firsts = np.cumsum(sizes) - sizes
        spans = [_span(self.train[index], passages[index]) for index in drawn]
        kept = [(index, span) for index, span in zip(drawn, spans, strict=True) if span]
        if not kept:
            raise InputError(f"{self.task.title}: no training answer matches whole words.")
        own = np.concatenate([np.arange(firsts[i], firsts[i] + sizes[i]) for i, _ in kept])
        own_sizes = sizes[[index for index, _ in kept]]
        own_firsts = np.cumsum(own_sizes) - own_sizes
        places_G2 = np.array([span for _, span in kept])
        ends = [
            heads.fit_choices(rows_ND[own], own_firsts, own_firsts + places_G2[:, side])
            for side in (0, 1)
        ]
        longest = max(span[1] - span[0] for _, span in kept) + 1
        return self._said(test_X, ends, longest)

    def _said(self, test_X: Any, ends: Sequence[heads.Chooser], longest: int) -> list[str]:
        passages, rows_ND = test_X
        starts_N, ends_N = (head.scores(rows_ND) for head in ends)
        said, first = [], 0
        for row, own in zip(self.test, passages, strict=True):
            num = len(own.words)
            place = _best_span(starts_N[first : first + num], ends_N[first : first + num], longest)
            said.append(row.context[own.starts[place[0]] : own.ends[place[1]]] if num else "")
            first += num
        return said


def _flags(passages: Sequence[Words], asked: Sequence[set[str]]) -> np.ndarray:
    flags = [
        word in wanted for own, wanted in zip(passages, asked, strict=True) for word in own.words
    ]
    return np.array(flags, np.float32).reshape(-1, 1)


def _cosines(first_ND: np.ndarray, second_ND: np.ndarray) -> np.ndarray:
    lengths_N = np.linalg.norm(first_ND, axis=1) * np.linalg.norm(second_ND, axis=1)
    products_N = (first_ND * second_ND).sum(1)
    return (products_N / np.where(lengths_N > 0, lengths_N, 1)).astype(np.float32)[:, None]


def _span(row: AnswerRow, own: Words) -> tuple[int, int] | None:
    """The first and last word of the answer; None if it contains no word."""
    start, end = row.answers[0].start, row.answers[0].start + len(row.answers[0].text)
    inside = np.flatnonzero((own.starts < end) & (own.ends > start))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def _best_span(starts_T: np.ndarray, ends_T: np.ndarray, longest: int) -> tuple[int, int]:
    if not len(starts_T):
        return 0, 0
    sums_TT = starts_T[:, None] + ends_T
    lengths_TT = np.arange(len(ends_T)) - np.arange(len(starts_T))[:, None]
    sums_TT = np.where((lengths_TT >= 0) & (lengths_TT < longest), sums_TT, -np.inf)
    place = int(sums_TT.argmax())
    return place // len(ends_T), place % len(ends_T)


HOW_FINETUNED = (
    "networks are fine-tuned; a BiLSTM reads mixed ELMo layers or word vectors (texts and pairs: "
    "mean vector)"
)
# Readers of word vectors start from scratch and need a high learning rate (docs/results.md).
_READER_RATE = 3e-3
_LENGTHS = {"classify": 128, "pairs": 128, "tag": 128, "answer": 256}


_UNKNOWN = Interval(math.nan, math.nan)


class FinetunedQuestion:
    """A sentence task for which rungs are fine-tuned with the heads of sememe.tasks."""

    def __init__(self, question: SentenceQuestion, num_rows: int) -> None:
        self.question, self._train = question, question.train[:num_rows]
        self.task = replace(
            question.task, how=HOW_FINETUNED, num_train=len(self._train),
            baselines=percents(question.baselines(self._train)),
        )  # fmt: skip

    def full_task(self) -> Column:
        """The task with the baselines that take seconds to learn."""
        more = percents(self.question.regression(self._train))
        return replace(self.task, baselines={**self.task.baselines, **more})

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Fine-tune the rung on the rows, once per seed, and score the test rows."""
        if rung.reader is None:
            return RungAnswer(why=NO_VECTORS)
        own, scores, intervals = self.question, [], []
        for seed in range(1, own.seeds + 1):
            task = KINDS[own.kind].cls()(rung.path, seed=seed, **self._options(rung))
            task.fit(self._train, dev=False, progress=rung.reporter)
            found = task.evaluate(own.test)
            scores.append(100 * float(found.value))
            intervals.append(Interval(*found.interval) if found.interval else _UNKNOWN)
        interval = percent_bounds(mean_bounds(intervals))
        return RungAnswer(scores, len(own.test), interval=interval)

    def _options(self, rung: RungModel) -> dict[str, Any]:
        rate = {} if rung.is_contextual else {"learning_rate": _READER_RATE}
        # Batches of small readers are so short that threads would wait for each other.
        workers = {"workers": 1} if rung.device == "cpu" else {}
        length = _LENGTHS[self.question.kind]
        return {
            "epochs": EPOCHS, "length": length, "device": rung.device, "baselines": False,
            **rate, **workers,
        }  # fmt: skip
