"""How well probabilities agree with what happens: calibration error, Brier score, log loss.

N rows, C classes. Sums are added up part by part, so that any number of rows can be scored.
"""

from collections.abc import Mapping

import numpy as np

NUM_BINS = 15
_LEAST = 1e-15  # a probability of 0 would have an infinite loss


class Reliability:
    """The calibration of probabilities, of one label per row or of several.

    The expected calibration error (Naeini et al. 2015; Guo et al. 2017) compares probabilities with
    frequencies in 15 bins of equal width: those of the most likely label of each row; with several
    labels per row, those of every label.
    """

    def __init__(self) -> None:
        self._bins = np.zeros((3, NUM_BINS))  # events, sums of probabilities, true ones
        self._brier, self._log_loss = [0.0, 0], [0.0, 0]  # sum, and number of its parts

    def add(self, probabilities_NC: np.ndarray, is_true_NC: np.ndarray, *, is_one: bool) -> None:
        """Add rows with their probabilities; `is_one`: they have one label each."""
        chances = np.asarray(probabilities_NC, np.float64)
        if is_one:
            best = (np.arange(len(chances)), chances.argmax(1))
            self._count(chances[best], is_true_NC[best])
            of_truth = chances[is_true_NC]
        else:
            self._count(chances.ravel(), is_true_NC.ravel())
            of_truth = np.where(is_true_NC, chances, 1 - chances)
        losses, errors = -np.log(np.maximum(of_truth, _LEAST)), (chances - is_true_NC) ** 2
        for sums, parts, num in (
            (self._brier, errors, len(chances) if is_one else chances.size),
            (self._log_loss, losses, losses.size),
        ):
            sums[0] += float(parts.sum())
            sums[1] += num

    def _count(self, chances: np.ndarray, is_true: np.ndarray) -> None:
        places = np.clip(np.ceil(chances * NUM_BINS).astype(np.int64) - 1, 0, NUM_BINS - 1)
        for row, weights in zip(self._bins, (None, chances, is_true), strict=True):
            row += np.bincount(places, weights, minlength=NUM_BINS)

    def to_dict(self) -> dict[str, float]:
        """ECE, Brier score (summed over the classes of a row with one label) and log loss."""
        num_events, expected, happened = self._bins
        return {
            "ece": float(np.abs(expected - happened).sum() / max(1.0, num_events.sum())),
            "brier": self._brier[0] / max(1, self._brier[1]),
            "log_loss": self._log_loss[0] / max(1, self._log_loss[1]),
        }


def calibration_text(scores: Mapping[str, float]) -> str:
    """The result of `Reliability.to_dict` in words; nothing for nothing."""
    words = {"ece": "calibration error", "brier": "Brier score", "log_loss": "log loss"}
    return ", ".join(f"{words[name]} {value:.4f}" for name, value in scores.items())


def calibration_lines(name: str, scores: Mapping[str, float]) -> list[str]:
    """A line that says how good the probabilities of the rows `name` are; none without scores."""
    return [f"{name}, probabilities: {calibration_text(scores)}"] if scores else []
