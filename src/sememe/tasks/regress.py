"""Scores: a text or two in, a number out, such as how similar they are."""

from __future__ import annotations

import math
from collections.abc import Sequence as Several
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.examples.labelled import Rows, TextRow, read_texts
from sememe.tasks.items import Item
from sememe.tasks.task import Task
from sememe.tasks.texts import encode_texts, is_gpt

# Scores of this size, such as 0 to 5, are learned as they are; others are brought to size first.
_LARGEST = 10.0


class Score(NamedTuple):
    """The predicted score of a row."""

    score: float


class Regress(Task):
    """A number for each text or pair of texts, learned by squared error.

    task = sememe.Regress("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/similar")
    """

    name = "regress"
    has_labels = False
    main_metric = "pearson"

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> Rows[TextRow]:
        """Read texts or pairs with their scores."""
        return read_texts(data, kind="regress", labelled=labelled, **reading)

    def labels_of(self, rows: Several[TextRow]) -> list[str]:
        """None; but large scores are learned as distances from their mean in standard deviations.

        A head starts near 0 and moves slowly.
        """
        scores = np.array([row.score for row in rows], np.float64)
        if len(scores) and np.abs(scores).max() > _LARGEST:
            spread = float(scores.std()) or 1.0
            self.learned = {"mean": float(scores.mean()), "spread": spread}
        return []

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """One sequence, or both orders where nothing tells first from second."""
        choice = self.config.both_orders
        both = choice == "yes" or (choice == "auto" and is_gpt(self.coder))
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
        from sememe.networks.heads import ScoreHead

        return ScoreHead(width, 1, dropout=dropout, has_bias=has_bias)

    def decode(self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]) -> Score:
        """The score in the measure of the training rows."""
        mean, spread = self._scale
        return Score(mean + spread * float(outputs[0][0]))

    def written(self, row: TextRow, prediction: Score, *, num: int, has_chances: bool) -> str:
        """The score."""
        return f"{prediction.score:.6g}"

    def score(self, rows: Several[TextRow], predictions: Several[Score]) -> dict[str, float]:
        """The correlation with the true scores, of values and of ranks."""
        gold = [float(row.score) for row in rows if row.score is not None]
        said = [one.score for one in predictions]
        return {"pearson": metrics.pearson(gold, said), "spearman": metrics.spearman(gold, said)}
