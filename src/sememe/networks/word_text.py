"""The words of a text that a language model learns from: a corpus in, batches and counts out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError
from sememe.examples.batches import Split
from sememe.examples.word_rows import BEGIN_ID, WordRowBatches, WordRows
from sememe.progress import Reporter
from sememe.progress.figures import format_count
from sememe.tokens.store import TokenStore, open_or_build
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.evaluation import Validation

if TYPE_CHECKING:
    from sememe.networks.fitting import Request
    from sememe.networks.word_model import WordModel


class WordText:
    """A text whose most frequent words are predicted."""

    def __init__(self, store: TokenStore, num_words: int) -> None:
        self.store, self.num_words = store, num_words

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that are predicted, in memory: a store of what was read once goes away."""
        own = self.store.vocabulary.cut(self.num_words)
        return Vocabulary.from_words(list(own), np.asarray(own.counts).tolist())

    @property
    def content(self) -> dict[str, Any]:
        """What tells this text from others."""
        return {
            "text": self.store.manifest["files"]["ids.bin"]["hash"],
            "tokens": self.store.num_tokens,
            "words": len(self.store.vocabulary),
        }

    @property
    def counts(self) -> np.ndarray:
        """How often each mark and predicted word occurs."""
        counts = np.asarray(self.store.vocabulary.counts[: self.num_words], np.int64)
        num_sentences = len(self.store.sentence_ends)
        unknown = self.store.num_tokens - int(counts.sum())
        return np.concatenate([[num_sentences, num_sentences, unknown], counts])

    @property
    def next_counts(self) -> np.ndarray:
        """How often each is to be told as the next word: the mark of a beginning never is."""
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
        """What measures the network on held-out documents, where there are some."""
        training = model.training
        if not training.evaluate_batches or not training.validation_share:
            return None
        try:
            source = self.source(model, "validation")
        except InputError as error:
            reporter.note(f"Training without validation. {error}")
            return None
        return Validation(source, training.evaluate_batches)

    def described(self, source: WordRowBatches) -> str:
        """How much text there is."""
        return f"Text of {format_count(source.num_tokens, 'words')}"


def open_words(model: WordModel, corpus: Any, request: Request) -> WordText:
    """The text as words, the frequent ones of which are to be predicted."""
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
    """What telling words by their counts alone reaches on held-out rows."""
    chances_V = np.maximum(counts_V, 0.5)
    losses_V = -np.log(chances_V / chances_V.sum())
    batches = (validation.source.batch(step) for step in range(validation.num_batches))
    losses = np.concatenate([losses_V[targets_of(batch)] for batch in batches])
    return math.exp(float(losses.sum()) / max(1, len(losses)))
