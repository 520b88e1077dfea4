"""The training text of a language model, as sub-words or words: a corpus in, batches out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.batches import Split
from sememe.examples.packing.rows import MixedBatches
from sememe.examples.scheduled import ScheduledBatches, unscheduled
from sememe.examples.word_rows import BEGIN_ID, WordRowBatches, WordRows
from sememe.machine import cache_dir, key_of
from sememe.metrics.perplexity import perplexity
from sememe.models.fitting import Request
from sememe.models.language.baselines import (
    neighbor_metrics,
    targets_of,
    token_counts,
    unigram_metrics,
)
from sememe.progress import SILENT, Reporter, format_count
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.stream import Spool
from sememe.tokens.caching import byte_progress, open_or_build
from sememe.tokens.store import TokenStore
from sememe.tokens.subwords.chunks import RULES_VERSION
from sememe.tokens.subwords.store import SubwordStore, open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer, trained_at
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.device import Validation, Validations

if TYPE_CHECKING:
    from sememe.models.language.subword_model import SubwordModel
    from sememe.models.language.word_model import WordModel

# Counting the neighbors of this many tokens takes seconds; it is skipped for larger texts.
_COUNTED_TOKENS = 1 << 24

ONLY = ""  # the name of a text that is not a mix of languages

Metrics = dict[str, float]
_MANY_SINGLE = 0.5  # share of documents with only one sentence


class Texts:
    """The token store of each language; a single text has no name.

    `fixed` gives the share of the rows of each text, instead of its smoothed size.
    """

    def __init__(
        self, stores: Mapping[str, SubwordStore], fixed: Mapping[str, float] | None = None
    ) -> None:
        self.stores, self.fixed = dict(stores), dict(fixed or {})

    @property
    def num_tokens(self) -> int:
        """Tokens of all texts together."""
        return sum(store.num_tokens for store in self.stores.values())

    @property
    def sizes(self) -> dict[str, int]:
        """How many documents, sentences and tokens they have together."""
        return dict(sum((Counter(store.sizes) for store in self.stores.values()), Counter()))

    @property
    def content(self) -> dict[str, Any]:
        """What identifies these texts."""
        if ONLY in self.stores:
            return _content(self.stores[ONLY])
        found = {"languages": {name: _content(store) for name, store in self.stores.items()}}
        return {**found, "shares": self.fixed} if self.fixed else found

    def with_replay(self, store: SubwordStore, share: float) -> Texts:
        """This text, and another one that has a share of the rows."""
        if ONLY not in self.stores:
            raise OptionError("replay is for one text: a mix of languages names the old text too.")
        stores = {"domain": self.stores[ONLY], "replay": store}
        return Texts(stores, {"domain": 1 - share, "replay": share})

    def source(self, model: SubwordModel, split: Split) -> Any:
        """The batches of a split, over all languages in their smoothed proportions."""
        full, schedule = self._source(model, split), model.schedule()
        if split != "train" or schedule is None:
            return full
        short = [self._source(model, split, model.short_length)] if schedule.short_share else []
        return ScheduledBatches([*short, full], schedule)

    def _source(self, model: SubwordModel, split: Split, length: int = 0) -> Any:
        if ONLY in self.stores:
            return model.source(self.stores[ONLY], split, length)
        sources = [_named(name, model, store, split, length) for name, store in self.stores.items()]
        training = model.training
        fixed = [self.fixed[name] for name in self.stores] if self.fixed else []
        return MixedBatches(sources, seed=training.seed, exponent=training.smoothing, shares=fixed)

    def shares(self, source: Any) -> dict[str, float]:
        """The sampling probability of each language; empty for a single text."""
        source = unscheduled(source)
        if not isinstance(source, MixedBatches):
            return {}
        return dict(zip(self.stores, source.shares.tolist(), strict=True))

    def validation(self, model: SubwordModel, reporter: Reporter) -> Any:
        """Measures a network on equally many held-out batches of every language; or None."""
        found = {
            name: _validating(model, partial(model.source, store, "validation"), reporter, name)
            for name, store in self.stores.items()
        }
        held_out = {name: source for name, source in found.items() if source is not None}
        each = max(1, model.training.evaluate_batches // max(1, len(held_out)))
        parts = {name: Validation(source, each) for name, source in held_out.items()}
        if set(parts) <= {ONLY}:
            return parts.get(ONLY)
        return Validations(parts)

    def described(self, source: Any) -> str:
        """The amount of text, the share of each language, and what its rows leave out."""
        words = f"Text of {format_count(self.num_tokens, 'tokens')}"
        if shares := self.shares(source):
            parts = (
                f"{name} {format_count(self.stores[name].num_tokens)} and {share:.0%} of the rows"
                for name, share in shares.items()
            )
            words += f" ({', '.join(parts)})"
        if source.num_trimmed:
            share = source.num_trimmed / max(1, source.num_tokens)
            words += (
                f"; pairs leave out {format_count(source.num_trimmed, 'tokens')} ({share:.1%}) of "
                "an epoch, other ones in every epoch"
            )
        if source.num_labelled:
            share = 1 - source.num_labelled / source.rows_per_epoch
            words += (
                f"; {share:.1%} of the rows have no next-sentence label, because nothing follows A "
                "or too many of the others were drawn alike; exactly half of the others are true"
            )
        source = unscheduled(source)
        sources = source.sources if isinstance(source, MixedBatches) else [source]
        share = max(getattr(own, "single_share", 0.0) for own in sources)
        if share > _MANY_SINGLE:
            words += (
                f"; {share:.0%} of the documents have only one sentence, so next-sentence pairs "
                "teach little: their B is of another text, or the rest of a long sentence. "
                "--no-next-sentence leaves them out"
            )
        return words


def _validating(model: Any, source: Callable[[], Any], reporter: Reporter, name: str = ONLY) -> Any:
    """The validation batches; None if none are requested or the text is too short."""
    if not model.training.evaluate_batches or not model.training.validation_share:
        return None
    try:
        return source()
    except InputError as error:
        reporter.note(f"Training without validation{f' of {name}' if name else ''}. {error}")
        return None


def _content(store: SubwordStore) -> dict[str, Any]:
    return {"text": store.manifest["files"]["ids.bin"]["hash"], "tokens": store.num_tokens}


def _named(
    name: str, model: SubwordModel, store: SubwordStore, split: Split, length: int = 0
) -> Any:
    """The batches of one language; errors in its text name the language."""
    try:
        return model.source(store, split, length)
    except InputError as error:
        raise InputError(f"{name}: {error}" if name else str(error)) from error


# ---- opening ------------------------------------------------------------------------------------


def open_texts(
    model: SubwordModel,
    corpus: Any,
    *,
    tokenizer: Any = None,
    store: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> Texts:
    """Tokenize every text with the given tokenizer, or with one trained on all of them."""
    parts = _parts(corpus, model.text)
    if tokenizer is None:
        parts = {name: (_rereadable(*part, reporter), part[1]) for name, part in parts.items()}
    model.tokenizer = _tokenizer(model, parts, tokenizer, reporter)
    if model.pretrained is None:  # whose table may have more rows than the tokenizer has tokens
        model.config = replace(model.config, vocab_size=model.tokenizer.vocab_size)
    stores = {}
    for name, (own, settings) in parts.items():
        place = None if store is None else Path(store, name)
        stores[name] = open_or_build_subwords(
            own, model.tokenizer, text=settings, path=place, workers=model.training.workers,
            progress=reporter,
        )  # fmt: skip
        stores[name].validation_share = model.training.validation_share
    return Texts(stores)


Parts = dict[str, tuple[Any, TextSettings]]


def _parts(corpus: Any, settings: TextSettings) -> Parts:
    """The text of each language with its settings."""
    if not isinstance(corpus, Mapping):
        return {ONLY: (corpus, settings)}
    if not corpus:
        raise OptionError('A corpus by language names at least one: {"en": …, "zh": …}.')
    return {name: (own, settings.for_language(name)) for name, own in corpus.items()}


def _rereadable(corpus: Any, settings: TextSettings, reporter: Reporter) -> Any:
    """The corpus, or a copy of one that can be read only once."""
    if isinstance(corpus, SubwordStore):
        raise OptionError("A SubwordStore needs the tokenizer that made it: give tokenizer.")
    if not stream.reads_once(corpus):
        return corpus
    with byte_progress(reporter, None) as on_bytes:
        return Spool(corpus, settings, on_bytes)


def _tokenizer(
    model: SubwordModel, parts: Parts, given: Any, reporter: Reporter
) -> SubwordTokenizer:
    if isinstance(given, SubwordTokenizer):
        return given
    if given is not None:
        return SubwordTokenizer.load(given)
    place = _tokenizer_place(model, parts)
    corpora: Any = {name: own for name, (own, _) in parts.items()}
    train = partial(
        SubwordTokenizer.train, corpora.get(ONLY, corpora), kind=model.tokenizer_kind,
        vocab_size=model.config.vocab_size, smoothing=model.training.smoothing, text=model.text,
        progress=reporter,
    )  # fmt: skip
    return train() if place is None else trained_at(place, train, reporter.note)


def _tokenizer_place(model: SubwordModel, parts: Parts) -> Path | None:
    """The path of the cached tokenizer for these texts, if they can be identified."""
    known = {name: stream.fingerprint(own, settings) for name, (own, settings) in parts.items()}
    if None in known.values():
        return None
    mix = [] if ONLY in known else [model.training.smoothing]
    key = key_of(known, RULES_VERSION, model.tokenizer_kind, model.config.vocab_size, *mix)
    return cache_dir() / "tokenizers" / key


# ---- validation ---------------------------------------------------------------------------------


def with_perplexity(
    model: SubwordModel, texts: Texts, validation: Any
) -> Callable[[Metrics], Metrics]:
    """A function that adds perplexity and the counting baselines to the metrics."""
    if validation is None:
        return lambda metrics: metrics
    parts = validation.parts if isinstance(validation, Validations) else {ONLY: validation}
    baseline = _counted(model, texts, parts)

    def add(metrics: Metrics) -> Metrics:
        found = dict(metrics)
        for name in dict.fromkeys([ONLY, *parts]):
            mark = _mark(name)
            loss = metrics.get(f"{mark}masked_loss", metrics.get(f"{mark}token_loss", math.nan))
            found[f"{mark}perplexity"] = perplexity(loss)
        return found | baseline

    return add


def _counted(model: SubwordModel, texts: Texts, parts: Mapping[str, Validation]) -> Metrics:
    """The counting baselines on the batches of each language, and on all of them."""
    found: Metrics = {}
    sums, totals = Counter[str](), Counter[str]()
    for name, own in parts.items():
        store, source, num = texts.stores[name], own.source, own.num_batches
        counts = token_counts(store, model.config.vocab_size)
        metrics = unigram_metrics(counts, source, num)
        if texts.num_tokens <= _COUNTED_TOKENS:
            metrics |= neighbor_metrics(store, source, model.tokenizer, counts, num)
        num_targets = sum(len(targets_of(source.batch(step))) for step in range(num))
        found |= {f"{_mark(name)}{key}": value for key, value in metrics.items()}
        sums.update({key: num_targets * value for key, value in metrics.items()})
        totals.update(dict.fromkeys(metrics, num_targets))
    # Over all languages: a baseline that knows only the language of a row.
    return found | {key: value / totals[key] for key, value in sums.items()}


def _mark(name: str) -> str:
    return f"{name}_" if name else ""


class WordText:
    """A text whose most frequent words are predicted."""

    def __init__(self, store: TokenStore, num_words: int) -> None:
        self.store, self.num_words = store, num_words

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that are predicted, in memory, because a temporary store is deleted."""
        own = self.store.vocabulary.cut(self.num_words)
        return Vocabulary.from_words(list(own), np.asarray(own.counts).tolist())

    @property
    def sizes(self) -> dict[str, int]:
        """How many documents, sentences and words it has."""
        return self.store.sizes

    @property
    def content(self) -> dict[str, Any]:
        """What identifies this text."""
        return {
            "text": self.store.manifest["files"]["ids.bin"]["hash"],
            "tokens": self.store.num_tokens,
            "words": len(self.store.vocabulary),
        }

    @property
    def counts(self) -> np.ndarray:
        """How often each special token and predicted word occurs."""
        counts = np.asarray(self.store.vocabulary.counts[: self.num_words], np.int64)
        num_sentences = len(self.store.sentence_ends)
        unknown = self.store.num_tokens - int(counts.sum())
        return np.concatenate([[num_sentences, num_sentences, unknown], counts])

    @property
    def next_counts(self) -> np.ndarray:
        """How often each is a target; the start token never is."""
        counts_V = self.counts
        counts_V[BEGIN_ID] = 0
        return counts_V

    def source(self, model: WordModel, split: Split) -> WordRowBatches:
        """The batches of a split."""
        training = model.training
        return WordRowBatches(
            self.store, length=training.length, batch_size=training.batch_size,
            seed=training.seed, split=split, validation_share=training.validation_share,
        )  # fmt: skip

    def validation(self, model: WordModel, reporter: Reporter) -> Validation | None:
        """Measures the network on held-out documents, if there are any."""
        source = _validating(model, partial(self.source, model, "validation"), reporter)
        return None if source is None else Validation(source, model.training.evaluate_batches)

    def described(self, source: WordRowBatches) -> str:
        """The amount of text."""
        return f"Text of {format_count(source.num_tokens, 'words')}"


def open_words(model: WordModel, corpus: Any, request: Request) -> WordText:
    """Open the text as words, the frequent ones of which are predicted."""
    training = model.training
    has_all = model.reads_rare_words and not isinstance(corpus, TokenStore)
    store = open_or_build(
        corpus, model.text, min_count=1 if has_all else training.min_count,
        workers=training.workers, path=request.store, progress=request.reporter,
    )  # fmt: skip
    counts = np.asarray(store.vocabulary.counts)
    num_frequent = int(np.searchsorted(-counts, -training.min_count, "right"))
    if not num_frequent:
        highest = int(counts[0]) if len(counts) else 0
        raise InputError(
            f"No word occurs {training.min_count:,} times (the most frequent one {highest:,} "
            "times): lower min_count or add text."
        )
    return WordText(store, min(num_frequent, training.max_words))


def unigram_perplexity(
    counts_V: np.ndarray, validation: Validation, targets_of: Callable[[WordRows], np.ndarray]
) -> float:
    """The perplexity of predicting words by frequency on held-out rows."""
    chances_V = np.maximum(counts_V, 0.5)
    losses_V = -np.log(chances_V / chances_V.sum())
    batches = (validation.source.batch(step) for step in range(validation.num_batches))
    losses = np.concatenate([losses_V[targets_of(batch)] for batch in batches])
    return perplexity(float(losses.sum()) / max(1, len(losses)))
