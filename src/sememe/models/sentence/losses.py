"""The losses of sentence vectors: vectors in, the sum over the rows of a batch out.

B rows, C candidates, D dimensions; vectors have length 1. `reference.py` has the same in NumPy.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def unit(vectors_BD: Tensor) -> Tensor:
    """The vectors with length 1, in single precision; zeros stay zeros."""
    return functional.normalize(vectors_BD.float(), dim=1, eps=1e-12)


def ranking_loss(
    anchors_BD: Tensor, candidates_CD: Tensor, is_hidden_BC: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Multiple-negatives ranking (InfoNCE): candidate b is the right one of row b.

    Hidden candidates are no negatives of a row, because they are the same text as the right one.
    Also returns the number of rows whose right candidate is the nearest.
    """
    scores_BC = anchors_BD @ candidates_CD.T / temperature
    scores_BC = scores_BC.masked_fill(is_hidden_BC, float("-inf"))
    targets_B = torch.arange(len(anchors_BD), device=anchors_BD.device)
    loss = functional.cross_entropy(scores_BC, targets_B, reduction="sum")
    return loss, (scores_BC.argmax(1) == targets_B).sum()


def cosent_loss(
    first_BD: Tensor, second_BD: Tensor, scores_B: Tensor, temperature: float
) -> Tensor:
    """CoSENT (Su 2022): a pair with a higher score has the higher cosine, times B."""
    cosines_B = (first_BD * second_BD).sum(1) / temperature
    excess_BB = cosines_B[:, None] - cosines_B[None]  # of the first pair over the second
    is_wrong_BB = scores_B[:, None] < scores_B[None]
    excess = excess_BB.masked_fill(~is_wrong_BB, float("-inf")).flatten()
    terms = torch.cat([excess.new_zeros(1), excess])
    return len(scores_B) * torch.logsumexp(terms, 0)


def cosine_loss(first_BD: Tensor, second_BD: Tensor, scores_B: Tensor) -> Tensor:
    """The squared differences between the cosines and scores from 0 to 1."""
    return ((first_BD * second_BD).sum(1) - scores_B).square().sum()


def same_texts(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Which candidates are no negatives of a row, (B, C); from the hashes of all texts.

    Those that equal the row's own texts, and those that belong to an equal anchor.
    """
    num_rows, num_all = len(anchors), len(candidates)
    is_same_BC = candidates[None] == candidates[:num_rows, None]
    is_same_BC |= candidates[None] == anchors[:, None]
    is_same_BC[:, :num_rows] |= anchors[None] == anchors[:, None]
    is_right_BC = torch.eye(num_rows, num_all, dtype=torch.bool, device=anchors.device)
    return is_same_BC & ~is_right_BC
