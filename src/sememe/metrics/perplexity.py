"""Perplexity of a language model: mean losses or logarithms in, perplexity out."""

import math
from typing import NamedTuple


def perplexity(loss: float) -> float:
    """The perplexity of a mean loss in nats.

    It is capped for a huge loss, so that even its square is finite.
    """
    return math.exp(min(loss, 300.0))


class TextScore(NamedTuple):
    """The log probability of a text; every sentence end counts as a word."""

    log10: float  # of all words together
    num_words: int
    unknown_log10: float  # the part of unknown words in it
    num_unknown: int

    @property
    def perplexity(self) -> float:
        """The perplexity over all words."""
        return _of_log10(self.log10, self.num_words)

    @property
    def known_perplexity(self) -> float:
        """The perplexity without unknown words."""
        return _of_log10(self.log10 - self.unknown_log10, self.num_words - self.num_unknown)


def _of_log10(log10: float, num_words: int) -> float:
    return perplexity(-log10 * math.log(10) / num_words) if num_words else math.nan
