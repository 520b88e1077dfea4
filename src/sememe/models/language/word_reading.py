"""Words through LSTMs: contextual vectors of sentences, and probabilities of running text.

Sentences of similar length are batched, long ones in windows; running text continues from the
previous state.

T positions, B rows, W words of a sentence, D width. Every row starts after one special token.

T positions, B streams, M predictions, E width. The token that begins a sentence is given, the one
that ends it is predicted like a word.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sememe.contract import WordsInContext
from sememe.examples.running_words import is_word, places_in, written
from sememe.examples.word_rows import BEGIN_ID, NOTHING, NUM_MARKS, UNKNOWN_ID, word_streams
from sememe.metrics.perplexity import TextScore
from sememe.nn.rows import grouped, windows
from sememe.nn.softmax import target_log_probs
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary

_WORDS_AT_ONCE = 8_192  # in one batch, including padding
# Longer rows are read in overlapping windows: an LSTM has forgotten their other end anyway.
LONGEST, _OVERLAP = 512, 64

# Rows of words in; layers (T, B, D) out, the first position being the start token.
Read = Callable[[list[Sequence[str]]], list[Tensor]]


@torch.no_grad()
def read_sentences(read: Read, sentences: Sequence[Sequence[str]]) -> list[list[Tensor]]:
    """The layers of each sentence, (W, D) each, without special tokens."""
    cuts = [windows(len(words), LONGEST, _OVERLAP) for words in sentences]
    rows = [
        (index, window, words[window.start : window.end])
        for index, (words, own) in enumerate(zip(sentences, cuts, strict=True))
        for window in own
    ]
    found: dict[tuple[int, int], list[Tensor]] = {}
    rows.sort(key=lambda row: len(row[2]))
    for group in grouped(rows, lambda row: len(row[2]) + 2, _WORDS_AT_ONCE, is_padded=True):
        layers = read([words for _, _, words in group])
        for column, (index, window, _) in enumerate(group):
            kept = slice(1 + window.first - window.start, 1 + window.last - window.start)
            found[index, window.start] = [layer[kept, column].float() for layer in layers]
    return [
        [torch.cat(parts) for parts in zip(*(found[index, w.start] for w in own), strict=True)]
        for index, own in enumerate(cuts)
    ]


def words_in_context(
    embed: Callable[[list[list[str]]], list[np.ndarray]],
    texts: Sequence[str],
    settings: TextSettings,
    spans: Sequence[np.ndarray] | None = None,
    knows: Callable[[str], bool] = bool,
) -> list[WordsInContext]:
    """The words of texts, their positions, and their vectors from `embed`.

    `spans` selects the words; without it the settings say how to split. `knows` says whether a word
    is in the model's vocabulary.
    """
    if spans is None:
        places: Sequence[Any] = [
            [place for place in own if is_word(text[slice(*place)], settings)]
            for text, own in zip(texts, places_in(texts, settings), strict=True)
        ]
    else:
        places = spans
    words = [
        [written(text[start:end], settings) for start, end in own]
        for text, own in zip(texts, places, strict=True)
    ]
    return [
        WordsInContext(
            words=[text[start:end] for start, end in own],
            starts=np.array([start for start, _ in own], np.int64),
            ends=np.array([end for _, end in own], np.int64),
            vectors_WD=vectors_WD,
            is_known_W=np.array([knows(word) for word in row], np.bool_),
        )
        for text, own, row, vectors_WD in zip(texts, places, words, embed(words), strict=True)
    ]


def pooled(vectors_WD: np.ndarray, pool: str) -> np.ndarray:
    """One vector per text, the mean or maximum over its words; zeros if it has none."""
    if not len(vectors_WD):
        return np.zeros(vectors_WD.shape[1], np.float32)
    return vectors_WD.mean(0) if pool == "mean" else vectors_WD.max(0)


# Each stream starts without context, so there are few, and long ones.
_STREAMS, _LEAST = 32, 2_000
_LENGTH = 128


# The ids of a store's words and the states before them in; the softmax's inputs at each position,
# (T, B, E), and the states after them out.
ReadOn = Callable[[np.ndarray, Any], tuple[Tensor, Any]]


def network_ids(store: TokenStore, vocabulary: Vocabulary) -> np.ndarray:
    """The network's id of each special token and word of a store; unknown words share one id."""
    found = np.array([vocabulary.find(word) for word in store.vocabulary], np.int64)
    known = np.where(found < 0, UNKNOWN_ID, NUM_MARKS + found)
    # The words that the store itself dropped as rare come after its words.
    return np.concatenate([np.arange(NUM_MARKS), known, [UNKNOWN_ID]])


@torch.no_grad()
def score_streams(network: Any, ids: np.ndarray, read: ReadOn, store: TokenStore) -> TextScore:
    """The probability of a text, including unknown words and sentence ends.

    `ids` are the network's ids of the store's special tokens and words.
    """
    network.eval()
    num_streams = int(np.clip(store.num_tokens // _LEAST, 1, _STREAMS))
    sums, states = np.zeros(4), None
    for ids_TB in word_streams(store, num_streams, _LENGTH):
        # The input of a stream that has ended does not matter.
        given_TB = np.where(ids_TB[:-1] == NOTHING, BEGIN_ID, ids_TB[:-1])
        hidden_TBE, states = read(given_TB, states)
        is_asked_TB = (ids_TB[1:] != NOTHING) & (ids_TB[1:] != BEGIN_ID)
        places_M = torch.from_numpy(np.flatnonzero(is_asked_TB)).to(hidden_TBE.device)
        hidden_ME = hidden_TBE.flatten(0, 1).index_select(0, places_M)
        targets_M = ids[ids_TB[1:][is_asked_TB]]
        logs_M = target_log_probs(network.next_logits, hidden_ME.to(network.precision), targets_M)
        sums += summed_logs(logs_M, targets_M == UNKNOWN_ID)
    return text_score(sums)


def summed_logs(logs_M: np.ndarray, is_unknown_M: np.ndarray) -> np.ndarray:
    """Sums of log10 and counts of all words, and of unknown ones, from natural logs."""
    logs_M = logs_M / math.log(10)
    return np.array(
        [logs_M.sum(), len(logs_M), logs_M[is_unknown_M].sum(), is_unknown_M.sum()], np.float64
    )


def text_score(sums: np.ndarray) -> TextScore:
    """The score of a text from the results of `summed_logs` on its parts."""
    return TextScore(float(sums[0]), int(sums[1]), float(sums[2]), int(sums[3]))


@torch.no_grad()
def sentence_log_probs(
    network: Any,
    read: Callable[[list[list[str]]], Tensor],
    ids_of: Callable[[list[str]], np.ndarray],
    sentences: list[list[str]],
) -> list[np.ndarray]:
    """The natural log probability of each word of some sentences given the words before it.

    `read` gives the softmax's inputs for some sentences, each after the start token: position t of
    a row predicts its word t, (T, B, E).
    """
    network.eval()
    order = sorted(range(len(sentences)), key=lambda index: len(sentences[index]))
    found = [np.empty(0)] * len(sentences)
    for group in grouped(
        order, lambda index: len(sentences[index]) + 2, _WORDS_AT_ONCE, is_padded=True
    ):
        rows = [sentences[index] for index in group]
        hidden_TBE = read(rows)
        hidden_ME = torch.cat([hidden_TBE[: len(own), row] for row, own in enumerate(rows)])
        targets_M = np.concatenate([ids_of(words) for words in rows])
        ends = np.cumsum([len(words) for words in rows])
        hidden_ME = hidden_ME.to(network.precision)
        logs = np.split(target_log_probs(network.next_logits, hidden_ME, targets_M), ends[:-1])
        for index, own in zip(group, logs, strict=True):
            found[index] = own
    return found
