"""Tasks over texts: a text or a pair in; a label, a score, or the right choice out.

Each is a linear map of a sequence's vector; a pair is one sequence.
"""

import math
from collections.abc import Iterable, Sequence as Several
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sememe import metrics
from sememe.contract import label_cells, label_columns, numbered_columns, padded
from sememe.errors import InputError
from sememe.examples.labelled.rows import LabelledRows, Note, TextRow, silent
from sememe.examples.labelled.texts import open_texts, read_texts, sorted_labels
from sememe.nn.encoders import Reads
from sememe.nn.heads import ChoiceHead, ClassHead, ScoreHead
from sememe.tasks.objective import Item, Target, encode_texts
from sememe.tasks.scores import beside_majority
from sememe.tasks.task import Task
from sememe.text.tables import FileTable

# Scores in this range, such as 0 to 5, are learned unchanged; others are standardized first.
_LARGEST = 10.0
_AT_ONCE = 4_096  # rows whose probabilities are in one array


class Label(NamedTuple):
    """The most likely label of a row, and the probability of every label."""

    label: str
    probability: float
    probabilities: dict[str, float]


class TextTask(Task):
    """A task over rows of one or two texts."""

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> LabelledRows[TextRow]:
        """Read texts with the task's targets: labels, scores or choices."""
        known = self.labels if labelled and self.labels else None
        return read_texts(
            data, kind=self.kind, earlier=self.columns, labels_known=known, labelled=labelled,  # type: ignore[arg-type]
            **reading,
        )  # fmt: skip

    def open_rows(
        self, data: Any, *, encoding: str, columns: Any = None, on_note: Note = silent
    ) -> Iterable[FileTable]:
        """The tables of data without labels."""
        kind: Any = self.kind
        return open_texts(data, kind, columns, self.columns, encoding, on_note=on_note)


def _ranked(chances: Iterable[tuple[Any, float]], k: int) -> list[tuple[Any, float]]:
    """The `k` most likely values (all if negative) with their probabilities."""
    return sorted(chances, key=lambda pair: -pair[1])[: None if k < 0 else k]


def _line(ranked: Iterable[tuple[Any, float]], has_chances: bool) -> str:
    return " ".join(f"{name} {p:.6g}" if has_chances else str(name) for name, p in ranked)


class Classify(TextTask):
    """One label for each text.

    task = sememe.Classify("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/topics")
    """

    kind = "classify"
    reads: ClassVar[Reads] = "text"
    main_metric = "accuracy"

    def labels_of(self, rows: Several[TextRow]) -> list[str]:
        """The labels of the rows: numbers sorted by value, others by character."""
        labels = sorted_labels(str(row.label) for row in rows)
        if len(labels) < 2:
            raise InputError(
                f"Every row has the label {labels[0]!r}: a task needs at least two labels."
                if labels
                else "There are no training rows."
            )
        return labels

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """One sequence per text."""
        return encode_texts(self.coder, rows, self.target())

    def target(self) -> Target:
        """A function from a row to the id of its label, if it has a known one."""
        numbers = {label: np.array(n, np.int64) for n, label in enumerate(self.labels)}
        return lambda row: None if row.label is None else numbers.get(row.label)

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map to the labels."""
        return ClassHead(width, len(self.labels), dropout=dropout, has_bias=has_bias)

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Probabilities."""
        return softmax(output)

    def decode(self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]) -> Label:
        """The most likely label."""
        (chances,) = outputs
        best = int(chances.argmax())
        probabilities = dict(zip(self.labels, map(float, chances), strict=True))
        return Label(self.labels[best], float(chances[best]), probabilities)

    def prediction_line(self, prediction: Label, *, k: int = 1, has_chances: bool = False) -> str:
        """The most likely labels."""
        return _line(_ranked(prediction.probabilities.items(), k), has_chances)

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The most likely labels with their probabilities, or the probabilities of all."""
        return label_columns(self.labels, k)

    def prediction_cells(self, prediction: Label, k: int = 1) -> list[Any]:
        """The cells of these columns."""
        return label_cells(_ranked(prediction.probabilities.items(), k), self.labels, k)

    def measure(self, rows: Several[TextRow], predictions: Several[Label]) -> dict[str, float]:
        """Accuracy, Matthews correlation and F1: macro and, of two labels, that of the second."""
        gold, said = [str(row.label) for row in rows], [one.label for one in predictions]
        scores = {"accuracy": metrics.accuracy(gold, said)}
        if len(self.labels) == 2:
            scores["f1"] = metrics.binary_f1(gold, said, self.labels[1])
        scores["macro_f1"] = metrics.f1(gold, said, "macro")
        scores["matthews"] = metrics.matthews(gold, said)
        return scores

    def explain(self, rows: Several[TextRow], predictions: Several[Label]) -> dict[str, Any]:
        """The confusion matrix, the scores of each label, and that of the most frequent label."""
        gold, said = [str(row.label) for row in rows], [one.label for one in predictions]
        confusion = metrics.confusion_matrix(gold, said, self.labels)
        classes = metrics.class_scores(confusion)
        return {
            "labels": list(self.labels),
            "confusion": confusion.counts.tolist(),
            "classes": [one.to_dict() for one in classes],
            "averages": metrics.averages(classes),
            "calibration": self._calibration(rows, predictions),
            **beside_majority(gold, said),
        }

    def _calibration(self, rows: Several[TextRow], predictions: Several[Label]) -> dict[str, float]:
        """How far the probabilities agree with the labels; some rows at a time."""
        found, names = metrics.Reliability(), np.array(self.labels)
        for first in range(0, len(rows), _AT_ONCE):
            own = slice(first, first + _AT_ONCE)
            chances = np.array([[*one.probabilities.values()] for one in predictions[own]])
            is_true = np.array([[str(row.label)] for row in rows[own]]) == names
            found.add(chances, is_true, is_one=True)
        return found.to_dict()


class Pairs(Classify):
    """One label for each pair of texts.

    task = sememe.Pairs("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/follows")
    """

    kind = "pairs"
    reads = "texts"

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """Both texts in one sequence, or in both orders."""
        both = self.config.both_orders == "yes"
        return encode_texts(self.coder, rows, self.target(), both_orders=both)


class PredictedScore(NamedTuple):
    """The predicted score of a row."""

    score: float


class Regress(TextTask):
    """A number for each text or pair of texts, learned by squared error.

    task = sememe.Regress("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/similar")
    """

    kind = "regress"
    has_labels = False
    main_metric = "pearson"

    def labels_of(self, rows: Several[TextRow]) -> list[str]:
        """No labels; but large scores are standardized by their mean and standard deviation.

        A head starts near 0 and moves slowly.
        """
        scores = np.array([row.score for row in rows], np.float64)
        if len(scores) and np.abs(scores).max() > _LARGEST:
            spread = float(scores.std()) or 1.0
            self.learned = {"mean": float(scores.mean()), "spread": spread}
        return []

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """One sequence, or both orders if the pair is symmetric."""
        choice = self.config.both_orders
        both = choice == "yes" or (choice == "auto" and self.coder.is_gpt)
        return encode_texts(self.coder, rows, self._target, both_orders=both)

    def _target(self, row: TextRow) -> np.ndarray | None:
        if row.score is None or math.isnan(row.score):
            return None
        mean, spread = self._scale
        return np.array((row.score - mean) / spread, np.float32)

    @property
    def _scale(self) -> tuple[float, float]:
        return self.learned.get("mean", 0.0), self.learned.get("spread", 1.0)

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map to one number."""
        return ScoreHead(width, 1, dropout=dropout, has_bias=has_bias)

    def decode(
        self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]
    ) -> PredictedScore:
        """The score on the scale of the training rows."""
        mean, spread = self._scale
        return PredictedScore(mean + spread * float(outputs[0][0]))

    def prediction_line(
        self, prediction: PredictedScore, *, k: int = 1, has_chances: bool = False
    ) -> str:
        """The score."""
        return f"{prediction.score:.6g}"

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The score."""
        return {"prediction": float}

    def prediction_cells(self, prediction: PredictedScore, k: int = 1) -> list[Any]:
        """The score."""
        return [prediction.score]

    def measure(
        self, rows: Several[TextRow], predictions: Several[PredictedScore]
    ) -> dict[str, float]:
        """Pearson and Spearman correlation with the true scores."""
        gold = [float(row.score) for row in rows if row.score is not None]
        said = [one.score for one in predictions]
        return {"pearson": metrics.pearson(gold, said), "spearman": metrics.spearman(gold, said)}


class Choice(NamedTuple):
    """The most likely choice of a row, counted from 0, and the probability of each."""

    number: int
    text: str
    probabilities: tuple[float, ...]


class Choose(TextTask):
    """The right one of several choices, as in SWAG, RACE and Story Cloze.

    task = sememe.Choose("runs/bert").fit("train.csv", dev="dev.csv", out="runs/endings")
    """

    kind = "choose"
    has_labels = False
    main_metric = "accuracy"

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """One sequence per choice: context, separator, question with choice.

        For a GPT the question is with the context (Radford et al. 2018, 3.3).
        """
        texts = [self._texts(row) for row in rows]
        firsts = self.coder.encode([first for first, _ in texts])
        seconds = iter(self.coder.encode([one for _, choices in texts for one in choices]))
        items = []
        for index, (row, first) in enumerate(zip(rows, firsts, strict=True)):
            framed = [self.coder.frame(first.ids, next(seconds).ids) for _ in texts[index][1]]
            is_cut = any(one.is_cut for one in framed)
            target = None if row.label is None else np.array(int(row.label), np.int64)
            items.append(Item(tuple(one.sequence for one in framed), index, target, is_cut=is_cut))
        return items

    def _texts(self, row: TextRow) -> tuple[str, list[str]]:
        choices = list(row.choices or ())
        if not row.second:
            return row.text, choices
        if self.coder.is_gpt:
            return f"{row.text} {row.second}", choices
        return row.text, [f"{row.second} {choice}" for choice in choices]

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map to one number for each choice."""
        return ChoiceHead(width, 1, dropout=dropout, has_bias=has_bias)

    activate = Classify.activate

    def decode(self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]) -> Choice:
        """The most likely choice."""
        (chances,) = outputs
        best = int(chances.argmax())
        return Choice(best, (row.choices or ())[best], tuple(map(float, chances)))

    def prediction_line(self, prediction: Choice, *, k: int = 1, has_chances: bool = False) -> str:
        """The most likely choices, counted from 0."""
        return _line(_ranked(enumerate(prediction.probabilities), k), has_chances)

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The text of the best choice; the best numbers with their probabilities, or all."""
        ranked = numbered_columns({"prediction": int, "probability": float}, max(k, 1))
        more = {"probabilities": list[float]} if k < 0 else {}
        return {"choice": str, **ranked, **more}

    def prediction_cells(self, prediction: Choice, k: int = 1) -> list[Any]:
        """The cells of these columns; a row may have fewer choices."""
        chances, size = prediction.probabilities, max(k, 1)
        ranked = [cell for pair in _ranked(enumerate(chances), size) for cell in pair]
        more = [list(chances)] if k < 0 else []
        return [prediction.text, *padded(ranked, 2 * size), *more]

    def measure(self, rows: Several[TextRow], predictions: Several[Choice]) -> dict[str, float]:
        """The accuracy."""
        gold = [int(str(row.label)) for row in rows]
        return {"accuracy": metrics.accuracy(gold, [one.number for one in predictions])}

    def explain(self, rows: Several[TextRow], predictions: Several[Choice]) -> dict[str, Any]:
        """What the most frequent place of the right choice scores."""
        return beside_majority([str(r.label) for r in rows], [str(p.number) for p in predictions])


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities from scores over the last axis."""
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)
