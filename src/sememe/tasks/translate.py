"""Translation: pairs of texts in, a model that writes one for the other out; fit, translate, score.

model = sememe.Transformer(preset="small", epochs=30).fit("train.en", "train.de", out="runs/de")
model.translate("A dog runs.")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from sememe.errors import InputError, OptionError
from sememe.networks.installed import need_torch
from sememe.networks.translation_config import (
    BATCH_TOKENS,
    SEQ2SEQ_RATES,
    TRANSFORMER_RATES,
    EncoderDecoderConfig,
    RecurrentConfig,
    RecurrentTrainingConfig,
    SearchConfig,
    TranslationTrainingConfig,
    seq2seq_config,
    transformer_config,
)  # fmt: skip
from sememe.options import changed, sorted_options
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import check_replaceable

if TYPE_CHECKING:
    import numpy as np

    from sememe.tasks.alignment import Alignment
    from sememe.tasks.pair_coding import PairCoder


@dataclass(frozen=True)
class Translation:
    """One translation of a text, and the logarithm of its probability, length made up for."""

    text: str
    score: float


class Translator:
    """A model that writes one text for another. Models fill in the parts that differ."""

    kind: ClassVar[str]
    config_class: ClassVar[Any]
    training_class: ClassVar[Any] = TranslationTrainingConfig

    def __init__(self, preset: str = "small", **options: Any) -> None:
        """Take a size by name, and options of the network and of the training."""
        classes = {"network": self.config_class, "training": self.training_class}
        own = sorted_options(type(self).__name__, options, classes)
        self.preset = preset
        self.config = self._sizes(preset, own["network"])
        training = self.training_class(**own["training"])
        self.training = replace(
            training,
            learning_rate=training.learning_rate or self._rate(preset),
            batch_size=training.batch_size or BATCH_TOKENS.get(preset, 4_096),
        )
        self.network: Any = None
        self.coder: PairCoder | None = None
        self.history = History()
        self.scores: dict[str, Any] = {}
        self.plan: dict[str, Any] = {}
        self.precision = ""  # in which it was trained, whatever the options leave open

    def __repr__(self) -> str:
        sizes = f"{self.config.num_layers} layers × {self.config.width}"
        state = "untrained" if self.network is None else f"{self.config.vocab_size:,} tokens"
        return f"{type(self).__name__}({self.preset}: {sizes}, {state})"

    def _sizes(self, preset: str, options: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _rate(self, preset: str) -> float:
        raise NotImplementedError

    def new_network(self) -> Any:
        """An untrained network of the model's sizes."""
        raise NotImplementedError

    # ---- learning ---------------------------------------------------------------------------

    def fit(
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
        progress: Reporter | bool | None = None,
    ) -> Self:
        """Learn from two files aligned line by line, a table with two columns, or pairs.

        `dev` are pairs to choose the weights by: a tuple of two files, or what `source` may be;
        without them a share of the pairs is held out. `tokenizer` is one, or its folder; without
        it one is trained on both sides. With `out` the model is saved there, checkpoints lie
        beside it while it trains, and `resume` continues from the last one.
        """
        need_torch()
        from sememe.tasks.translation_fitting import Request, fit

        request = Request(
            dev=dev, tokenizer=tokenizer, out=None if out is None else Path(out), resume=resume,
            reporter=as_reporter(progress),
            reading={"columns": columns, "skip_bad": skip_bad, "encoding": encoding},
        )  # fmt: skip
        if request.out is not None:
            check_replaceable(request.out, self.kind)
        elif resume:
            raise OptionError("To resume, `out` must say where the model was to be saved.")
        fit(self, source, target, request)
        return self

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

    def search(self, texts: Sequence[str], **options: Any) -> list[list[Translation]]:
        """The `n_best` translations of each text, the best first."""
        from sememe.tasks.translating import translations

        return translations(self, texts, changed(SearchConfig(), "search", options))

    def evaluate(
        self,
        source: Any,
        target: Any = None,
        *,
        cutting: Any = "auto",
        lowercase: bool | None = None,
        columns: dict[str, str] | None = None,
        skip_bad: bool = False,
        encoding: str = "utf-8",
        **options: Any,
    ) -> dict[str, Any]:
        """BLEU and chrF of translations of pairs, with their signatures and the translations.

        Case is ignored where the model knows none, unless `lowercase` says otherwise. Further
        options are those of the search.
        """
        from sememe.examples.parallel import read_pairs
        from sememe.tasks.translating import scored

        reading: dict[str, Any] = {"columns": columns, "skip_bad": skip_bad, "encoding": encoding}
        pairs = list(read_pairs(source, target, **reading))
        search = changed(SearchConfig(), "search", options)
        return scored(self, pairs, search, cutting=cutting, lowercase=lowercase)

    def attention(self, source: str, target: str | None = None, **options: Any) -> Alignment:
        """Where each word of a translation looks in its source; without a target, of the best one.

        layer, head: from 1; without them the last layer, and the mean of its heads.
        """
        from sememe.tasks.alignment import align

        return align(self, source, target, **options)

    def embed(self, texts: Sequence[str], *, pool: str = "mean") -> np.ndarray:
        """Vectors of texts by the encoder alone (CoVe: McCann et al. 2017), (texts, D)."""
        from sememe.tasks.translation_features import encoded

        if pool not in ("mean", "max"):
            raise OptionError(f"pool must be mean or max, not {pool!r}.")
        import numpy as np

        vectors = encoded(self, texts)
        if not vectors:
            return np.zeros((0, self.config.width), np.float32)
        return np.stack([own.mean(0) if pool == "mean" else own.max(0) for own in vectors])

    def trained(self) -> tuple[Any, PairCoder]:
        """The network and the coder; refused where there is none yet."""
        if self.network is None or self.coder is None:
            raise InputError("This model has learned nothing yet: call fit, or load one.")
        return self.network, self.coder

    # ---- folders ----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write a model folder; it appears whole or not at all."""
        from sememe.tasks.translation_folder import save

        save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a model that was saved by `fit` or `save`."""
        need_torch()
        from sememe.tasks.translation_folder import load

        return load(cls, Path(folder))


class Seq2Seq(Translator):
    """LSTM or GRU encoder and decoder, with attention or without (Sutskever, Bahdanau, Luong).

    model = sememe.Seq2Seq(attention="additive", epochs=20).fit("train.en", "train.de")
    """

    kind = "seq2seq"
    config_class = RecurrentConfig
    training_class = RecurrentTrainingConfig

    def _sizes(self, preset: str, options: dict[str, Any]) -> RecurrentConfig:
        return seq2seq_config(preset, **options)

    def _rate(self, preset: str) -> float:
        return SEQ2SEQ_RATES[preset]

    def new_network(self) -> Any:
        """An untrained encoder and decoder."""
        from sememe.networks.seq2seq import Seq2SeqNetwork

        return Seq2SeqNetwork(self.config, seed=self.training.seed)


class Transformer(Translator):
    """The Transformer (Vaswani et al. 2017): attention alone.

    model = sememe.Transformer(preset="small", epochs=30).fit("train.en", "train.de")
    """

    kind = "transformer"
    config_class = EncoderDecoderConfig

    def _sizes(self, preset: str, options: dict[str, Any]) -> EncoderDecoderConfig:
        return transformer_config(preset, **options)

    def _rate(self, preset: str) -> float:
        return TRANSFORMER_RATES[preset]

    def new_network(self) -> Any:
        """An untrained Transformer."""
        from sememe.networks.transformer import TransformerNetwork

        return TransformerNetwork(self.config, seed=self.training.seed)


KINDS: dict[str, type[Translator]] = {"seq2seq": Seq2Seq, "transformer": Transformer}
