"""Tasks over texts: a text or a pair in; a score, or the right choice out.

Each is a linear map of a sequence's vector; a pair is one sequence. Labels: `classify`.
"""

import math
from collections.abc import Iterable, Sequence as Several
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.contract import Truncation, numbered_columns, padded
from sememe.examples.labelled.rows import LabelledRows, Note, TextRow, silent
from sememe.examples.labelled.texts import open_texts, read_texts
from sememe.nn.heads import ChoiceHead, ScoreHead
from sememe.tasks.objective import Item, encode_texts, longest_cut, row_cuts
from sememe.tasks.scores import beside_majority
from sememe.tasks.task import Task
from sememe.text.tables import FileTable

# Scores in this range, such as 0 to 5, are learned unchanged; others are standardized first.
_LARGEST = 10.0


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

    def pair_truncations(self, pairs: Several[tuple[str, str]]) -> list[Truncation | None]:
        """What `score_pairs` cuts from each pair."""
        return row_cuts(len(pairs), self.encode(pair_rows(pairs)))


def pair_rows(pairs: Several[tuple[str, str]]) -> list[TextRow]:
    """Pairs of texts as rows without labels."""
    return [TextRow(text=first, second=second) for first, second in pairs]


def ranked_values(chances: Iterable[tuple[Any, float]], k: int) -> list[tuple[Any, float]]:
    """The `k` most likely values (all if negative) with their probabilities."""
    return sorted(chances, key=lambda pair: -pair[1])[: None if k < 0 else k]


def value_line(ranked: Iterable[tuple[Any, float]], has_chances: bool, between: str = " ") -> str:
    """The values on one line, with or without their probabilities."""
    return between.join(f"{name} {p:.6g}" if has_chances else str(name) for name, p in ranked)


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

    def lacking(self) -> dict[str, str]:
        """Scores of pairs, if it was trained on single texts."""
        is_single = self.columns and "second" not in self.columns
        why = {"score_pairs": "it was trained on single texts"} if is_single else {}
        return super().lacking() | why

    def score_pairs(self, pairs: Several[tuple[str, str]], *, label: str = "") -> np.ndarray:
        """The score of each pair."""
        self.require("score_pairs")
        return np.array([one.score for one in self.predict_rows(pair_rows(pairs))])

    def measure(
        self, rows: Several[TextRow], predictions: Several[PredictedScore]
    ) -> dict[str, float]:
        """Pearson and Spearman correlation with the true scores."""
        gold = [float(row.score) for row in rows if row.score is not None]
        said = [one.score for one in predictions]
        return {"pearson": metrics.pearson(gold, said), "spearman": metrics.spearman(gold, said)}

    def metric_names(self, rows: Several[Any]) -> dict[str, str]:
        """The same names."""
        return {"pearson": "pearson", "spearman": "spearman"}


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
            target = None if row.label is None else np.array(int(row.label), np.int64)
            sequences = tuple(one.sequence for one in framed)
            items.append(Item(sequences, index, target, cut=longest_cut(framed)))
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

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Probabilities."""
        return softmax(output)

    def decode(self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]) -> Choice:
        """The most likely choice."""
        (chances,) = outputs
        best = int(chances.argmax())
        return Choice(best, (row.choices or ())[best], tuple(map(float, chances)))

    def prediction_line(self, prediction: Choice, *, k: int = 1, has_chances: bool = False) -> str:
        """The most likely choices, counted from 0."""
        return value_line(ranked_values(enumerate(prediction.probabilities), k), has_chances)

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The text of the best choice; the best numbers with their probabilities, or all."""
        ranked = numbered_columns({"prediction": int, "probability": float}, max(k, 1))
        more = {"probabilities": list[float]} if k < 0 else {}
        return {"choice": str, **ranked, **more}

    def prediction_cells(self, prediction: Choice, k: int = 1) -> list[Any]:
        """The cells of these columns; a row may have fewer choices."""
        chances, size = prediction.probabilities, max(k, 1)
        ranked = [cell for pair in ranked_values(enumerate(chances), size) for cell in pair]
        more = [list(chances)] if k < 0 else []
        return [prediction.text, *padded(ranked, 2 * size), *more]

    def measure(self, rows: Several[TextRow], predictions: Several[Choice]) -> dict[str, float]:
        """The accuracy."""
        gold = [int(str(row.label)) for row in rows]
        return {"accuracy": metrics.accuracy(gold, [one.number for one in predictions])}

    def metric_names(self, rows: Several[Any]) -> dict[str, str]:
        """The same name."""
        return {"accuracy": "accuracy"}

    def explain(self, rows: Several[TextRow], predictions: Several[Choice]) -> dict[str, Any]:
        """What the most frequent place of the right choice scores."""
        return beside_majority([str(r.label) for r in rows], [str(p.number) for p in predictions])


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities from scores over the last axis."""
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)
