"""BERT and GPT from raw text: a corpus in, a network with its tokenizer out; `fit`, `save`, `load`.

model = sememe.BERT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sememe.errors import ArtifactError, OptionError
from sememe.examples.batches import Split
from sememe.examples.masking import MaskingConfig
from sememe.networks.config import BERTConfig, GPTConfig
from sememe.networks.installed import need_torch
from sememe.networks.presets import bert_config, gpt_config
from sememe.networks.pretraining_config import (
    BATCH_SIZES,
    BERT_SIZES,
    GPT_SIZES,
    RATES,
    VOCAB_SIZES,
    BERTTrainingConfig,
    PretrainingConfig,
    sorted_options,
)  # fmt: skip
from sememe.options import changed
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_folder, write_json
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.examples.preview import Preview
    from sememe.tokens.prompts import Suggestion

HISTORY, CURVE = "history.json", "loss.png"


class Pretrained:
    """A network that is trained on plain text. Models fill in the parts that differ."""

    kind: ClassVar[str]
    tokenizer_kind: ClassVar[Any]
    training_class: ClassVar[Any] = PretrainingConfig
    config_class: ClassVar[Any]

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a size by name, and options of the network, the training and the examples."""
        own = sorted_options(type(self).__name__, options, self._classes())
        self.preset = preset
        self.config = self._sizes(preset, own["network"])
        if "vocab_size" not in own["network"] and preset in VOCAB_SIZES:
            self.config = replace(self.config, vocab_size=VOCAB_SIZES[preset])
        training = self.training_class(**own["training"])
        rate = training.learning_rate or RATES.get(preset, 1e-4)
        rows = training.batch_size or BATCH_SIZES.get(preset, 256)
        self.training = replace(training, learning_rate=rate, batch_size=rows)
        self.masking = MaskingConfig(**own.get("masking", {}))
        self.text = TextSettings()
        self.history = History()
        self.plan: dict[str, Any] = {}
        self.languages: dict[str, float] = {}  # the share of each in a mix
        self.network: Any = None
        self.tokenizer: Any = None

    def __repr__(self) -> str:
        sizes = f"{self.config.num_layers} layers × {self.config.width}"
        state = "untrained" if self.network is None else f"{self.config.vocab_size:,} tokens"
        return f"{type(self).__name__}({self.preset}: {sizes}, {state})"

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
        need_torch()
        from sememe.networks.fitting import Request, fit

        self.text = changed(text or TextSettings(), "fit", text_options)
        request = Request(
            tokenizer=tokenizer, store=store, out=None if out is None else Path(out),
            resume=resume, reporter=as_reporter(progress),
        )  # fmt: skip
        if request.out is not None:
            check_replaceable(request.out, self.kind)
        elif resume:
            raise OptionError("To resume, `out` must say where the model was to be saved.")
        if self.training.length > self.config.max_length:
            raise OptionError(
                f"length ({self.training.length}) must not pass max_length "
                f"({self.config.max_length}), the most tokens that the network can see."
            )
        fit(self, corpus, request)
        return self

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

    def save(self, folder: str | Path) -> None:
        """Write a folder that `transformers` opens too; it appears whole or not at all."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        if self.network is None:
            raise OptionError("This model has nothing to save yet: call fit first.")
        from sememe.networks.interchange.huggingface import manifest_of, write_network

        with write_folder(folder) as scratch:
            write_network(self.network, scratch)
            self.tokenizer.save(scratch, max_length=self.config.max_length)
            self.history.save(scratch / HISTORY)
            self._draw(scratch / CURVE)
            write_json(scratch / MANIFEST, manifest_of(self.network) | self.manifest())

    def _draw(self, path: Path) -> None:
        """Draw the loss over the steps, once there is a line to draw."""
        from sememe.plots.curves import history

        records = [record for record in self.history if "loss" in record]
        if len(records) > 1:
            history(records, path, title=f"{type(self).__name__} {self.preset}: loss")

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the training, beside what it says of the network."""
        return {
            "preset": self.preset,
            "training": self.training.to_dict(),
            **self._more_options(),
            "text": self.text.to_dict(),
            **({"languages": self.languages} if self.languages else {}),
            "plan": self.plan,
            "figures": self.history.last(),
        }

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a model that was saved by `fit` or `save`."""
        need_torch()
        from sememe.networks.interchange.huggingface import FORMAT, load_folder

        folder = Path(folder)
        if not folder.is_dir():
            raise ArtifactError(f"There is no model folder at {folder}.")
        manifest = read_json(folder / MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("kind") != cls.kind:
            raise ArtifactError(f"{folder} is not a {cls.kind} model that was trained here.")
        if manifest.get("format") != FORMAT:
            raise ArtifactError(
                f"{folder} has format {manifest.get('format')!r}; this version reads {FORMAT}."
            )
        try:
            options = {**manifest["training"], **manifest.get("masking", {})}
            model = cls(manifest["preset"], **options)
            model.text = TextSettings(**manifest["text"])
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        model.network, model.tokenizer = load_folder(folder)
        model.config = model.network.config
        model.history = History.load(folder / HISTORY)
        model.plan = manifest.get("plan", {})
        model.languages = manifest.get("languages", {})
        return model

    def take_over(self, other: Self) -> None:
        """Become what another model of the same kind is, but for the options."""
        self.network, self.tokenizer, self.config = other.network, other.tokenizer, other.config
        self.history, self.plan, self.languages = other.history, other.plan, other.languages

    @classmethod
    def _classes(cls) -> dict[str, type]:
        return {"network": cls.config_class, "training": cls.training_class}

    def _more_options(self) -> dict[str, Any]:
        return {}

    def _sizes(self, preset: str, options: dict[str, Any]) -> Any:
        raise NotImplementedError

    def new_network(self) -> Any:
        """An untrained network of the model's sizes."""
        raise NotImplementedError

    def objective(self) -> Any:
        """The network with what it is to learn."""
        raise NotImplementedError

    def source(self, store: Any, split: Split) -> Any:
        """The batches of a split of a text."""
        raise NotImplementedError


class BERT(Pretrained):
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

    def _more_options(self) -> dict[str, Any]:
        return {"masking": asdict(self.masking)}

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


class GPT(Pretrained):
    """GPT (Radford et al. 2018, 2019): the next token.

    model = sememe.GPT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
    """

    kind = "gpt"
    tokenizer_kind = "bpe"
    config_class = GPTConfig

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

        if self.network is None:
            raise OptionError("This model has not learned yet: call fit first.")
        return suggest(self.network, self.tokenizer, text, count=count)

    def source(self, store: Any, split: Split) -> Any:
        """Batches of running text."""
        from sememe.examples.packing import PackedBatches

        return PackedBatches(
            store, self.tokenizer, length=self.training.length,
            batch_size=self.training.batch_size, seed=self.training.seed, split=split,
        )  # fmt: skip
