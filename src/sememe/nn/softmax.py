"""Token prediction: the loss over a vocabulary or a sample of it, and the metrics to report.

M tokens to predict, D width, V vocabulary.

M predictions, D width, V vocabulary, S words sampled. The sum over all words is the cost of a
softmax. It is estimated from a sample, each term divided by its sampling probability, so that the
estimate is unbiased; the right word is always included with its own weight.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sememe.nn.layers import padded_table
from sememe.randomness import number

# Scores in memory at a time on a CPU, 4 bytes each.
_MAX_SCORES = 1 << 25


class ScoreSums(NamedTuple):
    """Sums over predictions; means are computed once, over all batches and processes."""

    loss: Tensor
    num_right: Tensor


def score(logits_MV: Tensor, targets_M: Tensor) -> ScoreSums:
    """Sum the cross-entropy (nats) and the right predictions; targets of -100 have neither."""
    logits_MV = logits_MV.float()
    loss = functional.cross_entropy(logits_MV, targets_M, reduction="sum")
    is_right_M = _are_right(logits_MV.detach(), targets_M)
    return ScoreSums(loss, is_right_M.sum().float())


def _are_right(logits_MV: Tensor, targets_M: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        # In half precision the best often tie; one of them is the prediction.
        return logits_MV.argmax(-1) == targets_M
    # While training no argmax: the largest logit is known to the softmax already.
    own_M = logits_MV.gather(-1, targets_M.clamp_min(0)[:, None]).squeeze(-1)
    return (own_M >= logits_MV.amax(-1)) & (targets_M >= 0)


def score_tokens(
    hidden_MD: Tensor, table_VD: Tensor, bias_V: Tensor, vocab_size: int, targets_M: Tensor
) -> ScoreSums:
    """The score of predicting tokens from vectors with a table that may have padding rows."""
    table_VD, bias_V = padded_table(table_VD, bias_V, vocab_size, hidden_MD.dtype)
    is_cpu = hidden_MD.device.type == "cpu" and not torch.compiler.is_compiling()
    if not is_cpu or not torch.is_grad_enabled():
        return score(functional.linear(hidden_MD, table_VD, bias_V), targets_M)
    return ScoreSums(*_TokenScore.apply(hidden_MD, table_VD, bias_V, targets_M))


def smoothing_of(hidden_MD: Tensor, table_VD: Tensor, targets_M: Tensor) -> Tensor:
    """What label smoothing adds to the summed loss, to be multiplied by its ε.

    Label smoothing by ε makes the loss lse - (1 - ε) z_t - ε z̄, with z_t the score of the target
    and z̄ the mean of all scores: the loss without it, plus ε (z_t - z̄). The mean of the scores is
    the score of the mean row, so no score is computed twice.
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
) -> tuple[Tensor, ScoreSums]:
    """The summed loss with label smoothing, which is minimized, and the score without it."""
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
        """Sum the loss and the right predictions, and save the gradients for the backward pass."""
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
        """Scale the saved gradients."""
        # In place: a second way back, which nobody takes, is refused by PyTorch.
        hidden_gradient_MD, table_gradient_VD, bias_gradient_V = ctx.saved_tensors
        scaled = hidden_gradient_MD * gradient, table_gradient_VD.mul_(gradient)
        return *scaled, bias_gradient_V * gradient, None


def _to_gradient(scores_MV: Tensor, targets_M1: Tensor) -> tuple[Tensor, Tensor]:
    """Turn scores into the gradient of the loss in place; return the summed loss and hits."""
    best_M1 = scores_MV.amax(-1, keepdim=True)
    target_M1 = scores_MV.gather(-1, targets_M1)
    num_right = (target_M1 >= best_M1).sum()
    sum_M1 = scores_MV.sub_(best_M1).exp_().sum(-1, keepdim=True)
    logarithm_M1 = target_M1 - best_M1 - sum_M1.log()
    scores_MV.div_(sum_M1).scatter_(-1, targets_M1, logarithm_M1.exp() - 1)
    return -logarithm_M1.sum(), num_right


@torch.no_grad()
def target_log_probs(
    logits: Callable[[Tensor], Tensor], inputs_M: Tensor, targets_M: np.ndarray
) -> np.ndarray:
    """The natural log probability of each target, (M,); `logits` scores all words, (M, V).

    Only as many scores are computed at a time as fit into a CPU's memory.
    """
    found, first, size = [np.empty(0)], 0, 1
    while first < len(targets_M):
        logs_MV = logits(inputs_M[first : first + size]).float().log_softmax(-1)
        own_M1 = torch.from_numpy(targets_M[first : first + size]).to(logs_MV.device)[:, None]
        found.append(logs_MV.gather(1, own_M1)[:, 0].double().cpu().numpy())
        first, size = first + size, max(1, _MAX_SCORES // logs_MV.shape[1])
    return np.concatenate(found)


def log_shares(counts_V: np.ndarray) -> Tensor:
    """The log frequencies of words; a missing word counts as half an occurrence, (V,)."""
    counts_V = np.maximum(counts_V, 0.5)
    return torch.from_numpy(np.log(counts_V / counts_V.sum())).float()


def metrics_of(**scores: ScoreSums) -> dict[str, Tensor]:
    """Sums by name, as an objective returns them: masked_loss, masked_accuracy."""
    metrics: dict[str, Tensor] = {}
    for name, own in scores.items():
        metrics |= {f"{name}_loss": own.loss.detach(), f"{name}_accuracy": own.num_right}
    return metrics


class Samples(NamedTuple):
    """Sampled words, and their log sampling probabilities."""

    ids_S: Tensor
    log_chances_S: Tensor


class Sampler:
    """Samples distinct words by frequency; the most frequent ones are always included.

    Systematic sampling: probabilities are concatenated, and words are taken at equal distances from
    a random start. Each word is included with exactly its probability, and never twice.
    """

    def __init__(self, counts: np.ndarray, num_samples: int) -> None:
        """Probabilities are proportional to the counts; a word without any counts once."""
        self.chances_V = chances(np.maximum(counts, 1).astype(np.float64), num_samples)
        self._ends_V = np.cumsum(self.chances_V)
        self._num = round(float(self._ends_V[-1]))

    def draw(self, key: int) -> Samples:
        """The sample of a key."""
        start = (number(key, 0) >> 11) * 2.0**-53
        return self.at(start)

    def at(self, start: float) -> Samples:
        """The sample that starts at this fraction of the distance between two words."""
        found_S = np.searchsorted(self._ends_V, start + np.arange(self._num), "right")
        found_S = np.unique(np.minimum(found_S, len(self._ends_V) - 1))
        log_chances_S = np.log(self.chances_V[found_S]).astype(np.float32)
        return Samples(torch.from_numpy(found_S), torch.from_numpy(log_chances_S))


def chances(weights_V: np.ndarray, num_samples: int) -> np.ndarray:
    """Sampling probabilities proportional to the weights, at most 1, with the sum num_samples."""
    if num_samples >= len(weights_V):
        return np.ones(len(weights_V))
    found_V, is_sure_V = np.zeros(len(weights_V)), np.zeros(len(weights_V), np.bool_)
    while True:
        share = (num_samples - is_sure_V.sum()) / weights_V[~is_sure_V].sum()
        found_V = np.where(is_sure_V, 1.0, weights_V * share)
        if not (found_V > 1).any():
            return found_V
        is_sure_V |= found_V >= 1


def sampled_loss(
    hidden_MD: Tensor, table_VD: Tensor, bias_V: Tensor, targets_M: Tensor, samples: Samples
) -> Tensor:
    """The summed cross-entropy (nats), the sum over the vocabulary estimated from a sample."""
    ids_S, dtype = samples.ids_S, hidden_MD.dtype
    corrected_S = bias_V.index_select(0, ids_S).float() - samples.log_chances_S
    scores_MS = (hidden_MD @ table_VD.index_select(0, ids_S).to(dtype).t()).float() + corrected_S
    # The right word has its place already.
    scores_MS = scores_MS.masked_fill(ids_S == targets_M[:, None], torch.finfo(torch.float32).min)
    own_MD = table_VD.index_select(0, targets_M).to(dtype)
    right_M = (hidden_MD * own_MD).sum(1, dtype=torch.float32)
    right_M = right_M + bias_V.index_select(0, targets_M).float()
    return (torch.logaddexp(scores_MS.logsumexp(1), right_M) - right_M).sum()
