"""ULMFiT's language model from raw text: a corpus in, an AWD-LSTM with its words out.

general = sememe.ULMFiT(preset="tiny", budget="5m").fit("texts/", out="runs/general")
target = sememe.ULMFiT(start="runs/general", epochs=5).fit("reviews/", out="runs/reviews")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sememe.errors import ArtifactError, OptionError
from sememe.examples.word_rows import NUM_MARKS, UNKNOWN_ID
from sememe.metrics.perplexity import TextScore
from sememe.models.language.texts import WordText
from sememe.models.language.word_model import WordModel
from sememe.models.language.word_reading import network_ids, score_streams, sentence_log_probs
from sememe.models.ulmfit.config import PRESETS, AWDConfig, ULMFiTTrainingConfig
from sememe.models.ulmfit.encoder import embed_sentences, rows_of_ids
from sememe.models.ulmfit.network import AWDNetwork, AWDOutputs, ULMFiTObjective
from sememe.options import changed
from sememe.progress import Reporter
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore
from sememe.training.optimizers import RateGroup, groups_by_depth
from sememe.training.weights import weights_hash
from sememe.vectors import WordVectors

_SIZES = ("num_layers", "num_cells", "width")


class ULMFiT(WordModel):
    """ULMFiT (Howard & Ruder 2018): a language model that continues to the text of a task.

    general = sememe.ULMFiT(preset="tiny", budget="5m").fit("texts/", out="runs/general")
    target = sememe.ULMFiT(start=general, epochs=5).fit("reviews/", out="runs/reviews")
    task = sememe.Classify(target, epochs=5, schedule="slanted").fit("train.tsv")

    Without text settings, `fit` uses those of the model to start from.
    """

    kind = "ulmfit"
    config_class, network_class = AWDConfig, AWDNetwork
    training_class = ULMFiTTrainingConfig
    presets = PRESETS

    def __init__(
        self, preset: str = "tiny", *, start: str | Path | ULMFiT | None = None, **options: Any
    ) -> None:
        """Take a preset by name, and options of the network and the training.

        With `start`, a model or its folder, the size is that of the model, whose weights are
        the start.
        """
        self.start = None if start is None else _opened(start)
        super().__init__(preset if self.start is None else self.start.preset, **options)

    # ---- use ------------------------------------------------------------------------------------

    words_are = "table of words, which is the softmax too"

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the words and of each LSTM; the first and last are narrower."""
        config = self.config
        return (config.width, *[config.num_cells] * (config.num_layers - 1), config.width)

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """The network's ids of words, int64; unknown words get that of <unk>."""
        found = [self.vocabulary.find(word) for word in words]
        return np.array([UNKNOWN_ID if one < 0 else NUM_MARKS + one for one in found], np.int64)

    @torch.no_grad()
    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The probability of each word to follow a sentence so far, (words,)."""
        network = self.trained().eval()
        logits_1V = network.next_logits(self._forward([words])[-1])
        return logits_1V[0].double().softmax(0).cpu().numpy()[NUM_MARKS:]

    def _forward(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """The softmax's inputs at the start token and at each word, (T, B, E)."""
        read: AWDOutputs = self.network(rows_of_ids(self, sentences))
        return read.dropped_TBE

    def _beside(self, rows: list[Sequence[str]]) -> list[Tensor]:
        return [self._forward(rows).roll(1, 0)]

    def _word_table(self) -> WordVectors:
        table_VE = self.network.table_VE[NUM_MARKS : self.config.vocab_size]
        return WordVectors(self.vocabulary, table_VE.detach().cpu().numpy())

    def _embed_sentences(self, sentences: list[list[str]], layers: Any) -> list[np.ndarray]:
        return embed_sentences(self, sentences, layers)

    def _log_probs(self, sentences: list[list[str]]) -> list[np.ndarray]:
        return sentence_log_probs(self.network, self._forward, self.ids_of, sentences)

    def _score(self, tokens: TokenStore) -> TextScore:
        ids = network_ids(tokens, self.vocabulary)

        def read(ids_TB: np.ndarray, states: Any) -> tuple[Tensor, Any]:
            outputs = self.network(torch.from_numpy(ids[ids_TB]).to(self.device), states)
            return outputs.dropped_TBE, outputs.states

        return score_streams(self.network, ids, read, tokens)

    # ---- learning -------------------------------------------------------------------------------

    def _sizes(self, preset: str, options: dict[str, Any]) -> Any:
        if self.start is None:
            return super()._sizes(preset, options)
        config: AWDConfig = self.start.config
        for name in _SIZES:
            if options.get(name, getattr(config, name)) != getattr(config, name):
                raise OptionError(f"{name} is that of the model to start from: leave it out.")
        return changed(config, type(self).__name__, options)

    def _usual_text(self) -> TextSettings:
        return TextSettings() if self.start is None else self.start.text

    def begin(self, text: WordText, source: Any, reporter: Reporter) -> Any:
        """Start from word frequencies, or from the model to start from."""

        if self.start is None:
            self.network.begin_with(text.next_counts)
        else:
            self._continue_from(self.start, reporter)
        return ULMFiTObjective(
            self.network, activation=self.training.activation_penalty,
            change=self.training.change_penalty,
        )  # fmt: skip

    def _continue_from(self, start: ULMFiT, reporter: Reporter) -> None:
        found = np.array([start.vocabulary.find(word) for word in self.vocabulary], np.int64)
        old_ids = np.concatenate([np.arange(NUM_MARKS), np.where(found < 0, -1, NUM_MARKS + found)])
        self.network.take_from(start.network, old_ids)
        reporter.note(
            f"Continuing from {start!r}: {int((found >= 0).sum()):,} of {len(found):,} words are "
            "known; the others start as the mean of all."
        )

    def plan_of(self, text: WordText) -> dict[str, Any]:
        """What identifies a run: the options that affect the result, its text, and its start."""

        plan = super().plan_of(text)
        plan["content"]["start"] = "" if self.start is None else weights_hash(self.start.network)
        return plan

    def rate_groups(self) -> Callable[[int], list[RateGroup]] | None:
        """The layers as groups, with lower rates for lower ones (Howard & Ruder 2018, 3.2)."""

        network, decay, top = self.network, self.training.layer_decay, self.config.num_layers
        if decay == 1:
            return None

        def factor_at(depth: int) -> Callable[[int], float]:
            share = decay ** (top - depth)
            return lambda step: share

        depths = [(network.depth_of(name), one) for name, one in network.named_parameters()]
        return lambda num_steps: groups_by_depth(depths, factor_at)

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        if self.config.vocab_size != NUM_MARKS + len(self.vocabulary):
            raise ArtifactError(f"{folder} has another number of words than its network.")


def _opened(start: str | Path | ULMFiT) -> ULMFiT:
    """The model to start from."""
    model = start if isinstance(start, ULMFiT) else ULMFiT.load(start)
    if model.network is None:
        raise OptionError("The model to start from has not learned yet: call its fit first.")
    return model
