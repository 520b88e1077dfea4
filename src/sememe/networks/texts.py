"""The text a network learns from, or one text for each language: a corpus in, batches out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import InputError, OptionError
from sememe.examples.batches import Split
from sememe.examples.mixing import MixedBatches
from sememe.networks.baseline import targets_of, token_counts, unigram_figures
from sememe.networks.neighbor_baseline import neighbor_figures
from sememe.progress import SILENT, Reporter
from sememe.progress.figures import format_count
from sememe.storage.folder import write_folder
from sememe.storage.places import cache_dir
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.spooling import Spool
from sememe.tokens.caching import heard, key_of
from sememe.tokens.chunks import RULES_VERSION
from sememe.tokens.subword_store import SubwordStore, open_or_build_subwords
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.evaluation import Validation, Validations

if TYPE_CHECKING:
    from sememe.networks.subword_model import SubwordModel

# Counting the neighbors of so many tokens takes seconds; a larger text would have to wait.
_COUNTED_TOKENS = 1 << 24

ONLY = ""  # the name of a text that is no mix of languages

Figures = dict[str, float]


class Texts:
    """The text of each language as ids; one text alone has no name."""

    def __init__(self, stores: Mapping[str, SubwordStore]) -> None:
        self.stores = dict(stores)

    @property
    def num_tokens(self) -> int:
        """Tokens of all texts together."""
        return sum(store.num_tokens for store in self.stores.values())

    @property
    def content(self) -> dict[str, Any]:
        """What tells these texts from others."""
        if ONLY in self.stores:
            return _content(self.stores[ONLY])
        return {"languages": {name: _content(store) for name, store in self.stores.items()}}

    def source(self, model: SubwordModel, split: Split) -> Any:
        """The batches of a split, of all languages in their smoothed shares."""
        if ONLY in self.stores:
            return model.source(self.stores[ONLY], split)
        sources = [_named(name, model, store, split) for name, store in self.stores.items()]
        training = model.training
        return MixedBatches(sources, seed=training.seed, exponent=training.smoothing)

    def shares(self, source: Any) -> dict[str, float]:
        """The share of each language in the rows of a mix; nothing for one text."""
        if not isinstance(source, MixedBatches):
            return {}
        return dict(zip(self.stores, source.shares.tolist(), strict=True))

    def validation(self, model: SubwordModel, reporter: Reporter) -> Any:
        """What measures a network on held-out text: as many batches of every language; or None."""
        held_out = self._held_out(model, reporter)
        each = max(1, model.training.evaluate_batches // max(1, len(held_out)))
        parts = {name: Validation(source, each) for name, source in held_out.items()}
        if set(parts) <= {ONLY}:
            return parts.get(ONLY)
        return Validations(parts)

    def _held_out(self, model: SubwordModel, reporter: Reporter) -> dict[str, Any]:
        """The batches to validate each language with, where it has the documents for that."""
        if not model.training.evaluate_batches or not model.training.validation_share:
            return {}
        found = {}
        for name, store in self.stores.items():
            try:
                found[name] = model.source(store, "validation")
            except InputError as error:
                what = f"Training without validation{f' of {name}' if name else ''}."
                reporter.note(f"{what} {error}")
        return found

    def described(self, source: Any) -> str:
        """How much text there is, which language has which share, and what its rows leave out."""
        words = f"Text of {format_count(self.num_tokens, 'tokens')}"
        if shares := self.shares(source):
            parts = (
                f"{name} {format_count(self.stores[name].num_tokens)}, {share:.0%} of the rows"
                for name, share in shares.items()
            )
            words += f" ({'; '.join(parts)})"
        if source.num_trimmed:
            share = source.num_trimmed / max(1, source.num_tokens)
            words += (
                f"; pairs leave out {format_count(source.num_trimmed, 'tokens')} ({share:.1%}) of "
                "an epoch, other ones in every epoch"
            )
        return words


def _content(store: SubwordStore) -> dict[str, Any]:
    return {"text": store.manifest["files"]["ids.bin"]["hash"], "tokens": store.num_tokens}


def _named(name: str, model: SubwordModel, store: SubwordStore, split: Split) -> Any:
    """The batches of one language; what is wrong with its text is said with its name."""
    try:
        return model.source(store, split)
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
    """Every text as ids of the tokenizer that is given, or trained on all of them."""
    parts = _parts(corpus, model.text)
    if tokenizer is None:
        parts = {name: (_rereadable(*part, reporter), part[1]) for name, part in parts.items()}
    model.tokenizer = _tokenizer(model, parts, tokenizer, reporter)
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
    """The text of each language with how it is read."""
    if not isinstance(corpus, Mapping):
        return {ONLY: (corpus, settings)}
    if not corpus:
        raise OptionError('A corpus by language names at least one: {"en": …, "zh": …}.')
    return {name: (own, settings.for_language(name)) for name, own in corpus.items()}


def _rereadable(corpus: Any, settings: TextSettings, reporter: Reporter) -> Any:
    """The corpus, or a copy of what would give its text to the tokenizer and then no more."""
    if isinstance(corpus, SubwordStore):
        raise OptionError("A SubwordStore needs the tokenizer that made it: give tokenizer.")
    if not stream.reads_once(corpus):
        return corpus
    with heard(reporter, None) as on_bytes:
        return Spool(corpus, settings, on_bytes)


def _tokenizer(
    model: SubwordModel, parts: Parts, given: Any, reporter: Reporter
) -> SubwordTokenizer:
    if isinstance(given, SubwordTokenizer):
        return given
    if given is not None:
        return SubwordTokenizer.load(given)
    place = _tokenizer_place(model, parts)
    if place is not None and place.exists():
        return SubwordTokenizer.load(place)
    corpora: Any = {name: own for name, (own, _) in parts.items()}
    trained = SubwordTokenizer.train(
        corpora.get(ONLY, corpora), kind=model.tokenizer_kind,
        vocab_size=model.config.vocab_size, smoothing=model.training.smoothing, text=model.text,
        progress=reporter,
    )  # fmt: skip
    if place is not None:
        with write_folder(place) as scratch:
            trained.save(scratch)
    return trained


def _tokenizer_place(model: SubwordModel, parts: Parts) -> Path | None:
    """Where the tokenizer of these texts is kept for the next run, if the texts can be told."""
    known = {name: stream.fingerprint(own, settings) for name, (own, settings) in parts.items()}
    if None in known.values():
        return None
    mix = [] if ONLY in known else [model.training.smoothing]
    key = key_of(known, RULES_VERSION, model.tokenizer_kind, model.config.vocab_size, *mix)
    return cache_dir() / "tokenizers" / key


# ---- validation ---------------------------------------------------------------------------------


def with_perplexity(
    model: SubwordModel, texts: Texts, validation: Any
) -> Callable[[Figures], Figures]:
    """A function that puts perplexity and what counting scores beside the figures."""
    if validation is None:
        return lambda figures: figures
    parts = validation.parts if isinstance(validation, Validations) else {ONLY: validation}
    baseline = _counted(model, texts, parts)

    def add(figures: Figures) -> Figures:
        found = dict(figures)
        for name in dict.fromkeys([ONLY, *parts]):
            mark = _mark(name)
            loss = figures.get(f"{mark}masked_loss", figures.get(f"{mark}token_loss", math.nan))
            found[f"{mark}perplexity"] = math.exp(min(loss, 700.0))
        return found | baseline

    return add


def _counted(model: SubwordModel, texts: Texts, parts: Mapping[str, Validation]) -> Figures:
    """What counting scores on the batches of each language, and on all of them."""
    found: Figures = {}
    sums, total = Counter[str](), 0
    for name, own in parts.items():
        store, source, num = texts.stores[name], own.source, own.num_batches
        counts = token_counts(store, model.config.vocab_size)
        figures = unigram_figures(counts, source, num)
        if texts.num_tokens <= _COUNTED_TOKENS:
            figures |= neighbor_figures(store, source, model.tokenizer, counts, num)
        num_targets = sum(len(targets_of(source.batch(step))) for step in range(num))
        found |= {f"{_mark(name)}{key}": value for key, value in figures.items()}
        sums.update({key: num_targets * value for key, value in figures.items()})
        total += num_targets
    # Of all together: what somebody scores who knows the language of a row and no word of it.
    return found | {key: value / total for key, value in sums.items()}


def _mark(name: str) -> str:
    return f"{name}_" if name else ""
