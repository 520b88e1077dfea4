"""BERT and GPT from raw text: a corpus in, a network with its tokenizer out; `fit`, `save`, `load`.

model = sememe.BERT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sememe.examples.batches import Split
from sememe.examples.masking_config import MaskingConfig
from sememe.networks.config import BERTConfig, GPTConfig
from sememe.networks.presets import bert_config, gpt_config
from sememe.networks.pretraining_config import (
    BERT_SIZES,
    GPT_SIZES,
    BERTTrainingConfig,
    GPTTrainingConfig,
)
from sememe.networks.subword_model import SubwordModel
from sememe.progress import SILENT, Reporter

if TYPE_CHECKING:
    from sememe.metrics.perplexity import TextScore
    from sememe.tokens.prompts import Suggestion


class BERT(SubwordModel):
    """BERT (Devlin et al. 2019): hidden tokens and next sentences.

    model = sememe.BERT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
    """

    kind = "bert"
    tokenizer_kind = "wordpiece"
    training_class = BERTTrainingConfig
    config_class = BERTConfig

    @classmethod
    def _classes(cls) -> dict[str, type]:
        return super()._classes() | {"masking": MaskingConfig}

    @classmethod
    def _kept_options(cls, manifest: dict[str, Any]) -> dict[str, Any]:
        return super()._kept_options(manifest) | manifest.get("masking", {})

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the network, its training and its examples."""
        return super().manifest() | {"masking": asdict(self.masking)}

    def _sizes(self, preset: str, options: dict[str, Any]) -> BERTConfig:
        return bert_config(preset, **BERT_SIZES.get(preset, {}) | options)

    def new_network(self) -> Any:
        """An untrained BERT."""
        from sememe.networks.bert import BERTNetwork

        return BERTNetwork(self.config, seed=self.training.seed)

    def objective(self) -> Any:
        """Hidden tokens and, where the options say so, next sentences."""
        from sememe.networks.objectives import MaskedObjective

        return MaskedObjective(self.network, has_pairs=self.training.next_sentence)

    def source(self, store: Any, split: Split) -> Any:
        """Batches of masked rows."""
        from sememe.examples.masked_batches import MaskedBatches

        return MaskedBatches(
            store, self.tokenizer, self.masking, length=self.training.length,
            batch_size=self.training.batch_size, seed=self.training.seed,
            next_sentence=self.training.next_sentence, split=split,
        )  # fmt: skip


class GPT(SubwordModel):
    """GPT (Radford et al. 2018, 2019): the next token.

    model = sememe.GPT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
    """

    kind = "gpt"
    tokenizer_kind = "bpe"
    config_class = GPTConfig
    training_class = GPTTrainingConfig

    def _sizes(self, preset: str, options: dict[str, Any]) -> GPTConfig:
        return gpt_config(preset, **GPT_SIZES.get(preset, {}) | options)

    def new_network(self) -> Any:
        """An untrained GPT."""
        from sememe.networks.gpt import GPTNetwork

        return GPTNetwork(self.config, seed=self.training.seed)

    def objective(self) -> Any:
        """The next token."""
        from sememe.networks.objectives import CausalObjective

        return CausalObjective(self.network)

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The likeliest whole words after a text, or to complete the one that it ends in."""
        from sememe.networks.suggesting import suggest

        return suggest(self.trained(), self.tokenizer, text, count=count)

    def evaluate(self, corpus: Any, *, progress: Reporter | None = None) -> TextScore:
        """Measure how well the model foretells a text, told for each word and sentence's end."""
        from sememe.networks.piece_scores import score_corpus

        return score_corpus(
            self.trained(), self.tokenizer, corpus, self.text, length=self.training.length,
            progress=progress or SILENT,
        )  # fmt: skip

    def perplexity(self, corpus: Any, *, progress: Reporter | None = None) -> float:
        """The perplexity of a text for each word, all that is written between them included."""
        return self.evaluate(corpus, progress=progress).perplexity

    def source(self, store: Any, split: Split) -> Any:
        """Batches of running text."""
        from sememe.examples.packing import PackedBatches

        return PackedBatches(
            store, self.tokenizer, length=self.training.length,
            batch_size=self.training.batch_size, seed=self.training.seed, split=split,
        )  # fmt: skip
