"""GloVe's updates in plain NumPy, simple and slow: what the kernel is tested against.

W holds the words' vectors and C those of their contexts (V, D), b and d their biases (V,), each
with its sums of squared steps. One cell of the co-occurrence matrix is one step of AdaGrad.
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np


@dataclass
class Parameters:
    """All parameters, or all sums of squared steps, which have the same shapes."""

    words: np.ndarray  # W
    contexts: np.ndarray  # C
    word_biases: np.ndarray
    context_biases: np.ndarray

    def zeros(self) -> Self:
        """Sums before the first step."""
        return type(self)(*(np.zeros_like(getattr(self, field.name)) for field in fields(self)))


def weight(count: float, x_max: float, alpha: float) -> float:
    """The weight of a cell (Pennington et al. 2014, 3, equation 9)."""
    return (count / x_max) ** alpha if count < x_max else 1.0


def difference(row: int, column: int, count: float, at: Parameters) -> float:
    """The model's value minus the logarithm of the count."""
    product = at.words[row] @ at.contexts[column]
    return product + at.word_biases[row] + at.context_biases[column] - np.log(count)


def loss(row: int, column: int, count: float, at: Parameters, x_max: float, alpha: float) -> float:
    """Half the weighted squared error of one cell, as the original program prints it."""
    return 0.5 * weight(count, x_max, alpha) * difference(row, column, count, at) ** 2


def train_cells(
    rows: np.ndarray, columns: np.ndarray, counts: np.ndarray, at: Parameters, sums: Parameters, *,
    x_max: float, alpha: float, rate: float, clip: float,
) -> float:  # fmt: skip
    """Visit the cells in the given order; return the sum of their losses before each step.

    As in the original program, the sums start at 1, they add the square of the step and not of the
    gradient, and the biases have a learning rate of 1 without clipping.
    """
    total = 0.0
    for row, column, count in zip(rows, columns, counts, strict=True):
        far = difference(row, column, count, at)
        pull = weight(count, x_max, alpha) * far
        total += 0.5 * pull * far
        for_word = rate * np.clip(pull * at.contexts[column], -clip, clip)
        for_context = rate * np.clip(pull * at.words[row], -clip, clip)
        _step(at.words, sums.words, row, for_word)
        _step(at.contexts, sums.contexts, column, for_context)
        _step(at.word_biases, sums.word_biases, row, pull)
        _step(at.context_biases, sums.context_biases, column, pull)
    return total


def _step(numbers: np.ndarray, sums: np.ndarray, place: int, step: np.ndarray | float) -> None:
    numbers[place] -= step / np.sqrt(1 + sums[place])
    sums[place] += np.square(step)
