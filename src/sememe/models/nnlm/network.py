"""Networks over a window of words: probabilities of the next word, or the score of the window.

Bengio et al. 2003 predict the next word, Collobert & Weston 2008 score a window.

M windows, C words of each, D width of a vector, H hidden units, V words to predict. Ids are those
of the vocabulary, then <unk>, </s> and <s>, which is never predicted.

B rows, T positions, M windows, C words of each.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.examples.word_rows import (
    BEGIN_ID,
    END_ID,
    NUM_MARKS as NUM_FIRST,
    UNKNOWN_ID,
    WordRows,
    windows_after,
    windows_before,
)
from sememe.metrics.perplexity import TextScore
from sememe.models.language.word_reading import summed_logs, text_score
from sememe.models.ngram.counting import read_blocks
from sememe.models.nnlm.config import NNLMConfig
from sememe.nn.layers import Linear, drop_out
from sememe.nn.softmax import (
    Sampler,
    Samples,
    ScoreSums,
    log_shares,
    sampled_loss,
    score_tokens,
    target_log_probs,
)
from sememe.randomness import numbers
from sememe.tokens.store import TokenStore
from sememe.training.objective import NetworkObjective

NUM_MARKS = 3  # <unk>, </s>, <s>


class WindowNetwork(nn.Module):
    """A table of word vectors and a hidden layer over the concatenated vectors of a window."""

    def __init__(self, config: NNLMConfig) -> None:
        super().__init__()
        self.config = config
        # The activation precision; the weights stay float32.
        self.precision = torch.float32
        self.words = nn.Embedding(config.num_words + NUM_MARKS, config.dim)
        self.hidden = Linear(config.num_inputs * config.dim, config.num_hidden)

    def initialise(self, generator: torch.Generator) -> None:
        """Initialize the weights."""
        nn.init.normal_(self.words.weight, std=0.1, generator=generator)
        bound = 1 / math.sqrt(self.hidden.in_features * 0.01)  # the vectors are of size 0.1
        bound = min(bound, math.sqrt(3.0))
        nn.init.uniform_(self.hidden.weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.hidden.bias)

    def inputs(self, windows_MC: Tensor) -> Tensor:
        """The concatenated vectors of each window, (M, C × D)."""
        return self.words(windows_MC).flatten(1).to(self.precision)


class NNLMNetwork(WindowNetwork):
    """y = b + U tanh(d + H x), plus W x with direct connections."""

    def __init__(self, config: NNLMConfig, *, seed: int = 1) -> None:
        super().__init__(config)
        width = config.num_hidden + (config.num_inputs * config.dim if config.direct else 0)
        # U and W concatenated, so that one product applies them to tanh(…) and x.
        self.table_VD = nn.Parameter(torch.zeros(config.num_words + 2, width))
        self.bias_V = nn.Parameter(torch.zeros(config.num_words + 2))
        generator = torch.Generator().manual_seed(seed)
        self.initialise(generator)
        with torch.no_grad():
            own = self.table_VD[:, : config.num_hidden]
            own.normal_(std=0.5 / math.sqrt(config.num_hidden), generator=generator)

    def begin_with(self, counts_V: np.ndarray) -> None:
        """Start from word frequencies, so that only the effect of context must be learned."""
        with torch.no_grad():
            self.bias_V.copy_(log_shares(counts_V))

    def features(self, windows_MC: Tensor) -> Tensor:
        """The input of the output layer for each window, (M, H) or (M, H + C × D)."""
        x_MI = self.inputs(windows_MC)
        hidden_MH = torch.tanh(self.hidden(x_MI))
        hidden_MH = drop_out(hidden_MH, self.config.dropout if self.training else 0.0)
        return torch.cat([hidden_MH, x_MI], 1) if self.config.direct else hidden_MH

    def logits(self, windows_MC: Tensor) -> Tensor:
        """Score every word after each window, (M, V)."""
        features_MD = self.features(windows_MC)
        table_VD = self.table_VD.to(features_MD.dtype)
        return functional.linear(features_MD, table_VD, self.bias_V.to(features_MD.dtype)).float()

    def score(self, windows_MC: Tensor, targets_M: Tensor) -> ScoreSums:
        """The summed loss over all words, and the number of right predictions."""
        size = self.config.num_words + 2
        features_MD = self.features(windows_MC)
        return score_tokens(features_MD, self.table_VD, self.bias_V, size, targets_M)

    def sampled_loss(self, windows_MC: Tensor, targets_M: Tensor, samples: Samples) -> Tensor:
        """The summed loss over a sample of the words."""
        features_MD = self.features(windows_MC)
        return sampled_loss(features_MD, self.table_VD, self.bias_V, targets_M, samples)


class RankingNetwork(WindowNetwork):
    """s = u · hardtanh(d + H x): the score of a window."""

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
        hidden_MH = drop_out(hidden_MH, self.config.dropout if self.training else 0.0)
        return self.output(hidden_MH)[:, 0].float()


def new_network(config: NNLMConfig, *, seed: int = 1) -> NNLMNetwork | RankingNetwork:
    """An untrained network of the architecture that the sizes name."""
    if config.architecture == "ranking":
        return RankingNetwork(config, seed=seed)
    return NNLMNetwork(config, seed=seed)


def own_ids(batch: WordRows, num_words: int) -> np.ndarray:
    """The ids of rows as the network's ids: words, then <unk>, </s> and <s>; (B, T)."""
    ids_BT = batch.ids_BT.astype(np.int64) - NUM_FIRST
    ids_BT[ids_BT >= num_words] = num_words
    for mark, own in ((UNKNOWN_ID, 0), (END_ID, 1), (BEGIN_ID, 2)):
        ids_BT[batch.ids_BT == mark] = num_words + own
    return ids_BT


def next_words(batch: WordRows, window: int, num_words: int) -> tuple[np.ndarray, np.ndarray]:
    """The windows of a batch whose words are all known, (M, C), and the word after each."""
    ids_BT = own_ids(batch, num_words)
    windows_BTC, is_whole_BT = windows_before(ids_BT, window, num_words + 2)
    is_there_BT = np.arange(ids_BT.shape[1]) < batch.lengths_B[:, None]
    is_asked_BT = is_whole_BT & is_there_BT & (ids_BT != num_words + 2)
    return windows_BTC[is_asked_BT], ids_BT[is_asked_BT]


def middle_words(batch: WordRows, window: int, num_words: int) -> np.ndarray:
    """The windows around the words of a batch, marks omitted, (M, 2 × window + 1)."""
    ids_BT = own_ids(batch, num_words)
    places_T, lengths_B1 = np.arange(ids_BT.shape[1]), batch.lengths_B[:, None]
    before_BTC, has_before_BT = windows_before(ids_BT, window, num_words + 2)
    behind_BTC, has_behind_BT = windows_after(ids_BT, window, num_words + 1)
    # After the last word of a short row stands only marks of its end.
    is_asked_BT = has_before_BT & has_behind_BT & (ids_BT < num_words) & (places_T < lengths_B1)
    windows_BTC = np.concatenate([before_BTC, ids_BT[:, :, None], behind_BTC], 2)
    return windows_BTC[is_asked_BT]


class Windows(NamedTuple):
    """A batch as tensors: windows and target words."""

    windows_MC: Tensor
    words_M: Tensor
    samples: Samples | None = None


class NNLMObjective(NetworkObjective):
    """Bengio's objective: the word after a window."""

    def __init__(self, network: NNLMNetwork, sampler: Sampler | None = None) -> None:
        """With a sampler the softmax of training is taken over samples."""
        super().__init__(network)
        self.sampler = sampler
        self.counted_by = {"word_loss": "words"}

    def counts(self, batch: WordRows) -> dict[str, int]:
        """Words and marks of a batch, and the words that it predicts."""
        config = self.network.config
        targets_M = next_words(batch, config.window, config.num_words)[1]
        return {"tokens": int(batch.lengths_B.sum()), "words": len(targets_M)}

    def prepare(self, batch: WordRows) -> Windows:
        """Find the windows of a batch and the words after them."""
        config = self.network.config
        windows_MC, targets_M = next_words(batch, config.window, config.num_words)
        samples = None if self.sampler is None else self.sampler.draw(batch.key)
        return Windows(torch.from_numpy(windows_MC), torch.from_numpy(targets_M), samples)

    def forward(
        self, batch: Windows, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        if self.training and batch.samples is not None:
            loss = self.network.sampled_loss(*batch)
        else:
            loss = self.network.score(batch.windows_MC, batch.words_M).loss
        return loss / counts["words"], {"word_loss": loss.detach()}


class RankingObjective(NetworkObjective):
    """Collobert & Weston's objective: max(0, 1 - s(window) + s(window with another word))."""

    def __init__(self, network: RankingNetwork, chances_V: np.ndarray) -> None:
        """chances_V: the unnormalized probability of each word to be drawn as the other one."""
        super().__init__(network)
        self._chances_V = chances_V.astype(np.float64)
        self._ends_V = np.cumsum(self._chances_V)
        self.counted_by = {"ranking_loss": "windows", "ranking_accuracy": "windows"}

    def counts(self, batch: WordRows) -> dict[str, int]:
        """Words and marks of a batch, and its windows."""
        config = self.network.config
        num = len(middle_words(batch, config.window, config.num_words))
        return {"tokens": int(batch.lengths_B.sum()), "windows": num}

    def prepare(self, batch: WordRows) -> Windows:
        """Find the windows of a batch and draw another word for each."""
        config = self.network.config
        windows_MC = middle_words(batch, config.window, config.num_words)
        drawn_M = self._others(windows_MC[:, config.window], batch.key)
        return Windows(torch.from_numpy(windows_MC), torch.from_numpy(drawn_M))

    def _others(self, words_M: np.ndarray, key: int) -> np.ndarray:
        """Draw another word for each, by the probabilities of all words except itself."""
        shares_M = (numbers(key, len(words_M)) >> np.uint64(11)) * 2.0**-53
        chances_M = self._chances_V[words_M]
        # The chances are concatenated; the word's own piece is taken out, and places after it move.
        places_M = shares_M * (self._ends_V[-1] - chances_M)
        places_M += np.where(places_M >= self._ends_V[words_M] - chances_M, chances_M, 0.0)
        drawn_M = np.searchsorted(self._ends_V, places_M, "right")
        # A place may be rounded onto the edge of the piece.
        return (drawn_M + (drawn_M == words_M)) % len(self._ends_V)

    def forward(
        self, batch: Windows, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        other_MC = batch.windows_MC.clone()
        other_MC[:, self.network.config.window] = batch.words_M
        both = self.network.scores(torch.cat([batch.windows_MC, other_MC]))
        margins_M = torch.sub(*both.chunk(2))
        loss = (1 - margins_M).clamp(min=0).sum()
        metrics = {
            "ranking_loss": loss.detach(), "ranking_accuracy": (margins_M > 0).sum().float()
        }  # fmt: skip
        return loss / counts["windows"], metrics


_BLOCK = 1 << 14


def score_text(
    network: NNLMNetwork, tokens: TokenStore, id_map: np.ndarray, *, share: float = 0.0,
    is_held: bool = False,
) -> TextScore:  # fmt: skip
    """Score a text, or its held-out documents; id_map gives the ids of the network."""
    num_words, window = network.config.num_words, network.config.window
    sums, num_given = np.zeros(4), 0
    blocks = read_blocks(
        tokens, id_map, num_words, size=_BLOCK, reach=window, share=share, is_held=is_held
    )
    for block in blocks:
        ids_1T = block.stream.astype(np.int64)[None]
        windows_TC = windows_before(ids_1T, window, num_words + 2)[0][0, num_given:]
        targets_T = ids_1T[0, num_given:]
        is_asked_T = targets_T != num_words + 2
        targets_M = targets_T[is_asked_T]
        logs_M = log_probs(network, windows_TC[is_asked_T], targets_M)
        sums += summed_logs(logs_M, targets_M == num_words)
        num_given = len(block.stream) - block.num_starts  # these stand first in the next block too
    return text_score(sums)


def log_probs(network: NNLMNetwork, windows_MC: np.ndarray, targets_M: np.ndarray) -> np.ndarray:
    """The natural log probability of each word after its window, (M,)."""
    windows = torch.from_numpy(windows_MC).to(network.bias_V.device)
    return target_log_probs(network.logits, windows, targets_M)
