"""Answers that are runs of words of a passage, found on frozen vectors. N words, D numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sememe import metrics
from sememe.errors import InputError
from sememe.evaluation.floors import majority_answers
from sememe.examples.labelled import AnswerRow
from sememe.ladder import heads
from sememe.ladder.reading import Reader, Words, cut, given, num_words
from sememe.ladder.sentence_questions import SentenceQuestion, read_words, sizes_of

_REACHES = {"rarest": 8, "any": 3, "alike": 1}  # words on each side whose flags a word sees


class AnswerQuestion(SentenceQuestion):
    """Where does the answer start and end? A softmax over the words of the passage.

    A word is its vector, with flags of the words around it: is one the rarest word of the
    question, is one any word of it, and how alike is it to the rarest.
    """

    kind, metric = "answer", "F1"

    def __init__(self, *args: Any, counts: Any = None, **more: Any) -> None:
        self._counts = counts or {}
        super().__init__(*args, **more)

    def usable(self, rows: Sequence[AnswerRow]) -> list[AnswerRow]:
        """Questions whose answer is a run of words of the passage."""
        return [row for row in rows if row.answers and row.context.strip()]

    def baselines(self) -> dict[str, float]:
        """The commonest answer."""
        said = majority_answers(self.train, self.test)
        return {"most frequent": self._f1(said)}

    def _f1(self, said: Sequence[str]) -> float:
        is_chinese = metrics.are_chinese([own.text for row in self.test for own in row.answers])
        score = metrics.score_chinese_answer if is_chinese else metrics.score_answer
        scores = [
            score(text, [own.text for own in row.answers])
            for text, row in zip(said, self.test, strict=True)
        ]
        return metrics.mean_answer_score(scores).f1

    def features(self, reader: Reader, rows: Sequence[AnswerRow]) -> tuple[list[Words], Any]:
        """The words of the passages, and what the head sees of each."""
        passages = cut([row.context for row in rows], self.settings)
        questions = cut([row.question for row in rows], self.settings)
        rarest = [min(own.words, key=self._count, default="") for own in questions]
        words_ND = read_words(reader, passages)
        is_rarest = _flags(passages, [{word} for word in rarest])
        is_any = _flags(passages, [set(own.words) for own in questions])
        sizes = sizes_of(passages)
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
        return int(self._counts.get(word, 0))

    def score(self, train_X: Any, drawn: np.ndarray, test_X: Any) -> float:
        """F1 of the likeliest runs of words."""
        passages, rows_ND = train_X
        sizes = np.array(sizes_of(passages))
        firsts = np.cumsum(sizes) - sizes
        spans = [_span(self.train[index], passages[index]) for index in drawn]
        kept = [(index, span) for index, span in zip(drawn, spans, strict=True) if span]
        if not kept:
            raise InputError(f"{self.task.title}: no answer to learn from lies on words.")
        own = np.concatenate([np.arange(firsts[i], firsts[i] + sizes[i]) for i, _ in kept])
        own_sizes = sizes[[index for index, _ in kept]]
        own_firsts = np.cumsum(own_sizes) - own_sizes
        ends = []
        for side in (0, 1):
            right = own_firsts + np.array([span[side] for _, span in kept])
            ends.append(heads.fit_choices(heads.Choices(rows_ND[own], own_firsts, right)))
        longest = max(span[1] - span[0] for _, span in kept) + 1
        return self._f1(self._said(test_X, ends, longest))

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
    return np.array(flags, np.float32).reshape(num_words(passages), 1)


def _cosines(first_ND: np.ndarray, second_ND: np.ndarray) -> np.ndarray:
    lengths_N = np.linalg.norm(first_ND, axis=1) * np.linalg.norm(second_ND, axis=1)
    products_N = (first_ND * second_ND).sum(1)
    return (products_N / np.where(lengths_N > 0, lengths_N, 1)).astype(np.float32)[:, None]


def _span(row: AnswerRow, own: Words) -> tuple[int, int] | None:
    """The first and last word of the answer; None where no word lies in it."""
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
