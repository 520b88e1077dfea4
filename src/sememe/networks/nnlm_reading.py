"""Running text through a network over windows: every word of a text gets its chance, once."""

from __future__ import annotations

import math

import numpy as np
import torch

from sememe.examples.word_windows import windows_before
from sememe.metrics.perplexity import TextScore
from sememe.networks.nnlm import NNLMNetwork
from sememe.static.ngram.reading import read_blocks
from sememe.tokens.store import TokenStore

_BLOCK = 1 << 14
_MAX_SCORES = 1 << 25


def score_text(
    network: NNLMNetwork, tokens: TokenStore, id_map: np.ndarray, *, share: float = 0.0,
    is_held: bool = False,
) -> TextScore:  # fmt: skip
    """The chance of a text, or of its held-out documents; id_map gives the ids of the network."""
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
        _add(network, windows_TC[is_asked_T], targets_T[is_asked_T], sums)
        num_given = len(block.stream) - block.num_starts  # these stand first in the next block too
    return TextScore(float(sums[0]), int(sums[1]), float(sums[2]), int(sums[3]))


def _add(
    network: NNLMNetwork, windows_MC: np.ndarray, targets_M: np.ndarray, sums: np.ndarray
) -> None:
    """Add up logarithms and numbers of all words, and of unknown ones."""
    size = max(1, _MAX_SCORES // len(network.bias_V))
    for first in range(0, len(targets_M), size):
        windows = torch.from_numpy(windows_MC[first : first + size])
        targets = torch.from_numpy(targets_M[first : first + size])
        with torch.no_grad():
            logits_MV = network.logits(windows)
            own_M = logits_MV.gather(1, targets[:, None])[:, 0] - logits_MV.logsumexp(1)
        logs_M = own_M.double().numpy() / math.log(10)
        is_unknown_M = targets.numpy() == network.config.num_words
        sums += [logs_M.sum(), len(logs_M), logs_M[is_unknown_M].sum(), is_unknown_M.sum()]
