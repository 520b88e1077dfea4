"""What every static model shares: options, text, a vocabulary with tensors, `save` and `load`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.options import changed
from sememe.progress import History, Reporter, as_reporter
from sememe.static.callbacks import Callback
from sememe.static.fitting import Request
from sememe.static.loop import HISTORY, TENSORS
from sememe.storage.folder import (
    MANIFEST,
    check_format,
    check_replaceable,
    read_json,
    write_folder,
    write_json,
)
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore, open_or_build
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

FORMAT = 1


class StaticModel:
    """One vector for each word, learned from a corpus. Models fill in the parts that differ."""

    kind: ClassVar[str]  # as in sememe.json
    config_class: ClassVar[Any]

    def __init__(self, config: Any = None, **options: Any) -> None:
        """Take the options of the model's config by name, or a whole config, or both."""
        self.config = changed(config or self.config_class(), type(self).__name__, options)
        self.text = TextSettings()
        self.history = History()
        self.plan: dict[str, Any] = {}  # what identifies the run that made it
        self.vocabulary = Vocabulary.from_words([])
        self.tensors: dict[str, np.ndarray] = {}
        self._vectors: WordVectors | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.vocabulary):,} words × {self.config.dim})"

    def fit(
        self,
        corpus: Any = None,
        *,
        text: TextSettings | None = None,
        phrases: int = 0,
        start: WordVectors | str | Path | None = None,
        store: str | Path | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        checkpoint_minutes: float = 10.0,
        callbacks: Sequence[Callback] = (),
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Learn from `corpus`: paths, token lists, documents, a TokenStore; None: the built-in one.

        text or its fields by name (language="zh") say how text is read; `phrases` passes join
        words such as new_york first; `start` gives pretrained vectors for words it knows; `store`
        is the place of the token store. With `out` the model is saved there, checkpoints lie
        beside it while it trains, and `resume` continues from the last one.
        """
        from sememe.compiled import is_first_use

        reporter = as_reporter(progress)
        request = Request(
            start=start, out=out, resume=resume, checkpoint_minutes=checkpoint_minutes,
            callbacks=callbacks, reporter=reporter,
        )  # fmt: skip
        self.text = changed(text or TextSettings(), "fit", text_options)
        request.check(self.kind)
        self.check()
        if is_first_use():
            reporter.note("Compiling the kernels: once for this version, about half a minute.")
        self.train(self.open_text(corpus, phrases, store, reporter), request)
        return self

    def check(self) -> None:
        """Refuse options that do not go together, before any text is read."""

    def train(self, tokens: TokenStore, request: Request) -> None:
        """Learn from a token store as the request says."""
        raise NotImplementedError

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
            from sememe.tokens.phrases import find_phrases

            tokens = find_phrases(
                tokens, passes=phrases, workers=config.num_workers, progress=reporter
            )
        return tokens

    def trainable_words(self, tokens: TokenStore) -> int:
        """How many of the store's words, from the most frequent on, the options let in."""
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
    def vectors(self) -> WordVectors:
        """The vectors to use."""
        if not len(self.vocabulary):
            raise OptionError("This model has no vectors yet: call fit first.")
        if self._vectors is None:
            self._vectors = self.make_vectors()
        return self._vectors

    def make_vectors(self) -> WordVectors:
        """The vectors as config.vectors chooses: input, output, their sum or concatenation."""
        return WordVectors(
            self.vocabulary, chosen_rows(self.config.vectors, self.input, self.output)
        )

    @property
    def input(self) -> np.ndarray:
        """The vectors of the words as they predict, (rows, dim)."""
        return self._tensor("input")

    @property
    def output(self) -> np.ndarray:
        """The vectors of the words, or of the nodes of a tree, as they are predicted."""
        return self._tensor("output")

    def _tensor(self, name: str) -> np.ndarray:
        if name not in self.tensors:
            raise OptionError("This model has no vectors yet: call fit first.")
        return self.tensors[name]

    def adopt(self, vocabulary: Vocabulary, **tensors: np.ndarray) -> None:
        """Take what was learned."""
        self.vocabulary, self.tensors, self._vectors = vocabulary, tensors, None

    def take_over(self, other: StaticModel) -> None:
        """Become what another model of the same kind is, but for the options."""
        self.history, self.plan = other.history, other.plan
        self.adopt(other.vocabulary, **other.tensors)

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder`, which appears whole or not at all."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        if not len(self.vocabulary):
            raise OptionError("This model has nothing to save yet: call fit first.")
        with write_folder(folder) as scratch:
            write_tensors(scratch / TENSORS, {**self.tensors, **self.vocabulary.to_tensors()})
            self.history.save(scratch / HISTORY)
            write_json(scratch / MANIFEST, self.manifest())

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "words": len(self.vocabulary),
            "dim": self.config.dim,
            "config": self.config.to_dict(),
            "text": self.text.to_dict(),
            "plan": self.plan,
            "provenance": provenance(),
        }

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model; its tensors are memory-mapped until it is trained further."""
        folder = Path(folder)
        if not folder.is_dir():
            raise ArtifactError(f"There is no model folder at {folder}.")
        manifest = read_json(folder / MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("kind") != cls.kind:
            raise ArtifactError(f"{folder} is not a {cls.kind} model; sememe.load may open it.")
        check_format(folder, manifest, FORMAT)
        try:
            model = cls(cls.config_class(**manifest["config"]))
            model.text = TextSettings(**manifest["text"])
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        tensors = dict(read_tensors(folder / TENSORS))
        vocabulary = Vocabulary.from_tensors(tensors)
        for name in vocabulary.to_tensors():
            tensors.pop(name, None)
        model.adopt(vocabulary, **tensors)
        for name, shape in model.shapes().items():
            if name not in tensors or tensors[name].shape[-len(shape) :] != shape:
                raise ArtifactError(
                    f"{folder / TENSORS} does not hold {' × '.join(f'{n:,}' for n in shape)} "
                    f"numbers as {name}."
                )
        model.history = History.load(folder / HISTORY)
        model.plan = manifest.get("plan", {})
        return model

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with the ends of their shapes."""
        return {"input": (len(self.vocabulary), self.config.dim), "output": (self.config.dim,)}


def chosen_rows(choice: str, input: np.ndarray, output: np.ndarray) -> np.ndarray:
    """Input, output, their sum or their concatenation."""
    if choice == "input":
        return input
    if choice == "output":
        return output
    return input + output if choice == "sum" else np.concatenate([input, output], axis=1)
