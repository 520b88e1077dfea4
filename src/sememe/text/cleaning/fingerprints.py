"""Fingerprints of documents: a hash of the text, its shingles, and MinHash keys of their set.

Two documents with the Jaccard similarity s share a key with probability 1 - (1 - s^r)^b: b bands of
r hash functions each (Broder 1997; Indyk and Motwani 1998). The keys only suggest pairs, which are
then compared by their shingles.
"""

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np

from sememe.randomness import numbers, stream_key
from sememe.text import characters
from sememe.text.cleaning.config import CleanConfig

NUM_HASHES = 128
MOST_KEPT = 1024  # shingles of a document; the similarity of longer ones is off by 1 % or so
_LEAST_FOUND = 0.99  # of the pairs right at the threshold
_KEY = stream_key(0x6D696E)  # of the hash functions, which are the same for every corpus


class Fingerprints(NamedTuple):
    """What is kept of N documents: text hashes, keys (bands × N), shingles one after the other."""

    hashes: np.ndarray
    keys: np.ndarray
    num_shingles: np.ndarray
    shingles: np.ndarray


@cache
def bands_and_rows(threshold: float) -> tuple[int, int]:
    """The most rows per band, and their bands, that find nearly all pairs at the threshold."""
    for rows in range(NUM_HASHES, 1, -1):
        bands = NUM_HASHES // rows
        if 1 - (1 - threshold**rows) ** bands >= _LEAST_FOUND:
            return bands, rows
    return NUM_HASHES, 1


@cache
def hash_functions() -> tuple[np.ndarray, np.ndarray]:
    """The factors (odd, so that no two values become one) and offsets of x → factor x + offset."""
    drawn = (numbers(_KEY, 2 * NUM_HASHES) >> np.uint64(32)).astype(np.uint32)
    return drawn[:NUM_HASHES] | np.uint32(1), drawn[NUM_HASHES:]


@cache
def character_tables() -> tuple[np.ndarray, np.ndarray]:
    """Class and lower case by code point; symbols that may carry meaning (☺, €) are marked."""
    from sememe.text.cleaning.kernels import SYMBOL

    classes, lower = characters.tables()
    classes = classes.copy()
    # Not those of ASCII or box drawing, of which lines are drawn.
    codes = [ord("$"), *range(0x80, 0x2500), *range(0x25A0, 0x20000)]
    symbols = [code for code in codes if unicodedata.category(chr(code)) in ("Sm", "Sc", "So")]
    classes[symbols] |= SYMBOL
    return classes, lower


def fingerprint(text: bytes, ends: np.ndarray, config: CleanConfig) -> Fingerprints:
    """Fingerprint the documents of `text` that end at `ends`."""
    from sememe.text.cleaning import kernels

    data, num = np.frombuffer(text, np.uint8), len(ends)
    hashes = np.empty(num, np.uint64)
    kernels.hash_parts(data, np.concatenate(([0], ends[:-1])), ends, hashes)
    if not config.near_duplicates:
        return Fingerprints(
            hashes, np.empty((0, num), np.uint32), np.zeros(num, np.uint16), np.empty(0, np.uint32)
        )
    num_bands, num_rows = bands_and_rows(config.threshold)
    shingles = np.empty(len(data) + num, np.uint32)
    num_shingles = np.empty(num, np.uint16)
    keys = np.empty((num_bands, num), np.uint32)
    size = kernels.fingerprint(
        data, ends, *character_tables(), config.shingles == "characters", config.shingle_size,
        *hash_functions(), num_rows, MOST_KEPT, shingles, num_shingles, keys,
    )  # fmt: skip
    return Fingerprints(hashes, keys, num_shingles, shingles[:size].copy())
