"""NNLM from raw text: a corpus in, a language model with its word vectors out.

model = sememe.NNLM(preset="tiny", budget="2m").fit("texts/", out="runs/nnlm")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sememe.contract import Model
from sememe.errors import ArtifactError, OptionError
from sememe.examples.word_rows import END_ID, NUM_MARKS, UNKNOWN_ID, WordRows
from sememe.metrics.perplexity import TextScore
from sememe.models.language.model import WEIGHTS, fill
from sememe.models.language.texts import Metrics, WordText
from sememe.models.language.word_model import WordModel
from sememe.models.nnlm.config import PRESETS, NNLMConfig, NNLMTrainingConfig
from sememe.models.nnlm.network import (
    NNLMObjective,
    RankingObjective,
    log_probs,
    new_network,
    next_words,
    score_text,
)
from sememe.nn.softmax import Sampler
from sememe.progress import Reporter
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.weights import arrays_of, weights_of
from sememe.vectors import WordVectors

VECTORS, MARKS, TABLE = "vectors", "marks", "words.weight"


class NNLM(WordModel):
    """Neural language model over a window of words (Bengio et al. 2003), or its ranking variant.

    model = sememe.NNLM(preset="tiny", budget="2m").fit("texts/", out="runs/nnlm")
    model.next_words("the king of", count=5)
    model.vectors.neighbors("king")
    """

    kind = "nnlm"
    config_class = NNLMConfig
    training_class = NNLMTrainingConfig
    presets = PRESETS

    # ---- use ------------------------------------------------------------------------------------

    def lacking(self) -> dict[str, str]:
        """What a ranking network does not support."""
        why = "a ranking network scores windows and predicts no word"
        return dict.fromkeys(("next_words", "score"), why) if self._is_ranking else {}

    @property
    def vectors(self) -> WordVectors:
        """The word vectors of the network."""
        return self.words

    def _word_table(self) -> WordVectors:
        table = self.network.words.weight.detach().cpu().numpy()
        return WordVectors(self.vocabulary, table[: len(self.vocabulary)])

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the word vectors, which do not depend on context."""
        return (self.config.dim,)

    # Not WordModel's: a word has one vector, whatever is around it.
    embed, embed_words, embed_spans = Model.embed, Model.embed_words, Model.embed_spans

    def ids_of(self, words: Iterable[str]) -> np.ndarray:
        """The ids of words, int64; unknown words get that of <unk>."""
        found = [self.vocabulary.find(word) for word in words]
        return np.array([len(self.vocabulary) if one < 0 else one for one in found], np.int64)

    @torch.no_grad()
    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The probability of each word to follow a sentence so far.

        The words of the vocabulary are followed by <unk> and </s>.
        """
        window = self._windows(list(words))[-1:]
        logits_1V = self.trained().logits(torch.from_numpy(window).to(self.device))
        return logits_1V[0].double().softmax(0).cpu().numpy()

    def _windows(self, words: list[str]) -> np.ndarray:
        """The ids before each word of a sentence and before its end, (words + 1, C)."""
        window = self.config.window
        ids = np.concatenate([np.full(window, len(self.vocabulary) + 2), self.ids_of(words)])
        return np.lib.stride_tricks.sliding_window_view(ids, window).astype(np.int64)

    def _log_probs(self, sentences: list[list[str]]) -> list[np.ndarray]:
        windows = [self._windows(words)[:-1] for words in sentences]
        targets = [self.ids_of(words) for words in sentences]
        if not windows:
            return []
        found = log_probs(self.network, np.concatenate(windows), np.concatenate(targets))
        return np.split(found, np.cumsum([len(own) for own in targets])[:-1])

    def _score(self, tokens: TokenStore) -> TextScore:
        id_map = np.append(self.ids_of(tokens.vocabulary), len(self.vocabulary))
        return score_text(self.trained(), tokens, id_map.astype(np.uint32))

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return super().manifest() | {"dim": self.config.dim}

    @property
    def _is_ranking(self) -> bool:
        return bool(self.config.architecture == "ranking")

    def _shape(self) -> str:
        config = self.config
        return (
            f"{config.architecture}, {config.num_inputs} words × {config.dim}, "
            f"{config.num_hidden} hidden units"
        )

    def _know(self, num_words: int) -> None:
        self.config = replace(self.config, num_words=num_words)

    def _check(self) -> None:
        if self.config.num_inputs >= self.training.length:
            # A row inside a long sentence would have no complete window, and no training signal.
            raise OptionError(
                f"length ({self.training.length}) must be above the {self.config.num_inputs} "
                "words that the network sees at once."
            )

    # ---- learning -------------------------------------------------------------------------------

    def new_network(self) -> Any:
        """An untrained network of the architecture that the sizes name."""

        return new_network(self.config, seed=self.training.seed)

    def begin(self, text: WordText, source: Any, reporter: Reporter) -> Any:
        """Begin with how frequent words are; learn the next word, or to tell text from broken."""

        training, counts_V = self.training, self._next_counts(text)
        if self._is_ranking:
            chances_V = np.maximum(counts_V[: text.num_words], 1) ** training.noise_power
            return RankingObjective(self.network, chances_V)
        self.network.begin_with(counts_V)
        is_sampled = training.is_sampled(len(counts_V))
        sampler = Sampler(counts_V, training.num_samples) if is_sampled else None
        return NNLMObjective(self.network, sampler)

    def shown(self) -> str:
        """The metric to show with the progress."""
        return "validation_ranking_accuracy" if self._is_ranking else super().shown()

    def add_metrics(self, text: WordText, validation: Any) -> Callable[[Metrics], Metrics]:
        """A function that adds perplexity to the metrics, if words are predicted."""
        return super().add_metrics(text, None if self._is_ranking else validation)

    def _next_counts(self, text: WordText) -> np.ndarray:
        """How often each word is a target, then <unk> and </s>."""
        counts_V = text.counts
        return np.concatenate([counts_V[NUM_MARKS:], counts_V[[UNKNOWN_ID, END_ID]]])

    def _targets(self, batch: WordRows) -> np.ndarray:

        return next_words(batch, self.config.window, self.config.num_words)[1]

    # ---- the folder -----------------------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        arrays = arrays_of(weights_of(self.network))
        # The name under which the commands about word vectors find them.
        table, num_words = arrays.pop(TABLE), len(self.vocabulary)
        named = {VECTORS: table[:num_words], MARKS: table[num_words:]}
        write_tensors(folder / WEIGHTS, {**named, **arrays, **self.vocabulary.to_tensors()})

    def _read(self, folder: Path) -> None:
        arrays = read_tensors(folder / WEIGHTS)
        self.vocabulary = Vocabulary.from_tensors(arrays, folder / WEIGHTS)
        if VECTORS not in arrays or MARKS not in arrays:
            raise ArtifactError(f"{folder / WEIGHTS} lacks the vectors of its words.")
        arrays[TABLE] = np.concatenate([arrays.pop(VECTORS), arrays.pop(MARKS)])
        self.network = self.new_network()
        fill(self.network, arrays, folder / WEIGHTS)
