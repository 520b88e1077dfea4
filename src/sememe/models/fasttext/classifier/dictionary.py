"""Words, labels and buckets of a corpus: blocks of lines in, rows of the input matrix out.

Blocks are tokenized; their distinct tokens (types) go into one table. The rows of the input matrix
are the words, by falling count, then the n-grams. Of the buckets that n-grams are hashed into, only
those that occur have a row; Facebook's files list them all.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sememe.machine import in_order
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig
from sememe.models.fasttext.classifier.kernels import gather_lines, shuffle
from sememe.models.fasttext.classifier.line_kernels import (
    NO_LABEL,
    UNKNOWN,
    add_types,
    build_slots,
    expand_lines,
    find_types,
    has_prefix,
    hash_words,
    keep_known,
    longest_line,
    map_buckets,
    mark_buckets,
    scan_block,
)
from sememe.randomness import stream_key
from sememe.tokens.ngrams import check_options, ngram_rows
from sememe.tokens.vocabulary import Vocabulary

_LINE_END = b"</s>"


class TokenBlock(NamedTuple):
    """A block of tokenized text; types by their position in `data`."""

    data: np.ndarray  # uint8, </s> and then the lines
    tokens: np.ndarray  # int32, the type of each
    line_ends: np.ndarray  # int64
    starts: np.ndarray
    sizes: np.ndarray
    hashes: np.ndarray  # uint32
    counts: np.ndarray


def scan(text: bytes) -> TokenBlock:
    """Tokenize lines."""

    data = np.frombuffer(_LINE_END + text, np.uint8)
    return TokenBlock(data, *scan_block(data))


class TypeTable:
    """All types of a text with their counts; grows block by block."""

    def __init__(self) -> None:
        self.num_types, self.num_tokens = 0, 0
        self._arena = np.empty(1 << 16, np.uint8)
        self._ends = np.zeros(1 << 12, np.int64)
        self._hashes = np.empty(1 << 12, np.uint32)
        self._counts = np.zeros(1 << 12, np.int64)
        self._slots = np.full(1 << 13, -1, np.int32)

    def _make_room(self, num_types: int, num_bytes: int) -> None:

        needed = self.num_types + num_types
        if needed > len(self._ends):
            more = max(needed, 2 * len(self._ends)) - len(self._ends)
            self._ends = np.concatenate([self._ends, np.zeros(more, np.int64)])
            self._hashes = np.concatenate([self._hashes, np.zeros(more, np.uint32)])
            self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])
        if 2 * needed > len(self._slots):
            self._slots = np.full(1 << (2 * needed).bit_length(), -1, np.int32)
            build_slots(self._hashes[: self.num_types], self._slots)
        used = int(self._ends[self.num_types - 1]) if self.num_types else 0
        if used + num_bytes > len(self._arena):
            more = max(used + num_bytes, 2 * len(self._arena)) - len(self._arena)
            self._arena = np.concatenate([self._arena, np.empty(more, np.uint8)])

    def add(self, block: TokenBlock) -> np.ndarray:
        """Add a block's types and count them; return their positions in the table."""

        self._make_room(len(block.starts), int(block.sizes.sum()))
        places = np.empty(len(block.starts), np.int32)
        types = (block.data, block.starts, block.sizes, block.hashes)
        known = (self._arena, self._ends, self._hashes, self._slots)
        find_types(*types, *known, places)
        self.num_types = int(add_types(*types, places, self.num_types, *known))
        self._counts[places] += block.counts
        self.num_tokens += int(block.counts.sum())
        return places

    @property
    def types(self) -> tuple[np.ndarray, ...]:
        """(bytes, starts, sizes, hashes, counts) of all types."""
        num = self.num_types
        return self._arena, *_spans(self._ends[:num]), self._hashes[:num], self._counts[:num]


def _spans(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and sizes of concatenated types."""
    starts = np.concatenate([np.zeros(1, np.int64), ends])[: len(ends)]
    return starts, (ends - starts).astype(np.int32)


def words_as_block(words: Vocabulary) -> TokenBlock:
    """The words of a vocabulary as types without tokens, so that a table can add them."""

    data, ends = words.to_arrays()
    starts, sizes = _spans(ends)
    hashes = np.empty(len(ends), np.uint32)
    hash_words(data, starts, sizes, hashes)
    none = np.empty(0, np.int32)
    return TokenBlock(data, none, none, starts, sizes, hashes, np.zeros(len(ends), np.int64))


MIX = 11  # purpose of the random stream that gives the order of the lines


@dataclass(frozen=True)
class Lines:
    """A text as the training kernels read it, and its dictionary.

    Line l has the items items[ends[l - 1]:ends[l]]: rows, or, with character n-grams, types below
    len(type_ends), whose rows are in type_rows; word n-grams follow. `buckets` names the bucket of
    each row after those of the words.
    """

    words: Vocabulary
    labels: Vocabulary
    num_tokens: int
    ends: np.ndarray  # int64
    items: np.ndarray  # int32
    label_ends: np.ndarray  # int64
    label_ids: np.ndarray  # int32
    type_ends: np.ndarray  # int64
    type_rows: np.ndarray  # int32
    buckets: np.ndarray  # int32
    longest: int  # rows of the longest line

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def num_rows(self) -> int:
        """Rows of the input matrix."""
        return len(self.words) + len(self.buckets)


def encode(
    texts: Iterable[bytes], config: FastTextClassifierConfig, more: Vocabulary | None = None
) -> Lines:
    """Read blocks of lines; the words of `more` get rows even if they are not in the text."""
    table = TypeTable()
    tokens: list[np.ndarray] = []
    line_ends: list[np.ndarray] = []
    with ThreadPoolExecutor(config.num_workers) as pool:
        for block in in_order(pool, scan, texts, 2 * config.num_workers):
            tokens.append(table.add(block)[block.tokens])
            line_ends.append(block.line_ends)
    given = table.add(words_as_block(more)) if more is not None and len(more) else None
    numbering = _number(table, config, given)
    if config.has_buckets:
        check_options(len(numbering.words), config.minn, config.maxn, config.bucket)
    return _encode(numbering, tokens, line_ends, config, table.num_tokens)


class _Numbering(NamedTuple):
    """Types in their final order: kept words, words without a row, labels."""

    words: Vocabulary
    labels: Vocabulary
    new_ids: np.ndarray  # int32, for each place in the table
    kinds: np.ndarray  # int32, see text_kernels
    hashes: np.ndarray
    type_ends: np.ndarray
    type_rows: np.ndarray
    num_types: int  # of words


def _number(
    table: TypeTable, config: FastTextClassifierConfig, given: np.ndarray | None
) -> _Numbering:

    data, starts, sizes, hashes, counts = table.types
    is_label = np.zeros(len(starts), np.bool_)
    has_prefix(data, starts, sizes, np.frombuffer(config.label_prefix.encode(), np.uint8), is_label)
    is_kept = counts >= np.where(is_label, config.min_count_label, config.min_count)
    if given is not None:
        is_kept[given] = True
        counts[given] = np.maximum(counts[given], 1)
    # The order of Facebook's dictionary, except for ties, which keep the order of the text.
    order = np.lexsort((np.arange(len(starts)), -counts, ~is_kept, is_label))
    new_ids = np.empty(len(order), np.int32)
    new_ids[order] = np.arange(len(order), dtype=np.int32)
    num_types = int(len(order) - is_label.sum())
    num_words, num_labels = int((is_kept & ~is_label).sum()), int((is_kept & is_label).sum())
    kinds = np.full(len(order), UNKNOWN, np.int32)
    kinds[:num_words] = np.arange(num_words)
    kinds[num_types:] = NO_LABEL
    kinds[num_types : num_types + num_labels] = -2 - np.arange(num_labels)
    words = chosen_types(data, starts, sizes, counts, order[:num_words])
    labels = chosen_types(data, starts, sizes, counts, order[num_types : num_types + num_labels])
    type_ends, type_rows = np.empty(0, np.int64), np.empty(0, np.int32)
    if config.maxn:
        types = chosen_types(data, starts, sizes, counts, order[:num_types])
        type_ends, type_rows = rows_of_types(types, kinds[:num_types], config, num_words)
    return _Numbering(words, labels, new_ids, kinds, hashes[order], type_ends, type_rows, num_types)


def rows_of_types(
    types: Vocabulary, kinds: np.ndarray, config: FastTextClassifierConfig, num_words: int
) -> tuple[np.ndarray, np.ndarray]:
    """(ends, rows) of each type: its own row and those of its n-grams, if all buckets have one."""

    ends, rows = ngram_rows(types, config.minn, config.maxn, config.bucket)
    num_rows = keep_known(ends, rows, kinds, num_words)
    return ends, rows[:num_rows]


def chosen_types(
    data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, counts: np.ndarray, chosen: np.ndarray
) -> Vocabulary:
    """Some types, by their places in `data`, as a vocabulary."""
    ends = np.cumsum(sizes[chosen], dtype=np.int64)
    # Byte i of word w comes from starts[w] + i.
    shifts = np.repeat(starts[chosen] - (ends - sizes[chosen]), sizes[chosen])
    return Vocabulary(data[np.arange(len(shifts)) + shifts], ends, counts[chosen].copy())


def _encode(
    numbering: _Numbering,
    tokens: list[np.ndarray],
    line_ends: list[np.ndarray],
    config: FastTextClassifierConfig,
    num_tokens: int,
) -> Lines:
    kept_types = numbering.num_types if config.maxn else 0

    def expand_block(index: int) -> Expanded:
        # Each block's tokens are freed as soon as they are used.
        ids, tokens[index] = numbering.new_ids[tokens[index]], np.empty(0, np.int32)
        return expand(
            ids, line_ends[index], numbering.kinds, numbering.hashes, None, kept_types, config,
            len(numbering.words),
        )  # fmt: skip

    with ThreadPoolExecutor(config.num_workers) as pool:
        blocks = list(pool.map(expand_block, range(len(tokens))))
    items, ends = join_lines([block.items for block in blocks], [block.ends for block in blocks])
    label_ids, label_ends = join_lines(
        [block.labels for block in blocks], [block.label_ends for block in blocks]
    )
    first = kept_types or len(numbering.words)
    type_rows = numbering.type_rows
    buckets = _compact(items, first, type_rows, len(numbering.words), config)
    lines = Lines(
        words=numbering.words, labels=numbering.labels, num_tokens=num_tokens,
        ends=ends, items=items, label_ends=label_ends, label_ids=label_ids,
        type_ends=numbering.type_ends, type_rows=type_rows, buckets=buckets,
        longest=int(longest_line(ends, items, numbering.type_ends)),
    )  # fmt: skip
    return mix_lines(lines, config)


class Expanded(NamedTuple):
    """Lines of a block as items and labels."""

    items: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    label_ends: np.ndarray


def expand(
    tokens: np.ndarray,
    line_ends: np.ndarray,
    kinds: np.ndarray,
    hashes: np.ndarray,
    types: tuple[np.ndarray, np.ndarray] | None,
    kept_types: int,
    config: FastTextClassifierConfig,
    num_words: int,
) -> Expanded:
    """Turn tokens into items: rows, or types if `kept_types` says how many are kept."""

    type_ends, type_rows = types or (np.empty(0, np.int64), np.empty(0, np.int32))
    num_items = len(tokens) * config.word_ngrams
    if len(type_ends):
        num_items += int(np.diff(type_ends, prepend=0)[tokens].sum())
    items = np.empty(num_items, np.int32)
    labels = np.empty(len(tokens), np.int32)
    ends, label_ends = np.empty_like(line_ends), np.empty_like(line_ends)
    num_items, num_labels = expand_lines(
        tokens, line_ends, kinds, hashes, type_ends, type_rows, kept_types, config.word_ngrams,
        max(1, config.bucket), num_words, items, ends, labels, label_ends,
    )  # fmt: skip
    return Expanded(items[:num_items].copy(), ends, labels[:num_labels].copy(), label_ends)


def join_lines(arrays: list[np.ndarray], ends: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate arrays, and their line ends accordingly."""
    if not arrays:
        return np.empty(0, np.int32), np.empty(0, np.int64)
    starts = np.cumsum([0, *(len(array) for array in arrays[:-1])])
    joined = [end + start for end, start in zip(ends, starts, strict=True)]
    return np.concatenate(arrays), np.concatenate(joined).astype(np.int64)


def _compact(
    items: np.ndarray, first: int, type_rows: np.ndarray, num_words: int,
    config: FastTextClassifierConfig,
) -> np.ndarray:  # fmt: skip
    """Give rows to the buckets that occur; return these buckets in order."""

    if not config.has_buckets:
        return np.empty(0, np.int32)
    is_used = np.zeros(config.bucket, np.bool_)
    mark_buckets(items, first, is_used)
    mark_buckets(type_rows, num_words, is_used)
    buckets = np.flatnonzero(is_used).astype(np.int32)
    places = np.full(config.bucket, -1, np.int32)
    for array, start in ((items, first), (type_rows, num_words)):
        places[buckets] = start + np.arange(len(buckets), dtype=np.int32)
        map_buckets(array, np.array([len(array)], np.int64), start, places)
    return buckets


def mix_lines(lines: Lines, config: FastTextClassifierConfig) -> Lines:
    """Shuffle the lines that have labels and words, and drop the others.

    A file sorted by label would train badly in its order. Shuffled once, the lines are then read
    sequentially, which is fast.
    """

    sizes = np.diff(lines.ends, prepend=0)
    order = np.flatnonzero((sizes > 0) & (np.diff(lines.label_ends, prepend=0) > 0))
    shuffle(order, np.uint64(stream_key(config.seed, MIX)))
    mixed = []
    for ends, items in ((lines.ends, lines.items), (lines.label_ends, lines.label_ids)):
        new_ends = np.cumsum(np.diff(ends, prepend=0)[order])
        new_items = np.empty(int(new_ends[-1]) if len(order) else 0, np.int32)
        in_parts(
            config.num_workers,
            lambda first, last, all=(ends, items, new_ends, new_items): gather_lines(
                order, first, last, *all
            ),
            len(order),
        )
        mixed += [new_ends, new_items]
    return replace(lines, ends=mixed[0], items=mixed[1], label_ends=mixed[2], label_ids=mixed[3])


def in_parts(workers: int, work: Any, size: int) -> None:
    """Call work(first, last) for equal parts of range(size), one per thread."""
    edges = np.linspace(0, size, workers + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))
