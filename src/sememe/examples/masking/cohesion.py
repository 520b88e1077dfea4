"""Phrases that words alone do not show: word sequences that hold together and stand freely.

A sequence of two to four words is a phrase if each of its cuts parts words that occur together far
more often than by chance (pointwise mutual information), and if many different words are before and
after it (entropy of its neighbors). The first test leaves out 的 人, the second a part such as
联合国 安全 of 联合国 安全 理事会. W words of a text.
"""

from typing import NamedTuple

import numpy as np

from sememe.randomness import GOLDEN, MIX_1

MAX_WORDS = 4
_NOTHING = np.uint64(0)


class Rules(NamedTuple):
    """What makes a sequence of words a phrase."""

    min_count: int = 10
    cohesion: float = 2.0  # least mutual information over all cuts, in nats
    freedom: float = 1.5  # least entropy of the words before and after, in nats


RULES = Rules()


class Words(NamedTuple):
    """The words of a text: a code for each, its first token, the token after it, its sentence."""

    codes_W: np.ndarray  # int64 from 0, by kind; -1 for what is not a word
    starts_W: np.ndarray
    ends_W: np.ndarray
    sentence_W: np.ndarray


def words_of(
    ids: np.ndarray, word_starts: np.ndarray, sentence_ends: np.ndarray, is_special_V: np.ndarray
) -> Words:
    """Number the words of a text: words of the same tokens have the same code."""
    is_start = np.asarray(word_starts, bool).copy()
    is_start[np.concatenate([[0], sentence_ends[:-1]])[: len(sentence_ends)]] = True
    starts_W = np.flatnonzero(is_start)
    ends_W = np.append(starts_W[1:], len(ids))
    word_of = np.cumsum(is_start) - 1
    place = np.arange(len(ids)) - starts_W[word_of]
    mixed = _mix(np.asarray(ids, np.uint64) + (place.astype(np.uint64) << np.uint64(32)))
    hashes_W = np.add.reduceat(mixed, starts_W)
    codes_W = np.unique(hashes_W, return_inverse=True)[1].astype(np.int64)
    codes_W[np.add.reduceat(is_special_V[ids].astype(np.int64), starts_W) > 0] = -1
    sentence_W = np.searchsorted(sentence_ends, starts_W, "right")
    return Words(codes_W, starts_W, ends_W, sentence_W)


def _mix(values: np.ndarray) -> np.ndarray:
    values = (values + np.uint64(1)) * np.uint64(GOLDEN)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(MIX_1)
    return values ^ (values >> np.uint64(27))


def free_phrases(words: Words, rules: Rules = RULES) -> list[slice]:
    """The tokens of the first occurrence of each phrase, in the order of the text."""
    counts, keys = _counted(words)
    num_words = max(int((words.codes_W >= 0).sum()), 1)
    found = []
    for size in range(2, MAX_WORDS + 1):
        places = np.flatnonzero(counts[size] >= rules.min_count)
        cohesion = np.full(len(places), np.inf)
        for cut in range(1, size):
            parts = counts[cut][places] * counts[size - cut][places + cut].astype(np.float64)
            cohesion = np.minimum(cohesion, np.log(counts[size][places] * num_words / parts))
        places = places[cohesion >= rules.cohesion]
        found += _free(words, keys[size][places], places, size, rules.freedom)
    return [slice(*own) for own in sorted(found)]


def _counted(words: Words) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """For every size, how often the sequence that starts at each word occurs, and its key.

    What leaves its sentence, or has no word in it, counts 0.
    """
    codes_W, num = words.codes_W, len(words.codes_W)
    is_whole = codes_W >= 0
    key_W = _mix(codes_W.astype(np.uint64))
    counts, keys = {}, {}
    for size in range(1, MAX_WORDS + 1):
        if size > 1:
            last = np.minimum(np.arange(num) + size - 1, num - 1)
            is_whole = is_whole & (codes_W[last] >= 0) & (np.arange(num) + size <= num)
            is_whole &= words.sentence_W[last] == words.sentence_W
            key_W = _mix(key_W * np.uint64(MIX_1) + codes_W[last].astype(np.uint64))
        key_W = np.where(is_whole, key_W | np.uint64(1), _NOTHING)
        inverse, own = np.unique(key_W, return_inverse=True, return_counts=True)[1:]
        counts[size], keys[size] = np.where(is_whole, own[inverse], 0), key_W
    return counts, keys


def _free(
    words: Words, keys_P: np.ndarray, places: np.ndarray, size: int, freedom: float
) -> list[tuple[int, int]]:
    """The tokens of the sequences at these places whose neighbors on both sides vary enough."""
    if not len(places):
        return []
    _, first, kind_P = np.unique(keys_P, return_index=True, return_inverse=True)
    is_free = np.ones(len(first), bool)
    for neighbor in (places - 1, places + size):
        inside = np.clip(neighbor, 0, len(words.codes_W) - 1)
        is_edge = (inside != neighbor) | (words.sentence_W[inside] != words.sentence_W[places])
        # Each edge of a sentence is a neighbor of its own, like a word not seen elsewhere.
        beside = np.where(is_edge, -2 - places, words.codes_W[inside])
        is_free &= _entropies(kind_P, beside, len(first)) >= freedom
    chosen = places[first[is_free]]
    return list(
        zip(words.starts_W[chosen].tolist(), words.ends_W[chosen + size - 1].tolist(), strict=True)
    )


def _entropies(kind_P: np.ndarray, beside_P: np.ndarray, num_kinds: int) -> np.ndarray:
    """The entropy of the neighbors of each kind, in nats."""
    order = np.lexsort((beside_P, kind_P))
    kinds, beside = kind_P[order], beside_P[order]
    is_new = np.append(True, (np.diff(kinds) != 0) | (np.diff(beside) != 0))
    runs = np.diff(np.append(np.flatnonzero(is_new), len(kinds)))
    kind_of_run = kinds[is_new]
    share = runs / np.bincount(kind_P, minlength=num_kinds)[kind_of_run]
    return np.bincount(kind_of_run, -share * np.log(share), minlength=num_kinds)
