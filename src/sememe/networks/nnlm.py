"""Networks over a window of words: the next word's chances (Bengio et al. 2003), and the score of a
window (Collobert & Weston 2008).

M windows, C words of each, D width of a vector, H hidden units, V words to predict. Ids are those
of the vocabulary, then <unk>, </s> and <s>, which nothing predicts.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.networks.dropout import leave_out
from sememe.networks.layers import Linear
from sememe.networks.nnlm_config import NNLMConfig
from sememe.networks.prediction import Score, score_tokens
from sememe.networks.sampled_softmax import Samples, sampled_loss

NUM_MARKS = 3  # <unk>, </s>, <s>


class WindowNetwork(nn.Module):
    """A table of word vectors and a hidden layer over those of a window, end to end."""

    def __init__(self, config: NNLMConfig) -> None:
        super().__init__()
        self.config = config
        # What flows between the layers; the weights stay in float32 whatever it is.
        self.precision = torch.float32
        self.words = nn.Embedding(config.num_words + NUM_MARKS, config.dim)
        self.hidden = Linear(config.num_inputs * config.dim, config.num_hidden)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the first weights."""
        nn.init.normal_(self.words.weight, std=0.1, generator=generator)
        bound = 1 / math.sqrt(self.hidden.in_features * 0.01)  # the vectors are of size 0.1
        bound = min(bound, math.sqrt(3.0))
        nn.init.uniform_(self.hidden.weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.hidden.bias)

    def inputs(self, windows_MC: Tensor) -> Tensor:
        """The vectors of each window end to end, (M, C × D)."""
        return self.words(windows_MC).flatten(1).to(self.precision)


class NNLMNetwork(WindowNetwork):
    """y = b + U tanh(d + H x), and W x added where there are direct connections."""

    def __init__(self, config: NNLMConfig, *, seed: int = 1) -> None:
        super().__init__(config)
        width = config.num_hidden + (config.num_inputs * config.dim if config.direct else 0)
        # U and W side by side: tanh(…) and x side by side meet them in one product.
        self.table_VD = nn.Parameter(torch.zeros(config.num_words + 2, width))
        self.bias_V = nn.Parameter(torch.zeros(config.num_words + 2))
        generator = torch.Generator().manual_seed(seed)
        self.initialise(generator)
        with torch.no_grad():
            own = self.table_VD[:, : config.num_hidden]
            own.normal_(std=0.5 / math.sqrt(config.num_hidden), generator=generator)

    def begin_with(self, counts_V: np.ndarray) -> None:
        """Start from how frequent words are, so that only what context adds must be learned."""
        chances_V = np.maximum(counts_V, 0.5) / np.maximum(counts_V, 0.5).sum()
        with torch.no_grad():
            self.bias_V.copy_(torch.from_numpy(np.log(chances_V)).float())

    def features(self, windows_MC: Tensor) -> Tensor:
        """What the output layer sees of each window, (M, H) or (M, H + C × D)."""
        x_MI = self.inputs(windows_MC)
        hidden_MH = torch.tanh(self.hidden(x_MI))
        hidden_MH = leave_out(hidden_MH, self.config.dropout if self.training else 0.0)
        return torch.cat([hidden_MH, x_MI], 1) if self.config.direct else hidden_MH

    def logits(self, windows_MC: Tensor) -> Tensor:
        """Score every word after each window, (M, V)."""
        features_MD = self.features(windows_MC)
        table_VD = self.table_VD.to(features_MD.dtype)
        return functional.linear(features_MD, table_VD, self.bias_V.to(features_MD.dtype)).float()

    def score(self, windows_MC: Tensor, targets_M: Tensor) -> Score:
        """The summed loss over all words, and how often the likeliest is right."""
        size = self.config.num_words + 2
        features_MD = self.features(windows_MC)
        return score_tokens(features_MD, self.table_VD, self.bias_V, size, targets_M)

    def sampled_loss(self, windows_MC: Tensor, targets_M: Tensor, samples: Samples) -> Tensor:
        """The summed loss over a sample of the words."""
        features_MD = self.features(windows_MC)
        return sampled_loss(features_MD, self.table_VD, self.bias_V, targets_M, samples)


class RankingNetwork(WindowNetwork):
    """s = u · hardtanh(d + H x): how much a window looks like text."""

    def __init__(self, config: NNLMConfig, *, seed: int = 1) -> None:
        super().__init__(config)
        self.output = Linear(config.num_hidden, 1, bias=False)
        generator = torch.Generator().manual_seed(seed)
        self.initialise(generator)
        bound = 1 / math.sqrt(config.num_hidden)
        nn.init.uniform_(self.output.weight, -bound, bound, generator=generator)

    def scores(self, windows_MC: Tensor) -> Tensor:
        """The score of each window, (M)."""
        hidden_MH = functional.hardtanh(self.hidden(self.inputs(windows_MC)))
        hidden_MH = leave_out(hidden_MH, self.config.dropout if self.training else 0.0)
        return self.output(hidden_MH)[:, 0].float()


def new_network(config: NNLMConfig, *, seed: int = 1) -> NNLMNetwork | RankingNetwork:
    """An untrained network of the architecture that the sizes name."""
    if config.architecture == "ranking":
        return RankingNetwork(config, seed=seed)
    return NNLMNetwork(config, seed=seed)
