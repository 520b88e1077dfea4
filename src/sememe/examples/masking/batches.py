"""Batches for a masked model: a store in, rows with hidden tokens out. B rows, T positions.

As in BERT's released program a row of n tokens hides round(0.15 n) of them, at least one. Phrases
hidden whole (Sun et al. 2019, ERNIE) come from a lexicon or are detected in the corpus.
"""

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.examples.batches import Batch, RowBatches, Split
from sememe.examples.masking import kernels
from sememe.examples.masking.cohesion import RULES, Rules, free_phrases, words_of
from sememe.examples.masking.config import UNITS, MaskingConfig
from sememe.examples.packing.rows import (
    Documents,
    Examples,
    ExampleSequence,
    FullSentences,
    SentencePairs,
)
from sememe.text.characters import HAN
from sememe.text.sources import read_utf8
from sememe.tokens.subwords.tokenizer import UNUSED
from sememe.tokens.vocabulary import read_only

# Phrases are found in this many tokens at most, of documents spread over the text; words and pairs
# are counted in this many slots of 32 bytes.
_MAX_TOKENS = 1 << 22
_MAX_SLOTS = 1 << 23
_PASSES = 2
_MIN_COUNT = 5
_THRESHOLD = 100.0

# What a dictionary of jieba's form says about a Chinese word: its frequency and a tag.
_WEIGHTS = re.compile(rf"^(\S*[{HAN}]\S*)\s+\d+(\s+[a-zA-Z]+)?$")


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
    lines = read_utf8(path).split("\n")
    entries = sorted({_WEIGHTS.sub(r"\1", line.strip()) for line in lines} - {""})
    if not entries:
        raise InputError(f"The lexicon {path} is empty: write one phrase or name per line.")
    special = np.array(sorted(tokenizer.special_ids))
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(entries)]
    return [ids for ids in encoded if len(ids) > 1 and not np.isin(ids, special).any()]


def build_trie(phrases: list[np.ndarray], vocab_size: int) -> Trie:
    """Put phrases into a trie."""
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


class _Sample(NamedTuple):
    """The documents in which phrases are searched, with earlier phrases as single words."""

    ids: np.ndarray
    word_starts: np.ndarray
    sentence_ends: np.ndarray


def find_phrases(
    documents: Documents,
    tokenizer: Any,
    *,
    min_count: int = _MIN_COUNT,
    threshold: float = _THRESHOLD,
    passes: int = _PASSES,
    rules: Rules = RULES,
) -> list[np.ndarray]:
    """Ids of the word pairs that score above `threshold` (Mikolov et al. 2013b, 4), and free ones.

    Phrases found in one pass count as one word in the next, so that two passes find phrases of up
    to four words. Free phrases (see `cohesion`) hold together less, but occur in many contexts.
    """
    sample = _sampled(documents)
    is_special_V = special_table(tokenizer) | _mark_table(tokenizer)
    arrays = read_only(sample.ids), sample.word_starts, read_only(sample.sentence_ends)
    words = words_of(*arrays, is_special_V)
    found = [np.array(sample.ids[own]) for own in free_phrases(words, rules)]
    for _ in range(passes):
        new = _find_pairs(sample, is_special_V, min_count, threshold)
        if not new:
            break
        found += new
        kernels.join_words(
            read_only(sample.ids), sample.word_starts, read_only(sample.sentence_ends),
            tokenizer.is_continuation, *build_trie(new, tokenizer.vocab_size),
        )  # fmt: skip
    return found


def _sampled(documents: Documents) -> _Sample:
    """Every n-th document of a text that is too long to be counted completely."""
    ids, word_starts, sentence_ends = documents.ids, documents.word_starts, documents.sentence_ends
    stride = -(-len(ids) // _MAX_TOKENS)
    if stride > 1:
        firsts = np.append(0, documents.document_ends[:-1])[::stride]
        lasts = documents.document_ends[::stride]
        starts = np.append(0, sentence_ends)
        sizes = [np.diff(starts[a : b + 1]) for a, b in zip(firsts, lasts, strict=True)]
        places = list(zip(starts[firsts], starts[lasts], strict=True))
        ids = np.concatenate([ids[a:b] for a, b in places])
        word_starts = np.concatenate([word_starts[a:b] for a, b in places])
        sentence_ends = np.cumsum(np.concatenate(sizes))
    return _Sample(ids, np.array(word_starts), sentence_ends)


def _find_pairs(
    sample: _Sample, is_special_V: np.ndarray, min_count: int, threshold: float
) -> list[np.ndarray]:

    num_slots = min(1 << (4 * len(sample.ids)).bit_length(), _MAX_SLOTS)
    keys, places = np.zeros(num_slots, np.uint64), np.zeros(num_slots, np.int64)
    counts, sizes, first, second = (np.zeros(num_slots, np.int32) for _ in range(4))
    num_words = kernels.count_word_pairs(
        *map(read_only, sample), is_special_V, keys, counts, places, sizes, first, second
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


def _mark_table(tokenizer: Any) -> np.ndarray:
    """For each id, whether its token has neither letters nor digits."""
    tokens = map(tokenizer.token, range(tokenizer.vocab_size))
    return np.array([not any(map(str.isalnum, token)) for token in tokens], np.bool_)


class Masker:
    """Masks tokens of rows."""

    def __init__(self, documents: Documents, tokenizer: Any, config: MaskingConfig) -> None:
        self._documents, self._tokenizer, self._config = documents, tokenizer, config
        self._is_special_V = special_table(tokenizer)
        self._replacements = _replacements(tokenizer)
        self._trie = _checked_units(documents, tokenizer, config)
        self.rate = config.rate  # which a schedule may change

    def hide(
        self, examples: Examples, ids_BT: np.ndarray, lengths_B: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mask tokens in the rows `ids_BT` of `examples`; return (hidden_N, targets_N)."""
        config, documents = self._config, self._documents
        hidden, targets = np.empty(ids_BT.size, np.int64), np.empty(ids_BT.size, np.int32)
        shares = (config.mask_share, config.mask_share + config.random_share)
        num = kernels.hide_rows(
            documents.ids, documents.word_starts, examples.spans_N4, examples.keys_N, lengths_B,
            UNITS.index(config.unit), self.rate,
            *(np.uint64(math.ceil(min(share, 1.0) * 2**32)) for share in shares),
            self._tokenizer.mask_id, self._replacements, self._is_special_V,
            self._tokenizer.is_continuation, self._trie, ids_BT, hidden, targets,
        )  # fmt: skip
        return hidden[:num].copy(), targets[:num].copy()


def _replacements(tokenizer: Any) -> np.ndarray:
    """The ids that may replace a masked token: all except special tokens."""
    special = tokenizer.special_ids
    ids = (index for index in range(tokenizer.vocab_size) if index not in special)
    kept = [index for index in ids if not UNUSED.fullmatch(tokenizer.token(index))]
    if not kept:
        raise InputError("The tokenizer has only special tokens.")
    return np.array(kept, np.int32)


def _checked_units(documents: Documents, tokenizer: Any, config: MaskingConfig) -> Trie:
    """The phrases to mask; an error if the text has none, or no word of several tokens."""
    if config.unit == "word" and documents.word_starts.all():
        raise InputError(
            "Whole words cannot be masked: every word of this corpus is a single token. "
            "Mask tokens (the unit token), or train a smaller vocabulary."
        )
    if config.unit != "phrase":
        return NO_PHRASES
    if config.lexicon:
        phrases = read_lexicon(config.lexicon, tokenizer)
    else:
        phrases = find_phrases(documents, tokenizer)
    trie = build_trie(phrases, tokenizer.vocab_size)
    found = kernels.find_phrase(
        documents.ids, documents.sentence_ends, tokenizer.is_continuation, *trie
    )
    if found < 0 and config.lexicon:
        raise InputError(
            f"No entry of the lexicon {config.lexicon} with several tokens ({len(phrases):,} have) "
            "occurs in the text, so there is no phrase to hide: give another lexicon, or the unit "
            "word."
        )
    if found < 0:
        raise InputError(
            "No two words of the corpus occur together often enough to be a phrase, so there is "
            "none to mask: give a lexicon of phrases, more text, or the unit word."
        )
    return trie


_WIDTH_STEP = 8


class MaskedBatches(RowBatches):
    """Batches for a masked language model, each a function of (seed, step).

    With next_sentence the rows are pairs, otherwise complete sentences of one document. The order
    of examples, their masks and the splits of pairs differ in every epoch; validation batches are
    always the same. A batch is as wide as its longest row.
    """

    def __init__(
        self,
        store: Any,
        tokenizer: Any,
        masking: MaskingConfig | None = None,
        *,
        length: int,
        batch_size: int,
        seed: int = 1,
        next_sentence: bool = True,
        split: Split = "train",
    ) -> None:
        super().__init__(length, batch_size, seed, is_fixed=split == "validation")
        self.next_sentence = next_sentence
        self.masking = masking or MaskingConfig()
        self._tokenizer = tokenizer
        self._documents = Documents(store, split)
        self.num_tokens, self.pad_id = self._documents.num_tokens, int(tokenizer.pad_id)
        plan = SentencePairs if next_sentence else FullSentences
        self._planner: SentencePairs | FullSentences = plan(self._documents, length, seed)
        self._masker = Masker(self._documents, tokenizer, self.masking)
        self._sequence = ExampleSequence(self._planner, seed, is_fixed=self.is_fixed)

    @property
    def rate(self) -> float:
        """The fraction of tokens to predict."""
        return self._masker.rate

    @rate.setter
    def rate(self, value: float) -> None:
        self._masker.rate = value

    @property
    def rows_per_epoch(self) -> int:
        """Examples of the first epoch; the number of pairs varies a little between epochs."""
        return self._sequence.num_before(1)

    @property
    def num_trimmed(self) -> int:
        """Tokens that the pairs of the first epoch drop; other epochs drop others."""
        return self._planner.trimmed(0)

    @property
    def num_labelled(self) -> int:
        """Pairs of the first epoch that have a next-sentence label; half of them are true."""
        return self._planner.labelled(0)

    @property
    def single_share(self) -> float:
        """The share of documents without a second sentence to pair; 0 where no pairs are made."""
        sizes = np.diff(self._documents.document_ends, prepend=0)[self._documents.indices]
        return self.next_sentence * float((sizes < 2).mean())

    def num_steps(self, epochs: float) -> int:
        """Steps of `epochs` epochs."""
        whole = int(epochs)
        before, after = (self._sequence.num_before(epoch) for epoch in (whole, whole + 1))
        return -(-round(before + (epochs - whole) * (after - before)) // self.batch_size)

    def rows(self, first: int, num: int) -> Batch:
        """The rows `first` … `first + num` of the endless sequence of examples."""
        return self._written(self._sequence.take(first, num))

    def _written(self, examples: Examples) -> Batch:
        num_rows, tokenizer = len(examples.keys_N), self._tokenizer
        shape = (num_rows, self._width(examples))
        ids_BT, segments_BT = np.empty(shape, np.int32), np.empty(shape, np.int8)
        lengths_B = np.empty(num_rows, np.int32)
        kernels.fill_rows(
            self._documents.ids, examples.spans_N4, tokenizer.cls_id, tokenizer.sep_id,
            tokenizer.pad_id, ids_BT, segments_BT, lengths_B,
        )  # fmt: skip
        hidden_N, targets_N = self._masker.hide(examples, ids_BT, lengths_B)
        return Batch(
            ids_BT=ids_BT,
            lengths_B=lengths_B,
            num_tokens=int(lengths_B.sum()),
            segments_BT=segments_BT if self.next_sentence else None,
            hidden_N=hidden_N,
            targets_N=targets_N,
            is_next_B=examples.is_next_N if self.next_sentence else None,
        )

    def _width(self, examples: Examples) -> int:
        longest = int(examples.sizes.max()) + self._planner.num_specials
        return min(-(-longest // _WIDTH_STEP) * _WIDTH_STEP, self.length)
