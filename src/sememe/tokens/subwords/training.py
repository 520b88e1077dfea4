"""Train the vocabulary of a sub-word tokenizer: text in, a trained engine out.

Chunks of the text are counted first, in bounded memory; each distinct word then goes to the trainer
of `tokenizers`. Several languages are weighted by their size to a power.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.machine import cache_dir
from sememe.progress import Reporter
from sememe.storage import folder as storage
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.shards import Shard
from sememe.text.stream import each_batch
from sememe.text.words import Records
from sememe.tokens import caching
from sememe.tokens.building import count_shards
from sememe.tokens.counting import count_words as count_chunks, merge
from sememe.tokens.subwords import engines
from sememe.tokens.subwords.chunks import cut_chunks, plain_word
from sememe.tokens.subwords.engines import CLS, CONTINUATION, END, MASK, PAD, SEP, SPECIALS, UNK
from sememe.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from sememe.tokens.subwords.tokenizer import SubwordTokenizer, TokenizerConfig


def smoothed_shares(sizes: Sequence[int], exponent: float) -> np.ndarray:
    """The sampling probability of each text: its size to the power `exponent`, normalized."""
    if not 0 <= exponent <= 1:
        raise OptionError(f"The exponent of mixing must be between 0 and 1, not {exponent}.")
    weights = np.asarray(sizes, np.float64) ** exponent
    return weights / weights.sum()


def smoothed_counts(counts: Sequence[Counter[str]], exponent: float) -> Counter[str]:
    """The word counts of several texts in their smoothed proportions, with the same total."""
    sizes = [own.total() for own in counts]
    mixed: Counter[str] = Counter()
    for own, size, share in zip(counts, sizes, smoothed_shares(sizes, exponent), strict=True):
        factor = share * sum(sizes) / size
        for word, count in own.items():
            mixed[word] += max(1, round(factor * count))
    return mixed


# BERT's ids: [PAD] 0, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103, and free ones between.
FIRST = (PAD, *(f"[unused{number}]" for number in range(1, 100)), UNK, CLS, SEP, MASK)
_NUM_BYTES = 256
# The rarest chunks beyond this many cannot decide on a token, and would fill the memory.
_MOST_CHUNKS = 4_000_000
# The trainer takes words one by one; a longer text is thinned to this many, in proportion.
_MOST_WORDS = 100_000_000
_WORDS_AT_ONCE = 4_096


def train_engine(
    corpus: Any,
    config: TokenizerConfig,
    wrap: Callable[[Tokenizer], SubwordTokenizer],
    text: TextSettings,
    memory: int,
    progress: Reporter,
) -> Tokenizer:
    """Train the tokens; `wrap` turns an engine into a tokenizer. See SubwordTokenizer.train."""
    # Cleans and splits text as the trained one will, and knows no token.
    shape = wrap(_untrained(config, text))
    words = _mixed_words(corpus, shape, text, config, memory, progress)
    with progress.task("training the tokenizer", None, "words") as task:
        task.update(len(words))
        if config.kind == "bpe":
            engine = _train_bpe(words, config)
        else:
            engine = _train_wordpiece(words, config, shape)
    num_tokens = engine.get_vocab_size()
    if num_tokens < config.vocab_size:
        progress.note(f"The corpus has only {num_tokens:,} of {config.vocab_size:,} tokens.")
    return engine


def _untrained(config: TokenizerConfig, text: TextSettings) -> Tokenizer:
    if config.kind == "bpe":
        return engines.bpe_engine({END: 0}, [], END)
    strip = {"auto": text.lowercase, "strip": True, "keep": False}[config.accents]
    names = {name: number for number, name in enumerate(SPECIALS)}
    return engines.wordpiece_engine(names, lowercase=text.lowercase, strip_accents=strip)


# ---- counting -----------------------------------------------------------------------------------


def count_text(
    corpus: Any,
    shape: SubwordTokenizer,
    text: TextSettings,
    config: TokenizerConfig,
    memory: int,
    progress: Reporter,
) -> Counter[str]:
    """Count the words of a text, or of one text per language together, as `shape` splits them."""
    parts = {"": corpus} if not isinstance(corpus, Mapping) else corpus
    found: Counter[str] = Counter()
    for name, own in parts.items():
        settings = text.for_language(name) if name else text
        found.update(
            count_words(_count_chunks(own, shape, settings, config, memory, progress), shape)
        )
    return found


def _mixed_words(
    corpus: Any,
    shape: SubwordTokenizer,
    text: TextSettings,
    config: TokenizerConfig,
    memory: int,
    progress: Reporter,
) -> Counter[str]:
    """Count the words of a text, or of one text per language in their smoothed proportions."""
    if isinstance(corpus, Mapping):
        parts = [(name, own, text.for_language(name)) for name, own in corpus.items()]
    else:
        parts = [("", corpus, text)]
    counted = []
    for name, own, settings in parts:
        chunks = _count_chunks(own, shape, settings, config, memory, progress)
        counted.append(count_words(chunks, shape))
        if not counted[-1]:
            what = f"text of {name}" if name else "corpus"
            raise InputError(f"The {what} has no text: it is empty, or blank.")
    if not counted:
        raise OptionError('A corpus by language names at least one: {"en": …, "zh": …}.')
    return smoothed_counts(counted, config.smoothing)


def _count_chunks(
    corpus: Any,
    shape: SubwordTokenizer,
    text: TextSettings,
    config: TokenizerConfig,
    memory: int,
    progress: Reporter,
) -> Vocabulary:
    workers = config.num_workers
    with caching.byte_progress(progress, stream.total_bytes(corpus)) as on_bytes:
        if (own := caching.shards_of(corpus, text, progress)) is not None:
            shards, executor = own
            with storage.scratch_folder(cache_dir() / "stores", "counts") as scratch:
                read = partial(_chunks_of_shard, shape, text)
                counted = count_shards(
                    shards, read, scratch, executor, memory, keep_ids=False, on_bytes=on_bytes
                )
                merged = merge(counted.workers, min_count=1, memory=memory, executor=executor)
                return merged.vocabulary.cut(_MOST_CHUNKS)
        batches = stream.read(corpus, text)
        records = each_batch(batches, lambda batch: cut_chunks(batch, shape), workers, on_bytes)
        with closing(records):
            return count_chunks(records, workers=workers, memory=memory).cut(_MOST_CHUNKS)


def _chunks_of_shard(
    shape: SubwordTokenizer, text: TextSettings, shard: Shard, workers: int
) -> Iterator[Records]:
    batches = stream.read_shard(text, shard)
    records = each_batch(batches, lambda batch: cut_chunks(batch, shape), workers, None)
    with closing(records):
        yield from (record for record in records if record.data)


def count_words(chunks: Vocabulary, shape: SubwordTokenizer) -> Counter[str]:
    """Clean and split counted chunks as the tokenizer does; count their words."""

    words: Counter[str] = Counter()
    for chunk, count in zip(chunks, chunks.counts.tolist(), strict=True):
        plain = plain_word(chunk, shape)
        for word in shape.words_of(chunk) if plain is None else (plain,):
            words[word] += count
    return words


# ---- training -----------------------------------------------------------------------------------


def _train_bpe(words: Counter[str], config: TokenizerConfig) -> Tokenizer:
    from tokenizers import models, pre_tokenizers, trainers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    _check_room(config, len(alphabet) + 1, f"{_NUM_BYTES} bytes and {END}")
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size - 1,
        min_frequency=config.min_frequency,
        special_tokens=alphabet,
        show_progress=False,
    )
    engine = _run(models.BPE(), trainer, words)
    tokens = [*_in_order(engine), END]  # last, as in GPT-2's own vocabulary
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return engines.bpe_engine(vocabulary, engines.merges_of(engine), END)


def _train_wordpiece(
    words: Counter[str], config: TokenizerConfig, shape: SubwordTokenizer
) -> Tokenizer:
    from tokenizers import models, trainers

    alphabet = _covering(words, config.coverage)
    words = Counter(
        {
            word: count
            for word, count in words.items()
            if alphabet.issuperset(word) and len(word) <= engines.LONGEST_WORD
        }
    )
    inner = {char for word in words for char in word[1:]}
    # Given first and in order: the trainer itself meets them in an order that changes.
    pieces = [*sorted(alphabet), *(CONTINUATION + char for char in sorted(inner))]
    _check_room(
        config,
        len(FIRST) + len(pieces),
        f"{len(FIRST)} special tokens, {len(alphabet):,} characters and {len(inner):,} of them "
        f"with {CONTINUATION}",
    )
    trainer = trainers.WordPieceTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=[*FIRST, *pieces],
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    tokens = _in_order(_run(models.WordPiece(unk_token=UNK), trainer, words))
    return engines.wordpiece_engine(
        {token: number for number, token in enumerate(tokens)},
        lowercase=shape.lowercase,
        strip_accents=shape.strip_accents,
    )


def _covering(words: Counter[str], coverage: float) -> set[str]:
    """The most frequent characters that make up a given fraction of the text."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for char in word:
            counts[char] += count
    wanted, total = coverage * sum(counts.values()), 0
    covering = set()
    for char, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if total >= wanted:
            break
        covering.add(char)
        total += count
    return covering


def _check_room(config: TokenizerConfig, needed: int, what: str) -> None:
    if config.vocab_size < needed:
        hint = " or a lower coverage" if config.kind == "wordpiece" else ""
        raise OptionError(
            f"vocab_size {config.vocab_size:,} is too small: {what} alone are {needed:,}. "
            f"Give at least that{hint}."
        )


def _run(model: Any, trainer: Any, words: Counter[str]) -> Tokenizer:
    from tokenizers import Tokenizer, pre_tokenizers

    engine = Tokenizer(model)
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.train_from_iterator(_repeated(words), trainer)
    return engine


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Each word repeated by its count, since the trainer takes no counts."""
    factor = max(1.0, sum(words.values()) / _MOST_WORDS)
    for word in sorted(words):
        num = round(words[word] / factor)
        line = " ".join([word] * min(num, _WORDS_AT_ONCE))
        for _ in range(num // _WORDS_AT_ONCE):
            yield line
        if num % _WORDS_AT_ONCE:
            yield " ".join([word] * (num % _WORDS_AT_ONCE))


def _in_order(engine: Tokenizer) -> list[str]:
    vocabulary = engine.get_vocab(with_added_tokens=True)
    return sorted(vocabulary, key=vocabulary.__getitem__)
