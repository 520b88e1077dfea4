"""Chunks: stretches of text that a tokenizer cuts alone just as it does inside their text.

Real text repeats itself: most chunks were seen before, so each is cut once by the tokenizer and
then looked up, which is many times as fast. A chunk is
  for WordPiece   what is between blanks; ASCII punctuation and Han characters are alone
  for GPT-2's BPE a run of blanks but for its last, or that one with what follows up to the next;
                  ASCII letters, digits and marks part from each other
so no rule of the tokenizer (BERT's cleaning and splitting, GPT-2's pattern) reaches over its ends.
Tokenizers that are built otherwise cut whole documents themselves.
Batches of documents in, tokens out: ids with the starts of words, sizes of sentences and documents.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sememe.text.chinese import ChineseSegmenter
from sememe.text.documents import DocumentBatch
from sememe.text.settings import TextSettings
from sememe.text.words import Records, records_of, sentence_ends
from sememe.tokens.counting import Buffers, WordTable
from sememe.tokens.kernels import NUM_DOCUMENTS, NUM_IDS
from sememe.tokens.subwords import kernels

if TYPE_CHECKING:
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

# Raised when a rule changes, so that nothing made by the old one is reused.
RULES_VERSION = 1
_NO_CUTS = np.empty(0, np.int64)
_CONTINUES = "\x1c"
_MARKS = "!-/:-@[-`{-~"
_HAN = "\u3400-\u4db5\u4e00-\u9fa5"  # as kernels.is_han, which has the reason
_PLAIN = {
    "wordpiece": re.compile(f"[A-Za-z0-9]+|[{_MARKS}]"),
    "bpe": re.compile(f" ?(?:[A-Za-z]+|[0-9]+|[{_MARKS}]+|[{_HAN}]+|[，。、：；！？“”]+)"),
}
# GPT-2 writes each byte as a character that shows: itself where it has a sign, else one past 255.
_SHOWN = {*range(33, 127), *range(161, 173), *range(174, 256)}
_HIDDEN = (byte for byte in range(256) if byte not in _SHOWN)
_BYTE_NAMES = {byte: 256 + number for number, byte in enumerate(_HIDDEN)}
_CHUNKS_AT_ONCE = 1 << 13
_STRETCH = 1 << 14


class Pieces(NamedTuple):
    """The tokens of complete documents, and one label per document (or None)."""

    ids: np.ndarray
    starts: np.ndarray  # 1 where a token starts a word
    sentence_sizes: np.ndarray
    document_sizes: np.ndarray
    labels: list[str] | None


def cut_chunks(
    batch: DocumentBatch,
    tokenizer: SubwordTokenizer,
    settings: TextSettings | None = None,
    chinese: ChineseSegmenter | None = None,
) -> Records:
    """Split the documents of a batch into chunks, and into sentences if `settings` say how.

    With `chinese`, chunks inside a word of the segmenter start with a mark.
    """
    data, ends = np.frombuffer(batch.text, np.uint8), np.asarray(batch.ends, np.int64)
    cuts = _NO_CUTS if settings is None else sentence_ends(batch.text, ends, settings)
    out = np.empty(3 * len(data) + 2 * (len(cuts) + len(ends)) + 16, np.uint8)
    is_kept = np.zeros(len(ends), np.bool_)
    if tokenizer.kind == "bpe":
        size = kernels.bpe_chunks(data, ends, cuts, out, is_kept)
    else:
        words = _NO_CUTS if chinese is None else chinese.word_starts(batch.text, ends)
        splits_han = tokenizer.split_chinese
        size = kernels.wordpiece_chunks(
            data, ends, cuts, words, chinese is not None, splits_han, out, is_kept
        )
    return records_of(out[:size], batch.labels, is_kept)


def cuts_in_chunks(tokenizer: SubwordTokenizer) -> bool:
    """Whether a tokenizer is built like BERT's or GPT-2's, so that chunks may be cut alone."""
    content = json.loads(tokenizer.to_json())
    cutter, normalizer = content["pre_tokenizer"] or {}, content["normalizer"] or {}
    if tokenizer.kind == "wordpiece":
        is_known = cutter.get("type") == "BertPreTokenizer"
        return bool(
            is_known and normalizer.get("type") == "BertNormalizer" and normalizer["clean_text"]
        )
    is_known = cutter.get("type") == "ByteLevel" and cutter.get("use_regex", True)
    return bool(is_known and not cutter.get("add_prefix_space") and not normalizer)


class _Stretch(NamedTuple):
    """Some whole sentences of a document; offsets in bytes."""

    document: int
    start: int
    end: int


def _stretches(ends: np.ndarray, cuts: np.ndarray) -> Iterator[_Stretch]:
    """Each document, those of more than _STRETCH bytes in several stretches."""
    start = 0
    for document, end in enumerate(ends.tolist()):
        while end - start > _STRETCH:
            # The last sentence end within reach, or else the first one.
            index = int(np.searchsorted(cuts, start + _STRETCH, "right")) - 1
            index += index < 0 or cuts[index] <= start
            if index >= len(cuts) or cuts[index] >= end:
                break
            yield _Stretch(document, start, int(cuts[index]))
            start = int(cuts[index])
        yield _Stretch(document, start, end)
        start = end


def cut_documents(
    batch: DocumentBatch,
    tokenizer: SubwordTokenizer,
    settings: TextSettings,
    chinese: ChineseSegmenter | None = None,
) -> Pieces:
    """Tokenize documents with the tokenizer itself, in stretches of whole sentences.

    For tokenizers of any kind, such as XLM-R's and ALBERT's; chunks are many times as fast.
    """
    text, ends = batch.text, np.asarray(batch.ends, np.int64)
    cuts = sentence_ends(text, ends, settings)
    words = None if chinese is None else chinese.word_starts(text, ends)
    stretches = [*_stretches(ends, cuts)]
    texts = [text[own.start : own.end].decode("utf-8", "replace") for own in stretches]
    parts = [(np.empty(0, np.int64),) * 3]
    num_sentences = np.zeros(len(ends), np.int64)
    for own, found in zip(stretches, tokenizer.encode_batch(texts, specials=False), strict=True):
        # Where each character starts, in bytes of the batch; the last place is the end.
        data = np.frombuffer(text[own.start : own.end], np.uint8)
        places = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data)) + own.start
        is_start_T = found.is_word_start
        if words is not None:
            bounds = [np.searchsorted(words, places[at]) for at in (found.starts, found.ends)]
            is_start_T = (bounds[1] > bounds[0]) | (found.starts == found.ends)
        # A token belongs to the sentence of its last character.
        lasts_T = places[np.maximum(found.ends - 1, found.starts)]
        inner = cuts[(cuts > own.start) & (cuts < own.end)]
        sizes = np.bincount(np.searchsorted(inner, lasts_T, "right"))
        parts.append((found.ids, is_start_T, sizes[sizes > 0]))
        num_sentences[own.document] += np.count_nonzero(sizes)
    ids, starts, sizes = map(np.concatenate, zip(*parts, strict=True))
    is_kept = num_sentences > 0
    labels = batch.labels
    if labels is not None:
        labels = [label for label, kept in zip(labels, is_kept, strict=True) if kept]
    return Pieces(ids, starts.astype(np.uint8), sizes, num_sentences[is_kept], labels)


class ChunkLexicon:
    """The tokens of every chunk seen so far, in about twice `memory` bytes."""

    def __init__(self, tokenizer: SubwordTokenizer, memory: int) -> None:
        self._tokenizer, self._table = tokenizer, WordTable(memory)
        self._buffers = Buffers.new()
        self._dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
        self._forget()

    def _forget(self) -> None:
        self._num_known, self._num_bytes, self._num_pieces = 0, 0, 0
        self._piece_ends = np.zeros(1 << 12, np.int64)
        self._pieces = np.zeros(1 << 12, np.uint32)

    def _learn(self) -> None:
        """Tokenize the chunks that are new."""
        words = self._table.words
        if self._table.num_words == self._num_known:
            return
        text = words[self._num_bytes :].tobytes().decode("utf-8", "replace")
        chunks = text.split("\x1f")[:-1]
        sizes, pieces = _cut_each(chunks, self._tokenizer)
        ends = np.cumsum(sizes) + self._num_pieces
        self._piece_ends = _put(self._piece_ends, self._num_known, ends)
        self._pieces = _put(self._pieces, self._num_pieces, pieces)
        self._num_known += len(chunks)
        self._num_bytes, self._num_pieces = len(words), self._num_pieces + len(pieces)

    def cut(self, records: Records) -> Pieces:
        """The tokens of chunks."""
        parts: list[tuple[np.ndarray, ...]] = []

        def flush() -> None:
            self._learn()
            state = self._table.state[NUM_IDS : NUM_DOCUMENTS + 1].tolist()
            chunk_ids, *others = (
                buffer[:num] for buffer, num in zip(self._buffers, state, strict=True)
            )
            parts.append((*self._expand(chunk_ids), *(own.copy() for own in others)))

        self._table.scan(
            np.frombuffer(records.data, np.uint8), self._buffers, flush, spill=self._forget
        )
        ids, starts, sizes, sentences, documents = map(np.concatenate, zip(*parts, strict=True))
        sentence_sizes, document_sizes = np.empty_like(sentences), np.empty_like(documents)
        num = kernels.measure(sizes, sentences, documents, sentence_sizes, document_sizes)
        return Pieces(ids, starts, sentence_sizes[:num], document_sizes, records.labels)

    def _expand(self, chunk_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        room = int(np.diff(self._piece_ends[: self._num_known], prepend=0)[chunk_ids].sum())
        ids, starts = np.empty(room, self._dtype), np.empty(room, np.uint8)
        sizes = np.empty(len(chunk_ids), np.uint32)
        kernels.expand(chunk_ids, self._piece_ends, self._pieces, ids, starts, sizes)
        return ids, starts, sizes


def _put(array: np.ndarray, start: int, values: np.ndarray) -> np.ndarray:
    """Write `values` at `start`, into a larger array where they do not fit."""
    if start + len(values) > len(array):
        larger = np.zeros(max(2 * len(array), start + len(values)), array.dtype)
        larger[:start] = array[:start]
        array = larger
    array[start : start + len(values)] = values
    return array


def plain_word(chunk: str, tokenizer: SubwordTokenizer) -> str | None:
    """The one word of a plain chunk; None for other chunks."""
    if not _PLAIN[tokenizer.kind].fullmatch(chunk):
        return None
    if tokenizer.kind == "bpe":
        return chunk.encode().decode("latin-1").translate(_BYTE_NAMES)
    return chunk.lower() if tokenizer.lowercase else chunk


def _cut_each(chunks: list[str], tokenizer: SubwordTokenizer) -> tuple[np.ndarray, np.ndarray]:
    """The number of tokens of each chunk, and all tokens: 2 × id, plus 1 at the start of a word."""
    pieces: list[list[int]] = [[]] * len(chunks)
    others = []
    for index, chunk in enumerate(chunks):
        word = plain_word(chunk, tokenizer)
        if word is None:
            others.append(index)
            continue
        # Straight to the model: cleaning and splitting would take most of the time.
        first, *rest = tokenizer.pieces_of(word)
        pieces[index] = [2 * first + 1, *(2 * piece for piece in rest)]
    for start in range(0, len(others), _CHUNKS_AT_ONCE):
        indices = others[start : start + _CHUNKS_AT_ONCE]
        texts = [chunks[index].removeprefix(_CONTINUES) for index in indices]
        encodings = tokenizer.encode_batch(texts, specials=False)
        for index, encoding in zip(indices, encodings, strict=True):
            own = ((encoding.ids << 1) | encoding.is_word_start).tolist()
            if own and chunks[index].startswith(_CONTINUES):
                own[0] &= ~1
            pieces[index] = own
    sizes = np.array([len(own) for own in pieces], np.int64)
    return sizes, np.fromiter(chain.from_iterable(pieces), np.uint32, int(sizes.sum()))


@contextmanager
def cutter(
    tokenizer: SubwordTokenizer, settings: TextSettings, workers: int, memory: int
) -> Iterator[Callable[[DocumentBatch], Pieces]]:
    """Yield the function that tokenizes one batch, for `workers` threads within `memory`.

    Documents without a chunk are dropped. Chinese is segmented in separate processes.
    """
    needs_words = settings.mode == "chinese" and tokenizer.kind != "bpe"
    if not cuts_in_chunks(tokenizer):
        with ChineseSegmenter(settings, workers) if needs_words else nullcontext() as chinese:
            yield lambda batch: cut_documents(batch, tokenizer, settings, chinese)
        return
    # One for all threads: looking up takes a tenth of the time of finding chunks, and each chunk is
    # tokenized once.
    lexicon, lock = ChunkLexicon(tokenizer, memory // 2), threading.Lock()
    with ChineseSegmenter(settings, workers) if needs_words else nullcontext() as chinese:

        def cut(batch: DocumentBatch) -> Pieces:
            records = cut_chunks(batch, tokenizer, settings, chinese)
            with lock:
                return lexicon.cut(records)

        yield cut
