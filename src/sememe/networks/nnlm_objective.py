"""What a network over windows learns, in the terms of the training loop: rows in, losses out.

B rows, T positions, M windows, C words of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.examples.randomness import numbers
from sememe.examples.word_rows import BEGIN_ID, END_ID, UNKNOWN_ID, WordRows
from sememe.examples.word_rows import NUM_MARKS as NUM_FIRST
from sememe.examples.word_windows import windows_before, windows_behind
from sememe.networks.nnlm import NNLMNetwork, RankingNetwork
from sememe.networks.sampled_softmax import Sampler, Samples
from sememe.training.objective import NetworkObjective


def own_ids(batch: WordRows, num_words: int) -> np.ndarray:
    """The ids of rows as the network has them: words, then <unk>, </s> and <s>; (B, T)."""
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
    """The windows around the words of a batch, marks left out, (M, 2 × window + 1)."""
    ids_BT = own_ids(batch, num_words)
    places_T, lengths_B1 = np.arange(ids_BT.shape[1]), batch.lengths_B[:, None]
    before_BTC, has_before_BT = windows_before(ids_BT, window, num_words + 2)
    behind_BTC, has_behind_BT = windows_behind(ids_BT, window, num_words + 1)
    # Behind the last word of a short row stands nothing but marks of its end.
    is_asked_BT = has_before_BT & has_behind_BT & (ids_BT < num_words) & (places_T < lengths_B1)
    windows_BTC = np.concatenate([before_BTC, ids_BT[:, :, None], behind_BTC], 2)
    return windows_BTC[is_asked_BT]


class Windows(NamedTuple):
    """A batch as tensors: windows, and the words to tell."""

    windows_MC: Tensor
    words_M: Tensor
    samples: Samples | None = None


class NextWordObjective(NetworkObjective):
    """Bengio's lesson: the word after a window."""

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
        """The share of a batch in the loss, and the sums of its figures."""
        if self.training and batch.samples is not None:
            loss = self.network.sampled_loss(*batch)
        else:
            loss = self.network.score(batch.windows_MC, batch.words_M).loss
        return loss / counts["words"], {"word_loss": loss.detach()}


class RankingObjective(NetworkObjective):
    """Collobert & Weston's lesson: max(0, 1 - s(window) + s(window with another word))."""

    def __init__(self, network: RankingNetwork, chances_V: np.ndarray) -> None:
        """chances_V: how likely each word is to be drawn as the other one, in any unit."""
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
        """Draw a word for each, by the chances of all words but itself."""
        shares_M = (numbers(key, len(words_M)) >> np.uint64(11)) * 2.0**-53
        chances_M = self._chances_V[words_M]
        # The chances lie end to end; the word's own piece is taken out, and places behind it move.
        places_M = shares_M * (self._ends_V[-1] - chances_M)
        places_M += np.where(places_M >= self._ends_V[words_M] - chances_M, chances_M, 0.0)
        drawn_M = np.searchsorted(self._ends_V, places_M, "right")
        # A place may be rounded onto the edge of the piece.
        return (drawn_M + (drawn_M == words_M)) % len(self._ends_V)

    def forward(
        self, batch: Windows, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The share of a batch in the loss, and the sums of its figures."""
        other_MC = batch.windows_MC.clone()
        other_MC[:, self.network.config.window] = batch.words_M
        both = self.network.scores(torch.cat([batch.windows_MC, other_MC]))
        margins_M = torch.sub(*both.chunk(2))
        loss = (1 - margins_M).clamp(min=0).sum()
        figures = {
            "ranking_loss": loss.detach(), "ranking_accuracy": (margins_M > 0).sum().float()
        }  # fmt: skip
        return loss / counts["windows"], figures
