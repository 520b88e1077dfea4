"""What the language models over sub-words share: BERT and GPT; text in, a tokenizer out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sememe.errors import OptionError
from sememe.examples.batches import Split
from sememe.examples.masking_config import MaskingConfig
from sememe.networks.installed import need_torch
from sememe.networks.language_model import LanguageModel, refuse_one_text
from sememe.networks.pretraining_config import (
    BATCH_SIZES,
    RATES,
    VOCAB_SIZES,
    PretrainingConfig,
)
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.examples.preview import Preview
    from sememe.networks.fitting import Figures, Request
    from sememe.networks.texts import Texts


class SubwordModel(LanguageModel):
    """A Transformer over the sub-words of a text, or of one text for each language."""

    tokenizer_kind: ClassVar[Any]
    training_class = PretrainingConfig
    learned = (*LanguageModel.learned, "tokenizer", "languages")

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a size by name, and options of the network, the training and the examples."""
        super().__init__(preset, **options)
        own = self._sorted(options)
        if "vocab_size" not in own["network"] and preset in VOCAB_SIZES:
            self.config = replace(self.config, vocab_size=VOCAB_SIZES[preset])
        self.masking = MaskingConfig(**own.get("masking", {}))
        self.languages: dict[str, float] = {}  # the share of each in a mix
        self.tokenizer: Any = None

    def fit(
        self,
        corpus: Any = None,
        *,
        tokenizer: Any = None,
        text: TextSettings | None = None,
        store: str | Path | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Learn from `corpus`: paths, documents, a SubwordStore; None: the built-in one.

        A mapping such as {"en": corpus, "zh": corpus} makes a model of several languages: each text
        is read as its language asks, and rows are drawn by its size to the power `smoothing`.
        `tokenizer` is one, or its folder; without it one is trained on the corpus first. text or
        its fields by name (language="zh") say how text is read; `store` is the place of the
        text as ids. With `out` the model is saved there, checkpoints lie beside it while it
        trains, and `resume` continues from the last one.
        """
        self.text = changed(text or TextSettings(), "fit", text_options)
        return self._fit(
            corpus, tokenizer=tokenizer, store=store, out=out, resume=resume, progress=progress
        )

    def preview(
        self,
        corpus: Any = None,
        *,
        tokenizer: Any = None,
        text: TextSettings | None = None,
        store: str | Path | None = None,
        num_rows: int = 3,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> list[Preview]:
        """The first examples that `fit` would train on; nothing is trained but a tokenizer."""
        need_torch()
        from sememe.examples.preview import preview
        from sememe.networks.texts import open_texts

        self.text = changed(text or TextSettings(), "preview", text_options)
        reporter = as_reporter(progress)
        texts = open_texts(self, corpus, tokenizer=tokenizer, store=store, reporter=reporter)
        source = texts.source(self, "train")
        reporter.note(texts.described(source))
        return preview(source, self.tokenizer, num_rows=num_rows)

    def embed(
        self, sentences: Sequence[Sequence[str]] | Sequence[str], *, layers: Any = "last"
    ) -> list[np.ndarray]:
        """A vector for each word of each sentence, in its context: the mean over its pieces.

        A sentence is a list of words, or text, whose words are those of the tokenizer. `layers` is
        a number (0: the embedding), first, last, second-to-last, sum-all …
        """
        from sememe.networks.features import embed_words

        refuse_one_text(sentences)
        texts = [one if isinstance(one, str) else " ".join(one) for one in sentences]
        spans = None
        if any(not isinstance(one, str) for one in sentences):
            spans = [_places(one.split() if isinstance(one, str) else one) for one in sentences]
        found = embed_words(self.trained(), self.tokenizer, texts, spans=spans, layers=layers)
        return [own.vectors_WD for own in found]

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the network and of its training."""
        from sememe.networks.interchange.huggingface import manifest_of

        languages = {"languages": self.languages} if self.languages else {}
        return manifest_of(self.network) | super().manifest() | languages

    def _usual(self, preset: str) -> dict[str, Any]:
        return {
            "learning_rate": RATES.get(preset, 1e-4), "batch_size": BATCH_SIZES.get(preset, 256)
        }  # fmt: skip

    def _shape(self) -> str:
        return f"{self.config.num_layers} layers × {self.config.width}"

    def _knows(self) -> str:
        return f"{self.config.vocab_size:,} tokens"

    def _check(self) -> None:
        if self.training.length > self.config.max_length:
            raise OptionError(
                f"length ({self.training.length}) must not pass max_length "
                f"({self.config.max_length}), the most tokens that the network can see."
            )

    def open_text(self, corpus: Any, request: Request) -> Texts:
        """Every text as ids of a tokenizer, which is the model's from now on."""
        from sememe.networks.texts import open_texts

        return open_texts(
            self, corpus, tokenizer=request.tokenizer, store=request.store,
            reporter=request.reporter,
        )  # fmt: skip

    def plan_of(self, text: Texts) -> dict[str, Any]:
        """What identifies a run: the options that shape it, its text and its tokenizer."""
        plan = super().plan_of(text) | {"masking": asdict(self.masking)}
        plan["content"]["tokenizer"] = self.tokenizer.fingerprint
        return plan

    def begin(self, text: Texts, source: Any, reporter: Reporter) -> Any:
        """Give the new network with what it is to learn."""
        self.languages = text.shares(source)
        self.network.stack.recompute = self.training.recompute
        if self.config.positions == "learned":
            self.network.seen_length = self.training.length
        return self.objective()

    def add_figures(self, text: Texts, validation: Any) -> Callable[[Figures], Figures]:
        """A function that puts perplexity and what counting scores beside the figures."""
        from sememe.networks.texts import with_perplexity

        return with_perplexity(self, text, validation)

    def _write(self, folder: Path) -> None:
        """Write files that `transformers` opens too."""
        from sememe.networks.interchange.huggingface import write_network

        write_network(self.network, folder)
        self.tokenizer.save(folder, max_length=self.config.max_length)

    def _take_up(self, manifest: dict[str, Any]) -> None:
        self.languages = manifest.get("languages", {})

    def _read(self, folder: Path) -> None:
        from sememe.networks.interchange.huggingface import load_folder

        self.network, self.tokenizer = load_folder(folder)
        self.config = self.network.config

    def objective(self) -> Any:
        """The network with what it is to learn."""
        raise NotImplementedError

    def source(self, store: Any, split: Split) -> Any:
        """The batches of a split of a text."""
        raise NotImplementedError


def _places(words: Sequence[str]) -> np.ndarray:
    """Where words lie in a text in which they have spaces between them, (words, 2)."""
    sizes = np.array([len(word) for word in words], np.int64)
    ends = np.cumsum(sizes + 1) - 1
    return np.stack([ends - sizes, ends], 1)
