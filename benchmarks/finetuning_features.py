"""Rows as the peer of benchmarks/finetuning.py sees them, cut by the tokenizer of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import transformers

IGNORED = -100


class Feature(NamedTuple):
    """A row, or a window of one, as the model takes it."""

    ids: np.ndarray
    segments: np.ndarray
    target: Any
    row_index: int
    extra: Any = None  # which words or characters the tokens are


class Reader:
    """Turns rows into features with the tokenizer of a folder; targets where rows have labels."""

    def __init__(self, kind: str, folder: Path, labels: Sequence[str], length: int) -> None:
        self.kind, self.labels, self.length = kind, list(labels), length
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, use_fast=True)
        self.tokenizer.model_max_length = 1 << 30  # it warns of rows that are cut later

    def __call__(self, rows: Sequence[Any]) -> list[Feature]:
        """The features of rows."""
        if self.kind == "tag":
            return self._tagged(rows)
        return self._answered(rows) if self.kind == "answer" else self._texts(rows)

    def _texts(self, rows: Sequence[Any]) -> list[Feature]:
        seconds = None if rows[0].second is None else [row.second for row in rows]
        found = self.tokenizer(
            [row.text for row in rows], seconds, truncation=True, max_length=self.length
        )
        numbers = {label: number for number, label in enumerate(self.labels)}
        targets = [row.score if self.kind == "regress" else numbers[row.label] for row in rows]
        parts = zip(found["input_ids"], found["token_type_ids"], targets, strict=True)
        return [
            Feature(np.array(ids), np.array(segments), target, index)
            for index, (ids, segments, target) in enumerate(parts)
        ]

    def _tagged(self, rows: Sequence[Any]) -> list[Feature]:
        """The tag of a word belongs to its first piece; the other pieces are ignored."""
        found = self.tokenizer(
            [list(row.words) for row in rows], is_split_into_words=True, truncation=True,
            max_length=self.length,
        )  # fmt: skip
        features = []
        for index, row in enumerate(rows):
            words = found.word_ids(index)
            firsts = [
                word is not None and word != before
                for word, before in zip(words, [None, *words], strict=False)
            ]
            target = [
                self.labels.index(row.tags[word]) if is_first else IGNORED
                for word, is_first in zip(words, firsts, strict=True)
            ]
            places = [place for place, is_first in enumerate(firsts) if is_first]
            features.append(
                Feature(
                    np.array(found["input_ids"][index]), np.array(found["token_type_ids"][index]),
                    target, index, [(words[place], place) for place in places],
                )
            )  # fmt: skip
        return features

    def _answered(self, rows: Sequence[Any]) -> list[Feature]:
        """Windows over the context, 128 tokens apart, as in the released run_squad.py."""
        questions = self.tokenizer([row.question for row in rows], add_special_tokens=False)
        distinct = list(dict.fromkeys(row.context for row in rows))
        found = self.tokenizer(distinct, add_special_tokens=False, return_offsets_mapping=True)
        contexts = dict(
            zip(
                distinct, zip(found["input_ids"], found["offset_mapping"], strict=True), strict=True
            )
        )
        features = []
        for index, (row, question) in enumerate(zip(rows, questions["input_ids"], strict=True)):
            ids, places = contexts[row.context]
            features += self._windows(index, row, question[:64], ids, places)
        return features

    def _windows(
        self, index: int, row: Any, question: list[int], ids: list[int], places: list[Any]
    ) -> Iterator[Feature]:
        answer = next((one for one in row.answers if one.start >= 0), None)
        span = None if answer is None else _token_span(answer, places)
        size, start = self.length - 3 - len(question), 0
        cls_id, sep_id = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        while True:
            end = min(start + size, len(ids))
            offset = len(question) + 2 - start
            is_inside = span is not None and start <= span[0] and span[1] < end
            yield Feature(
                np.array([cls_id, *question, sep_id, *ids[start:end], sep_id]),
                np.array([0] * (len(question) + 2) + [1] * (end - start + 1)),
                [span[0] + offset, span[1] + offset] if span and is_inside else [0, 0],
                index,
                (offset, start, end, places),
            )
            if end == len(ids):
                return
            start += min(size, 128)


def _token_span(answer: Any, places: list[tuple[int, int]]) -> tuple[int, int] | None:
    """The first and the last token that hold a character of the answer."""
    end = answer.start + len(answer.text)
    inside = [i for i, (first, last) in enumerate(places) if last > answer.start and first < end]
    return (inside[0], inside[-1]) if inside else None
