"""Probabilities and thresholds of the classifier, adjusted on lines held out of its training.

The temperature becomes part of the labels' rows, so that files of Facebook's program have it too;
these rows have no bias that could be shifted. Thresholds are in sememe.json. N lines, L labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.examples.labelled.splitting import HoldOut
from sememe.examples.windows import build_tree
from sememe.metrics.adjustment import adjusted
from sememe.metrics.decisions import Scaling, fit_scaling
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig
from sememe.models.fasttext.classifier.lines import label_name
from sememe.models.fasttext.classifier.prediction import score
from sememe.models.fitting import Request

if TYPE_CHECKING:
    from sememe.models.fasttext.classifier.model import FastTextClassifier

_MOST_SCORES = 20_000_000  # of lines and labels that are compared at once
_MANY_LINES = 4_096


class HeldLines:
    """Labelled lines that are held out of a training."""

    def __init__(self, config: FastTextClassifierConfig) -> None:
        self._chosen, self._prefix = HoldOut(config.calibration_share), config.label_prefix
        self._start = config.label_prefix.encode()
        self.lines: list[bytes] = []

    def split(self, block: bytes) -> bytes:
        """Take the held-out lines of a block; return the others."""
        kept: list[bytes] = []
        for line in block.removesuffix(b"\n").split(b"\n"):
            words = [word for word in line.split() if word.startswith(self._start)]
            labels = [
                label_name(word.decode("utf-8", "surrogateescape"), self._prefix) for word in words
            ]
            (self.lines if labels and self._chosen.takes(labels) else kept).append(line)
        return b"\n".join([*kept, b""])

    def check(self) -> None:
        """Raise an error if the lines are too few."""
        self._chosen.check(len(self.lines))

    def blocks(self, most: int) -> list[bytes]:
        """The first lines, at most `most`, as blocks."""
        lines = self.lines[:most]
        return [
            b"\n".join([*lines[first : first + _MANY_LINES], b""])
            for first in range(0, len(lines), _MANY_LINES)
        ]


def adjust(model: FastTextClassifier, held: HeldLines, request: Request) -> None:
    """Calibrate a model's probabilities, and choose its thresholds, as its options say."""
    num_labels = len(model.weights.labels)
    blocks = held.blocks(max(100, _MOST_SCORES // num_labels))
    parts = [model.predictor.scores(block) for block in blocks]
    scores_NL, is_true_NL = (np.concatenate(own) for own in zip(*parts, strict=True))

    def fit() -> Scaling:
        scores, is_true = scores_NL, is_true_NL
        if model.config.loss == "hierarchical":
            scores, is_true = _on_paths(model, scores_NL, is_true_NL)
        is_softmax = model.config.loss == "softmax"
        return fit_scaling(scores[None], is_true, is_one=is_softmax)

    def chances(scaling: Scaling) -> np.ndarray:
        found = scaled(model, scaling).predictor
        own = [found.predict(block, 1, 0.0, has_all=True) for block in blocks]
        return np.concatenate([one.all_chances_BL[one.is_asked] for one in own])  # type: ignore

    def measure(scaling: Scaling) -> dict[str, float]:
        changed = scaled(model, scaling)
        if request.dev is not None:
            return changed.evaluate(request.dev).calibration
        found = changed.predictor.predict_all(blocks, 1, 0.0, has_all=True)
        is_one = model.config.is_softmax
        return score(found, model.labels, 1, 0.0, "", is_one=is_one).calibration

    scaling, learned = adjusted(
        model.config, model.labels, is_true_NL, is_one=not model.has_sets, fit=fit,
        chances=chances, measure=measure, note=request.reporter.note,
        measured_on="held-out training" if request.dev is None else "dev",
    )  # fmt: skip
    model.adopt(scaled(model, scaling).weights)
    model.learned = {**model.learned, **learned}


def scaled(model: FastTextClassifier, scaling: Scaling) -> FastTextClassifier:
    """A model whose scores are multiplied by the scale."""
    found = type(model)(model.config)
    found.text = model.text
    output: Any = model.weights.output
    found.adopt(replace(model.weights, output=output * np.float32(scaling.scale)))
    return found


def _on_paths(
    model: FastTextClassifier, scores_NL: np.ndarray, is_true_NL: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the decisions on the paths to the true labels, and what is right there."""
    tree = build_tree(np.asarray(model.weights.labels.counts))
    lines, labels = np.nonzero(is_true_NL)
    sizes = tree.starts[labels + 1] - tree.starts[labels]
    first = np.repeat(tree.starts[labels] - np.cumsum(sizes) + sizes, sizes)
    places = first + np.arange(len(first))
    scores = scores_NL[np.repeat(lines, sizes), tree.nodes[places]]
    return scores[:, None], tree.codes[places][:, None] == 1
