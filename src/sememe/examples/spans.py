"""Phrases that are hidden as a whole (Sun et al. 2019, ERNIE): of a lexicon, or found in the text.

A lexicon is a file with one phrase or name a line; a dictionary in jieba's form is one. It is cut
by the tokenizer of the text, so that its entries are looked for as sequences of token ids.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.tokens.tables import read_only

if TYPE_CHECKING:
    from sememe.examples.documents import Documents

# Phrases are found in so many tokens at most, of documents spread over the text; words and pairs
# are counted in so many slots of 32 bytes.
_MAX_TOKENS = 1 << 22
_MAX_SLOTS = 1 << 23
_PASSES = 2
_MIN_COUNT = 5
_THRESHOLD = 100.0

# What a dictionary of jieba's form says of a Chinese word: its frequency and a tag.
_WEIGHTS = re.compile(r"^(\S*[\u4e00-\u9fff]\S*)\s+\d+(\s+[a-zA-Z]+)?$")


class Trie(NamedTuple):
    """Phrases as sequences of ids; spans_kernels has the layout."""

    keys: np.ndarray  # int64
    states: np.ndarray  # int32
    is_end: np.ndarray  # uint8
    is_first: np.ndarray  # uint8, for each id whether a phrase starts with it


NO_PHRASES = Trie(
    np.full(1, -1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(1, np.uint8)
)


def read_lexicon(path: str | Path, tokenizer: Any) -> list[np.ndarray]:
    """The ids of every entry of a lexicon file that has several tokens, all of them known."""
    try:
        lines = Path(path).read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"Cannot read the lexicon {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"The lexicon {path} is not UTF-8 (byte {error.start:,}); convert it, for instance "
            "with iconv."
        ) from None
    entries = sorted({_WEIGHTS.sub(r"\1", line.strip()) for line in lines} - {""})
    if not entries:
        raise InputError(f"The lexicon {path} is empty: write one phrase or name a line.")
    special = np.array(sorted(tokenizer.special_ids))
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(entries)]
    return [ids for ids in encoded if len(ids) > 1 and not np.isin(ids, special).any()]


def build_trie(phrases: list[np.ndarray], vocab_size: int) -> Trie:
    """Put phrases into a trie."""
    from sememe.examples import spans_kernels as kernels

    if not phrases:
        return NO_PHRASES
    ids = np.concatenate(phrases).astype(np.int32)
    ends = np.cumsum([len(phrase) for phrase in phrases])
    num_slots = 1 << (2 * len(ids)).bit_length()
    trie = Trie(
        np.full(num_slots, -1, np.int64),
        np.zeros(num_slots, np.int32),
        np.zeros(len(ids) + 1, np.uint8),
        np.zeros(vocab_size, np.uint8),
    )
    kernels.build_trie(ids, ends, *trie)
    return trie


def lexicon_trie(path: str | Path, tokenizer: Any, documents: Documents) -> Trie:
    """The trie of a lexicon, some entry of which occurs in the text."""
    from sememe.examples import spans_kernels as kernels

    phrases = read_lexicon(path, tokenizer)
    trie = build_trie(phrases, tokenizer.vocab_size)
    found = kernels.find_phrase(
        documents.ids, documents.sentence_ends, tokenizer.is_continuation, *trie
    )
    if found < 0:
        raise InputError(
            f"No entry of the lexicon {path} with several tokens ({len(phrases):,} have) occurs in "
            "the text, so there is no phrase to hide: give another lexicon, or the unit word."
        )
    return trie


def detected_trie(tokenizer: Any, documents: Documents) -> Trie:
    """The trie of the words that meet far more often than chance."""
    phrases = find_phrases(documents, tokenizer)
    if not phrases:
        raise InputError(
            "No two words of the text meet often enough to be a phrase, so there is none to hide: "
            "give a lexicon of phrases, more text, or the unit word."
        )
    return build_trie(phrases, tokenizer.vocab_size)


class _Sample(NamedTuple):
    """The documents in which phrases are found; phrases found before are single words in it."""

    ids: np.ndarray
    word_starts: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray


def find_phrases(
    documents: Documents,
    tokenizer: Any,
    *,
    min_count: int = _MIN_COUNT,
    threshold: float = _THRESHOLD,
    passes: int = _PASSES,
) -> list[np.ndarray]:
    """Ids of the pairs of words that score above `threshold` (Mikolov et al. 2013b, 4).

    What one pass has found counts as one word in the next, so that two passes find phrases of
    up to four words.
    """
    from sememe.examples import spans_kernels as kernels

    sample = _sampled(documents)
    found: list[np.ndarray] = []
    for _ in range(passes):
        new = _find_pairs(sample, special_table(tokenizer), min_count, threshold)
        if not new:
            break
        found += new
        kernels.join_words(
            read_only(sample.ids), sample.word_starts, read_only(sample.sentence_ends),
            tokenizer.is_continuation, *build_trie(new, tokenizer.vocab_size),
        )  # fmt: skip
    return found


def _sampled(documents: Documents) -> _Sample:
    """Every so many documents of a text that is too long to be counted whole."""
    ids, word_starts = documents.ids, documents.word_starts
    sentence_ends, document_ends = documents.sentence_ends, documents.document_ends
    stride = -(-len(ids) // _MAX_TOKENS)
    if stride > 1:
        firsts = np.append(0, document_ends[:-1])[::stride]
        lasts = document_ends[::stride]
        starts = np.append(0, sentence_ends)
        sizes = [np.diff(starts[a : b + 1]) for a, b in zip(firsts, lasts, strict=True)]
        places = list(zip(starts[firsts], starts[lasts], strict=True))
        ids = np.concatenate([ids[a:b] for a, b in places])
        word_starts = np.concatenate([word_starts[a:b] for a, b in places])
        sentence_ends = np.cumsum(np.concatenate(sizes))
        document_ends = np.cumsum(lasts - firsts)
    return _Sample(ids, np.array(word_starts), sentence_ends, document_ends)


def _find_pairs(
    sample: _Sample, is_special_V: np.ndarray, min_count: int, threshold: float
) -> list[np.ndarray]:
    from sememe.examples import spans_kernels as kernels

    num_slots = min(1 << (4 * len(sample.ids)).bit_length(), _MAX_SLOTS)
    keys, places = np.zeros(num_slots, np.uint64), np.zeros(num_slots, np.int64)
    counts, sizes, first, second = (np.zeros(num_slots, np.int32) for _ in range(4))
    num_words = kernels.count_word_pairs(
        *map(read_only, sample), 1, is_special_V, keys, counts, places, sizes, first, second
    )
    pairs = np.flatnonzero((sizes > 0) & (counts > min_count))
    chance = counts[first[pairs]].astype(np.float64) * counts[second[pairs]] / max(num_words, 1)
    pairs = pairs[(counts[pairs] - min_count) / chance > threshold]
    pairs = pairs[np.argsort(places[pairs])]
    return [sample.ids[places[pair] : places[pair] + sizes[pair]] for pair in pairs]


def special_table(tokenizer: Any) -> np.ndarray:
    """For each id, whether it is a special token."""
    table = np.zeros(tokenizer.vocab_size, np.bool_)
    table[list(tokenizer.special_ids)] = True
    return table
