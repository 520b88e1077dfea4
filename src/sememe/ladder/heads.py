"""One and the same light head for every rung: a linear softmax on frozen vectors, solved exactly.

Rows (N, D) of vectors, dense or sparse, with classes in; weights out. The loss is convex, so that
nothing but the rows decides. `Choices` are rows that compete with each other: the words of a
passage, of which one starts an answer. C classes, G groups of competing rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sememe.evaluation.solving import lowest

PENALTIES = (0.01, 0.1, 1.0)
_STEPS = 80
_FOLD = 5  # every fifth row chooses the penalty
_MOST_CHOOSING = 4_000  # rows


class Scaling(NamedTuple):
    """What makes rows of about length one of vectors of any kind."""

    mean_D: np.ndarray | None
    scale_D: np.ndarray | None
    columns: np.ndarray | None = None  # of sparse rows: those that the head was trained with

    def __call__(self, rows_ND: Any) -> Any:
        """Scale rows; sparse ones are brought to length one each."""
        if self.mean_D is None:
            return _unit_sparse(rows_ND)[:, self.columns]
        return ((rows_ND - self.mean_D) * self.scale_D).astype(np.float32)


def scaling_of(rows_ND: Any) -> Scaling:
    """Mean 0 and spread 1 in every dimension, over the root of their number."""
    if not isinstance(rows_ND, np.ndarray):
        return Scaling(None, None, np.unique(rows_ND.indices))
    mean_D, spread_D = rows_ND.mean(0, dtype=np.float64), rows_ND.std(0, dtype=np.float64)
    is_alive_D = spread_D > 1e-9
    scale_D = np.where(is_alive_D, 1 / np.where(is_alive_D, spread_D, 1), 0.0)
    scale_D /= max(1.0, float(np.sqrt(is_alive_D.sum())))
    return Scaling(mean_D.astype(np.float32), scale_D.astype(np.float32))


def _unit_sparse(rows_ND: Any) -> Any:
    from scipy.sparse import diags

    lengths_N = np.sqrt(np.asarray(rows_ND.multiply(rows_ND).sum(1)).ravel())
    inverse_N = 1 / np.where(lengths_N > 0, lengths_N, 1)
    return (diags(inverse_N) @ rows_ND).astype(np.float32).tocsr()


# ---- one class for each row ---------------------------------------------------------------------


class Head(NamedTuple):
    """A trained head for classes."""

    scaling: Scaling
    weights_DC: np.ndarray  # float32
    bias_C: np.ndarray
    penalty: float

    def scores(self, rows_ND: Any) -> np.ndarray:
        """The score of every class for every row, (N, C)."""
        return np.asarray(self.scaling(rows_ND) @ self.weights_DC) + self.bias_C


def fit_classes(
    rows_ND: Any, classes_N: np.ndarray, num_classes: int, penalty: float | None = None
) -> Head:
    """Multinomial logistic regression; where none is given, rows left out choose the penalty."""
    scaling = scaling_of(rows_ND)
    scaled_ND = scaling(rows_ND)
    penalty = penalty or _chosen_penalty(scaled_ND, classes_N, num_classes)
    return Head(scaling, *_solve(scaled_ND, classes_N, num_classes, penalty), penalty)


def _chosen_penalty(scaled_ND: Any, classes_N: np.ndarray, num_classes: int) -> float:
    some = np.arange(len(classes_N))[:: max(1, len(classes_N) // _MOST_CHOOSING)]
    dev, rest = some[_FOLD - 1 :: _FOLD], some[np.arange(len(some)) % _FOLD != _FOLD - 1]

    def right(penalty: float) -> float:
        weights_DC, bias_C = _solve(scaled_ND[rest], classes_N[rest], num_classes, penalty)
        said_N = (np.asarray(scaled_ND[dev] @ weights_DC) + bias_C).argmax(1)
        return float((said_N == classes_N[dev]).mean())

    return max(PENALTIES, key=right) if len(dev) > 1 else PENALTIES[1]


def _solve(
    rows_ND: Any, classes_N: np.ndarray, num_classes: int, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import log_softmax

    num_dims = rows_ND.shape[1]
    index_N = np.arange(len(classes_N))
    columns_DN = rows_ND.T

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        all_DC = flat.reshape(num_dims + 1, num_classes)
        weights_DC = all_DC[:-1].astype(np.float32)
        logs_NC = log_softmax(np.asarray(rows_ND @ weights_DC) + all_DC[-1], axis=1)
        value = penalty / 2 * float((all_DC[:-1] ** 2).sum()) - float(
            logs_NC[index_N, classes_N].sum()
        )
        errors_NC = np.exp(logs_NC)
        errors_NC[index_N, classes_N] -= 1
        gradient_DC = np.empty_like(all_DC)
        gradient_DC[:-1] = np.asarray(columns_DN @ errors_NC.astype(np.float32))
        gradient_DC[:-1] += penalty * all_DC[:-1]
        gradient_DC[-1] = errors_NC.sum(0)
        return value, gradient_DC.ravel()

    start = np.zeros((num_dims + 1) * num_classes)
    all_DC = lowest(loss, start, num_steps=_STEPS).reshape(num_dims + 1, num_classes)
    return all_DC[:-1].astype(np.float32), all_DC[-1]


# ---- one row of each group ----------------------------------------------------------------------


class Choices(NamedTuple):
    """Rows in groups that lie end to end, and the row of each group that is right."""

    rows_ND: Any
    firsts_G: np.ndarray
    right_G: np.ndarray  # rows counted from 0 over all groups


class Chooser(NamedTuple):
    """A trained head that scores the rows of a group."""

    scaling: Scaling
    weights_D: np.ndarray

    def scores(self, rows_ND: Any) -> np.ndarray:
        """The score of each row, (N,)."""
        return np.asarray(self.scaling(rows_ND) @ self.weights_D).ravel()


def fit_choices(choices: Choices, penalty: float = PENALTIES[1]) -> Chooser:
    """A softmax over the rows of each group (a conditional logistic regression)."""
    scaling = scaling_of(choices.rows_ND)
    rows_ND = scaling(choices.rows_ND)
    columns_DN, firsts_G, right_G = rows_ND.T, choices.firsts_G, choices.right_G
    sizes_G = np.diff(np.append(firsts_G, rows_ND.shape[0]))

    def loss(weights_D: np.ndarray) -> tuple[float, np.ndarray]:
        scores_N = np.asarray(rows_ND @ weights_D.astype(np.float32)).astype(np.float64)
        scores_N -= np.repeat(np.maximum.reduceat(scores_N, firsts_G), sizes_G)
        powers_N = np.exp(scores_N)
        sums_G = np.add.reduceat(powers_N, firsts_G)
        value = float(np.log(sums_G).sum() - scores_N[right_G].sum())
        errors_N = powers_N / np.repeat(sums_G, sizes_G)
        errors_N[right_G] -= 1
        gradient_D = np.asarray(columns_DN @ errors_N.astype(np.float32)) + penalty * weights_D
        return value + penalty / 2 * float(weights_D @ weights_D), gradient_D.astype(np.float64)

    found_D = lowest(loss, np.zeros(rows_ND.shape[1]), num_steps=_STEPS)
    return Chooser(scaling, found_D.astype(np.float32))


# ---- rows from words ----------------------------------------------------------------------------


def pooled(words_ND: Any, sizes: Sequence[int]) -> Any:
    """The mean over the words of each text, (texts, D); zeros where a text has none."""
    from scipy.sparse import csr_matrix

    sizes_T = np.asarray(sizes, np.int64)
    shares = np.repeat(1 / np.maximum(sizes_T, 1), sizes_T).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(sizes_T)])
    averaging_TN = csr_matrix(
        (shares, np.arange(starts[-1]), starts), shape=(len(sizes_T), int(starts[-1]))
    )
    found = averaging_TN @ words_ND
    return np.asarray(found) if isinstance(words_ND, np.ndarray) else found


def compared(first_TD: Any, second_TD: Any) -> Any:
    """Two texts side by side: both, their distance in every dimension, and their product."""
    if isinstance(first_TD, np.ndarray):
        parts = [first_TD, second_TD, np.abs(first_TD - second_TD), first_TD * second_TD]
        return np.concatenate(parts, 1)
    from scipy.sparse import hstack

    return hstack(
        [first_TD, second_TD, abs(first_TD - second_TD), first_TD.multiply(second_TD)], "csr"
    )


def windowed(words_ND: Any, sizes: Sequence[int], reach: int) -> Any:
    """Each word with its neighbors side by side, (N, (2 reach + 1) D); zeros past the ends."""
    num = int(np.sum(sizes))
    texts_N = np.repeat(np.arange(len(sizes)), sizes)
    parts = []
    for offset in range(-reach, reach + 1):
        places_N = np.arange(num) + offset
        inside_N = (places_N >= 0) & (places_N < num)
        places_N = np.clip(places_N, 0, max(0, num - 1))
        inside_N &= texts_N[places_N] == texts_N if num else inside_N
        parts.append(_masked(words_ND[places_N], inside_N))
    return beside(parts)


def _masked(rows_ND: Any, is_kept_N: np.ndarray) -> Any:
    if isinstance(rows_ND, np.ndarray):
        return rows_ND * is_kept_N[:, None]
    from scipy.sparse import diags

    return (diags(is_kept_N.astype(np.float32)) @ rows_ND).tocsr()


def beside(parts: Sequence[Any]) -> Any:
    """Matrices side by side; one sparse one makes all of them sparse."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts, 1)
    from scipy.sparse import csr_matrix, hstack

    return hstack([csr_matrix(part) for part in parts], "csr")
