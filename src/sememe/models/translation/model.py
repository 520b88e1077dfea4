"""Translation: pairs of texts in, a model that writes one for the other out.

model = sememe.Transformer(preset="small", epochs=30).fit("train.en", "train.de", out="runs/de")
model.translate("A dog runs.")
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np

from sememe.contract import Attention, Model, WordsInContext
from sememe.errors import ArtifactError, OptionError
from sememe.examples.parallel import read_pairs
from sememe.machine import provenance
from sememe.metrics.translation import Cutting, bleu, chrf
from sememe.models.fitting import Prepared, Request, fit
from sememe.models.language.features import word_spans
from sememe.models.language.model import (
    FORMAT,
    WEIGHTS,
    LanguageModel,
    fill,
)
from sememe.models.translation.coding import PairCoder
from sememe.models.translation.config import (
    SEQ2SEQ_PRESETS,
    TRANSFORMER_PRESETS,
    EncoderDecoderConfig,
    RecurrentConfig,
    RecurrentTrainingConfig,
    SearchConfig,
    TranslationTrainingConfig,
)
from sememe.models.translation.seq2seq import Seq2SeqNetwork
from sememe.models.translation.training import prepare_pairs
from sememe.models.translation.transformer import TransformerNetwork
from sememe.models.translation.translating import (
    Translation,
    align,
    encoded,
    scored,
    translations,
    words_of,
)
from sememe.options import changed
from sememe.progress import SILENT, Reporter, as_reporter
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.distributed import joined
from sememe.training.weights import arrays_of, weights_of


class Translator(LanguageModel):
    """A translation model. Subclasses fill in the parts that differ."""

    training_class: ClassVar[Any] = TranslationTrainingConfig
    learned = (*LanguageModel.learned, "coder", "scores")
    coder: Any = None  # a PairCoder, once it has learned

    def __init__(self, preset: str = "small", **options: Any) -> None:
        """Take a preset by name, and options of the network and of the training."""
        super().__init__(preset, **options)
        self.text = TextSettings(lowercase=self.training.lowercase)
        self.scores: dict[str, Any] = {}

    # ---- learning ---------------------------------------------------------------------------

    def fit(  # type: ignore[override]  # pairs, not a corpus
        self,
        source: Any,
        target: Any = None,
        *,
        dev: Any = None,
        tokenizer: Any = None,
        columns: dict[str, str] | None = None,
        skip_bad: bool = False,
        encoding: str = "utf-8",
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Reporter | bool | None = None,
    ) -> Self:
        """Train on two files aligned line by line, a table with two columns, or pairs.

        `dev` are pairs that choose the weights: a tuple of two files, or anything that `source` may
        be; by default some pairs are held out. `tokenizer` is a tokenizer or its folder; without
        it, one is trained on both sides. With `out` the model is saved there, with checkpoints next
        to it during training; `resume` continues from the last one; `overwrite` allows replacing an
        existing model.
        """
        with joined() as processes:
            request = Request(
                dev=dev, tokenizer=tokenizer, out=out, resume=resume, overwrite=overwrite,
                reporter=as_reporter(progress), processes=processes,
                reading={"columns": columns, "skip_bad": skip_bad, "encoding": encoding},
            )  # fmt: skip
            return fit(self, (source, target), request)

    def prepare(self, pairs: tuple[Any, Any], request: Request) -> Prepared:
        """Read and encode the pairs; return the run's plan and the function that trains."""
        return prepare_pairs(self, *pairs, request)

    # ---- translating ------------------------------------------------------------------------

    @overload
    def translate(self, texts: str, **options: Any) -> str: ...
    @overload
    def translate(self, texts: Sequence[str], **options: Any) -> list[str]: ...
    def translate(self, texts: str | Sequence[str], **options: Any) -> str | list[str]:
        """The best translation of a text, or of each of several; options of SearchConfig by name.

        A text without words has an empty translation.
        """
        given = [texts] if isinstance(texts, str) else list(texts)
        best = [own[0].text for own in self.search(given, **options)]
        return best[0] if isinstance(texts, str) else best

    def search(
        self, texts: Sequence[str], *, first: int = 1, progress: Reporter = SILENT, **options: Any
    ) -> list[list[Translation]]:
        """The `n_best` translations of each text, best first.

        `first` is the number of the first text, for errors about texts that are too long.
        """
        search = changed(SearchConfig(), "search", options)
        return translations(self, texts, search, first=first, progress=progress)

    def score_translations(
        self,
        written: Sequence[str],
        references: Sequence[str],
        *,
        cutting: Cutting = "auto",
        lowercase: bool | None = None,
    ) -> dict[str, Any]:
        """BLEU and chrF, each with its signature and its 95 % interval over the texts.

        Case is ignored if the model ignores it.
        """
        lowercase = self.training.lowercase if lowercase is None else lowercase
        by_words = bleu(written, references, lowercase=lowercase, cutting=cutting)
        by_characters = chrf(written, references, lowercase=lowercase)
        scores: dict[str, Any] = {}
        for name, found in (("bleu", by_words), ("chrf", by_characters)):
            is_known = all(map(math.isfinite, found.interval))
            scores[name] = found.value
            scores[f"{name}_interval"] = list(found.interval) if is_known else None
            scores[f"{name}_signature"] = found.signature
        return scores

    def evaluate(
        self,
        data: Any,
        target: Any = None,
        *,
        cutting: Any = "auto",
        lowercase: bool | None = None,
        columns: dict[str, str] | None = None,
        skip_bad: bool = False,
        encoding: str = "utf-8",
        **options: Any,
    ) -> dict[str, Any]:
        """BLEU and chrF of the translations of pairs, with their signatures and the translations.

        Case is ignored if the model ignores it, unless `lowercase` says otherwise. Further options
        are those of the search.
        """
        reading: dict[str, Any] = {"columns": columns, "skip_bad": skip_bad, "encoding": encoding}
        pairs = list(read_pairs(data, target, **reading))
        search = changed(SearchConfig(), "search", options)
        return scored(self, pairs, search, cutting=cutting, lowercase=lowercase)

    def attention(
        self, text: str, other: str | None = None, *, tokens: bool | None = None
    ) -> Attention:
        """Where each word of a translation looks in its source; without one, of the best one.

        `tokens` shows sub-words instead of words.
        """
        self.require("attention")
        return align(self, text, other, tokens=tokens)

    # ---- vectors of the encoder (CoVe: McCann et al. 2017) ------------------------------------

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the embedding and of the output of each layer of the encoder."""
        embedding = getattr(self.config, "embedding_size", self.config.width)
        return (embedding, *[self.config.width] * self.config.num_layers)

    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """One vector per text, the mean or maximum over its tokens and its end, (texts, D)."""
        self.check_list(texts)
        if pool not in ("mean", "max"):
            raise OptionError(f"pool must be mean or max, not {pool!r}.")
        found = [np.vstack([own.vectors_SD, own.end_D]) for own in encoded(self, texts, layers)]
        if not found:
            return np.zeros((0, self.config.width), np.float32)
        return np.stack([own.mean(0) if pool == "mean" else own.max(0) for own in found])

    def embed_spans(
        self,
        texts: Sequence[str],
        spans: Sequence[np.ndarray] | None = None,
        *,
        layers: Any = "last",
    ) -> Iterator[WordsInContext]:
        """The words of each text, each the mean over its tokens; `spans` selects the words.

        Without spans words are those of the tokenizer.
        """
        for index, (text, own) in enumerate(zip(texts, encoded(self, texts, layers), strict=True)):
            places = word_spans(own.encoding) if spans is None else np.asarray(spans[index])
            yield words_of(text, own, places.reshape(-1, 2))

    # ---- folders ----------------------------------------------------------------------------

    def to(self, device: str) -> Self:
        """Use a device (cpu, cuda, auto) from now on."""
        self.training = replace(self.training, device=device)
        return self

    def describe(self) -> dict[str, Any]:
        """The kind, sizes, options, dev scores, and the model's origin."""
        if self.network is None:
            return {**Model.describe(self), "preset": self.preset, "network": self.config.to_dict()}
        return {**self.manifest(), **Model.describe(self), "layer_widths": list(self.layer_widths)}

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "preset": self.preset,
            "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
            "network": self.config.to_dict(),
            "training": self.training.to_dict(),
            "precision": self.precision,
            "scores": self.scores,
            "metrics": self.history.last(),
            "data": self.data,
            "plan": self.plan,
            "provenance": provenance(),
        }

    def _write(self, folder: Path) -> None:
        write_tensors(folder / WEIGHTS, arrays_of(weights_of(self.network)))
        self.coder.tokenizer.save(folder, max_length=self.config.max_length)

    @classmethod
    def _made(cls, manifest: dict[str, Any]) -> Self:
        # Where it learned does not fix the device of later calls.
        training = manifest["training"] | {"device": "auto", "workers": 0}
        model = cls(manifest["preset"], **manifest["network"], **training)
        model.scores = manifest["scores"]
        return model

    def _read(self, folder: Path) -> None:
        tokenizer = SubwordTokenizer.load(folder)
        if tokenizer.vocab_size != self.config.vocab_size:
            raise ArtifactError(
                f"{folder}: the tokenizer has {tokenizer.vocab_size:,} tokens, the network "
                f"{self.config.vocab_size:,}."
            )
        self.coder = PairCoder(tokenizer, lowercase=self.training.lowercase)
        self.network = self.new_network()
        fill(self.network, read_tensors(folder / WEIGHTS), folder / WEIGHTS)


class Seq2Seq(Translator):
    """LSTM or GRU encoder and decoder, with attention or without (Sutskever, Bahdanau, Luong).

    model = sememe.Seq2Seq(attention="additive", epochs=20).fit("train.en", "train.de")
    """

    kind = "seq2seq"
    config_class, network_class = RecurrentConfig, Seq2SeqNetwork
    training_class, presets = RecurrentTrainingConfig, SEQ2SEQ_PRESETS

    def lacking(self) -> dict[str, str]:
        """A model without attention cannot show it."""
        has_none = self.config.attention == "none"
        return {"attention": "it was trained without"} if has_none else {}


class Transformer(Translator):
    """The Transformer (Vaswani et al. 2017): attention alone.

    model = sememe.Transformer(preset="small", epochs=30).fit("train.en", "train.de")
    """

    kind = "transformer"
    config_class, network_class = EncoderDecoderConfig, TransformerNetwork
    presets = TRANSFORMER_PRESETS
