"""Networks on words in sentences: the mean over the pieces of a word, layer by layer.

N occurrences, L layers with the embedding, T pieces, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sememe.evaluation.senses.files import Occurrence
from sememe.evaluation.senses.representations import Representation, context_baselines
from sememe.networks.elmo_reading import Opened, embed_text_words
from sememe.networks.features import Choice, choose_layers, token_vectors
from sememe.networks.framing import Network
from sememe.tokens.subwords import SubwordTokenizer

if TYPE_CHECKING:
    from sememe.progress import Reporter

_SENTENCES_AT_ONCE = 64

_PLACES = {"first": 0, "second-to-last": -2, "last": -1}


class Pieces(NamedTuple):
    """The pieces of a sentence: where they lie, which are known, all layers side by side."""

    starts_T: np.ndarray
    ends_T: np.ndarray
    is_known_T: np.ndarray
    vectors_TD: np.ndarray


Read = Callable[[Sequence[str]], Iterator[Pieces]]


def subword_reader(network: Network, tokenizer: SubwordTokenizer) -> tuple[Read, int]:
    """How a BERT or GPT reads sentences, and how many layers it has."""
    num_layers = network.config.num_layers + 1
    unknown_id = tokenizer.unk_id if tokenizer.kind == "wordpiece" else -1

    def read(texts: Sequence[str]) -> Iterator[Pieces]:
        found = token_vectors(network, tokenizer, texts, layers=tuple(range(num_layers)))
        for own in found:
            encoding = own.encoding
            is_known_T = encoding.ids != unknown_id
            yield Pieces(encoding.starts, encoding.ends, is_known_T, own.vectors_TD)

    return read, num_layers


def word_reader(opened: Opened) -> tuple[Read, int]:
    """How an ELMo reads sentences, and how many layers it has."""
    num_layers = opened.network.config.num_layers + 1

    def read(texts: Sequence[str]) -> Iterator[Pieces]:
        for own in embed_text_words(opened, texts, tuple(range(num_layers))):
            is_known_T = np.ones(len(own.words), np.bool_)
            yield Pieces(own.starts, own.ends, is_known_T, own.vectors_WD)

    return read, num_layers


def represent_layers(
    read: Read,
    num_layers: int,
    occurrences: Sequence[Occurrence],
    choices: Sequence[Choice],
    reporter: Reporter,
) -> list[Representation]:
    """The word as the chosen layers have it, and the mean of the other words before any layer."""
    spans, contexts, is_known, has_context = [], [], [], []
    with reporter.task("reading", len(occurrences), "sentences") as task:
        for first in range(0, len(occurrences), _SENTENCES_AT_ONCE):
            part = occurrences[first : first + _SENTENCES_AT_ONCE]
            pieces = read([one.sentence for one in part])
            for one, own in zip(part, pieces, strict=True):
                is_inside = (own.starts_T < one.end) & (own.ends_T > one.start)
                spans.append(_mean(own.vectors_TD[is_inside], own.vectors_TD.shape[1]))
                width = own.vectors_TD.shape[1] // num_layers
                contexts.append(_mean(own.vectors_TD[~is_inside, :width], width))
                is_known.append(bool((is_inside & own.is_known_T).any()))
                has_context.append(bool((~is_inside & own.is_known_T).any()))
            task.update(len(spans))
    layers = [torch.from_numpy(rows) for rows in np.split(np.stack(spans), num_layers, axis=1)]
    known_N = np.array(is_known)
    found = context_baselines(np.stack(contexts), np.array(has_context))
    for choice in choices or range(num_layers):
        vectors_ND = choose_layers(layers, choice).numpy()
        label, is_last = _named(choice, num_layers)
        found.append(Representation(label, "layer", vectors_ND, known_N, is_last))
    return found


def _mean(vectors_TD: np.ndarray, width: int) -> np.ndarray:
    return vectors_TD.mean(0, dtype=np.float64) if len(vectors_TD) else np.zeros(width)


def _named(choice: Any, num_layers: int) -> tuple[str, bool]:
    """What a choice of layers is called, and whether it is the last one."""
    number = _PLACES.get(choice, choice)
    if not isinstance(number, int):
        return str(choice), False
    number %= num_layers
    return f"layer {number}", number == num_layers - 1
