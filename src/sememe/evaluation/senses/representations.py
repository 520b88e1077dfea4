"""What a model makes of words in sentences, one vector for each. N occurrences, D numbers."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

# A word by itself; the other words of its sentence; the word in its sentence, as a layer has it;
# what is expected in its place by a network that does not see it.
Role = Literal["word", "context", "layer", "place"]


MEAN, CENTERED_MEAN = "other words, mean", "other words, centered"


class Representation(NamedTuple):
    """A vector for each occurrence; those that the model does not know are left out of scores."""

    name: str
    role: Role
    vectors_ND: np.ndarray
    is_known_N: np.ndarray
    is_last: bool = False  # the layer that the model itself goes on from


def context_baselines(vectors_ND: np.ndarray, is_known_N: np.ndarray) -> list[Representation]:
    """The other words of a sentence as they are, and without what all sentences have in common.

    Frequent words pull every mean to one side; which means resemble each other shows without it.
    """
    centered_ND = np.array(vectors_ND)
    if is_known_N.any():
        centered_ND[is_known_N] -= vectors_ND[is_known_N].mean(0)
    return [
        Representation(MEAN, "context", vectors_ND, is_known_N),
        Representation(CENTERED_MEAN, "context", centered_ND, is_known_N),
    ]
