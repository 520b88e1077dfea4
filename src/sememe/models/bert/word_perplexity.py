"""The perplexity of masked words, which compares BERTs with different vocabularies.

The loss of a masked token says little across tokenizers: a word of three tokens is three easy
questions instead of a hard one. Here whole words are masked, the same ones for every tokenizer that
starts words at the same places, and the losses of a word's tokens are added.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from sememe.errors import InputError
from sememe.metrics.perplexity import perplexity
from sememe.models.language.features import frame, room, stacked
from sememe.randomness import numbers, stream_key
from sememe.tokens.subwords.store import SubwordStore
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

_WORDS_PER_ROW = 48  # equal contexts for all tokenizers: at two tokens per word, about 100 tokens
_RATE = 0.15
_ROWS_AT_ONCE = 16
_MASKED = 0x6D31  # the purpose of a random stream


class WordPerplexity(NamedTuple):
    """The perplexity per masked word, and how many words there were."""

    perplexity: float
    loss: float  # nats per word
    num_words: int
    num_unknown: int  # words with a token for unknown characters, which is easy to predict


@torch.no_grad()
def word_perplexity(
    network: Any, tokenizer: SubwordTokenizer, store: SubwordStore, *, num_words: int, seed: int
) -> WordPerplexity:
    """Mask about every seventh of the first `num_words` words, and score their tokens."""
    device = network.embedding.tokens.weight.device
    loss, num_masked, num_unknown = 0.0, 0, 0
    rows: list[tuple[np.ndarray, np.ndarray]] = []

    def flush() -> None:
        nonlocal loss
        framed = [
            frame(network, tokenizer, np.where(is_hidden_T, tokenizer.mask_id, ids_T))
            for ids_T, is_hidden_T in rows
        ]
        hidden_BTD = network(*stacked(framed, device))
        for index, (ids_T, is_hidden_T) in enumerate(rows):
            places = torch.from_numpy(np.flatnonzero(is_hidden_T) + framed[index].num_before)
            logits_MV = network.masked_logits(hidden_BTD[index, places.to(device)]).float()
            targets_M = torch.from_numpy(ids_T[is_hidden_T].astype(np.int64)).to(device)
            loss += float(torch.nn.functional.cross_entropy(logits_MV, targets_M, reduction="sum"))
        rows.clear()

    for ids_T, is_hidden_T, is_start_T in _rows(store, room(network), num_words, seed):
        if not is_hidden_T.any():
            continue
        num_masked += int(np.count_nonzero(is_hidden_T & is_start_T))
        num_unknown += int(np.count_nonzero(is_hidden_T & (ids_T == tokenizer.unk_id)))
        rows.append((ids_T, is_hidden_T))
        if len(rows) == _ROWS_AT_ONCE:
            flush()
    if rows:
        flush()
    if not num_masked:
        raise InputError("The text is too short to mask a word of it.")
    each = loss / num_masked
    return WordPerplexity(perplexity(each), each, num_masked, num_unknown)


def _rows(
    store: SubwordStore, longest: int, num_words: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows of whole words of one document: ids, which are masked, which start a word."""
    ends = np.asarray(store.sentence_ends)[np.asarray(store.document_ends) - 1]
    key, first, num_seen = stream_key(seed, _MASKED), 0, 0
    for end in ends.tolist():
        if num_seen >= num_words:
            return
        ids = np.asarray(store.ids[first:end]).astype(np.int64)
        is_start = np.asarray(store.word_starts[first:end]).astype(bool)
        first = end
        is_start[:1] = True
        word_of = np.cumsum(is_start) - 1
        chances = numbers(stream_key(key, num_seen), int(word_of[-1]) + 1)
        is_masked = chances.astype(np.float64) < _RATE * 2.0**64
        last = min(int(word_of[-1]) + 1, num_words - num_seen)
        for start in range(0, last, _WORDS_PER_ROW):
            bounds = start, min(start + _WORDS_PER_ROW, last)
            own = slice(*np.searchsorted(word_of, bounds).tolist())
            parts = ids[own], is_masked[word_of[own]], is_start[own]
            # The same words are scored for every tokenizer, also where its tokens need more rows.
            at, size = 0, len(parts[0])
            while at < size:
                stop = min(at + longest, size)
                if stop < size and parts[2][at + 1 : stop + 1].any():
                    stop = at + 1 + int(np.flatnonzero(parts[2][at + 1 : stop + 1])[-1])
                ids_T, is_hidden_T, is_start_T = (part[at:stop] for part in parts)
                yield ids_T, is_hidden_T, is_start_T
                at = stop
        num_seen += int(word_of[-1]) + 1
