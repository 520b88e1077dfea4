"""A softmax over a large vocabulary from a sample of it: the loss without most of the products.

M predictions, D width, V vocabulary, S words sampled. The sum over all words is what a softmax
costs. It is estimated from some of them, each divided by the chance that it was taken, so that the
mean of the estimate is the sum itself; the right word is always there with its own weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.examples.randomness import number


class Samples(NamedTuple):
    """Words that stand for all, and the logarithms of the chances that they had."""

    ids_S: Tensor
    log_chances_S: Tensor


class Sampler:
    """Draws different words, frequent ones more often; those frequent enough, always.

    Systematic sampling: chances are laid end to end, and words are taken at equal distances from a
    random start. Each word is in the sample with its very chance, and never twice.
    """

    def __init__(self, counts: np.ndarray, num_samples: int) -> None:
        """Chances go with the counts; a word without any counts once."""
        self.chances_V = chances(np.maximum(counts, 1).astype(np.float64), num_samples)
        self._ends_V = np.cumsum(self.chances_V)
        self._num = round(float(self._ends_V[-1]))

    def draw(self, key: int) -> Samples:
        """The sample of a key."""
        start = (number(key, 0) >> 11) * 2.0**-53
        return self.at(start)

    def at(self, start: float) -> Samples:
        """The sample that starts at this share of the distance between two words."""
        found_S = np.searchsorted(self._ends_V, start + np.arange(self._num), "right")
        found_S = np.unique(np.minimum(found_S, len(self._ends_V) - 1))
        log_chances_S = np.log(self.chances_V[found_S]).astype(np.float32)
        return Samples(torch.from_numpy(found_S), torch.from_numpy(log_chances_S))


def chances(weights_V: np.ndarray, num_samples: int) -> np.ndarray:
    """Chances that go with the weights, none above 1, and sum up to the number of samples."""
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
