"""Words in context from ULMFiT's language model: sentences or texts in, vectors of their words out.

T positions, B rows, W words. Layer 0 is a word by itself, layer i the output of LSTM i; each has
seen the words before it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sememe.errors import OptionError
from sememe.examples.word_rows import BEGIN_ID
from sememe.networks.features import Choice, WordsInContext, choose_layers
from sememe.networks.word_reading import read_sentences, words_in_context

if TYPE_CHECKING:
    from sememe.networks.awd_model import ULMFiT


def read_layers(model: ULMFiT, sentences: Sequence[Sequence[str]]) -> list[list[Tensor]]:
    """The layers of each sentence, (W, D) each; the outer ones are narrower than those between."""
    network = model.trained().eval()

    def read(rows: list[Sequence[str]]) -> list[Tensor]:
        longest = max(len(words) for words in rows)
        # What fills a row up stands behind its words, which do not see it.
        ids_TB = np.full((1 + longest, len(rows)), BEGIN_ID, np.int64)
        for column, words in enumerate(rows):
            ids_TB[1 : 1 + len(words), column] = model.ids_of(words)
        ids = torch.from_numpy(ids_TB).to(network.table_VE.device)
        return [network.words(ids), *network(ids).layers]

    return read_sentences(read, sentences)


def embed_sentences(
    model: ULMFiT, sentences: Sequence[Sequence[str]], layers: Choice = "last"
) -> list[np.ndarray]:
    """The vectors of the words of each sentence, (W, D)."""
    config = model.config
    if layers in ("sum-all", "sum-last-four") and config.num_layers > 1:
        raise OptionError(
            f"The layers of ULMFiT have {config.num_cells} and {config.width} numbers and cannot "
            f"be added: choose first, last, second-to-last or a number from 0 to "
            f"{config.num_layers}."
        )
    return [choose_layers(own, layers).cpu().numpy() for own in read_layers(model, sentences)]


def embed_text_words(
    model: ULMFiT, texts: Sequence[str], layers: Choice = "last"
) -> list[WordsInContext]:
    """The words of texts, where they lie in them, and their vectors in context."""
    return words_in_context(
        lambda sentences: embed_sentences(model, sentences, layers), texts, model.text
    )
