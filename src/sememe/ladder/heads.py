"""The same light head for every rung: a linear softmax on frozen vectors, solved exactly.

Rows (N, D) of vectors, dense or sparse, with classes in; weights out. The loss is convex, so that
the result depends only on the rows. Rows may compete with each other: the words of a passage, of
which one starts an answer. C classes, G groups of competing rows.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, diags, hstack
from threadpoolctl import threadpool_limits

PENALTIES = (0.01, 0.1, 1.0)
_STEPS = 80
_FOLD = 5  # every fifth row is held out to choose the penalty
_MOST_CHOOSING = 4_000  # rows


class Scaling(NamedTuple):
    """Scales vectors of any kind to rows of about unit length."""

    mean_D: np.ndarray | None
    scale_D: np.ndarray | None
    columns: np.ndarray | None = None  # for sparse rows: the columns that the head was trained with

    def __call__(self, rows_ND: Any) -> Any:
        """Scale rows; sparse ones are normalized to unit length."""
        if self.mean_D is None:
            from sklearn.preprocessing import normalize

            return normalize(rows_ND)[:, self.columns]
        return ((rows_ND - self.mean_D) * self.scale_D).astype(np.float32)


def scaling_of(rows_ND: Any) -> Scaling:
    """Mean 0 and variance 1 in every dimension, divided by the root of their number."""
    if not isinstance(rows_ND, np.ndarray):
        return Scaling(None, None, np.unique(rows_ND.indices))
    mean_D, spread_D = rows_ND.mean(0, dtype=np.float64), rows_ND.std(0, dtype=np.float64)
    is_alive_D = spread_D > 1e-9
    scale_D = np.where(is_alive_D, 1 / np.where(is_alive_D, spread_D, 1), 0.0)
    scale_D /= max(1.0, float(np.sqrt(is_alive_D.sum())))
    return Scaling(mean_D.astype(np.float32), scale_D.astype(np.float32))


# ---- one class for each row ---------------------------------------------------------------------


class TrainedHead(NamedTuple):
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
) -> TrainedHead:
    """Multinomial logistic regression; without a penalty, held-out rows choose it."""
    scaling = scaling_of(rows_ND)
    scaled_ND = scaling(rows_ND)
    penalty = penalty or _chosen_penalty(scaled_ND, classes_N, num_classes)
    return TrainedHead(scaling, *_solve(scaled_ND, classes_N, num_classes, penalty), penalty)


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
    """The weights (D, C) and the bias (C,); a class without rows is never predicted."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    weights_DC = np.zeros((rows_ND.shape[1], num_classes), np.float32)
    bias_C = np.full(num_classes, -np.inf)
    seen, counts = np.unique(classes_N, return_counts=True)
    bias_C[seen] = np.log(counts)
    if len(seen) < 2 or not rows_ND.shape[1]:  # only the class frequencies are known
        return weights_DC, bias_C
    bias_C[seen] = 0.0
    # For two classes scikit-learn has one column of weights, whose squares count twice as much.
    head = LogisticRegression(C=(2 if len(seen) == 2 else 1) / penalty, max_iter=_STEPS)
    # BLAS threads would double the time of its thousand small products.
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        head.fit(rows_ND, classes_N)
    columns = seen[1:] if len(seen) == 2 else seen
    weights_DC[:, columns], bias_C[columns] = head.coef_.T, head.intercept_
    return weights_DC, bias_C


# ---- one row of each group ----------------------------------------------------------------------


class Chooser(NamedTuple):
    """A trained head that scores the rows of a group."""

    scaling: Scaling
    weights_D: np.ndarray

    def scores(self, rows_ND: Any) -> np.ndarray:
        """The score of each row, (N,)."""
        return np.asarray(self.scaling(rows_ND) @ self.weights_D).ravel()


def fit_choices(
    rows_ND: Any, firsts_G: np.ndarray, right_G: np.ndarray, penalty: float = PENALTIES[1]
) -> Chooser:
    """A softmax over the rows of each group (conditional logistic regression).

    Groups are concatenated, their first rows at `firsts_G`; `right_G` are the indices of the right
    rows over all groups.
    """
    scaling = scaling_of(rows_ND)
    rows_ND = scaling(rows_ND)
    columns_DN = rows_ND.T
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

    with threadpool_limits(1, user_api="blas"):
        start_D = np.zeros(rows_ND.shape[1])
        found = minimize(loss, start_D, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return Chooser(scaling, found.x.astype(np.float32))


# ---- rows from words ----------------------------------------------------------------------------


def pooled(words_ND: Any, sizes: Sequence[int]) -> Any:
    """The mean over the words of each text, (texts, D); zeros if a text has none."""
    sizes_T = np.asarray(sizes, np.int64)
    shares = np.repeat(1 / np.maximum(sizes_T, 1), sizes_T).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(sizes_T)])
    averaging_TN = csr_matrix(
        (shares, np.arange(starts[-1]), starts), shape=(len(sizes_T), int(starts[-1]))
    )
    found = averaging_TN @ words_ND
    return np.asarray(found) if isinstance(words_ND, np.ndarray) else found


def compared(first_TD: Any, second_TD: Any) -> Any:
    """Features of a pair of texts: both vectors, their absolute difference and their product."""
    is_dense = isinstance(first_TD, np.ndarray)
    product_TD = first_TD * second_TD if is_dense else first_TD.multiply(second_TD)
    return beside([first_TD, second_TD, abs(first_TD - second_TD), product_TD])


def windowed(words_ND: Any, sizes: Sequence[int], reach: int) -> Any:
    """Each word concatenated with its neighbors, (N, (2 reach + 1) D); zeros past the ends."""
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
    return (diags(is_kept_N.astype(np.float32)) @ rows_ND).tocsr()


def beside(parts: Sequence[Any]) -> Any:
    """Matrices concatenated by columns; sparse if one of them is."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts, 1)
    return hstack([csr_matrix(part) for part in parts], "csr")
