"""Sentences of words through LSTMs: those of like length together, long ones in windows.

T positions, B rows, W words of a sentence, D width. Every row stands behind one mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from sememe.examples.running_words import is_word, places_in, written
from sememe.networks.features import Pool, WordsInContext
from sememe.networks.grouping import grouped
from sememe.networks.windows import windows
from sememe.text.settings import TextSettings

_WORDS_AT_ONCE = 8_192  # in one batch, padding counted
# Longer rows are read in overlapping windows: an LSTM has forgotten their other end anyway.
LONGEST, _OVERLAP = 512, 64

# Rows of words in; layers (T, B, D) out, whose first position is the mark before a row.
Read = Callable[[list[Sequence[str]]], list[Tensor]]


@torch.no_grad()
def read_sentences(read: Read, sentences: Sequence[Sequence[str]]) -> list[list[Tensor]]:
    """The layers of each sentence, (W, D) each, marks left out."""
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
) -> list[WordsInContext]:
    """The words of texts, where they lie in them, and the vectors that `embed` gives them."""
    places = [
        [place for place in own if is_word(text[slice(*place)], settings)]
        for text, own in zip(texts, places_in(texts, settings), strict=True)
    ]
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
        )
        for text, own, vectors_WD in zip(texts, places, embed(words), strict=True)
    ]


def pooled(vectors_WD: np.ndarray, pool: Pool) -> np.ndarray:
    """One vector for a text, the mean or maximum over its words; zeros where it has none."""
    if not len(vectors_WD):
        return np.zeros(vectors_WD.shape[1], np.float32)
    return vectors_WD.mean(0) if pool == "mean" else vectors_WD.max(0)
