"""Phrases that are hidden as a whole (Sun et al. 2019, ERNIE): of a lexicon, or found in the text.

A lexicon is a file with one phrase or name a line. It is cut by the tokenizer of the text, so that
its entries are looked for as sequences of token ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.errors import InputError

if TYPE_CHECKING:
    from sememe.examples.documents import Documents

# Phrases are found in so many tokens at most, of documents spread over the text; words and pairs
# are counted in so many slots of 32 bytes.
_MAX_TOKENS = 1 << 22
_MAX_SLOTS = 1 << 23
_MIN_COUNT = 5
_THRESHOLD = 100.0


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
    entries = sorted({line.strip() for line in lines} - {""})
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
    """The trie of the pairs of words that meet far more often than chance."""
    phrases = find_phrases(documents, tokenizer)
    if not phrases:
        raise InputError(
            "No two words of the text meet often enough to be a phrase, so there is none to hide: "
            "give a lexicon of phrases, more text, or the unit word."
        )
    return build_trie(phrases, tokenizer.vocab_size)


def find_phrases(
    documents: Documents,
    tokenizer: Any,
    *,
    min_count: int = _MIN_COUNT,
    threshold: float = _THRESHOLD,
) -> list[np.ndarray]:
    """Ids of the pairs of words that score above `threshold` (Mikolov et al. 2013b, 4)."""
    from sememe.examples import spans_kernels as kernels

    num_tokens = len(documents.ids)
    stride = -(-num_tokens // _MAX_TOKENS)
    num_slots = min(1 << (4 * num_tokens).bit_length(), _MAX_SLOTS)
    keys, places = np.zeros(num_slots, np.uint64), np.zeros(num_slots, np.int64)
    counts, sizes, first, second = (np.zeros(num_slots, np.int32) for _ in range(4))
    num_words = kernels.count_word_pairs(
        documents.ids, documents.word_starts, documents.sentence_ends, documents.document_ends,
        stride, special_table(tokenizer), keys, counts, places, sizes, first, second,
    )  # fmt: skip
    pairs = np.flatnonzero((sizes > 0) & (counts > min_count))
    chance = counts[first[pairs]].astype(np.float64) * counts[second[pairs]] / max(num_words, 1)
    pairs = pairs[(counts[pairs] - min_count) / chance > threshold]
    pairs = pairs[np.argsort(places[pairs])]
    return [documents.ids[places[pair] : places[pair] + sizes[pair]] for pair in pairs]


def special_table(tokenizer: Any) -> np.ndarray:
    """For each id, whether it is a special token."""
    table = np.zeros(tokenizer.vocab_size, np.bool_)
    table[list(tokenizer.special_ids)] = True
    return table
