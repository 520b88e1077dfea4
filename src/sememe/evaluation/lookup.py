"""Words of a question file to ids of a vocabulary, with the chosen treatment of case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, get_args

from sememe.errors import OptionError
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

Case = Literal["fold", "lower", "exact"]


def has_subwords(vectors: WordVectors) -> bool:
    """Whether words outside the vocabulary have vectors too."""
    return bool(getattr(vectors, "has_subwords", False))


class Lookup:
    """Finds words among the first `restrict_vocab` ones (all, if None).

    `fold` takes every spelling of case for the same word, the most frequent one standing for all,
    as gensim does; `lower` tries the word as it stands and then in lower case; `exact` only as
    it stands.
    """

    def __init__(self, vocabulary: Vocabulary, case: Case, restrict_vocab: int | None) -> None:
        if case not in get_args(Case):
            raise OptionError(f"case must be one of {', '.join(get_args(Case))}, not {case!r}.")
        if restrict_vocab is not None and restrict_vocab < 1:
            raise OptionError(f"restrict_vocab must be at least 1, not {restrict_vocab}.")
        self.vocabulary, self.case = vocabulary, case
        self.size = min(len(vocabulary), restrict_vocab or len(vocabulary))

    @cached_property
    def _folded(self) -> dict[str, list[int]]:
        # Upper case, because gensim's: the two foldings differ for a few letters (ß, ſ).
        folded: dict[str, list[int]] = defaultdict(list)
        for word_id, word in enumerate(self.vocabulary[: self.size]):
            folded[word.upper()].append(word_id)
        return dict(folded)

    @cached_property
    def variants(self) -> Mapping[int, Sequence[int]]:
        """All ids that fold to one word, by the id that stands for them; only where several do."""
        if self.case != "fold":
            return {}
        return {ids[0]: ids for ids in self._folded.values() if len(ids) > 1}

    def spelling(self, word: str) -> str:
        """The known word that stands for `word`; an unknown one in lower case unless `exact`."""
        word_id = self.find(word)
        if word_id >= 0:
            return str(self.vocabulary[word_id])
        return word if self.case == "exact" else word.lower()

    def find(self, word: str) -> int:
        """The id that stands for `word`, or -1."""
        if self.case == "fold":
            return self._folded.get(word.upper(), [-1])[0]
        word_id = self.vocabulary.find(word)
        if not 0 <= word_id < self.size and self.case == "lower":
            word_id = self.vocabulary.find(word.lower())
        return word_id if word_id < self.size else -1
