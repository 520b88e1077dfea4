"""Predicting tokens: the loss over a vocabulary, and the figures that training reports.

M tokens to predict, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sememe.networks.layers import padded_table

# Scores that are held at a time on a CPU, 4 bytes each.
_MAX_SCORES = 1 << 25


class Score(NamedTuple):
    """Sums over predictions; means are taken once, over all batches and processes."""

    loss: Tensor
    num_right: Tensor
    num_predictions: Tensor


def score(logits_MV: Tensor, targets_M: Tensor) -> Score:
    """Sum the cross-entropy (nats) and the right predictions."""
    logits_MV = logits_MV.float()
    loss = functional.cross_entropy(logits_MV, targets_M, reduction="sum")
    num_predictions = torch.full_like(loss, targets_M.shape[0])
    is_right_M = _are_right(logits_MV.detach(), targets_M)
    return Score(loss, is_right_M.sum().float(), num_predictions.detach())


def _are_right(logits_MV: Tensor, targets_M: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        # In half precision the best often share their score; one of them is the answer.
        return logits_MV.argmax(-1) == targets_M
    # While training no argmax: the largest logit is known to the softmax already.
    return logits_MV.gather(-1, targets_M[:, None]).squeeze(-1) >= logits_MV.amax(-1)


def score_tokens(
    hidden_MD: Tensor, table_VD: Tensor, bias_V: Tensor, vocab_size: int, targets_M: Tensor
) -> Score:
    """The score of the tokens that a table, some rows of it padding, makes of vectors."""
    table_VD, bias_V = padded_table(table_VD, bias_V, vocab_size, hidden_MD.dtype)
    is_cpu = hidden_MD.device.type == "cpu" and not torch.compiler.is_compiling()
    if not is_cpu or not torch.is_grad_enabled():
        return score(functional.linear(hidden_MD, table_VD, bias_V), targets_M)
    loss, num_right = _TokenScore.apply(hidden_MD, table_VD, bias_V, targets_M)
    return Score(loss, num_right, torch.full_like(num_right, targets_M.shape[0]))


def smoothing_of(hidden_MD: Tensor, table_VD: Tensor, targets_M: Tensor) -> Tensor:
    """What smoothed labels add to the summed loss, to be times the share that is spread.

    A share ε of the truth spread evenly makes the loss lse - (1 - ε) z_t - ε z̄, with z_t the score
    of the target and z̄ the mean of all scores: the loss without it, and ε (z_t - z̄). The mean of
    the scores is the score of the mean row, so no score is computed twice.
    """
    rows_MD = functional.embedding(targets_M, table_VD) - table_VD.mean(0)
    return (hidden_MD.float() * rows_MD).sum()


def smoothed_score(
    hidden_MD: Tensor,
    table_VD: Tensor,
    bias_V: Tensor,
    vocab_size: int,
    targets_M: Tensor,
    smoothing: float,
) -> tuple[Tensor, Score]:
    """The summed loss with smoothed labels, which is to fall, and the score without smoothing."""
    score = score_tokens(hidden_MD, table_VD, bias_V, vocab_size, targets_M)
    if not smoothing or not torch.is_grad_enabled():
        return score.loss, score
    more = smoothing_of(hidden_MD, table_VD[:vocab_size], targets_M)
    return score.loss + smoothing * more, score


class _TokenScore(torch.autograd.Function):
    """What `score` computes of products with a table, in place and with its gradients at once.

    PyTorch's cross-entropy writes three matrices (M, V) beside the scores, more than a CPU's
    caches hold, on pages that the system has to clear first.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_MD: Tensor, table_VD: Tensor, bias_V: Tensor, targets_M: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Sum the loss and the right predictions, and keep the gradients for the way back."""
        loss, num_right = torch.zeros(()), torch.zeros(())
        hidden_gradient_MD = torch.empty_like(hidden_MD)
        table_gradient_VD: Any = None
        bias_gradient_V = torch.zeros(len(bias_V))
        # Fewer scores stay in the caches; fewer than this, and the table's gradient leaves them.
        size = max(1, min(4 * table_VD.shape[1], _MAX_SCORES // len(table_VD)))
        for first in range(0, max(1, len(hidden_MD)), size):
            part = slice(first, first + size)
            scores_MV = functional.linear(hidden_MD[part], table_VD, bias_V).float()
            own_loss, own_right = _to_gradient(scores_MV, targets_M[part, None])
            loss += own_loss
            num_right += own_right
            bias_gradient_V += scores_MV.sum(0)
            gradient_MV = scores_MV.to(hidden_MD.dtype)
            torch.mm(gradient_MV, table_VD, out=hidden_gradient_MD[part])
            product_VD = gradient_MV.t() @ hidden_MD[part]
            # Half precision would lose small parts of the sum.
            table_gradient_VD = product_VD if first == 0 else table_gradient_VD.float() + product_VD
        ctx.save_for_backward(
            hidden_gradient_MD,
            table_gradient_VD.to(table_VD.dtype),
            bias_gradient_V.to(bias_V.dtype),
        )
        ctx.mark_non_differentiable(num_right)
        return loss, num_right

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Scale what is known already."""
        # In place: a second way back, which nobody takes, is refused by PyTorch.
        hidden_gradient_MD, table_gradient_VD, bias_gradient_V = ctx.saved_tensors
        scaled = hidden_gradient_MD * gradient, table_gradient_VD.mul_(gradient)
        return *scaled, bias_gradient_V * gradient, None


def _to_gradient(scores_MV: Tensor, targets_M1: Tensor) -> tuple[Tensor, Tensor]:
    """Turn scores into the gradient of the loss in place; returns the loss and the hits, summed."""
    best_M1 = scores_MV.amax(-1, keepdim=True)
    target_M1 = scores_MV.gather(-1, targets_M1)
    num_right = (target_M1 >= best_M1).sum()
    sum_M1 = scores_MV.sub_(best_M1).exp_().sum(-1, keepdim=True)
    logarithm_M1 = target_M1 - best_M1 - sum_M1.log()
    scores_MV.div_(sum_M1).scatter_(-1, targets_M1, logarithm_M1.exp() - 1)
    return -logarithm_M1.sum(), num_right


def figures_of(**scores: Score) -> dict[str, Tensor]:
    """Sums by name, as a network's `loss` returns them: masked_loss, masked_right, masked_count."""
    figures = {}
    for name, (loss, num_right, num_predictions) in scores.items():
        figures[f"{name}_loss"] = loss.detach()
        figures[f"{name}_right"] = num_right
        figures[f"{name}_count"] = num_predictions
    return figures
