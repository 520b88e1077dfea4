"""Words in context from ELMo: sentences or texts in, the vectors of their words out.

L layers, W words of a sentence, T positions, B rows, D = 2 P numbers of both directions. Layer 0
is a word by itself, twice; layer 1 the output of the first LSTMs. A sentence stands in its marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.networks.characters import BEGIN, END
from sememe.networks.elmo import ELMoInputs, ELMoNetwork, rows_of_words
from sememe.networks.features import Choice, WordsInContext, choose_layers
from sememe.networks.word_forms import Forms
from sememe.networks.word_reading import LONGEST, read_sentences, words_in_context
from sememe.text.settings import TextSettings
from sememe.training.feeding import to_device


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


def read_layers(opened: Opened, sentences: Sequence[Sequence[str]]) -> list[list[Tensor]]:
    """The L + 1 layers of each sentence, (W, D) each, marks left out; on the network's device."""
    device = next(opened.network.parameters()).device

    def read(rows: list[Sequence[str]]) -> list[Tensor]:
        inputs = to_device(inputs_of([framed(words) for words in rows], opened.forms), device)
        return opened.network.read(inputs).layers()

    return read_sentences(read, sentences)


def embed_sentences(
    opened: Opened, sentences: Sequence[Sequence[str]], layers: Choice = "last"
) -> list[np.ndarray]:
    """The vectors of the words of each sentence, (W, D)."""
    found = [choose_layers(own, layers) for own in read_layers(opened, sentences)]
    if not found:
        return []
    # One way from the device for all: each way alone would be waited for.
    together_ND = torch.cat(found).cpu().numpy()
    return np.split(together_ND, np.cumsum([len(own) for own in found])[:-1])


def embed_text_words(
    opened: Opened, texts: Sequence[str], layers: Choice = "last"
) -> list[WordsInContext]:
    """The words of texts, where they lie in them, and their vectors in context."""
    return words_in_context(
        lambda sentences: embed_sentences(opened, sentences, layers), texts, opened.text
    )


@torch.no_grad()
def next_chances(opened: Opened, words: Sequence[str]) -> np.ndarray:
    """The chances of every mark and word of the vocabulary to come after these words, (V,)."""
    device = next(opened.network.parameters()).device
    network = opened.network
    inputs = to_device(inputs_of([[BEGIN, *words][-LONGEST:]], opened.forms), device)
    vectors_TBP = network.words(inputs.form).index_select(0, inputs.index_N)[:, None]
    outputs, _ = network.reads_forward(vectors_TBP)
    logits_BV = network.next_logits(outputs[-1][-1].to(network.precision))
    return logits_BV[0].float().softmax(0).cpu().numpy()
