"""Word2Vec: a corpus in, two matrices out; `fit`, `save`, `load`, and the vectors to use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, InputError, OptionError, WriteError
from sememe.progress import SILENT, History, Reporter
from sememe.static.word2vec.callbacks import Callback
from sememe.static.word2vec.config import Word2VecConfig
from sememe.storage.folder import MANIFEST, read_json, write_folder, write_json
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore, open_or_build
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

KIND, FORMAT = "word2vec", 1
TENSORS, HISTORY = "model.safetensors", "history.json"


class Word2Vec:
    """Word vectors by predicting neighbors (Mikolov et al. 2013).

    model = sememe.Word2Vec(dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    def __init__(self, config: Word2VecConfig | None = None, **options: Any) -> None:
        """Take the options of Word2VecConfig by name, or a whole config, or both."""
        known = {field.name for field in fields(Word2VecConfig)}
        if unknown := sorted(set(options) - known):
            raise OptionError(
                f"Word2Vec has no option {', '.join(unknown)}; it has {', '.join(sorted(known))}."
            )
        self.config = replace(config or Word2VecConfig(), **options)
        self.text = TextSettings()
        self.history = History()
        self.plan: dict[str, Any] = {}  # what identifies the run that made it
        self.vocabulary = Vocabulary.from_words([])
        self.input = np.empty((0, self.config.dim), np.float32)
        self.output = np.empty((0, self.config.dim), np.float32)
        self._vectors: WordVectors | None = None

    def __repr__(self) -> str:
        shape = f"{len(self.vocabulary):,} words × {self.config.dim}"
        return f"Word2Vec({self.config.architecture}, {self.config.loss}: {shape})"

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
    ) -> Word2Vec:
        """Learn from `corpus`: paths, token lists, documents, a TokenStore; None: the built-in one.

        text or its fields by name (language="zh") say how text is read; `phrases` passes join
        words such as new_york first; `start` gives pretrained vectors for words it knows; `store`
        is the place of the token store. With `out` the model is saved there, checkpoints lie
        beside it while it trains, and `resume` continues from the last one.
        """
        from sememe.compiled import is_first_use
        from sememe.static.word2vec.fitting import check_request, fit

        reporter = _reporter(progress)
        self.text = _text_settings(text, text_options)
        check_request(self.config, out, resume, checkpoint_minutes)
        if is_first_use():
            reporter.note("Compiling the kernels: once for this version, about half a minute.")
        tokens = self._open(corpus, phrases, store, reporter)
        return fit(
            self, tokens, start=start, out=out, resume=resume,
            checkpoint_minutes=checkpoint_minutes, callbacks=callbacks, reporter=reporter,
        )  # fmt: skip

    def continue_fit(
        self,
        corpus: Any,
        *,
        epochs: int | None = None,
        text: TextSettings | None = None,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Word2Vec:
        """Go on with new text. New words that reach min_count in it are added to the vocabulary.

        With hierarchical softmax the tree stands, so new words are left out there.
        """
        from sememe.static.word2vec.fitting import continue_fit

        if not len(self.vocabulary):
            raise OptionError("This model has not been fitted yet: call fit first.")
        reporter = _reporter(progress)
        if text is not None or text_options:
            self.text = _text_settings(text, text_options)
        # Words that are known already count even where the new text has them once.
        tokens = self._open(corpus, 0, None, reporter, min_count=1)
        return continue_fit(self, tokens, epochs or self.config.epochs, reporter)

    def _open(
        self,
        corpus: Any,
        phrases: int,
        store: str | Path | None,
        reporter: Reporter,
        min_count: int | None = None,
    ) -> TokenStore:
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

    @property
    def vectors(self) -> WordVectors:
        """The vectors to use: input, output, their sum or concatenation, as config.vectors says."""
        if not len(self.vocabulary):
            raise OptionError("This model has no vectors yet: call fit first.")
        if self._vectors is None:
            self._vectors = WordVectors(self.vocabulary, self._chosen())
        return self._vectors

    def _chosen(self) -> np.ndarray:
        choice = self.config.vectors
        if choice == "input":
            return self.input
        if choice == "output":
            return self.output
        if choice == "sum":
            return self.input + self.output
        return np.concatenate([self.input, self.output], axis=1)

    def adopt(self, vocabulary: Vocabulary, input: np.ndarray, output: np.ndarray) -> None:
        """Take over trained matrices (rows of `dim` numbers)."""
        self.vocabulary, self.input, self.output = vocabulary, input, output
        self._vectors = None

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder`, which appears whole or not at all."""
        folder = Path(folder)
        check_replaceable(folder)
        if not len(self.vocabulary):
            raise OptionError("This model has nothing to save yet: call fit first.")
        with write_folder(folder) as scratch:
            self.write(scratch)

    def write(self, folder: Path) -> None:
        """Fill a scratch folder with the model's files."""
        tensors = {"input": self.input, "output": self.output, **self.vocabulary.to_tensors()}
        write_tensors(folder / TENSORS, tensors)
        self.history.save(folder / HISTORY)
        write_json(
            folder / MANIFEST,
            {
                "kind": KIND,
                "format": FORMAT,
                "words": len(self.vocabulary),
                "dim": self.config.dim,
                "config": self.config.to_dict(),
                "text": self.text.to_dict(),
                "plan": self.plan,
                "provenance": provenance(),
            },
        )

    @classmethod
    def load(cls, folder: str | Path) -> Word2Vec:
        """Open a saved model; the matrices are memory-mapped until it is trained further."""
        folder = Path(folder)
        if not folder.is_dir():
            raise ArtifactError(f"There is no model folder at {folder}.")
        manifest = read_json(folder / MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
            raise ArtifactError(f"{folder} is not a word2vec model; sememe.load may open it.")
        if manifest.get("format") != FORMAT:
            raise ArtifactError(
                f"{folder} has format {manifest.get('format')!r}; this version reads {FORMAT}."
            )
        try:
            model = cls(Word2VecConfig(**manifest["config"]))
            model.text = TextSettings(**manifest["text"])
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        tensors = read_tensors(folder / TENSORS)
        vocabulary = Vocabulary.from_tensors(tensors)
        shape = (len(vocabulary), model.config.dim)
        if "input" not in tensors or "output" not in tensors or tensors["input"].shape != shape:
            raise ArtifactError(
                f"{folder / TENSORS} does not hold {shape[0]:,} × {shape[1]} vectors."
            )
        model.adopt(vocabulary, tensors["input"], tensors["output"])
        model.history = History.load(folder / HISTORY)
        model.plan = manifest.get("plan", {})
        return model


def check_replaceable(folder: Path) -> None:
    """Refuse to replace a folder that is not a word2vec model of ours."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    is_ours = folder.is_dir() and (folder / MANIFEST).is_file()
    if not is_ours or read_json(folder / MANIFEST).get("kind") != KIND:
        raise WriteError(f"{folder} exists and is not a word2vec model; choose another name.")


def _reporter(progress: Reporter | bool | None) -> Reporter:
    if isinstance(progress, bool) or progress is None:
        return Reporter() if progress else SILENT
    return progress


def _text_settings(text: TextSettings | None, options: dict[str, Any]) -> TextSettings:
    known = {field.name for field in fields(TextSettings)}
    if unknown := sorted(set(options) - known):
        raise OptionError(f"fit has no option {', '.join(unknown)}.")
    return replace(text or TextSettings(), **options)


def trainable_words(store: TokenStore, config: Word2VecConfig) -> int:
    """How many of the store's words, from the most frequent on, the options let in."""
    counts = store.vocabulary.counts
    size = int(np.searchsorted(-np.asarray(counts), -config.min_count, "right"))
    if config.max_words:
        size = min(size, config.max_words)
    if not size:
        highest = int(counts[0]) if len(counts) else 0
        raise InputError(
            f"No word occurs {config.min_count:,} times (the most frequent one {highest:,} times): "
            "lower min_count or add text."
        )
    return size
