"""Vocabulary: words in order of falling count, kept as flat arrays that can be memory-mapped.

A Python dict of a million words takes 0.6 s to build; a binary search over a sorted
permutation of mapped bytes finds one word in microseconds and loads nothing.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from sememe.errors import ArtifactError, OptionError, UnknownWordError
from sememe.tokens.sorting import sort_words

# From this many look-ups on, a dict of all words has paid for itself.
_LOOKUPS_BEFORE_DICT = 2_000
# From this many words on, sorting them is ten times as fast as that dict.
_MANY_WORDS = 200_000
_MOST_NAMED = 10  # of unknown words in one error


class Vocabulary(Sequence[str]):
    """Words by id. `counts` is all zero where the source (a vector file) has none."""

    def __init__(
        self,
        word_bytes: np.ndarray,
        word_ends: np.ndarray,
        counts: np.ndarray,
        order: np.ndarray | None = None,
    ) -> None:
        # A memmap as a plain array: the same memory, and an element in a third of the time.
        self._bytes, self._ends = np.asarray(word_bytes), np.asarray(word_ends)
        self.counts, self._order = counts, None if order is None else np.asarray(order)
        self._dict: dict[str, int] | None = None
        self._num_lookups = 0

    @classmethod
    def from_words(cls, words: Iterable[str], counts: Iterable[int] | None = None) -> Vocabulary:
        """Build from words already in the order that their ids shall have."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        ends = np.cumsum([len(word) for word in encoded], dtype=np.int64)
        word_bytes = np.frombuffer(b"".join(encoded), np.uint8)
        numbers = np.zeros(len(encoded), np.int64) if counts is None else list(counts)
        return cls(word_bytes, ends, np.asarray(numbers, np.int64))

    @classmethod
    def of(
        cls, words: Sequence[str] | Vocabulary, counts: Iterable[int] | None = None
    ) -> Vocabulary:
        """Take a vocabulary as it is, or build one of words of which none is given twice."""
        if isinstance(words, Vocabulary):
            return words if counts is None else cls.from_words(words, counts)
        if isinstance(words, str):
            raise OptionError("words must be a sequence of words, not one string.")
        vocabulary = cls.from_words(words, counts)
        if len(set(words)) < len(vocabulary):
            twice = next(word for word, count in Counter(words).items() if count > 1)
            raise OptionError(f"The word “{twice}” is given more than once.")
        return vocabulary

    def _word_bytes(self, word_id: int) -> bytes:
        start = int(self._ends[word_id - 1]) if word_id else 0
        return self._bytes[start : int(self._ends[word_id])].tobytes()

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, word_id):  # type: ignore[no-untyped-def]
        if isinstance(word_id, slice):
            return [self[index] for index in range(*word_id.indices(len(self)))]
        if not -len(self) <= word_id < len(self):
            raise IndexError(f"word id {word_id} is outside a vocabulary of {len(self)}")
        return self._word_bytes(int(word_id) % len(self)).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        blob, start = self._bytes.tobytes(), 0
        for end in self._ends.tolist():
            yield blob[start:end].decode("utf-8", "surrogatepass")
            start = end

    @property
    def order(self) -> np.ndarray:
        """Word ids sorted by the words' UTF-8 bytes."""
        if self._order is None:
            self._order = sort_words(self._bytes, self._ends)
        return self._order

    def find(self, word: object) -> int:
        """The id of `word`, or -1."""
        if not isinstance(word, str):
            return -1
        if self._dict is None:
            self._num_lookups += 1
            if len(self) >= _MANY_WORDS:
                self._order = self.order
            if self._order is not None and self._num_lookups < _LOOKUPS_BEFORE_DICT:
                return self._search(word.encode("utf-8", "surrogatepass"))
            # The first of two equal words keeps the name, as in every other tool.
            self._dict = {}
            for word_id, known in enumerate(self):
                self._dict.setdefault(known, word_id)
        return self._dict.get(word, -1)

    def _search(self, key: bytes) -> int:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._word_bytes(int(self.order[middle])) < key:
                low = middle + 1
            else:
                high = middle
        if low < len(self) and self._word_bytes(int(self.order[low])) == key:
            return int(self.order[low])
        return -1

    def __contains__(self, word: object) -> bool:
        return self.find(word) >= 0

    def id(self, word: str) -> int:
        """The id of `word`; an unknown one gives an error that names near spellings."""
        return self.ids([word])[0]

    def ids(self, words: Iterable[str]) -> list[int]:
        """The ids of words; unknown ones give one error, with near spellings of each."""
        words = list(words)
        found = {word: self.find(word) for word in words}
        if unknown := [word for word, word_id in found.items() if word_id < 0]:
            raise UnknownWordError(self._refusal(unknown))
        return [found[word] for word in words]

    def _refusal(self, unknown: Sequence[str]) -> str:
        near = {word: ", ".join(self.near_spellings(word)) for word in unknown[:_MOST_NAMED]}
        if len(unknown) == 1:
            (word, spellings), *_ = near.items()
            hint = (
                f"Near spellings: {spellings}."
                if spellings
                else "None is spelled like it: take another."
            )
            return f"“{word}” is not among the {len(self):,} words. {hint}"
        named = [f"“{word}”" + (f" (near: {own})" if own else "") for word, own in near.items()]
        named += [f"{len(unknown) - _MOST_NAMED:,} more"] * (len(unknown) > _MOST_NAMED)
        return (
            f"{len(unknown):,} words are not among the {len(self):,}: {', '.join(named)}. "
            "Spell them as the model does, or leave them out."
        )

    def near_spellings(self, word: str, num: int = 3, among: int = 200_000) -> list[str]:
        """Known words that look like `word`, searched among the most frequent ones."""
        folded: dict[str, str] = {}
        for known in self[: min(among, len(self))]:
            # Words that share neither start nor length cannot be close: skip them cheaply.
            if abs(len(known) - len(word)) <= 2 and known[:1].lower() == word[:1].lower():
                folded.setdefault(known.lower(), known)
        found = difflib.get_close_matches(word.lower(), folded, n=num, cutoff=0.7)
        return [folded[key] for key in found]

    def starting_with(self, start: str) -> np.ndarray:
        """The ids of all words that begin with these letters, most frequent first."""
        key = start.encode("utf-8", "surrogatepass")

        def word_at(place: int) -> bytes:
            return self._word_bytes(int(self.order[place]))

        places = range(len(self))
        low = bisect.bisect_left(places, key, key=word_at)
        high = bisect.bisect_left(places, key + b"\xff", key=word_at)  # no byte of UTF-8
        return np.sort(np.asarray(self.order[low:high], np.int64))

    def cut(self, size: int) -> Vocabulary:
        """The first `size` words."""
        if size >= len(self):
            return self
        end = int(self._ends[size - 1]) if size else 0
        order = None if self._order is None else self._order[self._order < size]
        return Vocabulary(self._bytes[:end], self._ends[:size], self.counts[:size], order)

    def to_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of all words and where each word ends in them (int64), both read-only.

        Always read-only, because a kernel is compiled once more for arrays that can be written.
        """
        word_bytes = np.asarray(self._bytes)[:]
        word_ends = np.asarray(self._ends, np.int64)[:]
        word_bytes.flags.writeable = word_ends.flags.writeable = False
        return word_bytes, word_ends

    def to_records(self) -> np.ndarray:
        """The bytes of all words, each followed by the WORD_END of text.records."""
        records = np.full(len(self._bytes) + len(self), 0x1F, np.uint8)
        is_word = np.ones(len(records), bool)
        is_word[self._ends + np.arange(len(self))] = False
        records[is_word] = self._bytes
        return records

    def to_tensors(self) -> dict[str, np.ndarray]:
        """The arrays that `from_tensors` maps back."""
        return {
            "word_bytes": self._bytes,
            "word_ends": np.asarray(self._ends, np.int64),
            "word_counts": np.asarray(self.counts, np.int64),
            "word_order": np.asarray(self.order, np.uint32),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> Vocabulary:
        """The vocabulary in arrays made by `to_tensors`, checked for fit."""
        try:
            names = ("word_bytes", "word_ends", "word_counts", "word_order")
            word_bytes, ends, counts, order = (tensors[name] for name in names)
        except KeyError as error:
            raise ArtifactError(f"The vocabulary lacks its tensor {error}.") from None
        if not len(ends) == len(counts) == len(order) or (
            len(ends) and int(ends[-1]) != len(word_bytes)
        ):
            raise ArtifactError("The vocabulary's tensors do not fit each other.")
        return cls(word_bytes, ends, counts, order)
