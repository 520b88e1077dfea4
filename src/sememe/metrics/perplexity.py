"""How well a language model foretells a text: sums of logarithms in, perplexity out."""

from __future__ import annotations

from typing import NamedTuple


class TextScore(NamedTuple):
    """How likely a text is; every sentence's end counts as a word."""

    log10: float  # of all words together
    num_words: int
    unknown_log10: float  # what unknown words have in it
    num_unknown: int

    @property
    def perplexity(self) -> float:
        """The number of words that would be equally likely at each place."""
        return 10.0 ** (-self.log10 / self.num_words) if self.num_words else float("nan")

    @property
    def known_perplexity(self) -> float:
        """The same, unknown words left out."""
        num = self.num_words - self.num_unknown
        return 10.0 ** (-(self.log10 - self.unknown_log10) / num) if num else float("nan")
