"""Networks on words in sentences: the mean over the pieces of a word, layer by layer.

N occurrences, L layers with the embedding, T pieces, W words, B rows, P width of a direction, D
width. Beside the layers stands what the network expects in the place of the word: the vector from
which it foretells it. There the word itself is not seen, so that nothing in the vector is the same
for all its meanings (Amrami & Goldberg 2018 tell meanings apart by what a language model would put
in a word's place).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.evaluation.senses.files import Occurrence
from sememe.evaluation.senses.representations import Representation, context_baselines
from sememe.networks.bert import BERTNetwork
from sememe.networks.elmo_reading import Opened, framed, inputs_of
from sememe.networks.features import Choice, choose_layers, token_vectors
from sememe.networks.framing import Network
from sememe.networks.word_reading import read_sentences, words_in_context
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.feeding import to_device

if TYPE_CHECKING:
    from sememe.progress import Reporter

_SENTENCES_AT_ONCE = 64

_PLACES = {"first": 0, "second-to-last": -2, "last": -1}
_MASK = "[MASK]"
PLACE = "place of the word, foretold"


class Pieces(NamedTuple):
    """The pieces of a sentence: where they lie, which are known, all layers side by side."""

    starts_T: np.ndarray
    ends_T: np.ndarray
    is_known_T: np.ndarray
    vectors_TD: np.ndarray
    expected_D: np.ndarray  # in the word's place; zeros where nothing tells of it


Read = Callable[[Sequence[Occurrence]], Iterator[Pieces]]


def subword_reader(network: Network, tokenizer: SubwordTokenizer) -> tuple[Read, int]:
    """How a BERT or GPT reads sentences, and how many layers it has."""
    num_layers = network.config.num_layers + 1
    unknown_id = tokenizer.unk_id if tokenizer.kind == "wordpiece" else -1
    expect = _behind_mask if isinstance(network, BERTNetwork) else _before_word

    def read(occurrences: Sequence[Occurrence]) -> Iterator[Pieces]:
        texts = [one.sentence for one in occurrences]
        found = token_vectors(network, tokenizer, texts, layers=tuple(range(num_layers)))
        expected = expect(network, tokenizer, occurrences)
        for own, expected_D in zip(found, expected, strict=True):
            encoding = own.encoding
            is_known_T = encoding.ids != unknown_id
            yield Pieces(encoding.starts, encoding.ends, is_known_T, own.vectors_TD, expected_D)

    return read, num_layers


def _behind_mask(
    network: Network, tokenizer: SubwordTokenizer, occurrences: Sequence[Occurrence]
) -> Iterator[np.ndarray]:
    """The last layer of BERT where one [MASK] hides the word."""
    texts = [one.sentence[: one.start] + _MASK + one.sentence[one.end :] for one in occurrences]
    for one, own in zip(occurrences, token_vectors(network, tokenizer, texts), strict=True):
        is_hidden_T = (own.encoding.ids == tokenizer.mask_id) & (own.encoding.starts >= one.start)
        yield own.vectors_TD[np.flatnonzero(is_hidden_T)[0]]


def _before_word(
    network: Network, tokenizer: SubwordTokenizer, occurrences: Sequence[Occurrence]
) -> Iterator[np.ndarray]:
    """The last layer of GPT before the word, which sees what stands there and no more."""
    texts = [one.sentence for one in occurrences]
    for one, own in zip(occurrences, token_vectors(network, tokenizer, texts), strict=True):
        first = int(np.flatnonzero(own.encoding.ends > one.start)[0])
        yield own.vectors_TD[first - 1] if first else np.zeros_like(own.vectors_TD[0])


def word_reader(opened: Opened) -> tuple[Read, int]:
    """How an ELMo reads sentences, and how many layers it has."""
    config = opened.network.config
    num_layers, width = config.num_layers + 1, config.width

    def read(occurrences: Sequence[Occurrence]) -> Iterator[Pieces]:
        texts = [one.sentence for one in occurrences]
        found = words_in_context(lambda rows: _with_sides(opened, rows), texts, opened.text)
        for one, own in zip(occurrences, found, strict=True):
            layers_WD, before_WP, after_WP = np.split(own.vectors_WD, [-2 * width, -width], axis=1)
            inside = np.flatnonzero((own.starts < one.end) & (own.ends > one.start))
            # Both directions share one softmax: the sum of their vectors scores a word with the
            # product of the chances that they give it.
            is_there = len(inside) > 0
            expected_P = (
                before_WP[inside[0]] + after_WP[inside[-1]] if is_there else np.zeros(width)
            )
            is_known_W = np.ones(len(own.words), np.bool_)
            yield Pieces(own.starts, own.ends, is_known_W, layers_WD, expected_P)

    return read, num_layers


def _with_sides(opened: Opened, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """All layers of words, then the last one of what stands before each, and behind each."""
    device = next(opened.network.parameters()).device

    def read(rows: list[Sequence[str]]) -> list[Tensor]:
        inputs = to_device(inputs_of([framed(words) for words in rows], opened.forms), device)
        found = opened.network.read(inputs)
        # A sentence stands in its marks, so that every word has a neighbor on each side.
        return [*found.layers(), found.forward[-1].roll(1, 0), found.backward[-1].roll(-1, 0)]

    return [torch.cat(own, 1).cpu().numpy() for own in read_sentences(read, sentences)]


def represent_layers(
    read: Read,
    num_layers: int,
    occurrences: Sequence[Occurrence],
    choices: Sequence[Choice],
    reporter: Reporter,
) -> list[Representation]:
    """The other words before any layer, the word as the chosen layers have it, and its place."""
    spans, contexts, expected, is_known, has_context = [], [], [], [], []
    with reporter.task("reading", len(occurrences), "sentences") as task:
        for first in range(0, len(occurrences), _SENTENCES_AT_ONCE):
            part = occurrences[first : first + _SENTENCES_AT_ONCE]
            for one, own in zip(part, read(part), strict=True):
                is_inside = (own.starts_T < one.end) & (own.ends_T > one.start)
                spans.append(_mean(own.vectors_TD[is_inside], own.vectors_TD.shape[1]))
                width = own.vectors_TD.shape[1] // num_layers
                contexts.append(_mean(own.vectors_TD[~is_inside, :width], width))
                expected.append(own.expected_D)
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
    place = Representation(PLACE, "place", np.stack(expected), known_N)
    return [*found, place]


def _mean(vectors_TD: np.ndarray, width: int) -> np.ndarray:
    return vectors_TD.mean(0, dtype=np.float64) if len(vectors_TD) else np.zeros(width)


def _named(choice: Any, num_layers: int) -> tuple[str, bool]:
    """What a choice of layers is called, and whether it is the last one."""
    number = _PLACES.get(choice, choice)
    if not isinstance(number, int):
        return str(choice), False
    number %= num_layers
    return f"layer {number}", number == num_layers - 1
