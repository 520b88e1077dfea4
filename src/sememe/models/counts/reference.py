"""The count model in plain NumPy on dense matrices: what the fast code is tested against."""

import numpy as np


def ppmi_reference(counts: np.ndarray, shift: float = 1.0, smoothing: float = 1.0) -> np.ndarray:
    """Shifted positive mutual information, context counts smoothed (Levy et al. 2015)."""
    counts = counts.astype(np.float64)
    chance = counts / counts.sum()
    of_row = chance.sum(axis=1, keepdims=True)
    contexts = counts.sum(axis=0, keepdims=True) ** smoothing
    of_context = contexts / contexts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(chance / (of_row * of_context)) - np.log(shift)
    return np.where(counts > 0, np.maximum(information, 0), 0)


def decompose_reference(matrix: np.ndarray, dim: int, weight: float) -> np.ndarray:
    """U · S ** weight of the exact SVD; the sum of each column is not negative."""
    left, singular, _ = np.linalg.svd(matrix.astype(np.float64))
    vectors = left[:, :dim] * singular[:dim] ** weight
    return vectors * np.where(vectors.sum(axis=0) < 0, -1, 1)
