"""ULMFiT's language model from raw text: a corpus in, an AWD-LSTM with its words out.

general = sememe.ULMFiT(preset="tiny", budget="5m").fit("texts/", out="runs/general")
target = sememe.ULMFiT(start="runs/general", epochs=5).fit("reviews/", out="runs/reviews")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.examples.word_rows import BEGIN_ID, NUM_MARKS, UNKNOWN_ID
from sememe.metrics.perplexity import TextScore
from sememe.networks.awd_config import PRESETS, AWDConfig, ULMFiTTrainingConfig, awd_config
from sememe.networks.language_model import refuse_one_text
from sememe.networks.word_model import WordModel
from sememe.options import changed
from sememe.progress import Reporter
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore

if TYPE_CHECKING:
    from sememe.networks.word_text import WordText
    from sememe.training.optimizers import RateGroup

_SIZES = ("num_layers", "num_cells", "width")


class ULMFiT(WordModel):
    """ULMFiT (Howard & Ruder 2018): a language model that goes on to the text of a task.

    general = sememe.ULMFiT(preset="tiny", budget="5m").fit("texts/", out="runs/general")
    target = sememe.ULMFiT(start=general, epochs=5).fit("reviews/", out="runs/reviews")
    task = sememe.Classify(target, epochs=5, schedule="slanted").fit("train.tsv")

    Where `fit` is not told how to read a text, it is read as that of the model to start from was.
    """

    kind = "ulmfit"
    config_class = AWDConfig
    training_class = ULMFiTTrainingConfig
    presets = PRESETS

    def __init__(
        self, preset: str = "tiny", *, start: str | Path | ULMFiT | None = None, **options: Any
    ) -> None:
        """Take a size by name, and options of the network and the training.

        With `start`, a model or its folder, the size is that of the model, whose weights are gone
        on from.
        """
        self.start = None if start is None else _opened(start)
        super().__init__(preset if self.start is None else self.start.preset, **options)

    # ---- asking ---------------------------------------------------------------------------------

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """The ids of words as the network has them, int64; words not known are the unknown one."""
        found = [self.vocabulary.find(word) for word in words]
        return np.array([UNKNOWN_ID if one < 0 else NUM_MARKS + one for one in found], np.int64)

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The chances of each word to come after those of a sentence so far, (words,)."""
        import torch

        network = self.trained().eval()
        ids_T = np.concatenate([[BEGIN_ID], self.ids_of(words)])
        with torch.no_grad():
            outputs = network(torch.from_numpy(ids_T)[:, None])
            logits_1V = network.next_logits(outputs.dropped_TBE[-1])
        return logits_1V[0].double().softmax(0).numpy()[NUM_MARKS:]

    def embed(
        self, sentences: Sequence[Sequence[str]] | Sequence[str], *, layers: Any = "last"
    ) -> list[np.ndarray]:
        """A vector for each word of each sentence, which has seen the words before it.

        A sentence is a list of words, or text, which is cut as the model's own was. `layers` is a
        number (0: words by themselves), first, last or second-to-last.
        """
        from sememe.networks.awd_reading import embed_sentences, embed_text_words

        refuse_one_text(sentences)
        if sentences and all(isinstance(one, str) for one in sentences):
            texts: Any = list(sentences)
            return [own.vectors_WD for own in embed_text_words(self, texts, layers)]
        words: Any = list(sentences)
        return embed_sentences(self, words, layers)

    def _score(self, tokens: TokenStore) -> TextScore:
        from sememe.networks.stream_scores import AWDReads, network_ids, score_streams

        return score_streams(AWDReads(self.network, network_ids(tokens, self.vocabulary)), tokens)

    # ---- learning -------------------------------------------------------------------------------

    def _sizes(self, preset: str, options: dict[str, Any]) -> AWDConfig:
        if self.start is None:
            return awd_config(preset, **options)
        config: AWDConfig = self.start.config
        for name in _SIZES:
            if options.get(name, getattr(config, name)) != getattr(config, name):
                raise OptionError(f"{name} is that of the model to start from: leave it out.")
        return changed(config, type(self).__name__, options)

    def _usual_text(self) -> TextSettings:
        return TextSettings() if self.start is None else self.start.text

    def new_network(self) -> Any:
        """An untrained network of the model's sizes."""
        from sememe.networks.awd import AWDNetwork

        return AWDNetwork(self.config, seed=self.training.seed)

    def begin(self, text: WordText, source: Any, reporter: Reporter) -> Any:
        """Begin with how frequent words are, or with what the model to start from has learned."""
        from sememe.networks.awd_objective import NextWordObjective

        if self.start is None:
            self.network.begin_with(text.next_counts)
        else:
            self._go_on_from(self.start, reporter)
        return NextWordObjective(
            self.network, activation=self.training.activation_penalty,
            change=self.training.change_penalty,
        )  # fmt: skip

    def _go_on_from(self, start: ULMFiT, reporter: Reporter) -> None:
        found = np.array([start.vocabulary.find(word) for word in self.vocabulary], np.int64)
        old_ids = np.concatenate([np.arange(NUM_MARKS), np.where(found < 0, -1, NUM_MARKS + found)])
        self.network.take_from(start.network, old_ids)
        reporter.note(
            f"Going on from {start!r}: {int((found >= 0).sum()):,} of {len(found):,} words are "
            "known; the others start as the mean of all."
        )

    def plan_of(self, text: WordText) -> dict[str, Any]:
        """What identifies a run: the options that shape it, its text, and what it starts from."""
        from sememe.training.weights import weights_hash

        plan = super().plan_of(text)
        plan["content"]["start"] = "" if self.start is None else weights_hash(self.start.network)
        return plan

    def rate_groups(self) -> Callable[[int], list[RateGroup]] | None:
        """The layers as groups, lower ones slower (Howard & Ruder 2018, 3.2)."""
        from sememe.training.optimizers import RateGroup

        network, decay, top = self.network, self.training.layer_decay, self.config.num_layers
        if decay == 1:
            return None

        def factor_at(depth: int) -> Callable[[int], float]:
            share = decay ** (top - depth)
            return lambda step: share

        def groups(num_steps: int) -> list[RateGroup]:
            by_depth: dict[int, list[Any]] = {}
            for name, parameter in network.named_parameters():
                by_depth.setdefault(network.depth_of(name), []).append(parameter)
            return [RateGroup(own, factor_at(depth)) for depth, own in sorted(by_depth.items())]

        return groups

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
