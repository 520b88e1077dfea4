"""What the language models over words, NNLM, ELMo and ULMFiT, share: text in, a vocabulary out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from sememe.contract import WordsInContext
from sememe.errors import OptionError
from sememe.examples.running_words import written
from sememe.examples.word_rows import NUM_MARKS, WordRows, neighbors_of
from sememe.machine import provenance
from sememe.metrics.perplexity import TextScore, perplexity
from sememe.models.fitting import Request
from sememe.models.language.model import (
    FORMAT,
    WEIGHTS,
    WORDS,
    LanguageModel,
    fill,
)
from sememe.models.language.texts import Metrics, WordText, open_words, unigram_perplexity
from sememe.models.language.word_reading import pooled, read_sentences, words_in_context
from sememe.progress import SILENT, Reporter
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.caching import open_or_build
from sememe.tokens.prompts import Suggestion, cut_sentences, read_prompt, suggest_words
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.weights import arrays_of, weights_of

_TEXTS_AT_ONCE = 1_024


class WordModel(LanguageModel):
    """A language model over the words of a text, with the frequent ones as its vocabulary."""

    # Whether words too rare to be predicted are still inputs.
    reads_rare_words: ClassVar[bool] = False
    learned = (*LanguageModel.learned, "vocabulary")

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a preset by name, and options of the network and the training."""
        super().__init__(preset, **options)
        self.vocabulary = Vocabulary.from_words([])  # the words that are predicted

    # ---- use ------------------------------------------------------------------------------------

    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """One vector per text: the mean or maximum over its words; zeros if it has none."""
        if pool not in ("mean", "max"):
            raise OptionError(f"pool must be mean or max for {self.kind}, not {pool!r}.")
        self.check_list(texts)
        rows = [pooled(own.vectors_WD, pool) for own in self.embed_spans(texts, layers=layers)]
        return np.stack(rows) if rows else self._embed_sentences([[]], layers)[0]

    def embed_spans(
        self,
        texts: Sequence[str],
        spans: Sequence[np.ndarray] | None = None,
        *,
        layers: Any = "last",
    ) -> Iterator[WordsInContext]:
        """The words of each text with their positions and vectors; `spans` selects the words."""
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            part = slice(first, first + _TEXTS_AT_ONCE)
            yield from words_in_context(
                lambda sentences: self._embed_sentences(sentences, layers), texts[part], self.text,
                None if spans is None else spans[part], self._has_word,
            )  # fmt: skip

    @torch.no_grad()
    def embed_expected(self, texts: Sequence[str], spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """The state before the word in each text and, for bidirectional models, after it.

        The directions share one softmax: the sum of their vectors scores a word with the product of
        the two probabilities.
        """
        self.trained("embed_expected").eval()

        def beside(sentences: list[list[str]]) -> list[np.ndarray]:
            found = read_sentences(self._beside, sentences)
            return [torch.stack(own, 1).cpu().numpy() for own in found]

        rows = []
        for (start, end), own in zip(
            spans, words_in_context(beside, texts, self.text), strict=True
        ):
            inside = np.flatnonzero((own.starts < end) & (own.ends > start))
            sides_SWD = own.vectors_WD.swapaxes(0, 1)
            places = zip(sides_SWD, inside[[0, -1]] if len(inside) else (), strict=False)
            found = [side_WD[word] for side_WD, word in places]
            rows.append(np.sum(found, 0) if found else np.zeros(sides_SWD.shape[2], np.float32))
        return np.stack(rows) if rows else self.embed_expected([""], [(0, 0)])[:0]

    def _beside(self, rows: list[Sequence[str]]) -> list[Tensor]:
        """The last layer before each word and, in both directions, after it, (T, B, D) each."""
        raise NotImplementedError

    def _has_word(self, word: str) -> bool:
        """Whether the network can distinguish a word from unknown words."""
        return self.vocabulary.find(word) >= 0

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The probability of each word to follow a sentence so far."""
        raise NotImplementedError

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The most likely words after a text, or completions of its last word."""
        self.trained("next_words")
        prompt = read_prompt(text, self.text)
        return suggest_words(self.vocabulary, prompt, self.distribution, count)

    def score(self, text: str) -> float:
        """The log10 probability of a text, including sentence ends."""
        sentences = cut_sentences(text, self.text)
        return self.evaluate(sentences).log10 if sentences else 0.0

    def evaluate(self, data: Any, *, progress: Reporter | None = None, **options: Any) -> TextScore:
        """Compute the perplexity of a text, in any form that `fit` takes."""
        self.trained("score")
        tokens = open_or_build(
            data, self.text, min_count=1, workers=self.training.workers,
            progress=progress or SILENT,
        )  # fmt: skip
        return self._score(tokens)

    def word_log_probs(
        self, documents: Sequence[tuple[str, Sequence[np.ndarray]]]
    ) -> list[np.ndarray]:
        """The natural log probability of each word given its sentence so far.

        NaN for unknown words: the probability of <unk> is that of all of them together.
        """
        self.trained("score")
        sentences = [
            [written(text[start:end], self.text) for start, end in own]
            for text, spans in documents
            for own in spans
        ]
        found = iter(
            np.where([word in self.vocabulary for word in words], logs, np.nan)
            for words, logs in zip(sentences, self._log_probs(sentences), strict=True)
        )
        return [
            np.concatenate([next(found) for _ in spans] or [np.empty(0)]) for _, spans in documents
        ]

    def _log_probs(self, sentences: list[list[str]]) -> list[np.ndarray]:
        """The natural log probability of each word of some sentences given the words before it."""
        raise NotImplementedError

    def _score(self, tokens: TokenStore) -> TextScore:
        raise NotImplementedError

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "words": len(self.vocabulary),
            "config": self.config.to_dict(),
            **super().manifest(),
            "provenance": provenance(),
        }

    def _shape(self) -> str:
        config = self.config
        return f"{config.num_layers} layers × {config.num_cells}/{config.width}"

    def _knows(self) -> str:
        return f"{len(self.vocabulary):,} words"

    def _know(self, num_words: int) -> None:
        """Set the vocabulary size, including special tokens, in the sizes."""
        self.config = replace(self.config, vocab_size=NUM_MARKS + num_words)

    # ---- learning -------------------------------------------------------------------------------

    def open_text(self, corpus: Any, request: Request) -> WordText:
        """Open the text as words; the frequent ones become the model's vocabulary."""

        text = open_words(self, corpus, request)
        self.vocabulary = text.vocabulary
        self._know(text.num_words)
        return text

    def shown(self) -> str:
        """The metric to show with the progress."""
        return "validation_perplexity"

    def add_metrics(self, text: WordText, validation: Any) -> Callable[[Metrics], Metrics]:
        """A function that adds perplexity, and that of the unigram baseline, to the metrics."""

        if validation is None:
            return lambda metrics: metrics
        unigram = unigram_perplexity(self._next_counts(text), validation, self._targets)
        return lambda metrics: {
            **metrics, **self._perplexities(metrics), "unigram_perplexity": unigram
        }  # fmt: skip

    def _perplexities(self, metrics: Metrics) -> Metrics:
        return {"perplexity": perplexity(metrics["word_loss"])}

    def _next_counts(self, text: WordText) -> np.ndarray:
        """How often each word is a target, in the order of the network's ids."""
        return text.next_counts

    def _targets(self, batch: WordRows) -> np.ndarray:
        """The targets of a batch, as ids of the network."""
        return neighbors_of(batch, +1, self.config.vocab_size).targets_M

    # ---- the folder -----------------------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        write_tensors(folder / WEIGHTS, arrays_of(weights_of(self.network)))
        write_tensors(folder / WORDS, self.vocabulary.to_tensors())

    def _take_up(self, manifest: dict[str, Any]) -> None:
        self.config = self.config_class(**manifest["config"])

    def _read(self, folder: Path) -> None:
        self.vocabulary = Vocabulary.from_tensors(read_tensors(folder / WORDS), folder / WORDS)
        self.network = self.new_network()
        fill(self.network, read_tensors(folder / WEIGHTS), folder / WEIGHTS)
