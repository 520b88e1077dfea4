"""Scores of a classifier on labelled lines: precision, recall and F1, over all and by label."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.static.fasttext.classifier.prediction import Found


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


@dataclass(frozen=True)
class LabelScore:
    """How well one label is found."""

    label: str
    precision: float
    recall: float
    f1: float
    num_true: int
    num_predicted: int


@dataclass(frozen=True)
class LabelsResult:
    """Precision and recall of the first k labels, over all lines together (micro averages)."""

    num_examples: int
    num_skipped: int  # lines without a known label or without words
    k: int
    threshold: float
    precision: float
    recall: float
    f1: float
    labels: list[LabelScore]

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON; NaN, where there was nothing to divide by, becomes null."""
        figures = asdict(self)
        for part in (figures, *figures["labels"]):
            for name, value in part.items():
                if isinstance(value, float) and math.isnan(value):
                    part[name] = None
        return figures

    def __str__(self) -> str:
        return (
            f"{self.num_examples:,} examples: precision at {self.k} {self.precision:.4f}, "
            f"recall {self.recall:.4f}, F1 {self.f1:.4f}"
        )


def score(
    blocks: Iterable[Found], names: list[str], k: int, threshold: float, source: str
) -> LabelsResult:
    """Compare predictions with the labels of the lines."""
    num_true = np.zeros(len(names), np.int64)
    num_predicted, num_right = np.zeros_like(num_true), np.zeros_like(num_true)
    num_examples, num_lines = 0, 0
    for found in blocks:
        lines = found.lines
        num_labels = np.diff(lines.label_ends, prepend=0)
        is_asked = (num_labels > 0) & (np.diff(lines.ends, prepend=0) > 0)
        num_examples += int(is_asked.sum())
        num_lines += len(is_asked)
        line_of_label = np.repeat(np.arange(len(is_asked)), num_labels)
        true_ids = lines.labels[is_asked[line_of_label]]
        true_lines = line_of_label[is_asked[line_of_label]]
        asked = np.where(is_asked[:, None], found.label_ids, -1)
        line_of_guess, place = np.nonzero(asked >= 0)
        guesses = asked[line_of_guess, place]
        num_true += np.bincount(true_ids, minlength=len(names))
        num_predicted += np.bincount(guesses, minlength=len(names))
        is_right = np.isin(line_of_guess * len(names) + guesses, true_lines * len(names) + true_ids)
        num_right += np.bincount(guesses[is_right], minlength=len(names))
    if not num_examples:
        raise InputError(
            f"{source} has no line with a label that the model knows: nothing to score."
        )
    right, predicted, true = int(num_right.sum()), int(num_predicted.sum()), int(num_true.sum())
    return LabelsResult(
        num_examples, num_lines - num_examples, k, threshold, _ratio(right, predicted),
        _ratio(right, true), _ratio(2 * right, predicted + true),
        [
            LabelScore(name, _ratio(r, p), _ratio(r, t), _ratio(2 * r, p + t), t, p)
            for name, r, p, t in zip(
                names, num_right.tolist(), num_predicted.tolist(), num_true.tolist(), strict=True
            )
        ],
    )  # fmt: skip
