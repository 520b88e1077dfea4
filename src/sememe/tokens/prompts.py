"""A text being typed: the words so far, the current one, and suggestions for the next.

Any model with a probability distribution over next words can use `suggest_words`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.text import characters as ch
from sememe.text.settings import TextSettings
from sememe.text.stream import cut_texts
from sememe.tokens.vocabulary import Vocabulary

# A capital letter starts a sentence wherever one may start.
_NEXT_WORD = " Zz"

# This many words of a script without spaces may be the start of one longer word.
_MAX_JOINED = 3

Distribution = Callable[[Sequence[str]], np.ndarray]


class Suggestion(NamedTuple):
    """A suggested word and its probability; `completes` are its letters that were typed."""

    text: str
    probability: float
    completes: str = ""


class Prompt(NamedTuple):
    """The words of the sentence in progress.

    `begun` is the word that the text ends in, if no space follows. In scripts without spaces it may
    be complete already (`may_be_whole`).
    """

    words: list[str]
    begun: str = ""
    may_be_whole: bool = False


def cut_sentences(text: str, settings: TextSettings) -> list[list[str]]:
    """Split one short text into sentences of words, by its settings."""
    (sentences,) = cut_texts([text], settings)
    return sentences


def read_prompt(text: str, settings: TextSettings) -> Prompt:
    """Find the words before the next one, and the word that the text ends in."""
    words = cut_sentences(text + _NEXT_WORD, settings)[-1][:-1]
    if not words or text[-1].isspace():
        return Prompt(words)
    kind = ch.classify(text[-1]) & ch.CLASS_MASK
    if settings.mode != "whitespace" and kind not in _OF_WORDS:
        return Prompt(words)
    return Prompt(words[:-1], words[-1], may_be_whole=kind == ch.IDEOGRAPH)


_OF_WORDS = (ch.LETTER, ch.DIGIT, ch.IDEOGRAPH, ch.MARK)


def suggest_words(
    vocabulary: Vocabulary, prompt: Prompt, distribution: Distribution, count: int
) -> list[Suggestion]:
    """The most likely next words or, if a word is begun, its completions.

    `distribution` gives the probability of each vocabulary word after some words (further entries
    are ignored). Probabilities are conditional on what has been typed.
    """
    if count < 1:
        raise OptionError(f"count must be at least 1, not {count}.")
    size = len(vocabulary)
    if not prompt.begun:
        chances = np.asarray(distribution(prompt.words))[:size]
        return _most_likely(vocabulary, np.arange(size), chances, count)
    if prompt.may_be_whole:
        return _without_spaces(vocabulary, [*prompt.words, prompt.begun], distribution, count)
    ids = vocabulary.starting_with(prompt.begun)
    chances = np.asarray(distribution(prompt.words))[ids]
    return _most_likely(vocabulary, ids, chances / (chances.sum() or 1.0), count, prompt.begun)


def _without_spaces(
    vocabulary: Vocabulary, words: list[str], distribution: Distribution, count: int
) -> list[Suggestion]:
    """Words that follow, or that the last words begin: 北京 and 大 may begin 北京大学.

    Each reading of the text is weighted by the probability of its words.
    """
    size, found = len(vocabulary), []
    weight, total = 1.0, 0.0
    for num_joined in range(min(_MAX_JOINED, len(words)), 0, -1):
        chances = np.asarray(distribution(words[:-num_joined]))[:size]
        own, joined = vocabulary.find(words[-num_joined]), "".join(words[-num_joined:])
        ids = vocabulary.starting_with(joined)
        ids = ids[ids != vocabulary.find(joined)]
        total += weight * float(chances[ids].sum())
        found += _most_likely(vocabulary, ids, weight * chances[ids], count, joined)
        # A word that is not known is as likely as the rarest that is.
        weight *= float(chances[own] if own >= 0 else chances.min())
    total += weight
    after = np.asarray(distribution(words))[:size]
    found += _most_likely(vocabulary, np.arange(size), weight * after, count)
    best = sorted(found, key=lambda one: -one.probability)[:count]
    return [one._replace(probability=one.probability / (total or 1.0)) for one in best]


def _most_likely(
    vocabulary: Vocabulary, ids: np.ndarray, chances: np.ndarray, count: int, begun: str = ""
) -> list[Suggestion]:
    """The words with the highest probabilities; ties go to the more frequent."""
    num = min(count, len(ids))
    if not num:
        return []
    best = np.argpartition(-chances, num - 1)[:num]
    # All that are as likely as the last of them, so that the order does not depend on the cut.
    best = np.flatnonzero(chances >= chances[best].min())
    best = best[np.lexsort((ids[best], -chances[best]))][:num]
    return [Suggestion(vocabulary[int(ids[one])], float(chances[one]), begun) for one in best]
