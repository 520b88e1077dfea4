"""Learn the pieces of a sub-word tokenizer from a corpus: text in, a SubwordTokenizer out.

Chunks of the text are counted first, in bounded memory; each distinct word then goes to the trainer
of `tokenizers` as often as it was counted. The same text gives the same pieces in every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sememe.errors import InputError, OptionError
from sememe.options import changed
from sememe.progress import SILENT, Reporter
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.threads import each_batch
from sememe.tokens import caching
from sememe.tokens import subword_files as files
from sememe.tokens.smoothing import smoothed_counts
from sememe.tokens.subword_config import TokenizerConfig
from sememe.tokens.subword_files import CLS, CONTINUATION, END, MASK, PAD, SEP, SPECIALS, UNK
from sememe.tokens.subwords import SubwordTokenizer
from sememe.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# BERT's ids: [PAD] 0, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103, and free ones between.
FIRST = (PAD, *(f"[unused{number}]" for number in range(1, 100)), UNK, CLS, SEP, MASK)
_NUM_BYTES = 256
# The rarest chunks beyond this many cannot decide on a piece, and would fill the memory.
_MOST_CHUNKS = 4_000_000
# The trainer takes words one by one; a longer text is thinned to this many, in proportion.
_MOST_WORDS = 100_000_000
_WORDS_AT_ONCE = 4_096


def train_tokenizer(
    corpus: Any = None,
    config: TokenizerConfig | None = None,
    *,
    text: TextSettings | None = None,
    memory: int = 512 << 20,
    progress: Reporter = SILENT,
    **options: Any,
) -> SubwordTokenizer:
    """Learn a tokenizer from `corpus`: all that text.stream.read takes, or such by language.

    `text` says how the corpus is read, and whether WordPiece turns it into lower case. Options of
    the config may be given by name.
    """
    files.require_tokenizers()
    config = changed(config or TokenizerConfig(), "A tokenizer", options)
    text = text or TextSettings()
    shape = _shape(config, text)
    words = _mixed_words(corpus, shape, text, config, memory, progress)
    with progress.task("learning pieces", None, "words") as task:
        task.update(len(words))
        if config.kind == "bpe":
            tokenizer = _train_bpe(words, config)
        else:
            tokenizer = _train_wordpiece(words, config, shape)
    if tokenizer.vocab_size < config.vocab_size:
        progress.note(
            f"The text gives only {tokenizer.vocab_size:,} tokens of {config.vocab_size:,}."
        )
    return tokenizer


def _shape(config: TokenizerConfig, text: TextSettings) -> SubwordTokenizer:
    """A tokenizer that cleans and splits text as the trained one will, and knows no piece."""
    if config.kind == "bpe":
        return SubwordTokenizer(files.bpe_engine({END: 0}, [], END))
    strip = {"auto": text.lowercase, "strip": True, "keep": False}[config.accents]
    names = {name: number for number, name in enumerate(SPECIALS)}
    engine = files.wordpiece_engine(names, lowercase=text.lowercase, strip_accents=strip)
    return SubwordTokenizer(engine)


# ---- counting -----------------------------------------------------------------------------------


def _mixed_words(
    corpus: Any,
    shape: SubwordTokenizer,
    text: TextSettings,
    config: TokenizerConfig,
    memory: int,
    progress: Reporter,
) -> Counter[str]:
    """Count the words of a text, or of one text for each language in their smoothed shares."""
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
    from sememe.tokens.chunks import cut_chunks
    from sememe.tokens.merging import count_words as count

    workers = config.num_workers
    batches = stream.read(corpus, text)
    with caching.heard(progress, stream.total_bytes(corpus)) as on_bytes:
        records = each_batch(batches, lambda batch: cut_chunks(batch, shape), workers, on_bytes)
        with closing(records):
            return count(records, workers=workers, memory=memory).cut(_MOST_CHUNKS)


def count_words(chunks: Vocabulary, shape: SubwordTokenizer) -> Counter[str]:
    """Clean and split counted chunks as the tokenizer does; count the words in them."""
    from sememe.tokens.chunks import plain_word

    words: Counter[str] = Counter()
    for chunk, count in zip(chunks, chunks.counts.tolist(), strict=True):
        plain = plain_word(chunk, shape)
        for word in shape.words_of(chunk) if plain is None else (plain,):
            words[word] += count
    return words


# ---- training -----------------------------------------------------------------------------------


def _train_bpe(words: Counter[str], config: TokenizerConfig) -> SubwordTokenizer:
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
    return SubwordTokenizer(files.bpe_engine(vocabulary, files.merges_of(engine), END))


def _train_wordpiece(
    words: Counter[str], config: TokenizerConfig, shape: SubwordTokenizer
) -> SubwordTokenizer:
    from tokenizers import models, trainers

    alphabet = _covering(words, config.coverage)
    words = Counter(
        {
            word: count
            for word, count in words.items()
            if alphabet.issuperset(word) and len(word) <= files.LONGEST_WORD
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
    engine = files.wordpiece_engine(
        {token: number for number, token in enumerate(tokens)},
        lowercase=shape.lowercase,
        strip_accents=shape.strip_accents,
    )
    return SubwordTokenizer(engine)


def _covering(words: Counter[str], coverage: float) -> set[str]:
    """The most frequent characters that make up a share of all text."""
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
    """Each word as often as it was counted, since the trainer takes no counts."""
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
