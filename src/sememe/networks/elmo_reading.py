"""Words in context from ELMo: sentences or texts in, the vectors of their words out.

L layers, W words of a sentence, T positions, B rows, D = 2 P numbers of both directions. Layer 0
is a word by itself, twice; layer 1 the output of the first LSTMs. A sentence stands in its marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.examples.running_words import is_word, places_in, written
from sememe.networks.characters import BEGIN, END
from sememe.networks.elmo import ELMoInputs, ELMoNetwork, rows_of_words
from sememe.networks.features import Choice, Pool, WordsInContext, choose_layers
from sememe.networks.windows import windows
from sememe.networks.word_forms import Forms
from sememe.text.settings import TextSettings
from sememe.training.feeding import to_device

_WORDS_AT_ONCE = 8_192  # in one batch, padding counted
# Longer rows are read in overlapping windows: an LSTM has forgotten their other end anyway.
_LONGEST, _OVERLAP = 512, 64


class Opened(NamedTuple):
    """A network with what it needs to take words."""

    network: ELMoNetwork
    forms: Forms
    text: TextSettings


def framed(words: Sequence[str]) -> list[str]:
    """A sentence in its marks."""
    return [BEGIN, *words, END]


def inputs_of(rows: Sequence[Sequence[str]], forms: Forms) -> ELMoInputs:
    """Rows of words as the network takes them; their distinct words once."""
    numbers: dict[str, int] = {}
    lengths_B = np.array([len(row) for row in rows], np.int64)
    index_BT = np.zeros((len(rows), int(lengths_B.max())), np.int64)
    for index_T, row in zip(index_BT, rows, strict=True):
        index_T[: len(row)] = [numbers.setdefault(word, len(numbers)) for word in row]
    return rows_of_words(index_BT, lengths_B, forms.of_words(list(numbers)))


@torch.no_grad()
def read_layers(opened: Opened, sentences: Sequence[Sequence[str]]) -> list[list[Tensor]]:
    """The L + 1 layers of each sentence, (W, D) each, marks left out; on the network's device."""
    cuts = [windows(len(words), _LONGEST, _OVERLAP) for words in sentences]
    rows = [
        (index, window, framed(words[window.start : window.end]))
        for index, (words, own) in enumerate(zip(sentences, cuts, strict=True))
        for window in own
    ]
    found: dict[tuple[int, int], list[Tensor]] = {}
    order = sorted(range(len(rows)), key=lambda number: len(rows[number][2]))
    device = next(opened.network.parameters()).device
    for group in _groups([len(rows[number][2]) for number in order]):
        own = [rows[order[place]] for place in group]
        inputs = to_device(inputs_of([words for _, _, words in own], opened.forms), device)
        layers = opened.network.read(inputs).layers()
        for column, (index, window, _) in enumerate(own):
            kept = slice(1 + window.first - window.start, 1 + window.last - window.start)
            found[index, window.start] = [layer[kept, column].float() for layer in layers]
    return [
        [torch.cat(parts) for parts in zip(*(found[index, w.start] for w in own), strict=True)]
        for index, own in enumerate(cuts)
    ]


def _groups(sizes: list[int]) -> Iterator[range]:
    """Runs of rows, of rising size, that are read together."""
    first = 0
    for index, size in enumerate(sizes):
        if index > first and (index + 1 - first) * size > _WORDS_AT_ONCE:
            yield range(first, index)
            first = index
    if sizes:
        yield range(first, len(sizes))


def embed_sentences(
    opened: Opened, sentences: Sequence[Sequence[str]], layers: Choice = "last"
) -> list[np.ndarray]:
    """The vectors of the words of each sentence, (W, D)."""
    return [choose_layers(own, layers).cpu().numpy() for own in read_layers(opened, sentences)]


def embed_text_words(
    opened: Opened, texts: Sequence[str], layers: Choice = "last"
) -> list[WordsInContext]:
    """The words of texts, where they lie in them, and their vectors in context."""
    settings = opened.text
    places = [
        [place for place in own if is_word(text[slice(*place)], settings)]
        for text, own in zip(texts, places_in(texts, settings), strict=True)
    ]
    words = [
        [written(text[start:end], settings) for start, end in own]
        for text, own in zip(texts, places, strict=True)
    ]
    vectors = embed_sentences(opened, words, layers)
    return [
        WordsInContext(
            words=[text[start:end] for start, end in own],
            starts=np.array([start for start, _ in own], np.int64),
            ends=np.array([end for _, end in own], np.int64),
            vectors_WD=vectors_WD,
        )
        for text, own, vectors_WD in zip(texts, places, vectors, strict=True)
    ]


def pooled(vectors_WD: np.ndarray, pool: Pool) -> np.ndarray:
    """One vector for a text, the mean or maximum over its words; zeros where it has none."""
    if not len(vectors_WD):
        return np.zeros(vectors_WD.shape[1], np.float32)
    return vectors_WD.mean(0) if pool == "mean" else vectors_WD.max(0)


@torch.no_grad()
def next_chances(opened: Opened, words: Sequence[str]) -> np.ndarray:
    """The chances of every mark and word of the vocabulary to come after these words, (V,)."""
    device = next(opened.network.parameters()).device
    network = opened.network
    inputs = to_device(inputs_of([[BEGIN, *words][-_LONGEST:]], opened.forms), device)
    vectors_TBP = network.words(inputs.form).index_select(0, inputs.index_N)[:, None]
    outputs, _ = network.reads_forward(vectors_TBP)
    logits_BV = network.next_logits(outputs[-1][-1].to(network.precision))
    return logits_BV[0].float().softmax(0).cpu().numpy()
