"""Predicting tokens: the loss over a vocabulary, and the figures that training reports.

M tokens to predict, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Score(NamedTuple):
    """Sums over predictions; means are taken once, over all batches and processes."""

    loss: Tensor
    num_right: Tensor
    num_predictions: Tensor


def score(logits_MV: Tensor, targets_M: Tensor) -> Score:
    """Sum the cross-entropy (nats) and the right predictions."""
    logits_MV = logits_MV.float()
    loss = functional.cross_entropy(logits_MV, targets_M, reduction="sum")
    # No argmax: the largest logit is known to the softmax already.
    best_M = logits_MV.detach().amax(-1)
    is_right_M = logits_MV.detach().gather(-1, targets_M[:, None]).squeeze(-1) >= best_M
    num_predictions = torch.full_like(loss, targets_M.shape[0])
    return Score(loss, is_right_M.sum().float(), num_predictions.detach())


def figures_of(**scores: Score) -> dict[str, Tensor]:
    """Sums by name, as a network's `loss` returns them: masked_loss, masked_right, masked_count."""
    figures = {}
    for name, (loss, num_right, num_predictions) in scores.items():
        figures[f"{name}_loss"] = loss.detach()
        figures[f"{name}_right"] = num_right
        figures[f"{name}_count"] = num_predictions
    return figures


def mean_figures(sums: Mapping[str, float]) -> dict[str, float]:
    """Means of summed figures: masked_loss, masked_accuracy, masked_perplexity and so on."""
    means = {}
    for key, count in sums.items():
        if not key.endswith("_count") or not count:
            continue
        name = key.removesuffix("_count")
        mean = float(sums[f"{name}_loss"]) / float(count)
        means[f"{name}_loss"] = mean
        means[f"{name}_accuracy"] = float(sums[f"{name}_right"]) / float(count)
        means[f"{name}_perplexity"] = math.exp(min(mean, 700.0))
    return means
