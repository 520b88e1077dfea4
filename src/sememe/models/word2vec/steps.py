"""word2vec step by step: a sentence in, one training pair with all its arithmetic out.

    at = training_step("the quick brown fox jumps over the lazy dog", 12)
    at.pair, at.decisions, at.changes

Skip-gram with negative sampling (Mikolov et al. 2013b, 2.2) on one sentence, pair after pair: the
input vector of a centre word is to recognize the words around it among noise words. Every step is
one call of `reference.skipgram_negative`. Unlike in training, windows have their full size, every
word is used, and each pair draws its own noise words, never the true one. V words, D dimensions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.running_words import is_word, places_in, written
from sememe.examples.windows import alias_table
from sememe.models.word2vec import reference
from sememe.models.word2vec.model import Change, Decision
from sememe.models.word2vec.training import start_rows
from sememe.options import Config, changed, option
from sememe.randomness import number, stream_key
from sememe.text.characters import language_of
from sememe.text.settings import TextSettings

_NOISE = 0x53  # purpose of a stream of random numbers
_MOST_WORDS, _MOST_STEPS = 60, 5_000


@dataclass(frozen=True, kw_only=True)
class StepConfig(Config):
    """The options of a training that is watched step by step."""

    dim: int = option(8, "Dimensions of the vectors.", 1, 64)
    window: int = option(2, "Words on each side of the centre.", 1, 10)
    negatives: int = option(3, "Noise words per pair.", 1, 20)
    learning_rate: float = option(0.2, "Learning rate, the same at every step.", 0.0001, 5)
    seed: int = option(1, "Random seed.", 0, 2**31)


class Pair(NamedTuple):
    """A centre word and a word around it, as places in the sentence."""

    center: int
    context: int


@dataclass(frozen=True)
class TrainingStep:
    """A pair, its decisions (the true word first), the vectors it changes, all vectors after it."""

    sentence: list[str]  # the words as they are written in the vocabulary
    words: list[str]  # the vocabulary, in the order of the rows of the matrices
    step: int
    num_pairs: int  # of one pass over the sentence
    window: tuple[int, int]  # first and last place of the window of the centre
    pair: Pair
    decisions: list[Decision]
    loss: float  # of this pair, before its update
    losses: list[float]  # mean loss of every pass up to this one, as far as it has come
    input: Change  # the input vector of the centre
    outputs: list[Change]  # the output vectors of the true word and of the noise words
    input_VD: np.ndarray  # after the step
    output_VD: np.ndarray


def sentence_words(text: str, settings: TextSettings | None = None) -> list[str]:
    """The words of a sentence as a vocabulary has them, without punctuation."""
    settings = settings or TextSettings(language=language_of(text))
    (places,) = places_in([text], settings)
    pieces = (text[start:end] for start, end in places)
    words = [written(piece, settings) for piece in pieces if is_word(piece, settings)]
    if len(set(words)) < 2:
        raise InputError("The sentence needs two different words or more.")
    if len(words) > _MOST_WORDS:
        raise InputError(f"The sentence has {len(words):,} words; at most {_MOST_WORDS} are shown.")
    return words


def sentence_pairs(num_words: int, window: int) -> list[Pair]:
    """All pairs of a sentence in the order of training."""
    return [
        Pair(center, context)
        for center in range(num_words)
        for context in range(max(0, center - window), min(num_words, center + window + 1))
        if context != center
    ]


def training_step(
    text: str, step: int = 0, *, settings: TextSettings | None = None, **options: Any
) -> TrainingStep:
    """Train on one sentence up to step number `step`, counted from 0, and explain that step.

    After the last pair the sentence starts again. The options are those of StepConfig by name.
    Without settings, the letters of the text tell its language.
    """
    config = changed(StepConfig(), "training_step", options)
    if not 0 <= step < _MOST_STEPS:
        raise OptionError(f"step must be between 0 and {_MOST_STEPS - 1:,}, not {step}.")
    sentence = sentence_words(text, settings)
    counts = Counter(sentence)
    words = sorted(counts, key=lambda word: (-counts[word], sentence.index(word)))
    ids = [words.index(word) for word in sentence]
    pairs = sentence_pairs(len(sentence), config.window)
    rows = np.zeros((len(words), config.dim), np.float32)
    start_rows(rows, config.dim, config.seed)
    input_VD = rows.astype(np.float64)
    output_VD = np.zeros_like(input_VD)  # as in the released program
    table = alias_table(np.array([counts[word] for word in words]), 0.75)
    losses: list[float] = []
    for index in range(step + 1):
        turn, place = divmod(index, len(pairs))
        center, context = (ids[own] for own in pairs[place])
        noise = _noise(table, context, config, index)
        if index == step:
            before = input_VD.copy(), output_VD.copy()
        loss = learn_pair(center, context, noise, input_VD, output_VD, config.learning_rate)
        losses += [0.0] * (turn + 1 - len(losses))
        losses[turn] += (loss - losses[turn]) / (place + 1)  # the mean so far
    targets = [context, *noise.tolist()]
    at = pairs[step % len(pairs)].center
    return TrainingStep(
        sentence, words, step, len(pairs),
        (max(0, at - config.window), min(len(sentence) - 1, at + config.window)),
        pairs[step % len(pairs)],
        _decisions(words, targets, before[0][center], before[1], config.learning_rate),
        loss, losses, _change(words, center, before[0], input_VD),
        [_change(words, row, before[1], output_VD) for row in dict.fromkeys(targets)],
        input_VD, output_VD,
    )  # fmt: skip


def learn_pair(
    center: int, context: int, noise: np.ndarray, input_VD: np.ndarray, output_VD: np.ndarray,
    rate: float,
) -> float:  # fmt: skip
    """Update both matrices by one pair with its noise words; return its loss before."""
    # The reference predicts the last word of this chunk from the first.
    chunk = np.array([center, context]), np.array([0, 0]), np.array([0, 2])
    loss, _ = reference.skipgram_negative(
        *chunk, noise, input_VD, output_VD, pool=len(noise), block=2, negatives=len(noise),
        rate=rate,
    )  # fmt: skip
    return float(loss)


def _noise(
    table: tuple[np.ndarray, np.ndarray], context: int, config: StepConfig, step: int
) -> np.ndarray:
    """Noise words by count to the power of 3/4, other than the true word."""
    limits, alias = table
    key, index = stream_key(config.seed, _NOISE, step), 0
    drawn: list[int] = []
    while len(drawn) < config.negatives:
        value, index = number(key, index), index + 1
        column = ((value >> 32) * len(limits)) >> 32
        word = column if value & 0xFFFFFFFF < int(limits[column]) else int(alias[column])
        drawn += [word] if word != context else []
    return np.array(drawn)


def _decisions(
    words: list[str], targets: list[int], hidden_D: np.ndarray, output_VD: np.ndarray, rate: float
) -> list[Decision]:
    """For the true word and each noise word: the dot product, its sigmoid, the step."""
    scores = output_VD[targets] @ hidden_D
    chances = reference.sigmoid(scores)
    return [
        Decision(
            words[row], label, 1.0, float(score), float(chance), rate * (label - float(chance))
        )
        for row, label, score, chance in zip(
            targets, [1, *[0] * (len(targets) - 1)], scores, chances, strict=True
        )
    ]


def _change(words: list[str], row: int, before: np.ndarray, after: np.ndarray) -> Change:
    return Change(words[row], before[row].tolist(), after[row].tolist())
