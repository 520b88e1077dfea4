"""Labels of texts and of pairs: one label per row, or any number of them.

A linear map of a sequence's vector gives a score per label. With one label per row a softmax makes
probabilities of them; with several, each label has a sigmoid of its own. Rows decide which it is.
N rows, C labels.
"""

from collections.abc import Sequence as Several
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from sememe import metrics
from sememe.contract import label_cells, label_columns
from sememe.errors import InputError, OptionError
from sememe.examples.labelled.label_options import AUTO, LISTS, NONE
from sememe.examples.labelled.rows import LabelledRows, Note, TextRow
from sememe.examples.labelled.splitting import HoldOut
from sememe.examples.labelled.texts import sorted_labels
from sememe.metrics.decisions import check_thresholds, decide, default_thresholds
from sememe.nn.encoders import Reads
from sememe.nn.heads import ClassHead, LabelSetHead
from sememe.tasks import calibration
from sememe.tasks.config import ClassifyConfig
from sememe.tasks.objective import Encoded, Item, Target, encode_texts
from sememe.tasks.scores import beside_majority
from sememe.tasks.texts import TextTask, pair_rows, ranked_values, softmax, value_line

_AT_ONCE = 4_096  # rows whose probabilities are in one array


class Label(NamedTuple):
    """The label of a row, and the probability of every label."""

    label: str
    probability: float
    probabilities: dict[str, float]

    @property
    def labels(self) -> tuple[str, ...]:
        """The label, as the set of all predicted ones."""
        return (self.label,)


class Labels(NamedTuple):
    """The labels of a row, most likely first, and the probability of every label."""

    labels: tuple[str, ...]
    probabilities: dict[str, float]

    @property
    def label(self) -> None:
        """Nothing: there is no single one."""


Predicted = Label | Labels


class Classify(TextTask):
    """One label for each text, or any number of labels.

    task = sememe.Classify("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/topics")
    """

    kind = "classify"
    reads: ClassVar[Reads] = "text"
    config_class = ClassifyConfig
    config: ClassifyConfig

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        """Accuracy; F1 over all decisions if a row may have several labels."""
        return "micro_f1" if self.has_sets else "accuracy"

    @property
    def has_sets(self) -> bool:
        """Whether a row may have any number of labels."""
        return bool(self.learned.get("multi_label"))

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> LabelledRows[TextRow]:
        """Read texts with their labels; training rows decide whether a row may have several."""
        separator = self.config.label_separator
        if self.is_defined:
            separator = self.learned.get("separator", AUTO) if self.has_sets else NONE
        rows = super().read(data, labelled=labelled, label_separator=separator, **reading)
        if not self.is_defined:
            self._separator = rows.separator
        return rows

    def labels_of(self, rows: Several[TextRow]) -> list[str]:
        """The labels of the rows: numbers sorted by value, others by character."""
        if self._separator:
            self.learned = {"multi_label": True, "separator": self._separator}
        labels = sorted_labels(label for row in rows for label in row.label_set)
        if len(labels) < 2:
            if not rows:
                raise InputError("There are no training rows.")
            told = f"Every row has the label {labels[0]!r}" if labels else "No row has a label"
            raise InputError(f"{told}: a task needs at least two labels.")
        return labels

    def check_learned(self) -> None:
        """Raise an error for thresholds that are not those of the labels."""
        check_thresholds(self.learned.get("thresholds"), self.labels)
        if not isinstance(self.learned.get("separator", ""), str):
            raise TypeError("separator")

    def learn_foreign(self, content: dict[str, Any], folder: Any) -> None:
        """Find out from a config.json whether a row may have several labels."""
        if content.get("problem_type") == "multi_label_classification":
            self.learned = {"multi_label": True}

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """One sequence per text."""
        return encode_texts(self.coder, rows, self.target())

    def target(self) -> Target:
        """A function from a row to the id of its label, or to the ids and weights of its labels."""
        numbers = {label: np.array(n, np.int64) for n, label in enumerate(self.labels)}
        if not self.has_sets:
            return lambda row: None if row.label is None else numbers.get(row.label)

        def ids_and_weights(row: TextRow) -> np.ndarray | None:
            own = None if row.labels is None else [(numbers[label], 1) for label in row.labels]
            return None if own is None else np.array(own, np.float32).reshape(-1, 2)

        return ids_and_weights

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map to the labels."""
        head = LabelSetHead if self.has_sets else ClassHead
        return head(width, len(self.labels), dropout=dropout, has_bias=has_bias)

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Probabilities."""
        return 1 / (1 + np.exp(-output)) if self.has_sets else softmax(output)

    def decode(self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]) -> Predicted:
        """The most likely label, or all labels whose probability is high enough."""
        (chances,) = outputs
        probabilities = dict(zip(self.labels, map(float, chances), strict=True))
        chosen = np.flatnonzero(decide(chances[None], self._limits, is_one=not self.has_sets))
        names = [self.labels[index] for index in chosen]
        if not self.has_sets:
            return Label(names[0], probabilities[names[0]], probabilities)
        return Labels(tuple(sorted(names, key=lambda name: -probabilities[name])), probabilities)

    @property
    def _limits(self) -> np.ndarray:
        """The threshold of each label."""
        chosen = self.learned.get("thresholds")
        if chosen is None:
            return default_thresholds(len(self.labels), is_one=not self.has_sets)
        return np.array([chosen[label] for label in self.labels])

    @property
    def own_k(self) -> int:
        """One label; as many as reach their thresholds if a row may have several."""
        return 0 if self.has_sets else 1

    def with_threshold(self, threshold: float) -> Self:
        """The task with the same threshold for every label."""
        if not self.has_sets:
            return super().with_threshold(threshold)
        task = copy(self)
        task.learned = {**self.learned, "thresholds": dict.fromkeys(self.labels, threshold)}
        return task

    def _ranked(self, prediction: Predicted, k: int) -> list[tuple[str, float]]:
        """The predicted labels (with k = own_k), or the `k` most likely ones."""
        if k == self.own_k:
            return [(name, prediction.probabilities[name]) for name in prediction.labels]
        return ranked_values(prediction.probabilities.items(), k)

    def prediction_line(
        self, prediction: Predicted, *, k: int = 1, has_chances: bool = False
    ) -> str:
        """The labels; several are separated as in the training rows."""
        separator = self.learned.get("separator", LISTS) if self.has_sets else " "
        between = ";" if separator == LISTS else separator
        return value_line(self._ranked(prediction, k), has_chances, between)

    def prediction_json(self, prediction: Predicted) -> Any:
        """The label with its probability, or several, and the probabilities of all labels."""
        if not self.has_sets:
            return super().prediction_json(prediction)
        return {
            "labels": [
                {"label": name, "probability": chance}
                for name, chance in self._ranked(prediction, self.own_k)
            ],
            "probabilities": prediction.probabilities,
        }

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The labels with their probabilities, or the probabilities of all."""
        return label_columns(self.labels, k, has_sets=self.has_sets)

    def prediction_cells(self, prediction: Predicted, k: int = 1) -> list[Any]:
        """The cells of these columns."""
        chosen = self._ranked(prediction, self.own_k if k < 0 else k)
        chances = [*prediction.probabilities.values()] if k < 0 else []
        return label_cells(chosen, chances, self.labels, k, has_sets=self.has_sets)

    # ---- scores -------------------------------------------------------------------------------

    def measure(self, rows: Several[TextRow], predictions: Several[Predicted]) -> dict[str, float]:
        """Accuracy, Matthews correlation and F1: macro and, of two labels, that of the second.

        Sets of labels have F1 (micro, macro, weighted) and the accuracy of whole sets.
        """
        gold, said = _names(rows, predictions)
        scores = {"accuracy": metrics.accuracy(gold, said)}
        if self.has_sets:
            means = metrics.averages(self._classes(rows, predictions))
            own = {f"{name}_f1": means[name]["f1"] for name in ("micro", "macro", "weighted")}
            return own | scores
        if len(self.labels) == 2:
            scores["f1"] = metrics.binary_f1(gold, said, self.labels[1])
        scores["macro_f1"] = metrics.f1(gold, said, "macro")
        scores["matthews"] = metrics.matthews(gold, said)
        return scores

    def metric_names(self, rows: Several[Any]) -> dict[str, str]:
        """The same names, except for the F1 of the second of two labels."""
        if self.has_sets:
            return {name: name for name in ("micro_f1", "macro_f1", "weighted_f1", "accuracy")}
        return {"f1": "binary_f1"} | {n: n for n in ("accuracy", "macro_f1", "matthews")}

    def explain(self, rows: Several[TextRow], predictions: Several[Predicted]) -> dict[str, Any]:
        """The scores of each label, that of the most frequent one, and the confusion matrix."""
        gold, said = _names(rows, predictions)
        classes = self._classes(rows, predictions)
        confusion = {}
        if not self.has_sets:
            counts = metrics.confusion_matrix(gold, said, self.labels).counts
            confusion = {"confusion": counts.tolist()}
        return {
            "labels": list(self.labels),
            **confusion,
            "classes": [one.to_dict() for one in classes],
            "averages": metrics.averages(classes),
            "calibration": self._calibration(rows, predictions),
            **beside_majority(gold, said),
        }

    def _classes(
        self, rows: Several[TextRow], predictions: Several[Predicted]
    ) -> list[metrics.ClassScore]:
        is_true_NC = self.truths([row.label_set for row in rows])
        is_said_NC = self.truths([one.labels for one in predictions])
        return metrics.label_set_scores(is_true_NC, is_said_NC, self.labels)

    def _calibration(
        self, rows: Several[TextRow], predictions: Several[Predicted]
    ) -> dict[str, float]:
        """How far the probabilities agree with the labels; some rows at a time."""
        found = metrics.Reliability()
        for first in range(0, len(rows), _AT_ONCE):
            own = slice(first, first + _AT_ONCE)
            chances = np.array([[*one.probabilities.values()] for one in predictions[own]])
            is_true = self.truths([row.label_set for row in rows[own]])
            found.add(chances, is_true, is_one=not self.has_sets)
        return found.to_dict()

    def truths(self, label_sets: Several[Several[str]]) -> np.ndarray:
        """Which labels the rows have, (N, C)."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        is_true_NC = np.zeros((len(label_sets), len(numbers)), np.bool_)
        for row, labels in zip(is_true_NC, label_sets, strict=True):
            row[[numbers[label] for label in labels]] = True
        return is_true_NC

    # ---- held-out training rows ---------------------------------------------------------------

    def hold_out(self, rows: list[Any]) -> tuple[list[Any], list[Any]]:
        """Split training rows, if probabilities or thresholds are to be adjusted."""
        if not self.config.holds_out:
            return rows, []
        chosen = HoldOut(self.config.calibration_share)
        parts: tuple[list[Any], list[Any]] = ([], [])
        for row in rows:
            parts[chosen.takes(row.label_set)].append(row)
        chosen.check(len(parts[1]))
        return parts

    def adjust(self, held: Encoded, dev: Encoded, note: Note) -> None:
        """Calibrate the probabilities and choose thresholds on held-out training rows."""
        calibration.adjust(self, held, dev, note)


def _names(rows: Several[TextRow], predictions: Several[Predicted]) -> tuple[list[str], list[str]]:
    """The labels of each row as one name, and the predicted ones."""
    return [_name(row.label_set) for row in rows], [_name(one.labels) for one in predictions]


def _name(labels: Several[str]) -> str:
    return ", ".join(sorted(labels)) or "no label"


class Pairs(Classify):
    """One label for each pair of texts, or any number of labels.

    task = sememe.Pairs("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/follows")
    """

    kind = "pairs"
    reads = "texts"

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """Both texts in one sequence, or in both orders."""
        both = self.config.both_orders == "yes"
        return encode_texts(self.coder, rows, self.target(), both_orders=both)

    def score_pairs(self, pairs: Several[tuple[str, str]], *, label: str = "") -> np.ndarray:
        """The probability of a label, by default of the one that says yes."""
        label = label or _positive(self.labels)
        if label not in self.labels:
            raise OptionError(
                f"The pairs have no label {label!r}; they have {', '.join(self.labels)}."
            )
        found = self.predict_rows(pair_rows(pairs))
        return np.array([one.probabilities[label] for one in found])


def _positive(labels: Several[str]) -> str:
    """The label that says that two texts belong together; of two others the second."""
    known = {label.lower().replace("_", " "): label for label in labels}
    if found := next((known[word] for word in _YES if word in known), ""):
        return found
    if len(labels) == 2:
        return labels[1]
    raise OptionError(
        f"Which label says that two texts fit is not clear; name one of {', '.join(labels)}."
    )


_YES = (
    "yes", "true", "1", "entailment", "relevant", "match", "same", "duplicate", "equivalent",
    "similar", "paraphrase", "positive", "是", "相关", "匹配", "相似", "蕴含",
)  # fmt: skip
