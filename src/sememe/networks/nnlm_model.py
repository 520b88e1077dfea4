"""NNLM from raw text: a corpus in, a language model with its word vectors out.

model = sememe.NNLM(preset="tiny", budget="2m").fit("texts/", out="runs/nnlm")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.examples.word_rows import END_ID, NUM_MARKS, UNKNOWN_ID, WordRows
from sememe.metrics.perplexity import TextScore
from sememe.networks.model_folder import WEIGHTS, arrays_of, fill
from sememe.networks.nnlm_config import PRESETS, NNLMConfig, NNLMTrainingConfig, nnlm_config
from sememe.networks.word_model import WordModel
from sememe.progress import Reporter
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

if TYPE_CHECKING:
    from sememe.networks.fitting import Figures
    from sememe.networks.word_text import WordText

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

    # ---- asking ---------------------------------------------------------------------------------

    @property
    def vectors(self) -> WordVectors:
        """The vectors of the words, as the network reads them."""
        table = self.trained().words.weight.detach().cpu().numpy()
        return WordVectors(self.vocabulary, table[: len(self.vocabulary)])

    def _language_model(self) -> Any:
        network = self.trained()
        if self.config.architecture == "ranking":
            raise OptionError(
                "A ranking network scores windows and predicts no word; train one with "
                "architecture softmax for that."
            )
        return network

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """The ids of words, int64; those of words that are not known are <unk>'s."""
        found = [self.vocabulary.find(word) for word in words]
        return np.array([len(self.vocabulary) if one < 0 else one for one in found], np.int64)

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The chance of each word to come after those of a sentence so far; they add up to one.

        Behind the words of the vocabulary stand <unk> and </s>.
        """
        import torch

        network, window = self._language_model(), self.config.window
        begin = np.full(window, len(self.vocabulary) + 2, np.int64)
        ids = np.concatenate([begin, self.ids_of(words)])[-window:]
        with torch.no_grad():
            logits_1V = network.logits(torch.from_numpy(ids)[None])
        return logits_1V[0].double().softmax(0).numpy()

    def _score(self, tokens: TokenStore) -> TextScore:
        from sememe.networks.nnlm_reading import score_text

        id_map = np.append(self.ids_of(tokens.vocabulary), len(self.vocabulary))
        return score_text(self._language_model(), tokens, id_map.astype(np.uint32))

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return super().manifest() | {"dim": self.config.dim}

    @property
    def _is_ranking(self) -> bool:
        return bool(self.config.architecture == "ranking")

    def _sizes(self, preset: str, options: dict[str, Any]) -> NNLMConfig:
        return nnlm_config(preset, **options)

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
            # A row inside a long sentence would have no whole window, and teach nothing.
            raise OptionError(
                f"length ({self.training.length}) must be above the {self.config.num_inputs} "
                "words that the network sees at once."
            )

    # ---- learning -------------------------------------------------------------------------------

    def new_network(self) -> Any:
        """An untrained network of the architecture that the sizes name."""
        from sememe.networks.nnlm import new_network

        return new_network(self.config, seed=self.training.seed)

    def begin(self, text: WordText, source: Any, reporter: Reporter) -> Any:
        """Begin with how frequent words are; learn the next word, or to tell text from broken."""
        from sememe.networks.nnlm_objective import NextWordObjective, RankingObjective
        from sememe.networks.sampled_softmax import Sampler

        training, counts_V = self.training, self._next_counts(text)
        if self._is_ranking:
            chances_V = np.maximum(counts_V[: text.num_words], 1) ** training.noise_power
            return RankingObjective(self.network, chances_V)
        self.network.begin_with(counts_V)
        is_sampled = training.is_sampled(len(counts_V))
        sampler = Sampler(counts_V, training.num_samples) if is_sampled else None
        return NextWordObjective(self.network, sampler)

    def shown(self) -> str:
        """The figure that stands beside the progress."""
        return "validation_ranking_accuracy" if self._is_ranking else super().shown()

    def add_figures(self, text: WordText, validation: Any) -> Callable[[Figures], Figures]:
        """A function that puts perplexity beside the figures, where words are predicted."""
        return super().add_figures(text, None if self._is_ranking else validation)

    def _next_counts(self, text: WordText) -> np.ndarray:
        """How often each word is to be told, then <unk> and </s>."""
        counts_V = text.counts
        return np.concatenate([counts_V[NUM_MARKS:], counts_V[[UNKNOWN_ID, END_ID]]])

    def _targets(self, batch: WordRows) -> np.ndarray:
        from sememe.networks.nnlm_objective import next_words

        return next_words(batch, self.config.window, self.config.num_words)[1]

    # ---- the folder -----------------------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        arrays = arrays_of(self.network)
        # By that name the commands that ask word vectors find them.
        table, num_words = arrays.pop(TABLE), len(self.vocabulary)
        named = {VECTORS: table[:num_words], MARKS: table[num_words:]}
        write_tensors(folder / WEIGHTS, {**named, **arrays, **self.vocabulary.to_tensors()})

    def _read(self, folder: Path) -> None:
        arrays = read_tensors(folder / WEIGHTS)
        self.vocabulary = Vocabulary.from_tensors(arrays)
        if VECTORS not in arrays or MARKS not in arrays:
            raise ArtifactError(f"{folder / WEIGHTS} lacks the vectors of its words.")
        arrays[TABLE] = np.concatenate([arrays.pop(VECTORS), arrays.pop(MARKS)])
        self.network = self.new_network()
        fill(self.network, arrays, folder / WEIGHTS)
