"""The dictionary of a fastText file: words and labels with their counts, and the kept n-grams."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.fasttext.cursor import Cursor

# A word, its zero byte, an int64 and a byte.
SMALLEST_ENTRY = 10
LONGEST_WORD = 1 << 16
# Up to here plain Python is done before the compiled parser would be loaded.
_FEW_ENTRIES = 20_000
_NOT_PRUNED = -1


class Dictionary(NamedTuple):
    """As in FastTextFile."""

    words: Vocabulary
    spellings: Vocabulary | None
    labels: Vocabulary
    num_tokens: int
    pruned: np.ndarray | None


class Entries(NamedTuple):
    """The bytes of all words, where each word ends in them, counts and types (1 is a label)."""

    word_bytes: np.ndarray
    ends: np.ndarray
    counts: np.ndarray
    types: np.ndarray


def read_dictionary(cursor: Cursor, bucket: int) -> Dictionary:
    """Read words, labels and the index of kept n-grams."""
    sizes = cursor.numbers("iiiqq", "the sizes of the dictionary")
    size, num_words, num_labels, num_tokens, num_pruned = sizes
    if min(num_words, num_labels, num_tokens) < 0 or size != num_words + num_labels:
        cursor.fail(
            f"it states {size:,} entries, {num_words:,} words, {num_labels:,} labels and "
            f"{num_tokens:,} tokens"
        )
    if num_words == 0:
        cursor.fail("it holds no words")
    if size * SMALLEST_ENTRY > cursor.num_left:
        cursor.fail(f"it states {size:,} words and labels, more than the file can hold")
    entries = _read_entries(cursor, size)
    expected = np.repeat(np.array([0, 1], np.uint8), [num_words, num_labels])
    if not np.array_equal(entries.types, expected):
        cursor.fail("its words do not come before its labels")
    if entries.counts.min() < 0:
        cursor.fail("a word has a negative count")
    words, spellings = _split(cursor, entries, 0, num_words)
    labels, _ = _split(cursor, entries, num_words, size)
    pruned = _read_pruned(cursor, num_pruned, bucket)
    return Dictionary(words, spellings, labels, num_tokens, pruned)


def _read_entries(cursor: Cursor, size: int) -> Entries:
    scan = scan_plainly if size < _FEW_ENTRIES else scan_fast
    entries, num_read, position = scan(cursor.data, cursor.position, size)
    cursor.position = position
    if num_read < size:
        cursor.fail(
            f"word {num_read:,} of {size:,} has no end within {LONGEST_WORD:,} bytes, or the file "
            "ends there"
        )
    return entries


def scan_plainly(data: np.ndarray, start: int, size: int) -> tuple[Entries, int, int]:
    """The reference: find each zero byte; gives the entries, their number, and the place after."""
    words, counts, types, position = [], [], [], start
    for _ in range(size):
        # Not past the longest word, so that a file without any end is not read whole.
        window = data[position : position + LONGEST_WORD + 1].tobytes()
        length = window.find(b"\0")
        if length < 0 or position + length + SMALLEST_ENTRY > len(data):
            break
        after = position + length + 1
        words.append(window[:length])
        counts.append(int.from_bytes(data[after : after + 8].tobytes(), "little", signed=True))
        types.append(int(data[after + 8]))
        position = after + 9
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    blob = np.frombuffer(b"".join(words), np.uint8)
    found = Entries(blob, ends, np.array(counts, np.int64), np.array(types, np.uint8))
    return found, len(words), position


def scan_fast(data: np.ndarray, start: int, size: int) -> tuple[Entries, int, int]:
    """The same as `scan_plainly`, by compiled code."""
    from sememe.vectors.formats.fasttext.kernels import copy_words, scan_entries

    ends, counts = np.empty(size, np.int64), np.empty(size, np.int64)
    types = np.empty(size, np.uint8)
    num_read, position = scan_entries(data, start, LONGEST_WORD, ends, counts, types)
    ends = ends[:num_read]
    word_bytes = np.empty(int(ends[-1]) if num_read else 0, np.uint8)
    copy_words(data, start, ends, word_bytes)
    found = Entries(word_bytes, ends, counts[:num_read], types[:num_read])
    return found, num_read, position


def _split(
    cursor: Cursor, entries: Entries, first: int, last: int
) -> tuple[Vocabulary, Vocabulary | None]:
    """The vocabulary of some entries, and their own bytes where those are not UTF-8."""
    start = int(entries.ends[first - 1]) if first else 0
    end = int(entries.ends[last - 1]) if last > first else start
    found = Vocabulary(
        entries.word_bytes[start:end], entries.ends[first:last] - start, entries.counts[first:last]
    )
    try:
        found.to_records().tobytes().decode("utf-8", "surrogatepass")
        return found, None
    except UnicodeDecodeError:
        words = [_mended(found._word_bytes(word_id)) for word_id in range(len(found))]
    warnings.warn(
        f"{cursor.path}: {sum('�' in word for word in words):,} words are not UTF-8 (the program "
        "that made the file cut text at any byte); they are shown with “�”.",
        stacklevel=2,
    )
    return Vocabulary.from_words(words, found.counts), found


def _mended(word: bytes) -> str:
    try:
        return word.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return word.decode("utf-8", "replace")


def _read_pruned(cursor: Cursor, num_pruned: int, bucket: int) -> np.ndarray | None:
    """The pairs (bucket, row) of the n-grams that pruning kept; None where nothing was pruned."""
    if num_pruned == _NOT_PRUNED:
        return None
    if num_pruned < 0:
        cursor.fail(f"it states {num_pruned:,} n-grams that were kept")
    pairs = np.array(cursor.take(8 * num_pruned, "the list of kept n-grams")).view("<i4")
    pairs = pairs.reshape(-1, 2).astype(np.int32)
    buckets, rows = pairs[:, 0], pairs[:, 1]
    if num_pruned and (
        pairs.min() < 0
        or buckets.max() >= bucket
        or rows.max() >= num_pruned
        or len(np.unique(buckets)) < num_pruned
    ):
        cursor.fail("its list of kept n-grams names a bucket or a row that is not there")
    return pairs
