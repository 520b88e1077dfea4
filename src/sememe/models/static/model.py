"""What every static model shares: options, text, a vocabulary with tensors, `save` and `load`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sememe.card import part_of, write_manifest
from sememe.contract import Model
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.estimator import not_fitted, text_array
from sememe.executor import cluster
from sememe.machine import imported, provenance
from sememe.models.fitting import Plan, Prepared, Request, fit
from sememe.models.static.loop import HISTORY, TENSORS, Callback, lasting
from sememe.models.static.simd import LANES
from sememe.options import changed, sorted_options
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    read_errors,
    read_manifest,
    reads_artifact,
    write_folder,
)
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build
from sememe.tokens.phrases import find_phrases
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors
from sememe.vectors.opening import chosen_rows

FORMAT = 1
ANY = -1  # number of rows


def content_of(tokens: TokenStore, num_words: int) -> dict[str, Any]:
    """What identifies the corpus of a run: its tokens, and how many of its words are trained."""
    return {
        "content": tokens.manifest.get("content"),
        "tokens": tokens.num_tokens,  # fewer if phrases were joined
        "words": num_words,
    }


class StaticModel(Model):
    """One vector per word, learned from a corpus. Models fill in the parts that differ."""

    config_class: ClassVar[Any]
    settings = TextSettings()
    embed_options: Mapping[str, Any] = {"pool": "mean"}

    def __init__(
        self, config: Any = None, *, text: TextSettings | None = None, **options: Any
    ) -> None:
        """Take options by name: of the model's config, and of the text that `fit` reads.

        A complete config or TextSettings may be given instead, or be changed by options.
        """
        take_options(self, config, text, options)
        self.history = History()
        self.plan: dict[str, Any] = {}  # identifies the run that made it
        self.vocabulary = Vocabulary.from_words([])
        self.tensors: dict[str, np.ndarray] = {}
        self._vectors: WordVectors | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.vocabulary):,} words × {self.config.dim})"

    def fit(
        self,
        corpus: Any = None,
        y: Any = None,
        *,
        text: TextSettings | None = None,
        phrases: int = 0,
        start: WordVectors | str | Path | None = None,
        store: str | Path | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        checkpoint_minutes: float = 10.0,
        callbacks: Sequence[Callback] = (),
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Train on `corpus`: paths, token lists, documents or a TokenStore; None: the built-in one.

        text or its fields by name (language="zh") say how text is read; `phrases` is the number of
        passes that join words such as new_york first; `start` gives pretrained vectors; `store` is
        the path of the token store. With `out` the model is saved there, with checkpoints next to
        it during training; `resume` continues from the last one; `overwrite` allows replacing an
        existing model. `y` is ignored: it is what scikit-learn gives with texts.
        """
        if y is not None:
            corpus = text_array(corpus)
        self.text = changed(text or self.settings, "fit", text_options)
        request = Request(
            start=start, phrases=phrases, store=store, out=out, resume=resume,
            overwrite=overwrite,
            checkpoint_minutes=checkpoint_minutes, callbacks=callbacks,
            reporter=as_reporter(progress),
        )  # fmt: skip
        return fit(self, corpus, request)

    def prepare(self, corpus: Any, request: Request) -> Prepared:
        """Open the corpus; return the run's plan and the function that trains."""
        tokens = self.open_text(corpus, request.phrases, request.store, request.reporter)
        return self.prepare_tokens(tokens, request)._replace(sizes=tokens.sizes)

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Return the plan of a run on a token store, and the function that trains."""
        raise NotImplementedError

    def plan_of(self, tokens: TokenStore, num_words: int) -> Plan:
        """What identifies a run: the options that affect the result, and its corpus."""
        return {"config": lasting(self.config), **content_of(tokens, num_words)}

    def open_text(
        self,
        corpus: Any,
        phrases: int,
        store: str | Path | None,
        reporter: Reporter,
        min_count: int | None = None,
    ) -> TokenStore:
        """Open the token store of the corpus, or build it; join phrases."""
        config = self.config
        tokens = open_or_build(
            corpus, self.text, min_count=min_count or config.min_count, workers=config.num_workers,
            path=store, progress=reporter,
        )  # fmt: skip
        if phrases:
            tokens = find_phrases(
                tokens, passes=phrases, workers=config.num_workers, progress=reporter
            )
        return tokens

    def trainable_words(self, tokens: TokenStore) -> int:
        """The number of words to train: the most frequent ones, as the options allow."""
        counts = tokens.vocabulary.counts
        size = int(np.searchsorted(-np.asarray(counts), -self.config.min_count, "right"))
        if self.config.max_words:
            size = min(size, self.config.max_words)
        if not size:
            highest = int(counts[0]) if len(counts) else 0
            raise InputError(
                f"No word occurs {self.config.min_count:,} times (the most frequent one "
                f"{highest:,} times): lower min_count or add text."
            )
        return size

    @property
    def is_fitted(self) -> bool:
        """Whether there are words."""
        return len(self.vocabulary) > 0

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not what can be made again from the tensors."""
        return {**vars(self), "_vectors": None}

    @property
    def vectors(self) -> WordVectors:
        """The vectors to use."""
        if not self.is_fitted:
            raise not_fitted("This model has no vectors yet: call fit first.")
        if self._vectors is None:
            self._vectors = self.make_vectors()
            self._vectors.kind, self._vectors.text = self.kind, self.text
        return self._vectors

    @property
    def words(self) -> WordVectors:
        """The vectors in which `embed` and `embed_words` look words up."""
        self.require("words")
        return self.vectors

    def describe(self) -> dict[str, Any]:
        """The kind and sizes, the options, the text settings, and the model's origin."""
        if not len(self.vocabulary):
            return super().describe()
        self.vectors.about = self.manifest()
        return self.vectors.describe()

    @property
    def num_parameters(self) -> int:
        """Number of learned parameters; the indices of a sparse matrix do not count."""
        places = ("starts", "columns")
        return sum(int(own.size) for name, own in self.tensors.items() if name not in places)

    def make_vectors(self) -> WordVectors:
        """The vectors as config.vectors chooses: input, output, their sum or concatenation."""
        return WordVectors(
            self.vocabulary, chosen_rows(self.config.vectors, self.input, self.output)
        )

    @property
    def input(self) -> np.ndarray:
        """The input vectors of the words, (rows, dim)."""
        return self._tensor("input")

    @property
    def output(self) -> np.ndarray:
        """The output vectors of the words, or of the nodes of a tree."""
        return self._tensor("output")

    def _tensor(self, name: str) -> np.ndarray:
        if name not in self.tensors:
            raise not_fitted("This model has no vectors yet: call fit first.")
        return self.tensors[name]

    def adopt(self, vocabulary: Vocabulary, **tensors: np.ndarray) -> None:
        """Take over what was learned."""
        self.vocabulary, self.tensors, self._vectors = vocabulary, tensors, None

    def take_over(self, other: StaticModel) -> None:
        """Take over the state of another model of the same kind, except for its options."""
        self.history, self.plan = other.history, other.plan
        self.adopt(other.vocabulary, **other.tensors)

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder` atomically."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        if not len(self.vocabulary):
            raise OptionError("This model has nothing to save yet: call fit first.")
        with write_folder(folder) as scratch:
            write_tensors(scratch / TENSORS, {**self.tensors, **self.vocabulary.to_tensors()})
            self.history.save(scratch / HISTORY)
            write_manifest(scratch, self.manifest())

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            **self.sizes(),
            "parameters": self.num_parameters,
            "config": self.config.to_dict(),
            "text": self.text.to_dict(),
            "data": self.data,
            "plan": self.plan,
            "metrics": self.history.last(),
            **self.told_forecast(),
            "provenance": provenance(),
        }

    def sizes(self) -> dict[str, Any]:
        """The sizes in sememe.json and `describe`."""
        return {"words": len(self.vocabulary), "dim": self.config.dim}

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model; its tensors are memory-mapped unless it is trained further."""
        folder = Path(folder)
        model, _ = open_manifest(cls, folder, f"not {cls.kind}; sememe.load may open it")
        tensors = dict(read_tensors(folder / TENSORS))
        vocabulary = Vocabulary.from_tensors(tensors, folder / TENSORS)
        for name in vocabulary.to_tensors():
            tensors.pop(name, None)
        model.adopt(vocabulary, **tensors)
        for name, shape in model.shapes().items():
            found = tensors[name].shape if name in tensors else None
            if (
                found is None
                or len(found) != len(shape)
                or any(wanted not in (ANY, own) for wanted, own in zip(shape, found, strict=True))
            ):
                told = " × ".join(f"{wanted:,}" for wanted in shape if wanted != ANY)
                raise ArtifactError(f"{folder / TENSORS} does not hold {told} numbers as {name}.")
        return model

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        return {"input": (len(self.vocabulary), self.config.dim), "output": (ANY, self.config.dim)}


class OnDevice(StaticModel):
    """A model that trains where its option `device` says; auto is the CPU."""

    trains_on_cluster: ClassVar[bool] = True  # on its CPUs; otherwise in this process

    @property
    def is_on_gpu(self) -> bool:
        """Whether the training takes a GPU."""
        return bool(self.config.device == "cuda")

    def open_text(self, *corpus: Any, **options: Any) -> TokenStore:
        """Open the token store of the corpus, or build it, if there is the device to train on."""
        if self.is_on_gpu:
            if self.trains_on_cluster and cluster() is not None:
                raise OptionError(
                    "Word vectors train on the CPUs of a cluster: leave out --cluster or device "
                    "cuda."
                )
            imported("sememe.models.static.gpu", "device_of")("cuda")
        return super().open_text(*corpus, **options)

    def plan_of(self, tokens: TokenStore, num_words: int) -> Plan:
        """What identifies a run; on a GPU it does not continue one of the CPU."""
        plan = super().plan_of(tokens, num_words)
        if self.is_on_gpu:
            plan["config"]["device"] = "cuda"
        return plan


def take_options(
    model: Any, config: Any, text: TextSettings | None, options: dict[str, Any]
) -> None:
    """Set the options of a model: its config, its text settings, and those of `transform`."""
    name, own = type(model).__name__, dict(options)
    given = {key: own.pop(key) for key in model.embed_options if key in own}
    model.embed_options = {**model.embed_options, **given}
    parts = sorted_options(name, own, {"config": model.config_class, "text": TextSettings})
    model.config = changed(config or model.config_class(), name, parts["config"])
    model.text = model.settings = changed(text or model.settings, name, parts["text"])


def open_manifest(kind: Any, folder: Path, otherwise: str) -> tuple[Any, dict[str, Any]]:
    """A model of this class with the options, text settings, plan and history of its folder.

    `otherwise` is the advice in the error for a folder of another kind.
    """
    manifest = read_manifest(folder, FORMAT)
    if manifest.get("kind") != kind.kind:
        raise ArtifactError(f"{folder} is of kind {manifest.get('kind')}, {otherwise}.")
    with read_errors(folder / MANIFEST):
        model = kind(config=kind.config_class(**manifest["config"]))
        model.text = model.settings = TextSettings.from_dict(manifest["text"])
    model.history, model.plan = History.load(folder / HISTORY), manifest.get("plan", {})
    model.data = part_of(manifest, "data")
    return model, manifest


def padded(size: int, multiple: int = LANES) -> int:
    """The smallest multiple of `multiple` that is not below `size`."""
    return -(-size // multiple) * multiple


def matrix(num_rows: int, dim: int) -> np.ndarray:
    """A zero matrix (rows, padded dim), with each row aligned to a cache line."""
    width = padded(dim)
    space = np.zeros(num_rows * width * 4 + 64, np.uint8)
    start = -space.ctypes.data % 64
    return space[start : start + num_rows * width * 4].view(np.float32).reshape(num_rows, width)
