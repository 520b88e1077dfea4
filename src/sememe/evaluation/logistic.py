"""Multinomial logistic regression, the linear model through which vectors are asked.

N rows, D features, C labels.
"""

from __future__ import annotations

import numpy as np

from sememe.evaluation.solving import lowest


def fit_logistic(
    features_ND: np.ndarray,
    labels_N: np.ndarray,
    num_labels: int,
    *,
    penalty: float = 1.0,
    num_steps: int = 300,
) -> np.ndarray:
    """The weights (D + 1, C), the last row for a constant.

    The squares of all but that row, times `penalty`, are added to twice the loss.
    """
    from scipy.special import log_softmax

    inputs_ND = _with_one(features_ND)
    shape = inputs_ND.shape[1], num_labels
    is_label_NC = np.eye(num_labels)[labels_N]
    is_weight_D1 = np.append(np.ones(shape[0] - 1), 0.0)[:, None]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights_DC = flat.reshape(shape)
        logs_NC = log_softmax(inputs_ND @ weights_DC, axis=1)
        decayed_DC = penalty * is_weight_D1 * weights_DC
        value = 0.5 * (decayed_DC * weights_DC).sum() - (is_label_NC * logs_NC).sum()
        gradient_DC = inputs_ND.T @ (np.exp(logs_NC) - is_label_NC) + decayed_DC
        return float(value), gradient_DC.ravel()

    return lowest(loss, np.zeros(shape).ravel(), num_steps=num_steps).reshape(shape)


def logistic_scores(features_ND: np.ndarray, weights_DC: np.ndarray) -> np.ndarray:
    """The scores of the labels, (N, C)."""
    return _with_one(features_ND) @ weights_DC


def _with_one(features_ND: np.ndarray) -> np.ndarray:
    return np.concatenate([features_ND, np.ones((len(features_ND), 1))], 1)
