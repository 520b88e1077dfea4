"""What the language models share: a corpus in, a network out; options, `fit`, and the folder.

A model names the classes of its options and fills in what differs, at the end of the class: its
training text, its network with its objective, and the files of its folder. `learn` calls them in
the order that training needs. What NNLM, ELMo and ULMFiT share beyond this is in `word_model`; what
BERT and GPT share, in `subword_model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from sememe.card import part_of, write_manifest
from sememe.contract import Model
from sememe.errors import InputError, OptionError
from sememe.models.fitting import Plan, Prepared, Request, fit
from sememe.models.language.texts import Metrics, Texts, WordText
from sememe.options import changed, sorted_options
from sememe.plots.charts import history as draw
from sememe.progress import History, Reporter, as_reporter, format_count
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    read_errors,
    read_manifest,
    reads_artifact,
    write_folder,
)
from sememe.text.settings import TextSettings
from sememe.training.config import Preset, chosen
from sememe.training.device import TYPES, choose_device
from sememe.training.distributed import check_division, joined
from sememe.training.loop import Loop
from sememe.training.objective import Objective, TrainingSource
from sememe.training.optimizers import RateGroup
from sememe.training.run import TrainingRun, check_tensorboard
from sememe.training.weights import take_weights
from sememe.vectors import WordVectors

FORMAT = 1
HISTORY, CURVE = "history.json", "loss.png"
WEIGHTS, WORDS = "model.safetensors", "vocabulary.safetensors"


def fill(network: Any, arrays: Mapping[str, np.ndarray], place: Path) -> None:
    """Load weights into a network and switch it to evaluation mode; `place` is for errors."""
    with torch.no_grad():
        kept = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        take_weights(network.eval(), kept, str(place))


class LanguageModel(Model):
    """A network that is trained on plain text. Subclasses fill in the parts that differ."""

    kind: str  # as in sememe.json
    config_class: ClassVar[Any]  # the sizes of the network
    training_class: ClassVar[Any]
    text_class: ClassVar[type[TextSettings]] = TextSettings
    more_options: ClassVar[dict[str, type]] = {}  # their classes, by their names in sememe.json
    network_class: ClassVar[Any]
    presets: ClassVar[Mapping[str, Preset]]
    # Set by a finished training.
    learned: ClassVar[tuple[str, ...]] = ("network", "config", "history", "plan", "precision")

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a preset by name, and options of the network and the training."""
        classes = {"network": self.config_class, "training": self.training_class}
        own = sorted_options(type(self).__name__, options, classes | self.more_options)
        self.preset, self._given = preset, {"preset": preset, **options}
        self.config = self._sizes(preset, own["network"])
        training = self.training_class(**own["training"])
        usual = {
            name: getattr(self.presets[preset], name)
            for name in ("learning_rate", "batch_size", "max_words")
            if not getattr(training, name, True)
        }
        self.training = replace(training, **usual)
        for name, options_class in self.more_options.items():
            setattr(self, name, options_class(**own[name]))
        self.text: TextSettings = self.text_class()
        self.history = History()
        self.plan: dict[str, Any] = {}  # identifies the run that made it
        self.precision = ""  # of the training, even if the options say "auto"
        self.network: Any = None
        self._words: tuple[Any, WordVectors] | None = None  # of which network

    def options(self) -> dict[str, Any]:
        """The preset, and the options that were given."""
        return self._given

    @property
    def is_fitted(self) -> bool:
        """Whether there is a network."""
        return self.network is not None

    def __repr__(self) -> str:
        state = "untrained" if self.network is None else self._knows()
        preset = f"{self.preset}: " if self.preset else ""
        return f"{type(self).__name__}({preset}{self._shape()}, {state})"

    @property
    def title(self) -> str:
        """Its class and preset, for messages."""
        return f"{type(self).__name__} {self.preset}".strip()

    def fit(
        self,
        corpus: Any = None,
        y: Any = None,
        *,
        text: TextSettings | None = None,
        store: str | Path | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Train on `corpus`: paths, token lists, documents or a TokenStore; None: the built-in one.

        text or its fields by name (language="zh") say how text is read; `store` is the path of the
        token store. With `out` the model is saved there, with checkpoints next to it during
        training; `resume` continues from the last one; `overwrite` allows replacing an existing
        model.
        """
        self.text = changed(text or self._usual_text(), "fit", text_options)
        with joined() as processes:
            request = Request(
                store=store, out=out, resume=resume, overwrite=overwrite,
                reporter=as_reporter(progress), processes=processes,
            )  # fmt: skip
            return fit(self, corpus, request)

    def prepare(self, corpus: Any, request: Request) -> Prepared:
        """Open the corpus; return the run's plan and the function that trains."""
        self._check()
        check_tensorboard(self.training.tensorboard)
        check_division(self.training, request.num_processes)
        text = self.open_text(corpus, request)
        plan = self.plan_of(text)
        return Prepared(plan, lambda: self.learn(text, plan, request), text.sizes)

    def learn(self, text: Any, plan: Plan, request: Request) -> None:
        """Train a new network on a text, or continue the run to resume."""
        training, reporter = self.training, request.reporter
        source, validation = text.source(self, "train"), text.validation(self, reporter)
        if validation is not None:
            self.data = {**self.data, "validation_batches": validation.num_batches}
        self.network = self.new_network()
        objective = self.begin(text, source, reporter)
        reporter.note(self.start_message())
        reporter.note(text.described(source))
        run = TrainingRun(
            source=source, config=training, plan=plan, validation=validation,
            on_validation=self.add_metrics(text, validation), shown=(self.shown(),),
            rate_groups=self.rate_groups(), reporter=reporter, resume=request.resume,
            keeper=request.checkpoints(training.keep), processes=request.processes,
        )  # fmt: skip
        loop = Loop(objective, run)
        self.history, self.precision = loop.train(), loop.precision
        objective.uncompile()
        self.network.to("cpu").eval()
        objective.precision = TYPES["fp32"]  # its results now equal those after loading

    def start_message(self) -> str:
        """A line that describes the training about to start."""
        num_weights = format_count(sum(own.numel() for own in self.network.parameters()))
        return f"{self.title}: {self._shape()}, {num_weights} weights, {self._knows()}"

    def trained(self, capability: str = "") -> Any:
        """The trained network; raises an error if there is none or it lacks a given capability."""
        if self.network is None:
            raise OptionError("This model has not learned yet: call fit first.")
        if capability:
            self.require(capability)
        return self.network

    # ---- use ------------------------------------------------------------------------------------

    # `words` are the input vectors, before any layer has mixed in context.
    words_are: ClassVar[str] = "input table"

    def to(self, device: str) -> Self:
        """Move the network to a device: cpu, cuda, mps, or auto."""
        self.trained().to(choose_device(device))
        return self

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        found: torch.device = next(self.trained().parameters()).device
        return found

    @property
    def words(self) -> WordVectors:
        """The input vectors of the words."""
        network = self.trained("words")
        if self._words is None or self._words[0] is not network:
            self._words = network, self._word_table()
        self._words[1].text = self.text
        return self._words[1]

    @property
    def positions(self) -> np.ndarray:
        """The position vectors, (positions, D)."""
        table: np.ndarray = (
            self.trained("positions").embedding.positions.weight.detach().cpu().numpy()
        )
        # RoBERTa's table has rows that are no positions before the first one.
        return table[getattr(self.config, "first_position", 0) :]

    def embed_words(
        self, sentences: Sequence[Sequence[str]] | Sequence[str], *, layers: Any = "last"
    ) -> list[np.ndarray]:
        """One contextual vector per word of each sentence, a (words, D) array per sentence.

        Sentences are lists of words, or texts, which are tokenized like the training corpus.
        """
        if are_texts(sentences):
            texts: Any = sentences
            return [own.vectors_WD for own in self.embed_spans(texts, layers=layers)]
        return self._embed_sentences([list(words) for words in sentences], layers)

    def describe(self) -> dict[str, Any]:
        """What the model is: sizes, text, languages and training."""
        found = super().describe() | {"preset": self.preset, "config": self.config.to_dict()}
        if self.network is not None:
            found["parameters"] = sum(own.numel() for own in self.network.parameters())
            found["layer_widths"] = list(self.layer_widths)
            found["precision"] = self.precision
        if "words" in self.capabilities:
            found["words_are"] = self.words_are
        return found | {
            "text": self.text.to_dict(),
            "training": self.training.to_dict(),
            "metrics": self.history.last(),
        }

    def perplexity(self, corpus: Any, *, progress: Reporter | None = None) -> float:
        """The perplexity of a text per word, including unknown words and sentence ends."""
        self.trained("score")
        found: float = self.evaluate(corpus, progress=progress).perplexity
        return found

    def _word_table(self) -> WordVectors:
        """The input vectors of the words."""
        raise NotImplementedError

    def _embed_sentences(self, sentences: list[list[str]], layers: Any) -> list[np.ndarray]:
        """The vectors of the words of tokenized sentences, a (words, D) array per sentence."""
        texts, spans = joined_words(sentences)
        return [own.vectors_WD for own in self.embed_spans(texts, spans, layers=layers)]

    # ---- the folder -----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder` atomically."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        if self.network is None:
            raise OptionError("This model has nothing to save yet: call fit first.")
        with write_folder(folder) as scratch:
            self._write(scratch)
            self.history.save(scratch / HISTORY)
            records = [record for record in self.history if "loss" in record]
            if len(records) > 1:  # there is a line to draw
                draw(records, scratch / CURVE, title=f"{self.title}: loss")
            write_manifest(scratch, self.manifest())

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {
            "preset": self.preset,
            "training": self.training.to_dict(),
            "precision": self.precision,
            "text": self.text.to_dict(),
            "data": self.data,
            "plan": self.plan,
            "metrics": self.history.last(),
            **self.told_forecast(),
        }

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path) -> Self:
        """Open a model that was saved by `fit` or `save`."""
        folder = Path(folder)
        manifest = read_manifest(folder, FORMAT, cls.kind)
        with read_errors(folder / MANIFEST):
            model = cls._made(manifest)
        model._read(folder)
        model.history = History.load(folder / HISTORY)
        model.plan, model.data = manifest.get("plan", {}), part_of(manifest, "data")
        model.precision = manifest.get("precision", "")
        return model

    @classmethod
    def _made(cls, manifest: dict[str, Any]) -> Self:
        """A model with the options in sememe.json."""
        preset, options = manifest["preset"], dict(manifest["training"])
        for name in cls.more_options:
            options |= manifest.get(name, {})
        model = cls(preset, **options)
        model.text = cls.text_class.from_dict(manifest["text"])
        model._take_up(manifest)
        return model

    def take_over(self, other: Self) -> None:
        """Take over the state of another model of the same kind, except for its options."""
        for name in self.learned:
            setattr(self, name, getattr(other, name))

    # ---- planning -------------------------------------------------------------------------------

    def num_weights(self) -> int:
        """The number of weights of the network, which is not made."""
        return sum(own.numel() for own in self._outline().parameters())

    def flops_per_step(self) -> float:
        """Floating-point operations of one training step: products of matrices, forward and back.

        Every weight of a matrix is multiplied and added once per token, except in tables, of which
        a token takes one row. The backward pass takes twice as much.
        """
        return 3.0 * self._flops_per_token() * self.training.batch_size * self.training.length

    def _flops_per_token(self) -> float:
        parameters = self._outline().named_parameters()
        dense = (own.numel() for name, own in parameters if own.dim() > 1 and not _is_table(name))
        return 2.0 * sum(dense)

    def _outline(self) -> Any:
        """The network without values in its weights."""
        with torch.device("meta"):
            return self.new_network()

    def frequency_loss(self, metrics: Metrics) -> float | None:
        """The loss of predicting by frequency alone, from the metrics of a validation."""
        if "unigram_loss" in metrics:
            return metrics["unigram_loss"]
        found = metrics.get("unigram_perplexity")
        return None if found is None else math.log(found)

    # ---- what differs: options ------------------------------------------------------------------

    def _sizes(self, preset: str, options: dict[str, Any]) -> Any:
        """The sizes of a preset with some options replaced."""
        return chosen(self.presets, type(self).__name__, preset, options)

    def _usual_text(self) -> TextSettings:
        """The default text settings."""
        return self.text_class()

    def _shape(self) -> str:
        """The sizes of the network as text."""
        return f"{self.config.num_layers} layers × {self.config.width}"

    def _knows(self) -> str:
        """How many words or tokens the network knows, as text."""
        return f"{self.config.vocab_size:,} tokens"

    def _check(self) -> None:
        """Raise OptionError for options that contradict each other."""

    # ---- what differs: learning -----------------------------------------------------------------

    def open_text(self, corpus: Any, request: Request) -> Texts | WordText:
        """Open the corpus as ids; its vocabulary or tokenizer becomes the model's."""
        raise NotImplementedError

    def plan_of(self, text: Any) -> dict[str, Any]:
        """What identifies a run: the options that affect the result, and its corpus."""
        return {
            "network": self.config.to_dict(),
            "training": self.training.lasting(),
            "content": dict(text.content),
        }

    def new_network(self) -> Any:
        """An untrained network of the model's sizes."""
        return self.network_class(self.config, seed=self.training.seed)

    def begin(self, text: Any, source: TrainingSource, reporter: Reporter) -> Objective:
        """Initialize the new network, and return it with its objective."""
        raise NotImplementedError

    def add_metrics(self, text: Any, validation: Any) -> Callable[[Metrics], Metrics]:
        """A function that adds derived metrics to those of a validation."""
        raise NotImplementedError

    def shown(self) -> str:
        """The metric to show with the progress."""
        return "validation_loss"

    def rate_groups(self) -> Callable[[int], list[RateGroup]] | None:
        """Layers with their own learning rates, once the number of steps is known."""
        return None

    # ---- what differs: the folder ---------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        """Write the learned parameters."""
        raise NotImplementedError

    def _take_up(self, manifest: dict[str, Any]) -> None:
        """Read the rest of sememe.json."""

    def _read(self, folder: Path) -> None:
        """Read what `_write` wrote."""
        raise NotImplementedError


def _is_table(name: str) -> bool:
    return name.startswith(("embedding.", "input.characters", "input.words", "words."))


def are_texts(sentences: Any) -> bool:
    """Whether sentences are texts, not lists of words; a single text, or a mix, is refused."""
    Model.check_list(sentences, Iterable)
    is_text = bool(len(sentences)) and isinstance(sentences[0], str)
    for index, one in enumerate(sentences):
        is_right = isinstance(one, str) if is_text else not isinstance(one, str)
        if not is_right or not all(isinstance(word, str) for word in one):
            what = "text" if is_text else "list of words"
            raise InputError(f"Sentence {index + 1} is no {what}, as the others are.")
    return is_text


def joined_words(sentences: Sequence[Sequence[str]]) -> tuple[list[str], list[np.ndarray]]:
    """Lists of words joined by spaces, and the spans of the words, (words, 2) each."""
    spans = []
    for words in sentences:
        sizes = np.array([len(word) for word in words], np.int64)
        ends = np.cumsum(sizes + 1) - 1
        spans.append(np.stack([ends - sizes, ends], 1))
    return [" ".join(words) for words in sentences], spans
