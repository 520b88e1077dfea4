"""ELMo from raw text: a corpus in, a network with its words out; `fit`, `embed`, `save`, `load`.

model = sememe.ELMo(preset="tiny", budget="5m").fit("texts/", out="runs/elmo")
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.word_rows import NUM_MARKS
from sememe.metrics.perplexity import TextScore
from sememe.networks.elmo_config import (
    PRESETS,
    CasedTextSettings,
    ELMoConfig,
    ELMoTrainingConfig,
    elmo_config,
)
from sememe.networks.installed import need_torch
from sememe.networks.interchange.layout import find_bilm
from sememe.networks.language_model import refuse_one_text
from sememe.networks.word_model import WordModel, perplexity_of
from sememe.progress import Reporter
from sememe.tokens.store import TokenStore

if TYPE_CHECKING:
    from sememe.networks.elmo_reading import Opened
    from sememe.networks.fitting import Figures
    from sememe.networks.word_text import WordText


class ELMo(WordModel):
    """ELMo (Peters et al. 2018): the next word and the word before, by what words look like.

    model = sememe.ELMo(preset="tiny", budget="5m").fit("texts/", out="runs/elmo")

    Words keep their case unless `fit` is told otherwise: lowercase=True.
    """

    kind = "elmo"
    config_class = ELMoConfig
    training_class = ELMoTrainingConfig
    text_class = CasedTextSettings
    presets = PRESETS
    reads_rare_words = True  # every word has its spelling
    learned = (*WordModel.learned, "start_s")
    start_s = 0.0  # that skip-gram took before the first step, which the history does not count

    _opened: Any = None
    _start: Any = None

    # ---- use ------------------------------------------------------------------------------

    @property
    def opened(self) -> Opened:
        """The network with what it needs to take words."""
        from sememe.networks.elmo_reading import Opened
        from sememe.networks.word_forms import forms_of

        network = self.trained()
        if self._opened is None or self._opened.network is not network:
            self._opened = Opened(network, forms_of(self.vocabulary, self.config), self.text)
        return self._opened

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """All layers of sentences of words, (layers + 1, words, 2 × width) each."""
        from sememe.networks.elmo_reading import read_layers

        found = read_layers(self.opened, _checked(sentences))
        return [np.stack([layer.cpu().numpy() for layer in own]) for own in found]

    def embed(
        self, sentences: Sequence[Sequence[str]] | Sequence[str], *, layers: Any = "last"
    ) -> list[np.ndarray]:
        """A vector for each word of each sentence, in its context, (words, 2 × width) each.

        A sentence is a list of words, or text, which is cut as the model's own was. `layers` is a
        number (0: words by themselves), first, last, second-to-last or sum-all.
        """
        from sememe.networks.elmo_reading import embed_sentences, embed_text_words

        refuse_one_text(sentences)
        if sentences and all(isinstance(one, str) for one in sentences):
            texts: Any = list(sentences)
            return [own.vectors_WD for own in embed_text_words(self.opened, texts, layers)]
        return embed_sentences(self.opened, _checked(sentences), layers)

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The chance of each word to come after those of a sentence so far, (words,)."""
        from sememe.networks.elmo_reading import next_chances

        opened = self.opened
        self._check_softmax()
        return next_chances(opened, words)[NUM_MARKS:]

    def _check_softmax(self) -> None:
        if not self.config.has_softmax:
            raise OptionError("These weights came without their softmax: they predict no words.")

    def _score(self, tokens: TokenStore) -> TextScore:
        from sememe.networks.stream_scores import ELMoReads, network_ids, score_streams

        self._check_softmax()
        opened, ids = self.opened, network_ids(tokens, self.vocabulary)
        reads = ELMoReads(opened.network, ids, opened.forms, tokens.vocabulary)
        return score_streams(reads, tokens)

    # ---- learning ---------------------------------------------------------------------------

    def _sizes(self, preset: str, options: dict[str, Any]) -> ELMoConfig:
        return elmo_config(preset, **options)

    def _shape(self) -> str:
        config = self.config
        layers = f"{config.num_layers} layers each way × {config.num_cells}/{config.width}"
        return f"{layers}, words by {config.input}"

    def new_network(self) -> Any:
        """An untrained network of the model's sizes."""
        from sememe.networks.elmo import ELMoNetwork

        return ELMoNetwork(self.config, seed=self.training.seed)

    def _fit(self, corpus: Any, *, out: Any, resume: bool = False, **asked: Any) -> Self:
        if not self.training.start_epochs:
            return super()._fit(corpus, out=out, resume=resume, **asked)
        need_torch()
        from sememe.networks.elmo_start import Start

        self._start = Start.beside(out, resume)
        super()._fit(corpus, out=out, resume=resume, **asked)
        self._start.clear()
        return self

    def begin(self, text: WordText, source: Any, reporter: Reporter) -> Any:
        """Begin with what counting or skip-gram tells; give both directions to learn."""
        from sememe.networks.elmo_objective import BidirectionalObjective
        from sememe.networks.sampled_softmax import Sampler
        from sememe.networks.word_forms import forms_of

        training, sampler = self.training, None
        self.network.begin_with(text.counts)
        if training.start_epochs:
            from sememe.networks.elmo_start import start_with_skipgram

            begun_s = time.monotonic()
            trained_s = start_with_skipgram(self.network, text, training, reporter, self._start)
            # Of a run that was resumed skip-gram may have been done before.
            self.start_s = round(max(trained_s, time.monotonic() - begun_s), 3)
        if training.is_sampled(self.config.vocab_size):
            reporter.note(f"The softmax looks at {training.num_samples:,} words at a time.")
            sampler = Sampler(text.counts, training.num_samples)
        forms = forms_of(text.store.vocabulary, self.config)
        return BidirectionalObjective(self.network, forms, sampler)

    def _perplexities(self, figures: Figures) -> Figures:
        forward, backward = (
            perplexity_of(figures[f"{name}_loss"]) for name in ("forward", "backward")
        )
        return {
            "forward_perplexity": forward, "backward_perplexity": backward,
            "perplexity": float(np.sqrt(forward * backward)),
        }  # fmt: skip

    # ---- the folder -------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return super().manifest() | {"start_s": self.start_s}

    def _take_up(self, manifest: dict[str, Any]) -> None:
        super()._take_up(manifest)
        self.start_s = float(manifest.get("start_s", 0.0))

    # ---- released files ---------------------------------------------------------------------

    @classmethod
    def is_at(cls, path: Path) -> bool:
        """Whether a path is the folder of an ELMo, or stands for released files."""
        return find_bilm(path) is not None or super().is_at(path)

    @classmethod
    def load(cls, folder: str | Path, *, vocabulary: str | Path | None = None) -> Self:
        """Open a model that was saved by `fit` or `save`, or the files of a released ELMo.

        Of those `folder` is the folder or the .hdf5 file, with the options beside it; `vocabulary`
        lists the words that they predict, where the file holds a softmax.
        """
        need_torch()
        if (found := find_bilm(Path(folder))) is not None:
            return cls._from_bilm(*found, None if vocabulary is None else Path(vocabulary))
        return super().load(folder)

    @classmethod
    def _from_bilm(cls, options: Path, weights: Path, vocabulary: Path | None) -> Self:
        from sememe.networks.interchange.bilm import read_bilm

        model = cls("original")
        model.network, model.vocabulary = read_bilm(options, weights, vocabulary)
        model.config = model.network.config
        # They were trained on words with spaces between them, punctuation among them.
        model.text = CasedTextSettings(language="none")
        return model


def _checked(sentences: Any) -> list[list[str]]:
    """Sentences as lists of words; one that is text among others is refused."""
    refuse_one_text(sentences)
    found = []
    for index, words in enumerate(sentences):
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise InputError(f"Sentence {index + 1} is no list of words, as the others are.")
        found.append(list(words))
    return found
