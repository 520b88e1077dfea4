"""What the language models over words share: NNLM, ELMo and ULMFiT; text in, a vocabulary out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sememe.examples.neighboring_words import neighbors_of
from sememe.examples.word_rows import NUM_MARKS, WordRows
from sememe.metrics.perplexity import TextScore
from sememe.networks.language_model import LanguageModel
from sememe.networks.model_folder import FORMAT, WEIGHTS, WORDS, arrays_of, fill
from sememe.networks.word_config import WordPreset
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import kind_of_folder
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.prompts import Suggestion, cut_sentences, read_prompt, suggest_words
from sememe.tokens.store import TokenStore, open_or_build
from sememe.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from sememe.networks.fitting import Figures, Request
    from sememe.networks.word_text import WordText


class WordModel(LanguageModel):
    """A language model over the words of a text, of which it knows the frequent ones."""

    presets: ClassVar[Mapping[str, WordPreset]]
    # Whether words too rare to be predicted are read nevertheless.
    reads_rare_words: ClassVar[bool] = False
    learned = (*LanguageModel.learned, "vocabulary")

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a size by name, and options of the network and the training."""
        super().__init__(preset, **options)
        self.vocabulary = Vocabulary.from_words([])  # the words that are predicted

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The chance of each word to come after those of a sentence so far."""
        raise NotImplementedError

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The likeliest words after a text, or to complete the one that it ends in."""
        self.trained()
        prompt = read_prompt(text, self.text)
        return suggest_words(self.vocabulary, prompt, self.distribution, count)

    def score(self, text: str) -> float:
        """The log10 of a text's probability, the ends of its sentences included."""
        sentences = cut_sentences(text, self.text)
        return self.evaluate(sentences).log10 if sentences else 0.0

    def perplexity(self, corpus: Any, *, progress: Reporter | None = None) -> float:
        """The perplexity of a text, unknown words and the ends of sentences included."""
        return self.evaluate(corpus, progress=progress).perplexity

    def evaluate(self, corpus: Any, *, progress: Reporter | None = None) -> TextScore:
        """Measure how well the model foretells a text: all that `fit` takes."""
        self.trained()
        tokens = open_or_build(
            corpus, self.text, min_count=1, workers=self.training.workers,
            progress=progress or SILENT,
        )  # fmt: skip
        return self._score(tokens)

    def _score(self, tokens: TokenStore) -> TextScore:
        raise NotImplementedError

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "words": len(self.vocabulary),
            "config": self.config.to_dict(),
            **super().manifest(),
            "provenance": provenance(),
        }

    def _usual(self, preset: str) -> dict[str, Any]:
        own = self.presets[preset]
        return {
            "learning_rate": own.learning_rate, "batch_size": own.batch_size,
            "max_words": own.max_words,
        }  # fmt: skip

    def _shape(self) -> str:
        config = self.config
        return f"{config.num_layers} layers × {config.num_cells}/{config.width}"

    def _knows(self) -> str:
        return f"{len(self.vocabulary):,} words"

    def _know(self, num_words: int) -> None:
        """Make room for so many words, and the marks, in the sizes."""
        self.config = replace(self.config, vocab_size=NUM_MARKS + num_words)

    # ---- learning -------------------------------------------------------------------------------

    def open_text(self, corpus: Any, request: Request) -> WordText:
        """The text as words; the frequent ones are the model's from now on."""
        from sememe.networks.word_text import open_words

        text = open_words(self, corpus, request)
        self.vocabulary = text.vocabulary
        self._know(text.num_words)
        return text

    def shown(self) -> str:
        """The figure that stands beside the progress."""
        return "validation_perplexity"

    def add_figures(self, text: WordText, validation: Any) -> Callable[[Figures], Figures]:
        """A function that puts perplexity beside the figures, and what counts alone would reach."""
        from sememe.networks.word_text import unigram_perplexity

        if validation is None:
            return lambda figures: figures
        unigram = unigram_perplexity(self._next_counts(text), validation, self._targets)
        return lambda figures: {
            **figures, **self._perplexities(figures), "unigram_perplexity": unigram
        }  # fmt: skip

    def _perplexities(self, figures: Figures) -> Figures:
        return {"perplexity": perplexity_of(figures["word_loss"])}

    def _next_counts(self, text: WordText) -> np.ndarray:
        """How often each word is to be told, in the order of the network's."""
        return text.next_counts

    def _targets(self, batch: WordRows) -> np.ndarray:
        """The words that a batch asks for, as ids of the network."""
        return neighbors_of(batch, +1, self.config.vocab_size).targets_M

    # ---- the folder -----------------------------------------------------------------------------

    @classmethod
    def is_at(cls, path: Path) -> bool:
        """Whether a path is the folder of a model of this kind."""
        return kind_of_folder(path) == cls.kind

    def _write(self, folder: Path) -> None:
        write_tensors(folder / WEIGHTS, arrays_of(self.network))
        write_tensors(folder / WORDS, self.vocabulary.to_tensors())

    def _take_up(self, manifest: dict[str, Any]) -> None:
        self.config = self.config_class(**manifest["config"])

    def _read(self, folder: Path) -> None:
        self.vocabulary = Vocabulary.from_tensors(read_tensors(folder / WORDS))
        self.network = self.new_network()
        fill(self.network, read_tensors(folder / WEIGHTS), folder / WEIGHTS)


def perplexity_of(loss: float) -> float:
    """The perplexity of a mean loss in nats; a loss beyond all measure has a finite one too."""
    return math.exp(min(loss, 300.0))
