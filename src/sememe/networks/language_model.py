"""What the language models share: a corpus in, a network out; options, `fit`, `save`, `load`.

A model names the classes of its options and fills in what differs, which stands at the end of the
class: the text as it reads it, its network with what that is to learn, and the files of its folder.
`fitting` has the order in which `fit` asks for all that. What NNLM, ELMo and ULMFiT share beyond
this stands in `word_model`; what BERT and GPT do, in `subword_model`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.networks.installed import need_torch
from sememe.networks.model_folder import CURVE, HISTORY, draw_loss, read_manifest
from sememe.options import changed, sorted_options
from sememe.progress import History, Reporter, as_reporter
from sememe.progress.figures import format_count
from sememe.storage.folder import MANIFEST, check_replaceable, write_folder, write_json
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.networks.fitting import Figures, Request, Text
    from sememe.training.objective import Objective, Source
    from sememe.training.optimizers import RateGroup


class LanguageModel:
    """A network that is trained on plain text. Models fill in the parts that differ."""

    kind: ClassVar[str]  # as in sememe.json
    config_class: ClassVar[Any]  # the sizes of the network
    training_class: ClassVar[Any]
    text_class: ClassVar[type[TextSettings]] = TextSettings
    # What a finished training leaves.
    learned: ClassVar[tuple[str, ...]] = ("network", "config", "history", "plan", "precision")

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a size by name, and options of the network and the training."""
        own = self._sorted(options)
        self.preset = preset
        self.config = self._sizes(preset, own["network"])
        training = self.training_class(**own["training"])
        usual = self._usual(preset).items()
        self.training = replace(
            training, **{name: value for name, value in usual if not getattr(training, name)}
        )
        self.text: TextSettings = self.text_class()
        self.history = History()
        self.plan: dict[str, Any] = {}  # what identifies the run that made it
        self.precision = ""  # in which it was trained, whatever the options leave open
        self.network: Any = None

    def __repr__(self) -> str:
        state = "untrained" if self.network is None else self._knows()
        return f"{type(self).__name__}({self.preset}: {self._shape()}, {state})"

    def fit(
        self,
        corpus: Any = None,
        *,
        text: TextSettings | None = None,
        store: str | Path | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Learn from `corpus`: paths, token lists, documents, a TokenStore; None: the built-in one.

        text or its fields by name (language="zh") say how text is read; `store` is the place of
        the token store. With `out` the model is saved there, checkpoints lie beside it while it
        trains, and `resume` continues from the last one.
        """
        self.text = changed(text or self._usual_text(), "fit", text_options)
        return self._fit(corpus, store=store, out=out, resume=resume, progress=progress)

    def _fit(
        self, corpus: Any, *, out: Any, progress: Reporter | bool | None, **asked: Any
    ) -> Self:
        need_torch()
        from sememe.networks.fitting import Request, fit

        out = None if out is None else Path(out)
        request = Request(out=out, reporter=as_reporter(progress), **asked)
        if request.out is not None:
            check_replaceable(request.out, self.kind)
        elif request.resume:
            raise OptionError("To resume, `out` must say where the model was to be saved.")
        self._check()
        fit(self, corpus, request)
        return self

    def greeting(self) -> str:
        """What is about to be trained, in words."""
        num_weights = format_count(sum(own.numel() for own in self.network.parameters()))
        name = f"{type(self).__name__} {self.preset}"
        return f"{name}: {self._shape()}, {num_weights} weights, {self._knows()}"

    def trained(self) -> Any:
        """The network, which must have learned."""
        if self.network is None:
            raise OptionError("This model has not learned yet: call fit first.")
        return self.network

    # ---- the folder -----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder`, which appears whole or not at all."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        if self.network is None:
            raise OptionError("This model has nothing to save yet: call fit first.")
        with write_folder(folder) as scratch:
            self._write(scratch)
            self.history.save(scratch / HISTORY)
            draw_loss(self.history, scratch / CURVE, f"{type(self).__name__} {self.preset}")
            write_json(scratch / MANIFEST, self.manifest())

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {
            "preset": self.preset,
            "training": self.training.to_dict(),
            "precision": self.precision,
            "text": self.text.to_dict(),
            "plan": self.plan,
            "figures": self.history.last(),
        }

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a model that was saved by `fit` or `save`."""
        need_torch()
        folder = Path(folder)
        manifest = read_manifest(folder, cls.kind)
        try:
            model = cls(manifest["preset"], **cls._kept_options(manifest))
            model.text = cls.text_class(**manifest["text"])
            model._take_up(manifest)
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        model._read(folder)
        model.history = History.load(folder / HISTORY)
        model.plan = manifest.get("plan", {})
        model.precision = manifest.get("precision", "")
        return model

    def take_over(self, other: Self) -> None:
        """Become what another model of the same kind is, but for the options."""
        for name in self.learned:
            setattr(self, name, getattr(other, name))

    # ---- what differs: options ------------------------------------------------------------------

    @classmethod
    def _classes(cls) -> dict[str, type]:
        """The classes of the options, by what they are for."""
        return {"network": cls.config_class, "training": cls.training_class}

    def _sorted(self, options: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return sorted_options(type(self).__name__, options, self._classes())

    @classmethod
    def _kept_options(cls, manifest: dict[str, Any]) -> dict[str, Any]:
        """The options that sememe.json keeps."""
        return dict(manifest["training"])

    def _sizes(self, preset: str, options: dict[str, Any]) -> Any:
        """The sizes of a preset, some options replaced."""
        raise NotImplementedError

    def _usual(self, preset: str) -> dict[str, Any]:
        """What the preset says of the training where the options do not."""
        raise NotImplementedError

    def _usual_text(self) -> TextSettings:
        """How text is read where nobody says."""
        return self.text_class()

    def _shape(self) -> str:
        """The sizes of the network in words."""
        raise NotImplementedError

    def _knows(self) -> str:
        """How many words or tokens the network knows, in words."""
        raise NotImplementedError

    def _check(self) -> None:
        """Refuse options that do not go together."""

    # ---- what differs: learning -----------------------------------------------------------------

    def open_text(self, corpus: Any, request: Request) -> Text:
        """The text as ids; its words or its tokenizer are the model's from now on."""
        raise NotImplementedError

    def plan_of(self, text: Any) -> dict[str, Any]:
        """What identifies a run: the options that shape it, and its text."""
        return {
            "network": self.config.to_dict(),
            "training": self.training.lasting(),
            "content": dict(text.content),
        }

    def new_network(self) -> Any:
        """An untrained network of the model's sizes."""
        raise NotImplementedError

    def begin(self, text: Any, source: Source, reporter: Reporter) -> Objective:
        """Let the new network begin with what is known; give it with what it is to learn."""
        raise NotImplementedError

    def add_figures(self, text: Any, validation: Any) -> Callable[[Figures], Figures]:
        """A function that puts beside the figures of a validation what can be told from them."""
        raise NotImplementedError

    def shown(self) -> str:
        """The figure that stands beside the progress."""
        return "validation_loss"

    def rate_groups(self) -> Callable[[int], list[RateGroup]] | None:
        """Layers with rates of their own, once the number of steps is known."""
        return None

    # ---- what differs: the folder ---------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        """Write what was learned."""
        raise NotImplementedError

    def _take_up(self, manifest: dict[str, Any]) -> None:
        """Take up what sememe.json says beside the options."""

    def _read(self, folder: Path) -> None:
        """Take up what `_write` wrote."""
        raise NotImplementedError


def refuse_one_text(sentences: Any) -> None:
    """Refuse a text where sentences are asked for: its letters are no sentences."""
    if isinstance(sentences, str):
        raise InputError("Give a list of sentences, not one text.")
