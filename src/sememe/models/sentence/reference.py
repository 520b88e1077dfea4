"""The losses of sentence vectors in plain NumPy, the reference for `losses`."""

from __future__ import annotations

import numpy as np


def ranking_loss(
    anchors_BD: np.ndarray, candidates_CD: np.ndarray, is_hidden_BC: np.ndarray, temperature: float
) -> float:
    """The sum of -log softmax of each row's right candidate, among those not hidden."""
    total = 0.0
    for index, anchor_D in enumerate(anchors_BD):
        cosines_C = candidates_CD @ anchor_D / temperature
        chances = np.exp(cosines_C)[~is_hidden_BC[index]].sum()
        total += float(np.log(chances) - cosines_C[index])
    return total


def cosent_loss(
    first_BD: np.ndarray, second_BD: np.ndarray, scores_B: np.ndarray, temperature: float
) -> float:
    """B log(1 + Σ exp(cos i - cos j)) over the pairs i with a lower score than j."""
    total = 1.0
    cosines_B = (first_BD * second_BD).sum(1) / temperature
    for i, low in enumerate(scores_B):
        for j, high in enumerate(scores_B):
            if low < high:
                total += float(np.exp(cosines_B[i] - cosines_B[j]))
    return len(scores_B) * float(np.log(total))


def cosine_loss(first_BD: np.ndarray, second_BD: np.ndarray, scores_B: np.ndarray) -> float:
    """The sum of (cos - score)²."""
    pairs = zip(first_BD, second_BD, scores_B, strict=True)
    return float(sum((one @ other - score) ** 2 for one, other, score in pairs))


def same_texts(anchors: list[str], candidates: list[str]) -> np.ndarray:
    """Which candidates are no negatives of a row, from the texts themselves."""
    is_same_BC = np.zeros((len(anchors), len(candidates)), np.bool_)
    for row, anchor in enumerate(anchors):
        for place, candidate in enumerate(candidates):
            is_own = candidate in (anchor, candidates[row])
            has_equal_anchor = place < len(anchors) and anchors[place] == anchor
            is_same_BC[row, place] = place != row and (is_own or has_equal_anchor)
    return is_same_BC
