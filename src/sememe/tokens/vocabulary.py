"""Vocabulary: words in order of falling count, kept as flat arrays that can be memory-mapped.

A Python dict of a million words takes 0.6 s to build; a binary search over a sorted permutation
of mapped bytes finds one word in microseconds.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, OptionError, UnknownWordError

_BLOCK = 1 << 18


def read_only(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """A read-only view, because kernels are compiled again for writable arrays."""
    view = np.asarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _prefixes(
    word_bytes: np.ndarray, starts: np.ndarray, ends: np.ndarray, depth: int
) -> np.ndarray:
    """Bytes depth..depth+8 of each word as one big-endian number, zeros past its end."""
    keys = np.empty(len(starts), np.uint64)
    for low in range(0, len(starts), _BLOCK):  # blocks keep the index array small
        first, last = starts[low : low + _BLOCK] + depth, ends[low : low + _BLOCK]
        key = np.zeros(len(first), np.uint64)
        for offset in range(8):
            index = first + offset
            inside = index < last
            byte = word_bytes[np.where(inside, index, 0)].astype(np.uint64)
            key = (key << np.uint64(8)) | np.where(inside, byte, np.uint64(0))
        keys[low : low + _BLOCK] = key
    return keys


def sort_words(word_bytes: np.ndarray, word_ends: np.ndarray) -> np.ndarray:
    """Word ids ordered by the words' bytes, equal words by id, as Python's sorted would."""
    ends = np.asarray(word_ends, np.int64)
    if not len(word_bytes):
        return np.arange(len(ends), dtype=np.uint32)
    starts = np.concatenate(([0], ends[:-1]))
    first, second = (_prefixes(word_bytes, starts, ends, depth) for depth in (0, 8))
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    is_new = np.ones(len(order) + 1, bool)
    is_new[1:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    # The few words that share sixteen bytes with a neighbor are sorted plainly.
    tied = np.flatnonzero(~(is_new[:-1] & is_new[1:]))
    words = ((word_bytes[starts[own] : ends[own]].tobytes(), own) for own in order[tied].tolist())
    order[tied] = [word_id for _, word_id in sorted(words)]
    return order.astype(np.uint32)


# From this many look-ups on, a dict of all words has paid for itself.
_LOOKUPS_BEFORE_DICT = 2_000
# From this many words on, sorting them is ten times as fast as that dict.
_MANY_WORDS = 200_000
_MOST_NAMED = 10  # of unknown words in one error
_HIGHEST_COUNT = 2**53  # exact as a float, and the sum of many is still a 64-bit number


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
        """Build from words that are already in the order of their ids."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        ends = np.cumsum([len(word) for word in encoded], dtype=np.int64)
        word_bytes = np.frombuffer(b"".join(encoded), np.uint8)
        numbers = np.zeros(len(encoded), np.int64) if counts is None else list(counts)
        return cls(word_bytes, ends, np.asarray(numbers, np.int64))

    @classmethod
    def of(
        cls, words: Sequence[str] | Vocabulary, counts: Iterable[int] | None = None
    ) -> Vocabulary:
        """Return a vocabulary unchanged, or build one from distinct words."""
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

    def _word_at(self, place: int) -> bytes:
        """A word by its position in byte order."""
        return self._word_bytes(int(self.order[place]))

    def _search(self, key: bytes) -> int:
        place = bisect.bisect_left(range(len(self)), key, key=self._word_at)
        is_known = place < len(self) and self._word_at(place) == key
        return int(self.order[place]) if is_known else -1

    def __contains__(self, word: object) -> bool:
        return self.find(word) >= 0

    def id(self, word: str) -> int:
        """The id of `word`; an unknown one raises an error with similar spellings."""
        return self.ids([word])[0]

    def ids(self, words: Iterable[str]) -> list[int]:
        """The ids of words; unknown ones raise one error, with similar spellings of each."""
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
                else "No word is spelled like it: try another."
            )
            return f"“{word}” is not among the {len(self):,} words. {hint}"
        named = [f"“{word}”" + (f" (near: {own})" if own else "") for word, own in near.items()]
        named += [f"{len(unknown) - _MOST_NAMED:,} more"] * (len(unknown) > _MOST_NAMED)
        return (
            f"{len(unknown):,} words are not among the {len(self):,}: {', '.join(named)}. "
            "Spell them as the model does, or leave them out."
        )

    def near_spellings(self, word: str, num: int = 3, among: int = 200_000) -> list[str]:
        """Known words with a similar spelling, searched among the most frequent ones."""
        folded: dict[str, str] = {}
        for known in self[: min(among, len(self))]:
            # Words that share neither start nor length cannot be close: skip them cheaply.
            if abs(len(known) - len(word)) <= 2 and known[:1].lower() == word[:1].lower():
                folded.setdefault(known.lower(), known)
        found = difflib.get_close_matches(word.lower(), folded, n=num, cutoff=0.7)
        return [folded[key] for key in found]

    def starting_with(self, start: str) -> np.ndarray:
        """The ids of all words that begin with these letters, most frequent first."""
        key, places = start.encode("utf-8", "surrogatepass"), range(len(self))
        low = bisect.bisect_left(places, key, key=self._word_at)
        high = bisect.bisect_left(places, key + b"\xff", key=self._word_at)  # no byte of UTF-8
        return np.sort(np.asarray(self.order[low:high], np.int64))

    def cut(self, size: int) -> Vocabulary:
        """The first `size` words."""
        if size >= len(self):
            return self
        end = int(self._ends[size - 1]) if size else 0
        order = None if self._order is None else self._order[self._order < size]
        return Vocabulary(self._bytes[:end], self._ends[:size], self.counts[:size], order)

    def to_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of all words and where each word ends in them (int64), both read-only."""
        return read_only(self._bytes), read_only(self._ends, np.int64)

    def to_records(self) -> np.ndarray:
        """The bytes of all words, each followed by the WORD_END of text.words."""
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
    def from_tensors(
        cls, tensors: Mapping[str, np.ndarray], where: str | Path = "The vocabulary"
    ) -> Vocabulary:
        """The vocabulary in arrays of `to_tensors`; `where` is the file in errors."""
        names = ("word_bytes", "word_ends", "word_counts", "word_order")
        if missing := [name for name in names if name not in tensors]:
            raise ArtifactError(f"{where} lacks its tensor {missing[0]}.")
        word_bytes, ends, counts, order = (tensors[name] for name in names)
        check_words(word_bytes, ends, counts, order, where=where)
        return cls(word_bytes, ends, counts, order)


def check_words(
    word_bytes: np.ndarray,
    ends: np.ndarray,
    counts: np.ndarray,
    order: np.ndarray | None = None,
    *,
    where: str | Path,
    is_text: bool = True,
) -> None:
    """Raise an error for arrays that are not a valid vocabulary, before a kernel uses them.

    Takes some 50 ms for a million words. Without `is_text` the words may be any bytes.
    """
    numbers = [ends, counts] if order is None else [ends, counts, order]
    problem = ""
    if word_bytes.dtype != np.uint8 or any(own.dtype.kind not in "iu" for own in numbers):
        problem = "its tensors are of the wrong type"
    elif word_bytes.ndim != 1 or any(own.shape != (len(ends),) for own in numbers):
        problem = "its tensors do not fit each other"
    elif int(ends[-1] if len(ends) else 0) != len(word_bytes):
        problem = "the ends of its words do not fit their letters"
    elif len(ends) and (ends[0] < 0 or np.any(ends[1:] < ends[:-1])):
        problem = "the ends of its words do not rise"
    elif len(counts) and not 0 <= int(counts.min()) <= int(counts.max()) <= _HIGHEST_COUNT:
        problem = f"a word is counted {int(counts.min()):,} or {int(counts.max()):,} times"
    elif order is not None and not _is_permutation(order):
        problem = "its order names a word twice or one that is not there"
    elif is_text and not _is_utf8(word_bytes, ends):
        problem = "its words are not UTF-8"
    if problem:
        raise ArtifactError(f"{where} is damaged: {problem}; copy it again, or train it again.")


def _is_permutation(order: np.ndarray) -> bool:
    if not len(order) or order.min() < 0 or order.max() >= len(order):
        return not len(order)
    is_named = np.zeros(len(order), bool)
    is_named[order] = True
    return bool(is_named.all())


def _is_utf8(word_bytes: np.ndarray, ends: np.ndarray) -> bool:
    starts = ends[:-1][ends[:-1] < len(word_bytes)]
    # A word that starts inside a character has a byte of the form 10xxxxxx first.
    if np.any(word_bytes[starts] & 0xC0 == 0x80):
        return False
    try:
        word_bytes.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
