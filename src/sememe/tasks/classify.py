"""Classification: a text in, one of several labels out; softmax on the vector of the sequence."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.errors import InputError
from sememe.examples.labelled import Rows, TextRow, read_texts, sorted_labels
from sememe.tasks.items import Item
from sememe.tasks.task import Task
from sememe.tasks.texts import Target, encode_texts


class Label(NamedTuple):
    """The likeliest label of a row, and the probability of every label."""

    label: str
    probability: float
    probabilities: dict[str, float]


class Classify(Task):
    """One label for each text.

    task = sememe.Classify("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/topics")
    """

    name = "classify"
    main_metric = "accuracy"

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> Rows[TextRow]:
        """Read texts with their labels."""
        known = self.labels if labelled and self.labels else None
        return read_texts(data, kind=self.name, labels_known=known, labelled=labelled, **reading)  # type: ignore[arg-type]

    def labels_of(self, rows: Several[TextRow]) -> list[str]:
        """The labels of the rows: numbers by value, others by their characters."""
        labels = sorted_labels(str(row.label) for row in rows)
        if len(labels) < 2:
            raise InputError(
                f"Every row has the label {labels[0]!r}: there is nothing to tell apart."
                if labels
                else "There are no rows to learn from."
            )
        return labels

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """One sequence for each text."""
        return encode_texts(self.coder, rows, self.target())

    def target(self) -> Target:
        """A function that gives the number of a row's label, if it has one that is known."""
        numbers = {label: np.array(n, np.int64) for n, label in enumerate(self.labels)}
        return lambda row: None if row.label is None else numbers.get(row.label)

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map to the labels."""
        from sememe.networks.heads import ClassHead

        return ClassHead(width, len(self.labels), dropout=dropout, has_bias=has_bias)

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Probabilities."""
        return softmax(output)

    def decode(self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]) -> Label:
        """The likeliest label."""
        (chances,) = outputs
        best = int(chances.argmax())
        probabilities = dict(zip(self.labels, map(float, chances), strict=True))
        return Label(self.labels[best], float(chances[best]), probabilities)

    def written(self, row: TextRow, prediction: Label, *, num: int, has_chances: bool) -> str:
        """The likeliest labels."""
        ranked = sorted(prediction.probabilities.items(), key=lambda pair: -pair[1])
        chosen = ranked if num < 0 else ranked[:num]
        return " ".join(f"{name} {p:.6g}" if has_chances else name for name, p in chosen)

    def score(self, rows: Several[TextRow], predictions: Several[Label]) -> dict[str, float]:
        """Accuracy, Matthews and F1: the mean over the labels and, of two, that of the second."""
        gold, said = [str(row.label) for row in rows], [one.label for one in predictions]
        figures = {"accuracy": metrics.accuracy(gold, said)}
        if len(self.labels) == 2:
            figures["f1"] = metrics.binary_f1(gold, said, self.labels[1])
        figures["macro_f1"] = metrics.f1(gold, said, "macro")
        figures["matthews"] = metrics.matthews(gold, said)
        return figures

    def explain(self, rows: Several[TextRow], predictions: Several[Label]) -> dict[str, Any]:
        """The table of confusions."""
        gold, said = [str(row.label) for row in rows], [one.label for one in predictions]
        table = metrics.confusion_matrix(gold, said, self.labels).counts
        return {"labels": list(self.labels), "confusion": table.tolist()}


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities from scores over the last axis."""
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)
