"""How well ELMo and ULMFiT foretell a text: they read on from where they stood, word by word.

T positions, B streams, M predictions, E width. The mark that begins a sentence is given, the one
that ends it is foretold as a word is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from sememe.examples.word_rows import BEGIN_ID, NUM_MARKS, UNKNOWN_ID
from sememe.examples.word_streams import NOTHING, word_streams
from sememe.metrics.perplexity import TextScore
from sememe.networks.awd import AWDNetwork
from sememe.networks.characters import MARKS, UNKNOWN
from sememe.networks.elmo import ELMoNetwork
from sememe.networks.word_forms import Forms
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.feeding import to_device

# Each stream begins without what stands before it: few of them, and long ones.
_STREAMS, _LEAST = 32, 2_000
_LENGTH = 128
_MAX_SCORES = 1 << 25


class Reads(Protocol):
    """A network that goes on from states, given the ids of a store's words."""

    @property
    def network(self) -> Any:
        """The network, which has `next_logits`."""

    @property
    def ids(self) -> np.ndarray:
        """Its id of each of the store's marks and words."""

    def read(self, ids_TB: np.ndarray, states: Any) -> tuple[Tensor, Any]:
        """What the softmax sees at each place (T, B, E), and the states behind them."""


class AWDReads(NamedTuple):
    """An AWD-LSTM, and its id of each of a store's marks and words."""

    network: AWDNetwork
    ids: np.ndarray

    def read(self, ids_TB: np.ndarray, states: Any) -> tuple[Tensor, Any]:
        """Read on with the ids of the network."""
        own_TB = torch.from_numpy(self.ids[ids_TB])
        outputs = self.network(to_device(own_TB, self.network.table_VE.device), states)
        return outputs.dropped_TBE, outputs.states


class ELMoReads(NamedTuple):
    """The forward half of an ELMo, and how a store's marks and words are written."""

    network: ELMoNetwork
    ids: np.ndarray
    forms: Forms
    words: Vocabulary

    def read(self, ids_TB: np.ndarray, states: Any) -> tuple[Tensor, Any]:
        """Read on with the spelling of words, known or not."""
        distinct_U, index = np.unique(ids_TB, return_inverse=True)
        device = next(self.network.parameters()).device
        form = to_device(self.forms.of_words([self._written(one) for one in distinct_U]), device)
        places = torch.from_numpy(index.reshape(ids_TB.shape)).to(device)
        outputs, states = self.network.reads_forward(self.network.words(form)[places], states)
        return outputs[-1], states

    def _written(self, number: int) -> str:
        if number < NUM_MARKS:
            return MARKS[number]
        place = int(number) - NUM_MARKS
        return self.words[place] if place < len(self.words) else UNKNOWN


def network_ids(store: TokenStore, vocabulary: Vocabulary) -> np.ndarray:
    """The network's id of each mark and word of a store; words that it does not know are one."""
    found = np.array([vocabulary.find(word) for word in store.vocabulary], np.int64)
    known = np.where(found < 0, UNKNOWN_ID, NUM_MARKS + found)
    # What the store itself left out as rare stands behind its words.
    return np.concatenate([np.arange(NUM_MARKS), known, [UNKNOWN_ID]])


@torch.no_grad()
def score_streams(reads: Reads, store: TokenStore, length: int = _LENGTH) -> TextScore:
    """The chance of a text, unknown words and the ends of sentences included."""
    reads.network.eval()
    num_streams = int(np.clip(store.num_tokens // _LEAST, 1, _STREAMS))
    sums, states = np.zeros(4), None
    for ids_TB in word_streams(store, num_streams, length):
        # A stream that has ended reads on whatever it likes.
        given_TB = np.where(ids_TB[:-1] == NOTHING, BEGIN_ID, ids_TB[:-1])
        hidden_TBE, states = reads.read(given_TB, states)
        is_asked_TB = (ids_TB[1:] != NOTHING) & (ids_TB[1:] != BEGIN_ID)
        places_M = torch.from_numpy(np.flatnonzero(is_asked_TB)).to(hidden_TBE.device)
        hidden_ME = hidden_TBE.flatten(0, 1).index_select(0, places_M)
        _add(reads.network, hidden_ME, reads.ids[ids_TB[1:][is_asked_TB]], sums)
    return TextScore(float(sums[0]), int(sums[1]), float(sums[2]), int(sums[3]))


def _add(network: Any, hidden_ME: Tensor, targets_M: np.ndarray, sums: np.ndarray) -> None:
    """Add up logarithms and numbers of all words, and of unknown ones."""
    size = max(1, _MAX_SCORES // network.config.vocab_size)
    for first in range(0, len(targets_M), size):
        own = targets_M[first : first + size]
        part_ME = hidden_ME[first : first + size].to(network.precision)
        logs_MV = network.next_logits(part_ME).float().log_softmax(1)
        asked_M1 = torch.from_numpy(own).to(logs_MV.device)[:, None]
        logs_M = logs_MV.gather(1, asked_M1)[:, 0].double().cpu().numpy() / math.log(10)
        is_unknown_M = own == UNKNOWN_ID
        sums += [logs_M.sum(), len(own), logs_M[is_unknown_M].sum(), is_unknown_M.sum()]
