"""From scores to probabilities that can be trusted, and from these to decisions.

Temperature scaling (Guo et al. 2017) divides all scores by one number; Platt scaling (1999) also
shifts them. Both are fitted to rows that were not trained on, by their log loss. A threshold per
label then decides: with several labels per row, all labels that reach theirs; with one, the label
whose probability is highest in relation to its threshold, which for two labels is the same rule.

N rows, C classes, M members of an ensemble, whose probabilities are averaged.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LEAST_ROWS = 3  # of a label; fewer say nothing about its threshold
MOST_CLASSES = 200  # whose thresholds are searched if they exclude each other
_ROUNDS = 5
_LONGEST = 3.0  # log of the largest change of a scale: 20 times
_LEAST = 1e-12


class Scaling(NamedTuple):
    """What scores are multiplied by (one over the temperature), and what is added then."""

    scale: float = 1.0
    bias: float = 0.0


def probabilities(scores_MNC: np.ndarray, scaling: Scaling, *, is_one: bool) -> np.ndarray:
    """The mean of the members' probabilities, (N, C): softmax (one label per row) or sigmoid."""
    scores = scaling.scale * np.asarray(scores_MNC, np.float64) + scaling.bias
    if not is_one:
        return (1 / (1 + np.exp(-np.clip(scores, -500, 500)))).mean(0)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return (shares / shares.sum(-1, keepdims=True)).mean(0)


def fit_scaling(
    scores_MNC: np.ndarray, is_true_NC: np.ndarray, *, is_one: bool, has_bias: bool = False
) -> Scaling:
    """The scale, and with `has_bias` the shift, that minimize the log loss of these rows.

    Targets are a little below 1 and above 0, as Platt recommends, because separable rows would
    otherwise need infinite scores.
    """
    from scipy.optimize import minimize

    num_rows, num_classes = is_true_NC.shape
    if is_one:
        doubt = 1 / (num_rows + 2)
        targets = (1 - doubt) * is_true_NC + doubt / num_classes
    else:
        num_true = int(is_true_NC.sum())
        above, below = 1 / (num_true + 2), 1 / (is_true_NC.size - num_true + 2)
        targets = np.where(is_true_NC, 1 - above, below)

    def scaling_of(options: np.ndarray) -> Scaling:
        scale, *bias = options.tolist()
        return Scaling(math.exp(min(max(scale, -_LONGEST), _LONGEST)), *bias)

    def loss(options: np.ndarray) -> float:
        chances = probabilities(scores_MNC, scaling_of(options), is_one=is_one)
        parts = targets * np.log(np.maximum(chances, _LEAST))
        if not is_one:
            parts += (1 - targets) * np.log(np.maximum(1 - chances, _LEAST))
        return -float(parts.sum()) / num_rows

    start = np.zeros(1 + has_bias)
    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-8})
    return scaling_of(found.x) if loss(found.x) < loss(start) else Scaling()


def default_thresholds(num_classes: int, *, is_one: bool) -> np.ndarray:
    """The thresholds of plain decisions: the most likely label, or all from one half on."""
    return np.full(num_classes, 1 / num_classes if is_one else 0.5)


def check_thresholds(thresholds: Any, labels: Sequence[str]) -> None:
    """Raise ValueError unless these are thresholds of all labels, or None, as a file has them."""
    if thresholds is None:
        return
    if not all(0 < float(thresholds[label]) < math.inf for label in labels):
        raise ValueError("thresholds must be positive")


def decide(chances_NC: np.ndarray, thresholds_C: np.ndarray, *, is_one: bool) -> np.ndarray:
    """Which labels are predicted, (N, C) of truths."""
    if not is_one:
        return chances_NC >= thresholds_C
    best_N = (chances_NC / thresholds_C).argmax(1)
    return best_N[:, None] == np.arange(chances_NC.shape[1])


def best_thresholds(chances_NC: np.ndarray, is_true_NC: np.ndarray, *, is_one: bool) -> np.ndarray:
    """The thresholds with the best F1 of each label; with one label per row, with the best mean.

    Labels with fewer than three true rows keep the default.
    """
    thresholds = default_thresholds(chances_NC.shape[1], is_one=is_one)
    searched = np.flatnonzero(is_true_NC.sum(0) >= LEAST_ROWS)
    if not is_one:
        for label in searched:
            thresholds[label] = _best_cut(chances_NC[:, label], is_true_NC[:, label])
        return thresholds
    for _ in range(_ROUNDS):
        before = thresholds.copy()
        for label in searched:
            thresholds[label] = _best_share(chances_NC, is_true_NC, thresholds, int(label))
        if np.array_equal(before, thresholds):
            break
    return thresholds / thresholds.sum()


def _cuts(values: np.ndarray, order: np.ndarray, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Values between those of neighbors in falling order, and how many are above each.

    Nearest to `start` where several do the same: the middle of the gap that holds it is itself.
    """
    falling = np.concatenate([[np.inf], values[order], [0.0]])
    highs, lows = falling[:-1], falling[1:]
    num_above = np.flatnonzero(highs > lows)
    highs, lows = highs[num_above], lows[num_above]
    middles = np.where(np.isinf(highs), lows * 1.001 + _LEAST, (highs + lows) / 2)
    return np.where((lows < start) & (start <= highs), start, middles), num_above


def _best_cut(chances_N: np.ndarray, is_true_N: np.ndarray) -> float:
    order = np.argsort(-chances_N, kind="stable")
    cuts, num_above = _cuts(chances_N, order, 0.5)
    num_right = np.concatenate([[0], np.cumsum(is_true_N[order])])[num_above]
    scores = 2 * num_right / (num_above + is_true_N.sum())
    best = np.flatnonzero(scores >= scores.max() - 1e-12)
    return float(cuts[best[np.abs(cuts[best] - 0.5).argmin()]])


def _best_share(
    chances_NC: np.ndarray, is_true_NC: np.ndarray, thresholds_C: np.ndarray, label: int
) -> float:
    """The threshold of one label, given the others, with the best mean F1 over the labels."""
    shares = chances_NC / thresholds_C
    shares[:, label] = -np.inf
    other_N = shares.argmax(1)
    rows = np.arange(len(shares))
    # The label is predicted where its threshold is at most this.
    limits_N = chances_NC[:, label] / np.maximum(shares[rows, other_N], _LEAST)
    order = np.argsort(-limits_N, kind="stable")
    cuts, num_above = _cuts(limits_N, order, thresholds_C[label])
    # How many rows each label has, and how many of them rightly, as rows move to `label`.
    is_other = other_N[:, None] == np.arange(len(thresholds_C))
    predicted, right = (
        own.sum(0) - np.vstack([0 * own[:1], np.cumsum(own[order], 0)])[num_above]
        for own in (is_other.astype(np.int64), (is_other & is_true_NC).astype(np.int64))
    )
    predicted[:, label] = num_above
    right[:, label] = np.concatenate([[0], np.cumsum(is_true_NC[order, label])])[num_above]
    marked = predicted + is_true_NC.sum(0)
    scores = np.divide(2 * right, marked, out=np.zeros(marked.shape), where=marked > 0).mean(1)
    now = int(np.abs(cuts - thresholds_C[label]).argmin())
    best = int(scores.argmax())
    return float(cuts[best] if scores[best] > scores[now] + 1e-12 else thresholds_C[label])
